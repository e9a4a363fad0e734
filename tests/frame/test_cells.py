"""Cells are short: at most 25 lines of at most 88 columns, which is what a page shows without scrolling."""

from pathlib import Path

import jupytext
import nbformat
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
    for code in ("x = 1\n" * 26, f"x = {'1' * 88}"):
        cell = nbformat.v4.new_code_cell(code.strip())
        assert len(too_large(nbformat.v4.new_notebook(cells=[cell]))) == 1
