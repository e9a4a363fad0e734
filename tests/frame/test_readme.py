"""The numbers on the front page of the repository are those that the chapter computes, and its links lead somewhere."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def computed() -> str:
    """All text that the chapters print and glue, as stored for the tests."""
    texts = []
    for path in sorted((ROOT / "tests" / "reference").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts += [json.dumps(cell["outputs"], ensure_ascii=False) for cell in cells]
    return "\n".join(texts)


def stale(text: str, outputs: str) -> list[str]:
    """Numbers set in bold that no output holds."""
    return [number for number in re.findall(r"\*\*([\d.]+)\*\*", text)
            if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", outputs)]


def test_bold_numbers_are_computed():
    assert len(re.findall(r"\*\*[\d.]+\*\*", README)) >= 6
    assert stale(README, computed()) == []


def test_a_stale_number_is_noticed():
    assert stale("error **0.73** and **0.74**", "'0.73' 10.74 0.745") == ["0.74"]


def test_relative_links_exist():
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert len(targets) >= 3
    assert [target for target in targets if not (ROOT / target).exists()] == []
