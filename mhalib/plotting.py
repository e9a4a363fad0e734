"""One look for every figure: colour-blind safe, legible on light and dark pages, theory as lines, data as points."""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mhalib import validation
from mhalib.estimate import Estimate

# Okabe and Ito (2008), darkened where the original falls below 3:1 contrast on white.
COLOURS = {"blue": "#0072B2", "vermilion": "#C94F00", "green": "#00815F", "purple": "#AA4E82",
           "sky": "#2C8CC4", "ochre": "#9A6B00", "ink": "#222222", "quiet": "#767676"}


def use_style() -> None:
    """Set the look for every figure that follows: fonts, colours, transparent retina PNG in notebooks.

    >>> use_style()
    >>> plt.rcParams["figure.facecolor"]
    'none'
    """
    plt.rcParams.update({
        "figure.dpi": 100, "figure.facecolor": "none", "axes.facecolor": "none", "figure.constrained_layout.use": True,
        "font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 10, "axes.titleweight": "bold",
        "axes.labelsize": 10, "legend.fontsize": 9, "legend.frameon": False, "axes.spines.top": False,
        "axes.spines.right": False, "axes.edgecolor": COLOURS["ink"], "text.color": COLOURS["ink"],
        "axes.labelcolor": COLOURS["ink"], "xtick.color": COLOURS["ink"], "ytick.color": COLOURS["ink"],
        "lines.linewidth": 1.8, "lines.markersize": 5, "axes.prop_cycle": plt.cycler(
            color=[COLOURS[name] for name in ("blue", "vermilion", "green", "purple", "sky", "ochre")]),
    })
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    if get_ipython() is not None:
        set_matplotlib_formats("retina")


def figure(columns: int = 1, *, rows: int = 1, width: float = 7.2, height: float = 3.2) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes, returned as a flat array; width and height in inches.

    Raises ``ValueError`` for a grid or size that is not positive.

    >>> len(figure(2)[1])
    2
    """
    grid = (validation.at_least("rows", rows, 1), validation.at_least("columns", columns, 1))
    size = (validation.positive("width", width), validation.positive("height", height))
    fig, axes = plt.subplots(*grid, figsize=size, squeeze=False)
    return fig, axes.ravel()


def points(axes: Axes, x: Iterable[float], estimate: Estimate, label: str, *, colour: str = "blue",
           marker: str = "o") -> None:
    """Draw an array-valued estimate as points with bars of two standard errors.

    >>> fig, (ax,) = figure()
    >>> points(ax, [1, 2], Estimate(np.ones(2), np.ones(2), 10), "simulation")
    >>> ax.get_legend_handles_labels()[1]
    ['simulation']
    """
    validation.one_of("colour", colour, tuple(COLOURS))
    x = validation.array("x", x, "n", n=np.size(estimate.mean))
    axes.errorbar(x, estimate.mean, 2 * np.asarray(estimate.stderr), fmt=marker, color=COLOURS[colour],
                  capsize=2, label=label, zorder=3)
