"""Store what every notebook prints, as text, so that the tests notice any number that changes.

Run from the root of the book: ``python -m tools.references``. The file ``tests/reference/<chapter>.ipynb`` has the
code cells of a chapter and their text outputs: no images, no metadata, nothing that differs between runs.
"""

import json
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import book
from tools.execute import execute


def reference_path(root: Path, page: Path) -> Path:
    """Return where the reference of a page is stored."""
    return root / "tests" / "reference" / f"{page.stem}.ipynb"


def text_outputs(outputs: list[NotebookNode]) -> list[tuple[str, str]]:
    """Return the (kind, text) pairs of a cell's outputs in order; images and metadata are left out.

    The kind is a MIME type or the name of a stream; text that a stream wrote in several pieces is joined.
    """
    pairs: list[tuple[str, str]] = []
    for output in outputs:
        if output.output_type == "stream":
            if pairs and pairs[-1][0] == output.name:
                pairs[-1] = (output.name, pairs[-1][1] + output.text)
            else:
                pairs.append((output.name, output.text))
        else:
            data = output.get("data", {})
            pairs += [(kind, _as_text(data[kind])) for kind in sorted(data) if "image/" not in kind]
    return pairs


def is_ignored(cell: NotebookNode) -> bool:
    """Say whether the cell's output is neither stored nor compared because it belongs to the machine."""
    return "nbval-ignore-output" in cell.metadata.get("tags", [])


def reference(notebook: NotebookNode) -> NotebookNode:
    """Return the code cells of an executed notebook with their text outputs, and nothing else."""
    cells = [
        nbformat.from_dict(
            {
                "cell_type": "code",
                "source": cell.source,
                "metadata": {},
                "execution_count": number,
                "outputs": [_as_output(*pair) for pair in text_outputs(cell.outputs) if not is_ignored(cell)],
            }
        )
        for number, cell in enumerate(book.code_cells(notebook), start=1)
    ]
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells})


def main(root: Path) -> int:
    """Execute the book, rewrite the references of all chapters that ran, and return the exit status."""
    executed, failures = execute(root)
    wanted = {reference_path(root, page): notebook for page, notebook in executed.items()}
    if not failures:
        for orphan in set((root / "tests" / "reference").glob("*.ipynb")) - set(wanted):
            orphan.unlink()
    for path, notebook in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(reference(notebook), path)
    print("\n".join([f"wrote {path.relative_to(root)}" for path in wanted] + failures))
    return 1 if failures else 0


def _as_output(kind: str, text: str) -> dict:
    if kind in ("stdout", "stderr"):
        return {"output_type": "stream", "name": kind, "text": text}
    return {"output_type": "display_data", "metadata": {}, "data": {kind: text}}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
