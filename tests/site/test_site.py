"""Every page of the built site in a browser: from disk in light and dark at four widths, and over http."""

import pytest

from tests.site.browser import visit

GATES = ("anchors", "badges", "console", "contrast", "external", "failed", "formulas", "headings", "images", "layout",
         "links")


@pytest.fixture(scope="session")
def faults(browser, html, pages) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Visit every page once a theme; the gates' findings by page and theme."""
    return {(page, theme): visit(browser, (html / page).as_uri(), theme)
            for theme in ("light", "dark") for page in pages}


@pytest.fixture(scope="session")
def served_faults(browser, server, pages) -> dict[str, dict[str, list[str]]]:
    return {page: visit(browser, f"{server}/{page}", widths=(1280,)) for page in pages}


@pytest.mark.parametrize("gate", GATES)
def test_from_disk(faults, gate):
    assert [f"{page} ({theme}): {fault}" for (page, theme), found in faults.items() for fault in found[gate]] == []


@pytest.mark.parametrize("gate", ["console", "external", "failed", "formulas", "images"])
def test_over_http(served_faults, gate):
    assert [f"{page}: {fault}" for page, found in served_faults.items() for fault in found[gate]] == []


def test_the_whole_book_was_visited(pages):
    assert {"index.html", "verdicts.html", "reproducing.html", "bibliography.html", "search.html"} <= set(pages)
    assert any(page.startswith("chapters/") for page in pages)
