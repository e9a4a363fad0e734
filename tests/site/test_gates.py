"""The gates themselves: each lets a sound page pass and reports the fault of a page that is broken in its way."""

import pytest

from tests.site.browser import visit

SOUND = '<h1>Title</h1><p>A <a href="#here">link</a> to <span id="here">here</span>, and code: <code>$x$</code>.</p>'
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
BROKEN = {
    "anchors: twice the same": '<p id="a">1</p><p id="a">2</p>',
    "badges: without text": '<span class="verdict verdict-holds"></span>',
    "badges: unknown kind": '<span class="verdict verdict-maybe">maybe</span>',
    "console: script error": "<script>undefinedFunction()</script>",
    "console: logged error": "<script>console.error('fault')</script>",
    "contrast: grey on white": '<p style="color: #999">faint</p>',
    "contrast: mixed colour": '<p style="color: color-mix(in srgb, #000 30%, #fff)">faint</p>',
    "contrast: on a ground of its own": '<div style="background: #222"><p style="color: #333">dark</p></div>',
    "external: script": '<script src="http://127.0.0.1:9/elsewhere.js"></script>',
    "failed: missing style sheet": '<link rel="stylesheet" href="missing.css">',
    "formulas: not typeset": '<span class="math">x</span>',
    "formulas: raw dollars": "<p>the value $x^2$ in the text</p>",
    "formulas: raw delimiters": r"<p>the value \(x^2\) in the text</p>",
    "formulas: error": '<span class="math"><mjx-container><mjx-merror>Undefined</mjx-merror></mjx-container></span>',
    "headings: two of the first level": "<h1>Another</h1>",
    "headings: a level left out": "<h3>Third</h3>",
    "images: did not load": '<img src="missing.png" alt="A curve.">',
    "images: no alt text": f'<img src="{PIXEL}" alt="">',
    "images: alt text is a file name": f'<img src="{PIXEL}" alt="figure-1.png">',
    "links: no such file": '<a href="missing.html">away</a>',
    "links: no such anchor": '<a href="#missing">away</a>',
    "layout: distorted image": f'<img src="{PIXEL}" alt="A dot." style="width: 100px; height: 20px">',
    "layout: wide element": '<div style="width: 2000px">wide</div>',
    "layout: hidden by the page": "<style>html, body { overflow-x: hidden }</style><p style='width: 1400px'>cut</p>",
    "layout: on a phone only": '<table style="min-width: 500px"><tr><td>wide</td></tr></table>',
}


@pytest.fixture
def faults_of(browser, tmp_path):
    def look(body: str) -> dict[str, list[str]]:
        page = tmp_path / "page.html"
        page.write_text(f"<!doctype html><html lang=en><meta charset=utf-8><title>t</title><body>{body}</body></html>")
        return visit(browser, page.as_uri())
    return look


def test_a_sound_page_passes_every_gate(faults_of):
    assert {gate: found for gate, found in faults_of(SOUND).items() if found} == {}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_page_is_reported(faults_of, fault):
    assert faults_of(SOUND + BROKEN[fault])[fault.split(":")[0]]


def test_what_scrolls_in_its_own_box_is_no_fault(faults_of):
    assert faults_of(SOUND + '<div style="overflow-x: auto"><p style="width: 3000px">long</p></div>')["layout"] == []
