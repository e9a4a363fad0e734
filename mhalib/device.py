"""Where numbers are computed, and where random numbers come from.

Random numbers are always drawn with NumPy on the CPU from a *named* stream and then moved, so the device never
changes the data, and inserting a cell in a notebook shifts nothing.
"""

import functools
import hashlib
import os
import platform
from collections.abc import Callable

import numpy as np
import torch

from mhalib import validation
from mhalib.validation import Array


def choose(name: str | None = None) -> torch.device:
    """Choose the device: the argument, else ``MHALIB_DEVICE``, else cuda, mps, cpu in this order.

    Raises ``ValueError`` when the device is unknown or is not on this machine.

    >>> choose("cpu")
    device(type='cpu')
    >>> choose("tpu")
    Traceback (most recent call last):
    ...
    ValueError: device must be cpu, cuda, cuda:N or mps; got 'tpu'
    """
    asked = name or os.environ.get("MHALIB_DEVICE") or _best()
    kind, _, index = asked.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (index and not (kind == "cuda" and index.isdecimal())):
        raise ValueError(f"device must be cpu, cuda, cuda:N or mps; got {asked!r}")
    available = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(index or 0) >= available[kind]:
        raise ValueError(f"device {asked!r} is not on this machine ({available[kind]} {kind} devices found)")
    return torch.device(asked)


def dtype(device: torch.device) -> torch.dtype:
    """The floating type computed in: float64, or float32 where the device has nothing wider (mps).

    >>> dtype(torch.device("cpu"))
    torch.float64
    """
    return torch.float32 if device.type == "mps" else torch.float64


def to_device(array: Array, device: torch.device | None = None) -> torch.Tensor:
    """Move an array to the device (default: `choose()`) in that device's floating type.

    Raises ``ValueError`` for NaN, infinite, empty or non-numeric input. Cost: one copy.

    >>> to_device(np.ones((2, 3)), torch.device("cpu")).dtype
    torch.float64
    """
    target = device or choose()
    return tensor(validation.array("array", array, "...")).to(target, dtype(target))


def tensor(value: Array) -> torch.Tensor:
    """View an array as a tensor without a copy where that is safe (read-only NumPy memory is copied).

    >>> tensor(np.ones(2)).dtype
    torch.float64
    """
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable
    return torch.as_tensor(value.copy() if read_only else value)


def same_kind(function: Callable) -> Callable:
    """Decorate a function that computes with torch so that NumPy arguments give NumPy results.

    >>> same_kind(lambda x: torch.as_tensor(x) + 1)(np.zeros(2)).tolist()
    [1.0, 1.0]
    """
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs)
        if any(isinstance(x, torch.Tensor) for x in (*args, *kwargs.values())):
            return result
        return tuple(x.numpy() for x in result) if isinstance(result, tuple) else result.numpy()

    return wrapped


def stream(name: str, index: int = 0) -> np.random.Generator:
    """The random stream with this name: the same draws on every machine, whatever was drawn before.

    `name` reads ``"chapter.purpose"``; `index` numbers replicates. The seed is the SHA-256 of both, so that two
    different pairs give independent streams (a collision has probability below 2^-200).

    >>> float(stream("doctest.normal").standard_normal()) == float(stream("doctest.normal").standard_normal())
    True
    >>> float(stream("doctest.normal").standard_normal()) == float(stream("doctest.normal", 1).standard_normal())
    False
    """
    if not isinstance(name, str) or not all(part.strip() for part in name.split(".")) or "." not in name:
        raise ValueError(f"name must read 'chapter.purpose', got {name!r}")
    validation.at_least("index", index, 0)
    digest = hashlib.sha256(f"{name}\0{index}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(np.frombuffer(digest, dtype="<u4").tolist()))


def provenance(seconds: float) -> str:
    """One line on what computed a page: versions, device, and the seconds it took.

    >>> provenance(1.0).startswith("Python")
    True
    """
    import scipy

    from mhalib import __version__, scale

    where = choose()
    chip = torch.cuda.get_device_name(where) if where.type == "cuda" else platform.machine()
    return (f"Python {platform.python_version()} · NumPy {np.__version__} · SciPy {scipy.__version__} · "
            f"PyTorch {torch.__version__} · mhalib {__version__} · {where} ({chip}) · "
            f"scale {scale.current()} · {validation.positive('seconds', seconds):.0f} s")


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
