"""Refuse bad input by name: every public function of the library checks its arguments here."""

import math
from numbers import Integral, Real

import numpy as np
import torch

Array = np.ndarray | torch.Tensor


def array(name: str, value, axes: str, **sizes: int) -> Array:
    """Return `value` as a real floating array with the named axes, or say what is wrong with it.

    Parameters
    ----------
    name : the argument's name, for the message.
    value : NumPy array, torch tensor, or nested sequence of numbers; integers become float64.
    axes : axis names separated by spaces, such as ``"n d"``; a leading ``...`` allows any batch axes, and axes of
        one name must have one length, so that ``"H H"`` is a square matrix.
    sizes : required lengths of named axes.

    Raises ``ValueError`` for a wrong number of axes, a wrong length, an empty axis, complex or non-numeric
    entries, NaN or infinity. Cost: one pass over the data.

    >>> array("key", [[1, 2], [3, 4]], "n d", d=2).shape
    (2, 2)
    >>> array("key", [[1, float("nan")]], "n d")
    Traceback (most recent call last):
    ...
    ValueError: key must be finite, got 1 NaN or infinite entries in shape (1, 2)
    """
    result = _as_real(name, value)
    names = axes.split()
    batched = names[:1] == ["..."]
    names = names[1:] if batched else names
    shape = tuple(result.shape)
    expected = f"({', '.join((['...'] if batched else []) + names)})"
    named = tuple(zip(names, shape[len(shape) - len(names):], strict=False))
    own = dict(named)
    if len(named) < len(names) or (len(shape) > len(names) and not batched) or len(set(named)) > len(own):
        raise ValueError(f"{name} must have shape {expected}, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name} must not be empty, got shape {shape}")
    for axis, size in sizes.items():
        if own[axis] != size:
            raise ValueError(f"{name} must have shape {expected} with {axis} = {size}, got shape {shape}")
    bad = int((~_is_finite(result)).sum())
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} NaN or infinite entries in shape {shape}")
    return result


def positive(name: str, value) -> float:
    """Return `value` as a float greater than zero, or raise ``ValueError`` naming the argument.

    >>> positive("bandwidth", 0.5)
    0.5
    >>> positive("bandwidth", 0)
    Traceback (most recent call last):
    ...
    ValueError: bandwidth must be a finite number > 0, got 0
    """
    number = _number(name, value, "a finite number > 0")
    if number <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return number


def between(name: str, value, low: float, high: float) -> float:
    """Return `value` as a float in the closed interval [low, high], or raise ``ValueError``.

    >>> between("ratio", 0.5, 0, 1)
    0.5
    """
    number = _number(name, value, f"a number in [{low:g}, {high:g}]")
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r}")
    return number


def at_least(name: str, value, minimum: int) -> int:
    """Return `value` as an integer no smaller than `minimum`, or raise ``ValueError``.

    >>> at_least("heads", 4, 1)
    4
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def one_of(name: str, value, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or raise ``ValueError``.

    >>> one_of("kernel", "gaussian", ("exponential", "gaussian"))
    'gaussian'
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def sums_to_one(name: str, value: Array) -> Array:
    """Return weights whose last axis sums to one within 1e-9, or raise ``ValueError``.

    >>> sums_to_one("weights", np.array([0.25, 0.75]))
    array([0.25, 0.75])
    """
    worst = float(abs(value.sum(-1) - 1).max())
    if worst > 1e-9:
        raise ValueError(f"{name} must sum to one over its last axis, off by {worst:.3g}")
    return value


def covariance(name: str, value) -> np.ndarray:
    """Return `value` as a symmetric positive definite matrix, or raise ``ValueError``.

    >>> covariance("cov", [[2.0, 1.0], [1.0, 2.0]]).shape
    (2, 2)
    """
    matrix = np.asarray(array(name, value, "H H"))
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        raise ValueError(f"{name} must be symmetric, off by {np.abs(matrix - matrix.T).max():.3g}")
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest <= 0:
        raise ValueError(f"{name} must be positive definite, smallest eigenvalue {smallest:.3g}")
    return matrix


def _number(name: str, value, expected: str) -> float:
    is_scalar_array = isinstance(value, Array) and value.ndim == 0
    if isinstance(value, bool) or not (isinstance(value, Real) or is_scalar_array):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return number


def _as_real(name: str, value) -> Array:
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            raise ValueError(f"{name} must be real, got {value.dtype}")
        return value if value.is_floating_point() else value.double()
    try:
        result = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers, got a ragged sequence") from None
    if result.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, got dtype {result.dtype}")
    return result if result.dtype.kind == "f" else result.astype(np.float64)


def _is_finite(value: Array) -> Array | np.bool_:
    return torch.isfinite(value) if isinstance(value, torch.Tensor) else np.isfinite(value)
