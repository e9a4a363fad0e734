"""Running the book: a failure is named on the last lines, and every claim is recorded exactly once."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.frame import tiny
from tools import verdicts

RECORD = """from IPython.display import display
display({"text/plain": "ok"}, raw=True, metadata={"mhalib_claim": {"id": "ens-1", "badge": "holds"}})"""
REGISTRY = "[{id: ens-2, pending: true, chapter: two}, {id: ens-1, chapter: one}]"


def test_a_failing_cell_is_named_on_the_last_line_and_the_other_chapters_complete(tmp_path):
    failing = tiny.chapter("x = 1", "# divide\nx / 0")
    root = tiny.make(tmp_path / "book", {"bad": failing, "good": tiny.chapter(tiny.PRINT_NUMBER)})
    run = tiny.execute(root)
    assert run.returncode == 1
    last = run.stdout.splitlines()[-1]
    assert last == "FAILED chapters/bad.md, cell 2 at line 16 (# divide): ZeroDivisionError: division by zero"
    assert "ran chapters/good.md" in run.stdout
    assert not (root / "_build" / "verdicts.json").exists()

    again = tiny.execute(root)
    assert "kept chapters/good.md" in again.stdout
    assert again.stdout.splitlines()[-1] == last


def test_output_on_stderr_is_an_error(tmp_path):
    root = tiny.make(
        tmp_path / "book", {"one": tiny.chapter("x = 1", "import sys\nprint('careful', file=sys.stderr)")}
    )
    run = tiny.execute(root)
    assert run.returncode == 1
    assert (
        run.stdout.splitlines()[-1]
        == "FAILED chapters/one.md, cell 2 at line 16 (import sys): output on stderr: careful"
    )


def test_a_dead_kernel_is_named_too(tmp_path):
    root = tiny.make(tmp_path / "book", {"one": tiny.chapter("import os\nos._exit(3)")})
    run = tiny.execute(root)
    assert run.returncode == 1
    assert (
        "FAILED chapters/one.md, cell 1 at line 10 (import os): DeadKernelError"
        in run.stdout.splitlines()[-1]
    )


def test_verdicts_are_gathered_in_the_order_of_the_registry(tmp_path):
    root = tiny.make(tmp_path / "book", {"one": tiny.chapter(RECORD)}, REGISTRY)
    run = tiny.execute(root)
    assert run.returncode == 0, run.stdout
    assert json.loads((root / "_build" / "verdicts.json").read_text()) == [
        {"id": "ens-2", "pending": True, "chapter": "two", "record": None},
        {"id": "ens-1", "chapter": "one", "record": {"id": "ens-1", "badge": "holds"}},
    ]


def test_two_chapters_that_record_one_claim_fail_the_run(tmp_path):
    root = tiny.make(
        tmp_path / "book", {"one": tiny.chapter(RECORD), "two": tiny.chapter(RECORD + "  # too")}, REGISTRY
    )
    run = tiny.execute(root)
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "claim ens-1 is recorded more than once: one, two"
    assert not (root / "_build" / "verdicts.json").exists()


def notebook(*claims):
    """A notebook that recorded these claims."""
    outputs = [new_output("display_data", metadata={"mhalib_claim": {"id": claim}}) for claim in claims]
    return new_notebook(cells=[new_code_cell(outputs=outputs)])


@pytest.mark.parametrize(
    ("notebooks", "problem"),
    [
        ({"one": notebook("ens-1")}, None),
        ({"one": notebook()}, "claim ens-1 is recorded by no notebook"),
        ({"one": notebook("ens-1", "ens-1")}, "claim ens-1 is recorded more than once: one, one"),
        (
            {"one": notebook("ens-1"), "two": notebook("ens-1")},
            "claim ens-1 is recorded more than once: one, two",
        ),
        (
            {"one": notebook("ens-1", "ens-2")},
            "claim ens-2 is recorded in one but pending in chapters/claims.yml",
        ),
        (
            {"one": notebook("ens-1", "ens-9")},
            "claim ens-9 is recorded in one but is not in chapters/claims.yml",
        ),
    ],
)
def test_every_claim_is_recorded_as_registered(notebooks, problem):
    registry = [{"id": "ens-1", "chapter": "one"}, {"id": "ens-2", "chapter": "two", "pending": True}]
    assert verdicts.gather(registry, notebooks)[1] == ([problem] if problem else [])
