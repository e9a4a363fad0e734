"""A book of a few lines in a temporary folder, and the project's commands run on it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

HEADER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A chapter
"""
PRINT_NUMBER = """import sys
sys.path.insert(0, "..")
from mhalib import NUMBER
print("the number is", NUMBER)"""

CONFIG = f"""title: A tiny book
only_build_toc_files: true
execute: {{execute_notebooks: cache, stderr_output: error}}
parse: {{myst_enable_extensions: [colon_fence, deflist, dollarmath]}}
sphinx:
  local_extensions: {{verdicts: '{REPOSITORY / "_ext"}'}}
  config: {{nb_execution_raise_on_error: true}}
"""


def chapter(*cells: str) -> str:
    """Return a MyST notebook with these code cells; a cell may start with ``:tags:``."""
    return HEADER + "".join(f"\nProse.\n\n```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells)


def make(root: Path, chapters: dict[str, str], registry: str = "[]") -> Path:
    """Write a book whose library holds one number."""
    for folder in ("chapters", "mhalib", "tests"):
        (root / folder).mkdir(parents=True)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(REPOSITORY / name, root)
    (root / "_config.yml").write_text(CONFIG)
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n"
        + "".join(f"- file: chapters/{name}\n" for name in chapters)
    )
    (root / "index.md").write_text("# A tiny book\n")
    (root / "constraints.txt").write_text("numpy==1\n")
    (root / "chapters" / "claims.yml").write_text(registry)
    for name, text in chapters.items():
        (root / "chapters" / f"{name}.md").write_text(text)
    set_number(root, "0.5")
    return root


def set_number(root: Path, number: str) -> None:
    """Change the library."""
    (root / "mhalib" / "__init__.py").write_text(f"NUMBER = {number}\n")


def python(root: Path, *arguments: str, scale: str = "book", **variables: str) -> subprocess.CompletedProcess:
    """Run Python in the book's folder with the project's tools on the path; output and errors in one."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "MHALIB_SCALE": scale,
        "MHALIB_NO_SKIP": "0",
        **variables,
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=root,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def execute(root: Path, scale: str = "book") -> subprocess.CompletedProcess:
    """Run the notebooks."""
    return python(root, "-m", "tools.execute", scale=scale)


def pytest(root: Path, *arguments: str, scale: str = "book", **variables: str) -> subprocess.CompletedProcess:
    """Run the chapters as tests, in a fresh process."""
    return python(root, "-m", "pytest", "-p", "no:cacheprovider", *arguments, scale=scale, **variables)


def build(root: Path) -> subprocess.CompletedProcess:
    """Build the pages from what the cache holds."""
    script = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    return python(root, "-c", script, "build", ".", "-W", "-n", "--keep-going", "-v")
