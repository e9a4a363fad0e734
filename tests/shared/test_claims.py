"""Checks fail when they must, verdicts follow from outcomes, and what a notebook records reaches the page."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import jupytext
import numpy as np
import pytest
import yaml

from mhalib import claims
from mhalib.estimate import Estimate

ROOT = Path(__file__).parents[2]
PASS = claims.bound("true", 2.0, at_least=1.0, control=0.0)
FAIL = claims.bound("untrue", 0.0, at_least=1.0, control=2.0)


@pytest.fixture
def shown(monkeypatch):
    """What `record` and `quote` display: a list of (object, metadata)."""
    outputs = []
    monkeypatch.setattr(claims, "display", lambda result, metadata, raw=False: outputs.append((result, metadata)))
    return outputs


@pytest.fixture
def registered(monkeypatch):
    """Register one claim of each expected verdict."""
    def register(expected, **extra):
        entry = {"id": "x-1", "expected": expected, "chapter": "x"} | extra
        monkeypatch.setattr(claims, "registry", lambda: {"x-1": entry})
    return register


def test_exact_check_at_its_tolerance():
    assert claims.exact("a", [0.0, 1e-13], tolerance=1e-12, control=1.0).passed
    assert not claims.exact("a", [0.0, 1e-11], tolerance=1e-12, control=1.0).passed
    assert claims.exact("a", 3.0000001, 3.0, tolerance=1e-6, control=3.1).measured == "3"


def test_exact_check_shows_the_worst_entry():
    check = claims.exact("a", [1.0, 5.0], [1.0, 2.0], tolerance=0.1, control=[1.0, 2.0])
    assert (check.measured, check.predicted, check.passed, check.control_passed) == ("5", "2", False, True)


def test_round_off_is_shown_as_a_bound():
    """Two machines with different round-off print the same line."""
    first, second = (claims.exact("a", x, tolerance=1e-12, control=1.0) for x in (1e-16, 3e-15))
    assert first == second
    assert first.measured == "≤ 1e-12"


@pytest.mark.parametrize(("control", "broken"), [(1.2, False), (1.001, True), (Estimate(2.0, 0.01, 5000), False)])
def test_stochastic_check_and_its_control(control, broken):
    check = claims.ztest("a", Estimate(1.01, 0.01, 5000), 1.0, control=control)
    assert check.passed
    assert check.control_passed is broken
    assert check.false_alarm == 1e-6
    assert float(check.detectable) == pytest.approx(0.1, rel=0.1)


def test_one_sided_check_needs_a_margin_of_error():
    """An estimate must clear the threshold by its error bars; a number need only clear it."""
    assert claims.bound("a", 1.01, at_least=1.0, control=0.5).passed
    assert not claims.bound("a", Estimate(1.01, 0.01, 5000), at_least=1.0, control=0.5).passed
    assert claims.bound("a", Estimate(1.1, 0.01, 5000), at_least=1.0, control=0.5).passed
    assert claims.bound("a", Estimate(0.9, 0.01, 5000), at_most=1.0, control=1.5).passed
    assert not claims.bound("a", [0.5, 1.5], at_most=1.0, control=0.5).passed


@pytest.mark.parametrize("sides", [{}, {"at_least": 0.0, "at_most": 1.0}])
def test_one_side_only(sides):
    with pytest.raises(ValueError, match="exactly one of at_least and at_most"):
        claims.bound("a", 0.5, control=2.0, **sides)


@pytest.mark.parametrize(("published", "under", "corrected", "expected"), [
    ([PASS], [], [], "holds"),
    ([PASS, FAIL], [PASS], [], "holds, under"),
    ([FAIL], [], [PASS], "false as stated; corrected"),
    ([FAIL], [], [], "false"),
    ([], [], [], "not testable here"),
])
def test_verdict_follows_from_the_outcomes(published, under, corrected, expected):
    assert claims.verdict(published, under, corrected) == expected


@pytest.mark.parametrize("groups", [([FAIL], [FAIL], []), ([FAIL], [], [PASS, FAIL]), ([], [PASS], [])])
def test_a_repair_that_fails_is_no_verdict(groups):
    with pytest.raises(claims.VerdictError):
        claims.verdict(*groups)


def test_record_shows_and_stores(shown, registered):
    registered("holds, under", under="a condition <with> markup")
    claims.record("x-1", published=[FAIL], under=[PASS])
    (result, metadata), = shown
    stored = metadata["mhalib_claim"]
    assert stored["verdict"] == "holds, under: a condition <with> markup"
    assert stored["badge"] == "under"
    assert [check["role"] for check in stored["checks"]] == ["published", "under"]
    assert repr(result).startswith("x-1: holds, under")
    assert "&lt;with&gt;" in result._repr_html_()
    assert result._repr_html_().count("<tr>") == 3


def test_unexpected_verdict_is_an_error(shown, registered):
    registered("false")
    with pytest.raises(claims.VerdictError, match="computed 'holds', registered 'false'"):
        claims.record("x-1", published=[PASS])
    assert shown == []


@pytest.mark.parametrize("check", [
    claims.bound("cannot fail", 2.0, at_least=1.0, control=3.0),
    claims.bound("cannot pass", 0.0, at_least=1.0, control=0.5),
])
def test_a_control_with_the_same_outcome_is_an_error(shown, registered, check):
    registered("holds" if check.passed else "false")
    with pytest.raises(claims.VerdictError, match="control of 'cannot"):
        claims.record("x-1", published=[check])


@pytest.mark.parametrize("extra", [{"pending": True}, {"id": "y-1"}])
def test_unknown_and_pending_claims_are_refused(monkeypatch, extra):
    entry = {"id": "x-1", "expected": "holds"} | extra
    monkeypatch.setattr(claims, "registry", lambda: {entry["id"]: entry})
    with pytest.raises(ValueError, match="claim_id must be a registered claim with a chapter, got 'x-1'"):
        claims.record("x-1", published=[PASS])


def test_quote_is_glue_that_the_book_reads(shown):
    claims.quote("answer", "42")
    (data, metadata), = shown
    assert metadata["scrapbook"]["name"] == "answer"
    assert list(data.values()) == ["'42'"]


def test_printed_lines_need_no_notebook():
    with redirect_stdout(io.StringIO()) as out:
        print(claims.Record("x-1", "holds", None, (PASS,)))
    assert "x-1: holds" in out.getvalue()


# ---- the registry ----------------------------------------------------------------------------------------------------

def notebooks():
    return {path.stem: jupytext.read(path) for path in sorted((ROOT / "chapters").glob("*.md"))}


def recorded(notebook) -> list[str]:
    """Ids recorded by the code cells of a notebook, in order."""
    lines = (line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.splitlines())
    return [line.split('"')[1] for line in lines if line.startswith('claims.record("')]


def test_every_claim_with_a_chapter_is_recorded_there_exactly_once():
    found = {stem: recorded(notebook) for stem, notebook in notebooks().items()}
    expected = {}
    for entry in claims.registry().values():
        if not entry.get("pending"):
            expected.setdefault(entry["chapter"], []).append(entry["id"])
    assert {stem: sorted(ids) for stem, ids in found.items()} == {stem: sorted(ids) for stem, ids in expected.items()}


def test_pending_claims_have_no_chapter_yet():
    chapters = {path.stem for path in (ROOT / "chapters").glob("*.md")}
    for entry in claims.registry().values():
        assert (entry["chapter"] not in chapters) == bool(entry.get("pending")), entry["id"]


def test_registry_is_complete_and_well_formed():
    raw = yaml.safe_load((ROOT / "chapters" / "claims.yml").read_text(encoding="utf-8"))
    assert len({entry["id"] for entry in raw}) == len(raw) == 53
    for entry in raw:
        assert entry["expected"] in claims.VERDICTS, entry["id"]
        assert entry["paper"] in claims.PAPERS
        assert ("under" in entry) == (entry["expected"] == "holds, under"), entry["id"]
        required = {"id", "paper", "where", "statement", "expected", "finding", "chapter"}
        allowed = required | {"under", "reconstructed"} | ({"pending"} if entry.get("pending") else {"proof", "check"})
        assert required <= set(entry) <= allowed, entry["id"]
        assert entry.get("pending") or {"proof", "check"} <= set(entry), entry["id"]


CHECKED = [entry for entry in claims.registry().values() if not entry.get("pending")]


@pytest.mark.parametrize("entry", CHECKED, ids=lambda entry: entry["id"])
def test_proof_and_check_stand_in_the_chapter(entry):
    text = (ROOT / "chapters" / f"{entry['chapter']}.md").read_text(encoding="utf-8")
    assert f":label: {entry['proof']}\n" in text
    assert f"({entry['check']})=\n" in text


def test_labels_in_docstrings_exist_in_a_chapter():
    """A source such as `thm-bvc` in a docstring is the label of something in the book."""

    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "chapters").glob("*.md"))
    for path in (ROOT / "mhalib").rglob("*.py"):
        for label in re.findall(r"`((?:thm|prop|eq|sec|lem)-[a-z-]+)`", path.read_text(encoding="utf-8")):
            assert f":label: {label}\n" in text or f"({label})=\n" in text, f"{path.name}: {label}"


def test_array_results_are_shown():
    pair = Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.1]), 2000)
    check = claims.ztest("a", pair, [1.0, 2.0], control=[1.0, 9.0])
    assert check.passed
    assert not check.control_passed
