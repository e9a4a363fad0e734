"""Read the attention heads of a trained transformer, layer by layer, in the conventions of this library.

Files are opened through `safetensors` only: a format that can run code when it is opened is refused.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open

from mhalib import validation

PICKLED = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"}


@dataclass(frozen=True)
class Layer:
    """The heads of one attention layer, stacked on the first axis, in float64.

    Head h maps a token x to query ``query[h].T @ x + query_bias[h]``, likewise key and value, and its
    result m_h enters the layer as ``output[h] @ m_h``; the layer adds `output_bias` once.
    """

    name: str
    query: Float[np.ndarray, "H d d_k"]
    key: Float[np.ndarray, "H d d_k"]
    value: Float[np.ndarray, "H d d_k"]
    output: Float[np.ndarray, "H d d_k"]
    query_bias: Float[np.ndarray, "H d_k"]
    key_bias: Float[np.ndarray, "H d_k"]
    value_bias: Float[np.ndarray, "H d_k"]
    output_bias: Float[np.ndarray, " d"]


@dataclass(frozen=True)
class Layout:
    """Where one family of transformers keeps its attention maps.

    `block` is a regular expression for the name of a layer, with the layer's number in group ``index``;
    the other entries are the names of the four linear maps inside it.
    """

    family: str
    block: str
    query: str
    key: str
    value: str
    output: str


LAYOUTS = (
    Layout(
        family="BERT",
        block=r"(bert\.)?encoder\.layer\.(?P<index>\d+)",
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        output="attention.output.dense",
    ),
)


def load_heads(path: str | Path, *, heads: int | None = None) -> Iterator[Layer]:
    """Yield every attention layer of a safetensors model, one layer in memory at a time.

    Parameters
    ----------
    path : a ``.safetensors`` file, or a folder that holds ``model.safetensors``.
    heads : number of heads H; by default ``num_attention_heads`` of the ``config.json`` beside the weights.

    Returns an iterator of `Layer`, in the order of the network, with arrays (H, d, d_k): a linear map stored
    as (H d_k, d) is cut into its heads and transposed, the output map stored as (d, H d_k) is cut by columns.

    Raises ``ValueError``, before the first layer is read, for a missing, truncated or pickled file, an
    unknown layout, or an unknown head count; while reading, for a missing tensor, a size that H does not
    divide, or entries that are not finite. Cost: one read of the attention weights.

    >>> load_heads("nowhere.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: path must be an existing file or folder, got nowhere.safetensors
    """
    file = weights_file(path)
    heads = _configured_heads(file) if heads is None else validation.at_least("heads", heads, 1)
    with open_weights(file) as weights:
        layout, blocks = _find_layers(file, weights.keys())
    return (_read_layer(file, layout, block, heads) for block in blocks)


def weights_file(path: str | Path) -> Path:
    """Return the safetensors file meant by `path`, a file or a folder; ``ValueError`` if there is none."""
    path = Path(path)
    if not path.exists():
        raise ValueError(f"path must be an existing file or folder, got {path}")
    file = path / "model.safetensors" if path.is_dir() else path
    if file.suffix in PICKLED:
        raise ValueError(f"path must be a safetensors file, got {file}: pickled weights are never opened")
    if not file.exists():
        raise ValueError(f"path must hold model.safetensors, got the folder {path} without one "
                         "(pickled weights are never opened)")
    return file


def read_config(folder: Path) -> dict:
    """Return the ``config.json`` of a model folder; ``ValueError`` if it is missing or not a JSON object."""
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(f"path must have a config.json beside the weights, none in {folder}")
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} must hold a JSON object: {error}") from None


@contextmanager
def open_weights(file: Path):
    """Open a safetensors file for reading; ``ValueError`` if it is truncated, corrupted or another format."""
    try:
        with safe_open(file, framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        raise ValueError(f"{file} is not a readable safetensors file, "
                         f"perhaps truncated or corrupted: {error}") from None


def read_tensor(weights, name: str, axes: str, **sizes: int) -> np.ndarray:
    """Return one tensor of an opened file in float64; ``ValueError`` if absent, misshapen or not finite."""
    if name not in set(weights.keys()):
        raise ValueError(f"the weights hold no tensor {name!r}")
    return validation.array(name, weights.get_tensor(name).double().numpy(), axes, **sizes)


def split_heads(name: str, weight: Float[np.ndarray, "Hd_k d"], heads: int) -> Float[np.ndarray, "H d d_k"]:
    """Cut a linear map, stored with outputs as rows, into one (d, d_k) matrix a head, so that k = W.T @ x.

    Raises ``ValueError`` when the number of rows is not divisible by the number of heads.

    >>> split_heads("key", np.eye(4), heads=2).shape
    (2, 4, 2)
    """
    rows, dim = weight.shape
    if rows % heads:
        raise ValueError(f"{name} has a side of {rows}, which {heads} heads do not divide")
    return weight.reshape(heads, rows // heads, dim).swapaxes(1, 2)


def _find_layers(file: Path, names: list[str]) -> tuple[Layout, list[str]]:
    for layout in LAYOUTS:
        pattern = re.compile(rf"(?P<block>{layout.block})\.{re.escape(layout.query)}\.weight")
        found = [match for match in map(pattern.fullmatch, names) if match]
        if found:
            found.sort(key=lambda match: int(match["index"]))
            return layout, [match["block"] for match in found]
    known = ", ".join(layout.family for layout in LAYOUTS)
    raise ValueError(f"{file} has an unknown layout: its {len(names)} tensors match none of {known}")


def _read_layer(file: Path, layout: Layout, block: str, heads: int) -> Layer:
    arrays = {}
    with open_weights(file) as weights:
        for role in ("query", "key", "value", "output"):
            name = f"{block}.{getattr(layout, role)}"
            weight = read_tensor(weights, f"{name}.weight", "rows columns")
            bias = read_tensor(weights, f"{name}.bias", "rows", rows=len(weight))
            by_head = weight.T if role == "output" else weight
            arrays[role] = np.ascontiguousarray(split_heads(f"{name}.weight", by_head, heads))
            arrays[f"{role}_bias"] = bias if role == "output" else bias.reshape(heads, -1)
    shapes = {role: arrays[role].shape for role in ("query", "key", "value", "output")}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{block} must have maps of one shape (H, d, d_k), got {shapes}")
    return Layer(name=block, **arrays)


def _configured_heads(file: Path) -> int:
    config = read_config(file.parent)
    if "num_attention_heads" not in config:
        raise ValueError(f"heads must be given: the config.json beside {file} has no num_attention_heads")
    return validation.at_least("num_attention_heads", config["num_attention_heads"], 1)
