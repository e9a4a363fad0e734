"""Serve MathJax and the fonts from the site itself: no page asks any other host for anything."""

from pathlib import Path


def use_vendored(app, config):
    config.html_static_path.append(str(Path(app.srcdir) / "_vendor"))
    config.mathjax_path = "mathjax/tex-chtml-full.js"


def setup(app):
    app.connect("config-inited", use_vendored)
    return {"parallel_read_safe": True}
