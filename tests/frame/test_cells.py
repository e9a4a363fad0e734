"""Cells are short: at most 25 lines of at most 88 columns, which is what a page shows without scrolling."""

from pathlib import Path

import jupytext
import pytest

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.md"))


def too_large(notebook) -> list[str]:
    faults = []
    for cell in notebook.cells:
        lines = cell.source.splitlines() if cell.cell_type == "code" else []
        if len(lines) > 25:
            faults.append(f"{len(lines)} lines from {lines[0]!r}")
        faults += [f"{len(line)} columns in {line!r}" for line in lines if len(line) > 88]
    return faults


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_cells_are_short(chapter):
    assert too_large(jupytext.read(chapter)) == []


def test_long_cells_are_noticed():
    text = "---\nkernelspec:\n  name: python3\n---\n\n```{code-cell}\n%s\n```\n"
    for code in ("x = 1\n" * 26, f"x = {'1' * 88}"):
        assert len(too_large(jupytext.reads(text % code.strip(), "md:myst"))) == 1
