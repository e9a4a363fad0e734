"""The scale dial, the look of the figures, and the direction of imports."""

import ast
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from mhalib import plotting, scale
from mhalib.estimate import Estimate

PACKAGE = Path(__file__).parents[2] / "mhalib"
THEORIES = ("ensembles", "spectra", "dynamics")


@pytest.fixture(autouse=True)
def agg():
    matplotlib.use("agg")
    yield
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(("dial", "value"), [("quick", 1), ("book", 2), ("paper", 3), ("", 2), (None, 2)])
def test_scale_picks(monkeypatch, dial, value):
    monkeypatch.delenv("MHALIB_SCALE", raising=False)
    if dial is not None:
        monkeypatch.setenv("MHALIB_SCALE", dial)
    assert scale.pick(quick=1, book=2, paper=3) == value


def test_unknown_scale_is_refused(monkeypatch):
    monkeypatch.setenv("MHALIB_SCALE", "huge")
    with pytest.raises(ValueError, match="MHALIB_SCALE must be one of quick, book, paper; got 'huge'"):
        scale.current()


def luminance(colour: str) -> float:
    channels = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.mark.parametrize("colour", plotting.COLOURS.values())
def test_colours_stand_out_on_paper(colour):
    """At least 3:1 against white, as WCAG asks of graphics; yellow would fail."""
    assert 1.05 / (luminance(colour) + 0.05) >= 3
    assert 1.05 / (luminance("#F0E442") + 0.05) < 3


def test_style_is_transparent_and_points_have_bars():
    plotting.use_style()
    fig, axes = plotting.figure(2, rows=2)
    assert len(axes) == 4
    assert fig.get_facecolor()[3] == 0
    plotting.points(axes[0], [1.0, 2.0], Estimate(np.array([1.0, 2.0]), np.array([0.5, 0.5]), 9), "simulation")
    (bars,) = axes[0].collections
    segment = bars.get_segments()[0]
    assert segment[1, 1] - segment[0, 1] == pytest.approx(4 * 0.5)


def imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    below = {f"{node.module}.{alias.name}" for node in nodes if isinstance(node, ast.ImportFrom) and node.module
             for alias in node.names}
    return {name for name in named | whole | below if name.startswith("mhalib")}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    """Shared modules import no theory and no heads; a theory imports no other theory and no heads."""
    part = path.relative_to(PACKAGE).parts[0]
    forbidden = {"heads", *THEORIES} - {part} if part != "heads" else set()
    for name in imports(path):
        assert name.split(".")[1:2] == [] or name.split(".")[1] not in forbidden, f"{path.name} imports {name}"


def test_the_import_rule_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from mhalib import heads\nimport mhalib.ensembles.attention\n")
    assert {"mhalib.heads", "mhalib.ensembles.attention"} <= imports(bad)
