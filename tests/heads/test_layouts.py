"""Heads are read in the documented convention, and only from sound safetensors files."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from mhalib.heads.layouts import Layer, load_heads, split_heads


def altered(source, target, change):
    """Copy a model folder with its tensors changed by `change(dict)`."""
    shutil.copytree(source, target)
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors")
    return target


def test_heads_reproduce_the_linear_maps(tiny_folder):
    """k = W.T @ x + b for every head is the stored map; swapping query and key must break it."""
    tensors = load_file(tiny_folder / "model.safetensors")
    x = np.random.default_rng(0).standard_normal(24)
    layers = list(load_heads(tiny_folder))
    assert [layer.name for layer in layers] == ["encoder.layer.0", "encoder.layer.1"]
    for layer in layers:
        stored = {role: tensors[f"{layer.name}.attention.self.{role}.weight"].double().numpy() @ x
                  for role in ("query", "key", "value")}
        for role, expected in stored.items():
            weight, bias = getattr(layer, role), getattr(layer, f"{role}_bias")
            assert weight.shape == (3, 24, 8)
            assert bias.shape == (3, 8)
            np.testing.assert_allclose((weight.swapaxes(1, 2) @ x).ravel(), expected, atol=1e-14)
        wrong = (layer.key.swapaxes(1, 2) @ x).ravel()
        assert np.abs(wrong - stored["query"]).max() > 1e-3


def test_output_map_acts_head_by_head(tiny_folder):
    """Σ_h output[h] @ m_h is the stored output map; heads in another order must break it."""
    tensors = load_file(tiny_folder / "model.safetensors")
    m = np.random.default_rng(0).standard_normal((3, 8))
    layer = next(load_heads(tiny_folder))
    expected = tensors["encoder.layer.0.attention.output.dense.weight"].double().numpy() @ m.ravel()
    np.testing.assert_allclose(np.einsum("hdk,hk->d", layer.output, m), expected, atol=1e-14)
    assert np.abs(np.einsum("hdk,hk->d", layer.output[::-1], m) - expected).max() > 1e-3


def test_prefixed_names_give_the_same_heads(tiny_folder, tmp_path, save):
    """A masked-language model keeps its encoder under `bert.`; other weights would not agree."""
    prefixed = save(tmp_path / "masked", transformers.BertForMaskedLM)
    names = [layer.name for layer in load_heads(prefixed)]
    assert names == ["bert.encoder.layer.0", "bert.encoder.layer.1"]

    def with_prefix(tensors):
        for name in list(tensors):
            tensors[f"bert.{name}"] = tensors.pop(name)

    renamed = altered(tiny_folder, tmp_path / "renamed", with_prefix)
    first, second = next(load_heads(tiny_folder)), next(load_heads(renamed))
    np.testing.assert_array_equal(first.query, second.query)
    assert np.abs(first.query - next(load_heads(prefixed)).key).max() > 1e-3


def test_layers_come_in_numerical_order(tiny_folder, tmp_path):
    """Layer 10 follows layer 9; alphabetical order would put it after layer 1."""

    def many(tensors):
        for name in [name for name in tensors if name.startswith("encoder.layer.0.")]:
            for index in range(2, 11):
                tensors[name.replace("layer.0.", f"layer.{index}.")] = tensors[name].clone()

    folder = altered(tiny_folder, tmp_path / "deep", many)
    names = [layer.name for layer in load_heads(folder)]
    assert names == [f"encoder.layer.{index}" for index in range(11)]
    assert names != sorted(names)


def test_half_precision_is_read(tiny_folder, tmp_path):
    """bfloat16 weights, unknown to NumPy, become float64 with the rounding of their storage."""

    def halve(tensors):
        tensors.update({name: tensor.bfloat16() for name, tensor in tensors.items()})

    rounded = next(load_heads(altered(tiny_folder, tmp_path / "half", halve))).query
    exact = next(load_heads(tiny_folder)).query
    assert rounded.dtype == np.float64
    assert 0 < np.abs(rounded - exact).max() < 2**-8 * np.abs(exact).max()


def test_one_layer_is_read_at_a_time(tiny_folder, tmp_path):
    """A later layer's damage is met only when that layer is reached."""

    def spoil(tensors):
        tensors["encoder.layer.1.attention.self.key.weight"][0, 0] = float("nan")

    layers = load_heads(altered(tiny_folder, tmp_path / "spoilt", spoil))
    assert isinstance(next(layers), Layer)
    with pytest.raises(ValueError, match=r"encoder\.layer\.1\.attention\.self\.key\.weight must be finite"):
        next(layers)


