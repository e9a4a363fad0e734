"""The device is chosen aloud, and random streams depend on their names only."""

import numpy as np
import pytest
import torch

from mhalib import device


def test_argument_beats_environment_beats_default(monkeypatch):
    monkeypatch.setenv("MHALIB_DEVICE", "cuda:99")
    assert device.choose("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="'cuda:99' is not on this machine"):
        device.choose()
    monkeypatch.delenv("MHALIB_DEVICE")
    assert device.choose().type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "cpu:1", "CUDA", " cpu"])
def test_unknown_device_is_refused(name):
    with pytest.raises(ValueError, match="device must be cpu, cuda, cuda:N or mps"):
        device.choose(name)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_absent_device_is_named(monkeypatch, kind):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"'{kind}' is not on this machine"):
        device.choose(kind)


def test_best_device_first(monkeypatch):
    monkeypatch.delenv("MHALIB_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device.choose() == torch.device("cuda")


def test_float32_only_where_nothing_wider_exists():
    assert device.dtype(torch.device("mps")) == torch.float32
    assert device.dtype(torch.device("cuda")) == torch.float64


def test_stream_is_reproducible_and_fixed_for_ever():
    """The first draws of one stream, once and for all: a changed hash would change every number of the book."""
    first = device.stream("test.fixed").standard_normal(3)
    np.testing.assert_array_equal(first, device.stream("test.fixed").standard_normal(3))
    np.testing.assert_allclose(first, [-1.0256795123970561, -0.6501436033758042, 0.10682013785909057], rtol=1e-12)


def test_stream_ignores_device_and_history(monkeypatch):
    expected = device.stream("test.history").standard_normal(4)
    monkeypatch.setenv("MHALIB_DEVICE", "cpu")
    np.random.default_rng(0).standard_normal(1000)
    device.stream("test.inserted-cell").standard_normal(7)
    torch.manual_seed(3)
    np.testing.assert_array_equal(device.stream("test.history").standard_normal(4), expected)


def test_two_names_never_share_a_stream():
    """Names, indices and their concatenations: all first draws differ; the same name gives the same draw."""
    names = [(f"a.{i}", j) for i in range(40) for j in range(40)] + [("a.1", 11), ("a.11", 1), ("a1.1", 1)]
    draws = {pair: device.stream(*pair).integers(2**63) for pair in set(names)}
    assert len(set(draws.values())) == len(draws)
    assert device.stream("a.1", 11).integers(2**63) == draws["a.1", 11]


def test_streams_are_uncorrelated():
    """Correlation of 100 neighbouring streams of 10,000 normals: below 6 / sqrt(n) for all 4950 pairs."""
    draws = np.stack([device.stream("test.correlation", i).standard_normal(10_000) for i in range(100)])
    off_diagonal = np.corrcoef(draws)[np.triu_indices(100, 1)]
    assert np.abs(off_diagonal).max() < 6 / 10_000**0.5
    assert np.corrcoef(draws[0], device.stream("test.correlation", 0).standard_normal(10_000))[0, 1] > 0.999


def test_to_device_keeps_values_and_refuses_bad_ones():
    moved = device.to_device(np.arange(3), torch.device("cpu"))
    assert moved.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="array must be finite"):
        device.to_device(np.array([np.nan]))


def test_read_only_memory_is_copied():
    frozen = np.broadcast_to(np.ones(1), 3)
    device.tensor(frozen).add_(1)
    assert frozen.tolist() == [1.0, 1.0, 1.0]
    writable = np.ones(3)
    device.tensor(writable).add_(1)
    assert writable.tolist() == [2.0, 2.0, 2.0]


def test_results_have_the_kind_of_the_arguments():
    double = device.same_kind(lambda x, *, y=None: (device.tensor(x) * 2, device.tensor(x)))
    assert all(isinstance(r, np.ndarray) for r in double(np.ones(2)))
    assert all(isinstance(r, torch.Tensor) for r in double(torch.ones(2)))
    assert all(isinstance(r, torch.Tensor) for r in double(np.ones(2), y=torch.ones(1)))


def test_provenance_names_versions_and_scale(monkeypatch):
    monkeypatch.setenv("MHALIB_SCALE", "quick")
    line = device.provenance(12.3)
    for part in ("NumPy", "PyTorch", "scale quick", "12 s"):
        assert part in line
