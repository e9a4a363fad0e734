"""A pytest plugin: every chapter is a list of tests, one a code cell, run in order in one kernel.

The cells come from the text of the chapter, the expected outputs from its reference. A cell fails when it
raises, when it writes to stderr, or, at the scale of the book, when a text output differs beyond round-off in its
numbers. Tag a cell ``nbval-ignore-output`` when its output belongs to the machine.
"""

import difflib
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import nbformat
import pytest
from myst_nb.core.read import is_myst_markdown_notebook
from nbval.plugin import IPyNbCell, IPyNbFile

from tools import book, references

RTOL, ATOL = 1e-9, 1e-12
FLOAT = re.compile(r"((?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?)")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the MyST notebooks among the chapters."""
    is_page = file_path.suffix == ".md" and file_path.parent.name == "chapters"
    if is_page and is_myst_markdown_notebook(file_path.read_text("utf8")):
        return Chapter.from_parent(parent, path=file_path)
    return None


class Chapter(IPyNbFile):
    """A chapter: its cells from the text, their expected outputs from the reference."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test a code cell; raise when the reference is missing or belongs to other cells."""
        self.nb = book.read(self.path)
        cells = book.code_cells(self.nb)
        for number, (cell, stored) in enumerate(zip(cells, self._stored(cells), strict=True), start=1):
            cell.outputs, cell.execution_count = stored.outputs, number
            options = defaultdict(bool, check=True)
            yield ChapterCell.from_parent(
                self, name=f"cell {number}", cell_num=number, cell=cell, options=options
            )

    def setup(self) -> None:
        """Start the kernel; cells enter its history, without which a final ``;`` would not silence them."""
        super().setup()
        self.kernel.execute_cell_input = partial(self.kernel.kc.execute, stop_on_error=False)

    def _stored(self, cells: list) -> list:
        path = references.reference_path(self.config.rootpath, self.path)
        if not path.exists():
            raise self.CollectError(f"{self.path.name} has no reference {path.name}: run make refs")
        stored = nbformat.read(path, as_version=4).cells
        if [cell.source for cell in stored] != [cell.source for cell in cells]:
            raise self.CollectError(
                f"the reference of {self.path.name} is stale, its cells have changed: run make refs"
            )
        return stored


class ChapterCell(IPyNbCell):
    """A code cell with its expected outputs."""

    def compare_outputs(self, test: list, ref: list, skip_compare: tuple | None = None) -> bool:
        """Say whether the outputs are as they must be; what is wrong goes into ``comparison_traceback``."""
        found, expected = references.text_outputs(test), references.text_outputs(ref)
        stderr = [text for kind, text in found if kind == "stderr"]
        if stderr:
            self.comparison_traceback = ["output on stderr:", *stderr]
        elif references.is_ignored(self.cell) or (os.environ.get("MHALIB_SCALE") or "book") != "book":
            self.comparison_traceback = []
        else:
            self.comparison_traceback = differences(expected, found)
        return not self.comparison_traceback


def differences(expected: list[tuple[str, str]], found: list[tuple[str, str]]) -> list[str]:
    """Return a diff of two lists of (kind, text) outputs, empty when they agree up to round-off."""
    if len(expected) == len(found) and all(map(_agree, expected, found)):
        return []
    return list(
        difflib.unified_diff(_lines(expected), _lines(found), "reference", "computed", n=1, lineterm="")
    )


def same_text(expected: str, found: str) -> bool:
    """Compare two texts: numbers with a decimal point or exponent up to round-off, all else exactly."""
    parts, others = FLOAT.split(expected), FLOAT.split(found)
    return (
        len(parts) == len(others)
        and parts[::2] == others[::2]
        and all(
            math.isclose(float(a), float(b), rel_tol=RTOL, abs_tol=ATOL)
            for a, b in zip(parts[1::2], others[1::2], strict=True)
        )
    )


def _agree(expected: tuple[str, str], found: tuple[str, str]) -> bool:
    return expected[0] == found[0] and same_text(expected[1], found[1])


def _lines(outputs: list[tuple[str, str]]) -> list[str]:
    return [f"{kind}: {line}" for kind, text in outputs for line in text.splitlines()]
