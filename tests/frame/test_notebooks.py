"""The chapters as tests: what must fail does, and round-off does not."""

import inspect
import shutil

import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile

from tests.frame import tiny
from tests.frame.notebooks import same_text
from tools import book

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([0, NUMBER]);"
CLOCK = ":tags: [nbval-ignore-output]\nimport time\ntime.time()"


@pytest.fixture(scope="module")
def referenced(tmp_path_factory):
    root = tiny.make(
        tmp_path_factory.mktemp("referenced") / "book",
        {"one": tiny.chapter(tiny.PRINT_NUMBER, FIGURE, CLOCK)},
    )
    written = tiny.python(root, "-m", "tools.references")
    assert written.returncode == 0, written.stdout
    return root


@pytest.fixture
def root(referenced, tmp_path):
    return shutil.copytree(referenced, tmp_path / "a book")


def test_an_unchanged_chapter_passes_cell_by_cell(root):
    run = tiny.pytest(root, "chapters")
    assert run.returncode == 0, run.stdout
    assert "3 passed" in run.stdout


def test_a_changed_number_fails(root):
    tiny.set_number(root, "0.50000005")  # 1e-7, relative
    run = tiny.pytest(root, "chapters")
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    assert "+stdout: the number is 0.50000005" in run.stdout
    assert "1 failed, 2 passed" in run.stdout


def test_a_jitter_of_1e_12_passes(root):
    tiny.set_number(root, "0.5000000000005")
    run = tiny.pytest(root, "chapters")
    assert run.returncode == 0, run.stdout


def test_edited_text_with_old_references_fails_at_collection(root):
    page = root / "chapters" / "one.md"
    page.write_text(page.read_text().replace("the number is", "the figure is"))
    run = tiny.pytest(root, "chapters")
    assert run.returncode == pytest.ExitCode.INTERRUPTED, run.stdout
    assert "stale" in run.stdout
    assert "make refs" in run.stdout


def test_a_notebook_without_references_fails_at_collection(root):
    (root / "tests" / "reference" / "one.ipynb").unlink()
    run = tiny.pytest(root, "chapters")
    assert run.returncode == pytest.ExitCode.INTERRUPTED, run.stdout
    assert "one.md has no reference" in run.stdout


def test_at_another_scale_a_cell_only_has_to_run(root):
    tiny.set_number(root, "0.7")
    assert tiny.pytest(root, "chapters", scale="quick").returncode == 0
    (root / "mhalib" / "__init__.py").write_text("raise ValueError('no number')\n")
    assert tiny.pytest(root, "chapters", scale="quick").returncode == pytest.ExitCode.TESTS_FAILED


def test_a_warning_fails_even_where_outputs_are_ignored(root):
    source = root / "mhalib" / "__init__.py"
    source.write_text("import sys\nNUMBER = 0.5\nprint('careful', file=sys.stderr)\n")
    run = tiny.pytest(root, "chapters", scale="quick")
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    assert "output on stderr" in run.stdout


def test_references_hold_neither_images_nor_metadata_nor_ignored_outputs(referenced):
    text = (referenced / "tests" / "reference" / "one.ipynb").read_text()
    assert "<Figure size" in text
    assert "image/png" not in text
    assert "kernelspec" not in text
    assert '"outputs": []' in text


def test_a_skip_fails_the_run_only_when_told_to(root):
    (root / "tests" / "test_skip.py").write_text(
        "import pytest\ndef test_it():\n    pytest.skip('no browser')\n"
    )
    assert tiny.pytest(root, "tests").returncode == 0
    run = tiny.pytest(root, "tests", MHALIB_NO_SKIP="1")
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert "tests/test_skip.py::test_it" in run.stdout


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("x = 0.5", "x = 0.5000000000001", True),
        ("x = 0.5", "x = 0.5000001", False),
        ("(0.1, -2e-3)", "(0.10000000000000002, -0.002)", True),
        ("error 0.0", "error 9e-13", True),
        ("error 0.0", "error 2e-12", False),
        ("0.5 m", "0.5 km", False),
        ("n = 1000000000000", "n = 1000000000001", False),  # whole numbers are counts
        ("3 of 4", "4 of 4", False),
        ("0.5", "0.5 0.5", False),
        ("nan", "0.5", False),
        ("version 1.2.3", "version 1.2.30", False),
        ("<td>1.0</td>", "<td>1.0000000000001</td>", True),
    ],
)
def test_texts_agree_up_to_round_off_in_their_numbers(expected, found, same):
    assert same_text(expected, found) is same


def test_every_notebook_of_the_book_is_collected_as_tests():
    notebooks = book.notebook_pages(tiny.REPOSITORY)
    assert notebooks
    assert {page.parent.name for page in notebooks} == {"chapters"}  # where the plugin looks


def test_nbval_is_still_the_one_that_the_plugin_extends():
    """Canary: these are not public, so an upgrade may change them; see tests/frame/notebooks.py."""
    assert list(inspect.signature(IPyNbCell.__init__).parameters) == [
        "self", "name", "parent", "cell_num", "cell", "options",
    ]  # fmt: skip
    assert list(inspect.signature(IPyNbCell.compare_outputs).parameters) == [
        "self",
        "test",
        "ref",
        "skip_compare",
    ]
    run = inspect.getsource(IPyNbCell.runtest)
    assert "if not self.compare_outputs(outs, coalesce_streams(self.cell.outputs))" in run
    assert "'\\n'.join(self.comparison_traceback)" in run
    assert "kernel.execute_cell_input(\n            self.cell.source, allow_stdin=False)" in run
    assert "self.kernel = RunningKernel(" in inspect.getsource(IPyNbFile.setup)
    assert "self.kc.execute(" in inspect.getsource(RunningKernel.execute_cell_input)
