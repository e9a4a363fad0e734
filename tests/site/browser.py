"""Visits to pages in one headless Chromium: what a page asked for, what it logged, and what the gates say of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from tools import chromium

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-first-run"]
WIDTHS = (1280, 768, 390, 360)
GATES_JS = Path(__file__).with_name("gates.js")
READY = """async () => {
    if (window.MathJax?.startup?.promise) await window.MathJax.startup.promise;
    await document.fonts.ready;
    await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
}"""


@contextmanager
def launched() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Traffic:
    """What a page did while it loaded: every request, every failure, every error that it logged."""

    origin: str
    console: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda m: self.console.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", self._request)
        page.on("requestfailed", lambda request: self.failed.append(f"{request.url}: {request.failure}"))
        page.on("response", lambda r: self.failed.append(f"{r.url}: {r.status}") if r.status >= 400 else None)

    def _request(self, request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.external.append(request.url)


def visit(browser: Browser, url: str, theme: str = "light", widths: tuple[int, ...] = WIDTHS) -> dict[str, list[str]]:
    """Load a page once and return the faults of every gate; the layout is looked at in every width."""
    parts = urlsplit(url)
    traffic = Traffic(f"{parts.scheme}://{parts.netloc}")
    with browser.new_context(viewport={"width": widths[0], "height": 900}, color_scheme=theme) as context:
        context.add_init_script(path=GATES_JS)
        page = context.new_page()
        traffic.watch(page)
        page.goto(url, wait_until="load")
        page.evaluate(READY)
        faults = {gate: page.evaluate(f"gates.{gate}()")
                  for gate in ("formulas", "images", "headings", "anchors", "badges", "contrast")}
        faults["layout"] = [f"{width} px: {fault}" for width in widths for fault in _layout(page, width)]
        if parts.scheme == "file":
            faults["links"] = dead_links(page.evaluate("[...document.links].map(a => a.href)"))
        page.wait_for_load_state("networkidle")
    return faults | {"console": traffic.console, "external": traffic.external, "failed": traffic.failed}


def _layout(page: Page, width: int) -> list[str]:
    page.set_viewport_size({"width": width, "height": 900})
    return page.evaluate("gates.layout()")


def dead_links(urls: list[str]) -> list[str]:
    """Return the links to files or anchors that do not exist; addresses elsewhere are not asked."""
    return [url for url in sorted(set(urls)) if url.startswith("file:") and not _resolves(url)]


def _resolves(url: str) -> bool:
    parts = urlsplit(url)
    target = Path(unquote(parts.path))
    return target.is_file() and (not parts.fragment or unquote(parts.fragment) in _anchors(target))


@cache
def _anchors(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))
