"""Refuse to build pages from results that another library, environment or scale has computed."""

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).parents[1]))  # the key is computed by the code that writes it

from tools import cache


def check(app: Sphinx) -> None:
    """Stop the build unless the execution cache has the key of now."""
    if not cache.is_valid(Path(app.srcdir)):
        raise ExtensionError(
            "the stored results are missing or belong to another state of the library: run make book"
        )


def setup(app: Sphinx) -> dict:
    """Check the cache before any page is read."""
    app.connect("builder-inited", check)
    return {"parallel_read_safe": True}
