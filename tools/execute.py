"""Execute every notebook of the book in parallel, keep the results for the builder, and gather the verdicts.

Run from the root of the book: ``python -m tools.execute``. A notebook that the cache holds is not run again.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from joblib import Parallel, cpu_count, delayed
from nbformat import NotebookNode

from tools import book, cache, verdicts


def execute(root: Path) -> tuple[dict[Path, NotebookNode], list[str]]:
    """Return the executed notebook of every page that ran, and one line for every page that failed.

    The cache is emptied first when its key is not the key of now, or when it is damaged.
    """
    executed = _cached(root, book.notebook_pages(root))
    failures = []
    for run in _run_all([page for page, notebook in executed.items() if notebook is None]):
        name = run.page.relative_to(root)
        if run.failure is None:
            cache.store(root, run)
            executed[run.page] = run.notebook
            print(f"ran {name} in {run.seconds:.1f} s", flush=True)
        else:
            del executed[run.page]
            failures.append(f"FAILED {name}, {run.failure.where}: {run.failure.error}")
            print(f"{name} failed after {run.seconds:.1f} s\n{run.failure.details}", flush=True)
    return executed, failures


def main(root: Path) -> int:
    """Execute the book, write ``_build/verdicts.json``, and return the exit status."""
    executed, failures = execute(root)
    if not failures:
        registry = yaml.safe_load((root / "chapters" / "claims.yml").read_text("utf8")) or []
        rows, failures = verdicts.gather(registry, {page.stem: nb for page, nb in executed.items()})
    if not failures:
        (root / "_build" / "verdicts.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False), "utf8")
    print("\n".join(failures), end="\n" if failures else "")
    return 1 if failures else 0


def _cached(root: Path, pages: list[Path]) -> dict[Path, NotebookNode | None]:
    """Look every page up in a valid cache; a cache with another key, or a damaged one, is emptied."""
    if not cache.is_valid(root):
        cache.wipe(root)
    try:
        found = {page: cache.find(root, book.read(page)) for page in pages}
    except Exception as damage:  # a broken database, a truncated or missing file: the cure is the same
        print(f"the execution cache is damaged ({type(damage).__name__}): every notebook runs again")
        cache.wipe(root)
        return dict.fromkeys(pages)
    for page in pages:
        if found[page] is not None:
            print(f"kept {page.relative_to(root)} (nothing that it depends on has changed)")
    return found


def _run_all(pages: list[Path]) -> Iterator[book.Run]:
    """Run the pages over the cores, and return each as it ends."""
    workers = max(1, min(cpu_count(), len(pages)))
    return Parallel(n_jobs=workers, return_as="generator_unordered")(
        delayed(book.run)(page) for page in pages
    )


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