def test_head_count_can_be_given(tiny_folder, tmp_path):
    """An argument replaces config.json; without either there is an error."""
    lone = tmp_path / "weights.safetensors"
    shutil.copy(tiny_folder / "model.safetensors", lone)
    assert next(load_heads(lone, heads=6)).query.shape == (6, 24, 4)
    with pytest.raises(ValueError, match=r"must have a config\.json beside the weights"):
        load_heads(lone)
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 24}))
    with pytest.raises(ValueError, match="heads must be given"):
        load_heads(lone)


@pytest.mark.parametrize(("heads", "message"), [
    (5, "has a side of 24, which 5 heads do not divide"),
    (0, "heads must be an integer >= 1, got 0"),
    (3.0, "heads must be an integer >= 1, got 3.0"),
])
def test_wrong_head_count(tiny_folder, heads, message):
    with pytest.raises(ValueError, match=message):
        list(load_heads(tiny_folder, heads=heads))


@pytest.mark.parametrize(("name", "text", "message"), [
    ("config.json", "{", "must hold a JSON object"),
    ("config.json", "[1, 2]", "must hold a JSON object"),
    ("config.json", '{"num_attention_heads": "three"}', "num_attention_heads must be an integer >= 1, got 'three'"),
])
def test_bad_config(tiny_folder, tmp_path, name, text, message):
    folder = shutil.copytree(tiny_folder, tmp_path / "bad")
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_heads(folder)


def flip_header(data):
    return data[:20] + bytes(byte ^ 0xFF for byte in data[20:40]) + data[40:]


DAMAGES = {
    "flipped bytes": flip_header,
    "truncated at the end": lambda data: data[:-100],
    "truncated at the start": lambda data: data[:5],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file(tiny_folder, tmp_path, damage):
    """The undamaged bytes are read from the same place; the damaged ones are refused."""
    folder = shutil.copytree(tiny_folder, tmp_path / "damaged")
    file = folder / "model.safetensors"
    assert len(list(load_heads(folder))) == 2
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match="not a readable safetensors file, perhaps truncated or corrupted"):
        load_heads(folder)


class Bomb:
    """An object whose unpickling leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(("name", "message"), [
    ("weights.bin", "pickled weights are never opened"),
    ("weights.pt", "pickled weights are never opened"),
    ("weights.pth", "pickled weights are never opened"),
    ("model.safetensors", "not a readable safetensors file"),
])
def test_pickles_are_never_opened(tmp_path, name, message):
    """A pickle is refused whatever its name; opening it on purpose would set off its payload."""
    file, trace = tmp_path / name, tmp_path / "exploded"
    torch.save(Bomb(trace), file)
    with pytest.raises(ValueError, match=message):
        load_heads(file, heads=1)
    assert not trace.exists()
    torch.load(file.rename(tmp_path / "opened.pt"), weights_only=False).close()
    assert trace.exists()


def test_folder_with_pickled_weights_only(tmp_path):
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"must hold model\.safetensors.*pickled weights are never opened"):
        load_heads(tmp_path)


def test_unknown_layout(tmp_path):
    file = tmp_path / "other.safetensors"
    save_file({"transformer.h.0.attn.c_attn.weight": torch.ones(4, 12)}, file)
    with pytest.raises(ValueError, match="unknown layout: its 1 tensors match none of BERT"):
        load_heads(file, heads=2)


KEY = "encoder.layer.0.attention.self.key"


@pytest.mark.parametrize(("change", "message"), [
    (lambda t: t.pop(f"{KEY}.bias"), f"hold no tensor '{KEY}.bias'"),
    (lambda t: t.update({f"{KEY}.weight": torch.ones(24)}), r"must have shape \(rows, columns\)"),
    (lambda t: t.update({f"{KEY}.bias": torch.ones(7)}), "with rows = 24"),
    (lambda t: t.update({f"{KEY}.weight": torch.ones(24, 9)}), "must have maps of one shape"),
], ids=["missing", "wrong axes", "wrong bias", "unequal maps"])
def test_inconsistent_tensors(tiny_folder, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        next(load_heads(altered(tiny_folder, tmp_path / "changed", change)))


def test_split_heads_refuses_a_remainder():
    with pytest.raises(ValueError, match="key has a side of 4, which 3 heads do not divide"):
        split_heads("key", np.eye(4), heads=3)
