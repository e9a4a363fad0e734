"""The two encoders of these tests: the real one where it is installed, and a tiny random one."""

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

from mhalib.heads.encoder import MODEL_PACKAGE, MODEL_VERSION, Encoder, installed_model

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "a", "mat", "##s", ".", ",", "dog")
TEXT = "The cats sat on a mat, a dog sat on the cat."


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test of this folder may ask the network for a model."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def model_folder():
    folder = installed_model()
    if folder is None:
        pytest.skip(f"the real model is not installed: run make model ({MODEL_PACKAGE} {MODEL_VERSION})")
    return folder


@pytest.fixture(scope="session")
def encoder(model_folder):
    return Encoder(model_folder)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"), transformers.BertModel)


@pytest.fixture(scope="session")
def tiny(tiny_folder):
    return Encoder(tiny_folder)


@pytest.fixture(scope="session")
def tiny_trace(tiny):
    return tiny.trace(TEXT)


@pytest.fixture(scope="session")
def save():
    return save_tiny


def save_tiny(folder, model_class):
    """A random BERT with 2 layers of 3 heads, d = 24, d_k = 8, saved by `transformers` with its tokenizer."""
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=24, num_attention_heads=3, num_hidden_layers=2,
        intermediate_size=40, max_position_embeddings=20,
    )
    model = model_class(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(folder)
    tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def reference():
    """Attention (L, H, n, n) and hidden states (L+1, n, d) of a model on token ids, by `transformers`."""

    def run(folder, ids, dtype):
        model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager", dtype=dtype)
        with torch.no_grad():
            result = model.eval()(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
        return tuple(np.concatenate([part.double().numpy() for part in parts])
                     for parts in (result.attentions, result.hidden_states))

    return run
