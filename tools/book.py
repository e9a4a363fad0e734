"""The book's notebooks: which pages they are, how they are read, and how one is run."""

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from myst_nb.core.read import is_myst_markdown_notebook, myst_nb_reader_plugin
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from sphinx_external_toc.parsing import parse_toc_yaml

CELL_TIMEOUT = 600  # seconds; sizes of the paper scale may take longer


@dataclass(frozen=True)
class Failure:
    """Why a notebook failed: the cell, the error in one line, and the whole story."""

    where: str
    error: str
    details: str


@dataclass(frozen=True)
class Run:
    """One executed notebook; ``failure`` is None when every cell ran and wrote nothing to stderr."""

    page: Path
    notebook: NotebookNode
    seconds: float
    failure: Failure | None


def notebook_pages(root: Path) -> list[Path]:
    """Return the pages of ``_toc.yml`` that are MyST notebooks, in reading order."""
    pages = [(root / name).with_suffix(".md") for name in parse_toc_yaml(root / "_toc.yml")]
    return [page for page in pages if is_myst_markdown_notebook(page.read_text("utf8"))]


def read(page: Path) -> NotebookNode:
    """Read a page exactly as the site builder does, so that both see the same cells."""
    return myst_nb_reader_plugin(str(page))


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells of a notebook, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def run(page: Path) -> Run:
    """Execute one page in a fresh kernel, in the page's folder; errors are returned, not raised."""
    notebook = read(page)
    started: list[int] = []
    client = NotebookClient(
        notebook,
        timeout=None if os.environ.get("MHALIB_SCALE") == "paper" else CELL_TIMEOUT,
        resources={"metadata": {"path": str(page.parent)}},
        record_timing=False,  # times would enter the cells' metadata, by which the cache finds a notebook
        on_cell_execute=lambda cell, cell_index: started.append(cell_index),
    )
    begin = perf_counter()
    try:
        client.execute()
        failure = _stderr(notebook)
    except Exception as error:  # also a dead kernel or a timeout: the other chapters must still complete
        failure = Failure(_locate(notebook, started), _one_line(error), str(error))
    return Run(page, notebook, perf_counter() - begin, failure)


def _stderr(notebook: NotebookNode) -> Failure | None:
    """Return a failure for the first cell that wrote to stderr, where warnings and progress bars go."""
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                line = output.text.strip().splitlines()[0]
                return Failure(_locate(notebook, [index]), f"output on stderr: {line}", output.text)
    return None


def _locate(notebook: NotebookNode, started: list[int]) -> str:
    """Name the last started cell by its number, its line in the page and its first line of source."""
    if not started:
        return "before the first cell"
    index = started[-1]
    number = len(code_cells(NotebookNode(cells=notebook.cells[: index + 1])))
    first_line = notebook.cells[index].source.strip().split("\n")[0]
    return f"cell {number} at line {notebook.metadata.source_map[index]} ({first_line})"


def _one_line(error: Exception) -> str:
    """Shorten an exception to ``name: message`` on one line."""
    if isinstance(error, CellExecutionError):
        name, message = error.ename, error.evalue
    else:
        name, message = type(error).__name__, str(error)
    return f"{name}: {message.strip().splitlines()[0] if message.strip() else ''}"
