"""Eight short passages of English in the public domain, the texts on which heads are measured."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Passage(NamedTuple):
    """A quotation of 80 to 160 words, in one line, with its source."""

    author: str
    title: str
    year: int
    text: str


@cache
def passages() -> tuple[Passage, ...]:
    """Return the eight passages, always in the same order.

    >>> [passage.title for passage in passages()][:2]
    ['Gettysburg Address', 'Pride and Prejudice']
    """
    stored = files("mhalib.heads").joinpath("data/passages.json").read_text(encoding="utf-8")
    return tuple(Passage(**entry) for entry in json.loads(stored))
