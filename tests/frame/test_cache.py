"""The execution cache: kept while nothing has changed, emptied when anything has that a number depends on."""

import shutil

import pytest

from tests.frame import tiny
from tools import book, cache

SYNTAX = """
:::{note}
A note.
:::

$$
x = 1
$$

+++

a term
: its definition

```{code-cell} ipython3
:tags: [hide-input]

1 + 1
```
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    chapter = tiny.chapter(tiny.PRINT_NUMBER) + SYNTAX
    root = tiny.make(tmp_path_factory.mktemp("executed") / "book", {"one": chapter})
    run = tiny.execute(root)
    assert run.returncode == 0, run.stdout
    return root


@pytest.fixture
def root(executed, tmp_path):
    return shutil.copytree(executed, tmp_path / "a book")


def printed(root):
    """What the cached notebook shows."""
    notebook = cache.find(root, book.read(root / "chapters" / "one.md"))
    return notebook and book.code_cells(notebook)[0].outputs[0].text


def test_unchanged_sources_reuse_the_cache(root):
    run = tiny.execute(root)
    assert run.returncode == 0, run.stdout
    assert "kept chapters/one.md" in run.stdout
    assert "ran" not in run.stdout


def test_prose_does_not_run_a_chapter_again(root):
    page = root / "chapters" / "one.md"
    page.write_text(page.read_text().replace("Prose.", "Better prose."))
    assert "kept chapters/one.md" in tiny.execute(root).stdout


@pytest.mark.parametrize(
    "changed", ["mhalib/__init__.py", "mhalib/deep/table.csv", "constraints.txt", "chapters/claims.yml"]
)
def test_a_changed_source_runs_everything_again(root, changed):
    (root / changed).parent.mkdir(exist_ok=True)
    with (root / changed).open("a") as file:
        file.write("# changed\n")
    run = tiny.execute(root)
    assert run.returncode == 0, run.stdout
    assert "ran chapters/one.md" in run.stdout


def test_another_scale_runs_everything_again(root):
    assert "ran chapters/one.md" in tiny.execute(root, scale="quick").stdout


def test_the_key_sees_names_contents_and_settings(root, monkeypatch):
    keys = [cache.key(root)]
    for variable in ("MHALIB_SCALE", "MHALIB_DEVICE"):
        monkeypatch.setenv(variable, "quick" if variable == "MHALIB_SCALE" else "cpu")
        keys.append(cache.key(root))
    (root / "mhalib" / "__init__.py").rename(root / "mhalib" / "renamed.py")
    keys.append(cache.key(root))
    assert len(set(keys)) == 4
    (root / "mhalib" / "__pycache__").mkdir(exist_ok=True)
    (root / "mhalib" / "__pycache__" / "renamed.pyc").write_bytes(b"")
    assert cache.key(root) == keys[-1]


def test_an_old_number_survives_on_no_page(root):
    page = root / "_build" / "html" / "chapters" / "one.html"
    built = tiny.build(root)
    assert built.returncode == 0, built.stdout
    assert "the number is 0.5" in page.read_text()
    assert "Using cached notebook" in built.stdout  # the builder reads the same cells and runs nothing
    assert "Executing notebook" not in built.stdout

    tiny.set_number(root, "0.7")
    refused = tiny.build(root)
    assert refused.returncode != 0
    assert "run make book" in refused.stdout

    assert tiny.execute(root).returncode == 0
    assert tiny.build(root).returncode == 0
    assert "the number is 0.7" in page.read_text()
    assert "the number is 0.5" not in page.read_text()


def test_without_the_key_the_old_number_would_survive(root, monkeypatch):
    """The control: the cache itself sees only the cells, so a change that the key misses leaves the old number."""
    monkeypatch.setenv("MHALIB_SCALE", "book")
    tiny.set_number(root, "0.7")
    (cache.location(root) / "key").write_text(cache.key(root))
    assert "kept chapters/one.md" in tiny.execute(root).stdout
    assert printed(root) == "the number is 0.5\n"


@pytest.mark.parametrize("damage", ["truncated notebook", "lost notebook", "broken database"])
def test_a_damaged_cache_is_rebuilt(root, damage):
    notebook = next(cache.location(root).glob("executed/*/base.ipynb"))
    if damage == "truncated notebook":
        notebook.write_text(notebook.read_text()[:100])
    elif damage == "lost notebook":
        notebook.unlink()
    else:
        (cache.location(root) / "global.db").write_bytes(b"not a database" * 100)
    run = tiny.execute(root)
    assert run.returncode == 0, run.stdout
    assert "the execution cache is damaged" in run.stdout
    assert "ran chapters/one.md" in run.stdout
    assert printed(root) == "the number is 0.5\n"
    assert "kept chapters/one.md" in tiny.execute(root).stdout
