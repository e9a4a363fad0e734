"""Gather the verdicts that the executed notebooks recorded, and hold them against the claim registry."""

from collections.abc import Iterator

from nbformat import NotebookNode


def gather(registry: list[dict], notebooks: dict[str, NotebookNode]) -> tuple[list[dict], list[str]]:
    """Return one row a registered claim, in registry order, and the problems found (none when all is well).

    ``notebooks`` maps a chapter's name to its executed notebook. A row is the registry entry with its
    ``record`` (None while pending) and the ``chapter`` that recorded it.
    """
    recorded = [(chapter, record) for chapter, notebook in notebooks.items() for record in _records(notebook)]
    problems = list(_problems(registry, recorded))
    found = {record["id"]: {"record": record, "chapter": chapter} for chapter, record in recorded}
    rows = [{**entry, "record": None, **found.get(entry["id"], {})} for entry in registry]
    return rows, problems


def _records(notebook: NotebookNode) -> Iterator[dict]:
    """Yield the claims that a notebook's outputs carry in their metadata."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            record = output.get("metadata", {}).get("mhalib_claim")
            if record is not None:
                yield record


def _problems(registry: list[dict], recorded: list[tuple[str, dict]]) -> Iterator[str]:
    """Yield a line for every claim that is not recorded exactly as often as the registry asks."""
    pending = {entry["id"]: entry.get("pending", False) for entry in registry}
    for claim, waits in pending.items():
        chapters = [chapter for chapter, record in recorded if record["id"] == claim]
        if waits and chapters:
            yield f"claim {claim} is recorded in {', '.join(chapters)} but pending in chapters/claims.yml"
        if not waits and not chapters:
            yield f"claim {claim} is recorded by no notebook"
        if not waits and len(chapters) > 1:
            yield f"claim {claim} is recorded more than once: {', '.join(chapters)}"
    for chapter, record in recorded:
        if record["id"] not in pending:
            yield f"claim {record['id']} is recorded in {chapter} but is not in chapters/claims.yml"
