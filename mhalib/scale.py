"""The scale dial: one environment variable, ``MHALIB_SCALE``, sets how large the experiments are."""

import os
from typing import TypeVar

from mhalib import validation

Value = TypeVar("Value")
SCALES = ("quick", "book", "paper")


def current() -> str:
    """The scale in force: ``quick`` (tests on a laptop), ``book`` (the default, what the site shows) or ``paper``.

    Raises ``ValueError`` for anything else in ``MHALIB_SCALE``.

    >>> current() in SCALES
    True
    """
    return validation.one_of("MHALIB_SCALE", os.environ.get("MHALIB_SCALE") or "book", SCALES)


def pick(*, quick: Value, book: Value, paper: Value) -> Value:
    """The value meant for the scale in force.

    >>> pick(quick=100, book=100, paper=100)
    100
    """
    return {"quick": quick, "book": book, "paper": paper}[current()]
