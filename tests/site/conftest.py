"""One browser for all site tests, and a skip with its reason where there is none or the site is not built."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.site.browser import launched
from tools import chromium

HTML = Path(__file__).parents[2] / "_build" / "html"


@pytest.fixture(scope="session")
def browser():
    if chromium.find() is None:
        pytest.skip("no Chromium found: set CHROMIUM or install it to check the site in a browser")
    with launched() as running:
        yield running


@pytest.fixture(scope="session")
def html() -> Path:
    if not (HTML / "index.html").exists():
        pytest.skip("the site is not built: run make book first")
    return HTML


@pytest.fixture(scope="session")
def pages(html) -> list[str]:
    """Return every page of the site, as a path below its root."""
    names = (path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def server(html):
    """Serve the site on this machine and return its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=html)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
