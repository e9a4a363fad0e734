"""The verdict directives on a small book of three claims: one corrected, one under an assumption, one pending."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools import cache

ROOT = Path(__file__).parents[2]
PAGE = """# Verdicts

```{verdict-counts}
```

```{verdict-table} ens
```

:::{prf:theorem}
:label: thm-x
One.
:::

(check-x)=
The check.
"""
CONF = f"""import sys
sys.path.insert(0, {str(ROOT / "_ext")!r})
extensions = ["myst_parser", "sphinx_proof", "verdicts"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_theme = "basic"
"""


def check(role: str, passed: bool) -> dict:
    return {"role": role, "label": f"a < b, {role}", "measured": "0.47", "predicted": "≤ 0.05",
            "criterion": "in every case", "passed": passed, "control": "0", "false_alarm": None, "detectable": None}


def claim(name: str, badge: str | None = None, verdict: str = "", *checks: dict) -> dict:
    done = {"proof": "thm-x", "check": "check-x", "chapter": "x",
            "record": {"id": name, "badge": badge, "verdict": verdict, "checks": list(checks)}}
    entry = {"id": name, "paper": "ens", "where": "Section 2", "statement": f"Statement of {name} with $x^2$.",
             "finding": f"Finding of {name}.", "expected": "holds"}
    return entry | (done if badge else {"record": None, "pending": True})


CLAIMS = [
    claim("ens-a", "corrected", "false as stated; corrected", check("published", False), check("corrected", True)),
    claim("ens-b", "under", "holds, under: independence", check("under", True)),
    claim("ens-c"),
]


def write_book(root: Path) -> Path:
    """Write a small book whose results belong to its state."""
    (root / "chapters").mkdir()
    for name, text in {"conf.py": CONF, "index.md": PAGE, "constraints.txt": "", "chapters/claims.yml": ""}.items():
        (root / name).write_text(text, encoding="utf-8")
    cache.wipe(root)
    (root / "_build" / "verdicts.json").write_text(json.dumps(CLAIMS), encoding="utf-8")
    return root


@pytest.fixture
def book(tmp_path) -> Path:
    return write_book(tmp_path)


def build(book: Path) -> tuple[int, str]:
    """Return the exit status of a strict build and what it printed."""
    run = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-n", "-b", "html", ".", "_build/html"], cwd=book,
                         capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    """The HTML of the built page."""
    book = write_book(tmp_path_factory.mktemp("book"))
    status, printed = build(book)
    assert status == 0, printed
    return (book / "_build" / "html" / "index.html").read_text(encoding="utf-8")


def entries(page: str) -> list[tuple[str, str]]:
    """Return the id and the HTML of each claim of a page."""
    return re.findall(r'<li class="claim" id="claim-([\w-]+)">(.*?)</li>', page, flags=re.DOTALL)


def test_every_claim_appears_once_with_its_verdict(page):
    assert [(name, *re.search(r'class="verdict verdict-(\w+)">([^<]+)<', entry).groups())
            for name, entry in entries(page)] == [
        ("ens-a", "corrected", "false as stated; corrected"),
        ("ens-b", "under", "holds, under: independence"),
        ("ens-c", "pending", "pending")]


def test_a_claim_with_a_record_shows_statement_finding_numbers_and_links(page):
    entry = dict(entries(page))["ens-a"]
    assert "Statement of ens-a" in entry
    assert "Finding of ens-a" in entry
    assert re.findall(r'data-label="(\w+)">([^<]*)<', entry)[:5] == [
        ("check", "published: a &lt; b, published"), ("measured", "0.47"), ("predicted", "≤ 0.05"),
        ("criterion", "in every case"), ("outcome", "fails")]
    assert re.findall(r'href="(#[\w-]+)"', entry) == ["#thm-x", "#check-x"]


def test_a_pending_claim_shows_its_statement_and_nothing_else(page):
    entry = dict(entries(page))["ens-c"]
    assert "Statement of ens-c" in entry
    assert not re.search("Finding|<table|href|holds|passes", entry)


def test_the_counts_are_those_of_the_claims(page):
    counts = re.search(r'<ul class="verdict-counts[^"]*">(.*?)</ul>', page, flags=re.DOTALL).group(1)
    assert re.findall(r"<strong>(\d+)</strong> <span class=\"verdict verdict-(\w+)\">[^<]", counts) == [
        ("1", "under"), ("1", "corrected"), ("1", "pending")]


def test_a_build_without_results_says_what_to_run(book):
    (book / "_build" / "verdicts.json").unlink()
    status, printed = build(book)
    assert status != 0
    assert "_build/verdicts.json is missing" in printed
    assert "run make book" in printed


def test_results_of_another_library_are_refused(book):
    (book / "constraints.txt").write_text("numpy==0.0\n")
    status, printed = build(book)
    assert status != 0
    assert "run make book" in printed


def test_a_paper_without_claims_is_an_error(book):
    (book / "index.md").write_text("# Verdicts\n\n```{verdict-table} unknown\n```\n")
    status, printed = build(book)
    assert status != 0
    assert "no claim of the paper 'unknown'" in printed


def test_the_verdict_page_asks_for_every_paper_of_the_registry_once():
    registry = yaml.safe_load((ROOT / "chapters" / "claims.yml").read_text(encoding="utf-8"))
    asked = re.findall(r"\{verdict-table\} (\w+)", (ROOT / "verdicts.md").read_text(encoding="utf-8"))
    assert sorted(asked) == sorted({entry["paper"] for entry in registry})
