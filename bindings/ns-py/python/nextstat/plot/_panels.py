"""Two panels: data and stacked samples, and below the ratio of data and prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from matplotlib.patches import Patch
from matplotlib.ticker import AutoMinorLocator, MaxNLocator

from .._errors import shown
from ._labels import annotate, legend, ticks
from ._look import axes_of, new_figure
from ._room import SHADING
from ._style import NEUTRAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy import ndarray

    from ._stack import Stack

UNCERTAINTY, BLINDED = "Uncertainty", "Blinded"

# The colour of bins whose data are hidden.
_SHADE = "0.9"

# Points of the markers of data, and of arrows to data outside of the ratio.
_MARKER = 4.6


class Panels(NamedTuple):
    """The axes of a figure of yields, and how it is drawn."""

    main: Axes
    ratio: Axes
    edges: ndarray
    #: Ends of the axis of the ratio.
    reach: tuple[float, float]
    log: bool
    #: Words for what is stacked, and for the data.
    labels: Mapping[str, str]
    colours: Mapping[str, str]

    @property
    def centers(self) -> ndarray:
        return 0.5 * (self.edges[:-1] + self.edges[1:])


def new_panels(ax: Any, width: float = 5.6) -> tuple[Axes, Axes]:
    """Returns the pair of axes `ax`, or that of a new figure."""
    if ax is None:
        figure, axes = new_figure(width, 5.2, nrows=2, ncols=1, sharex=True, height_ratios=(3, 1))
        figure.get_layout_engine().set(hspace=0.0, h_pad=0.03)
        return axes[0], axes[1]
    if not hasattr(ax, "__len__") or len(ax) != 2:
        raise TypeError(f"`ax` is a pair of axes, for the yields and for the ratio, not `{shown(ax)}`")
    return axes_of(ax[0]), axes_of(ax[1])


def draw(panels: Panels, stack: Stack, lines: Sequence[str]) -> None:
    """Draws the stack, its data and their ratio, and writes `lines` below the label."""
    _draw_samples(panels, stack)
    _hatch(panels.main, stack.total - stack.width, stack.total + stack.width, panels.edges, label=UNCERTAINTY)
    _draw_lines(panels, stack)
    _shade(panels, numpy.isnan(stack.data))
    _draw_points(panels.main, panels, stack.data, stack.errors)
    _draw_ratio(panels, stack)
    _set_limits(panels, stack)
    annotate(panels.main, lines)
    ticks(panels.main)
    ticks(panels.ratio)
    panels.ratio.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], prune="upper"))
    panels.ratio.yaxis.set_minor_locator(AutoMinorLocator())


def _draw_samples(panels, stack):
    base = numpy.zeros(len(stack.data))
    for name, values in stack.samples.items():
        style = {"facecolor": panels.colours[name], "edgecolor": "black", "linewidth": 0.5}
        panels.main.stairs(base + values, panels.edges, baseline=base.copy(), fill=True, label=panels.labels[name], gid=f"sample {name}", **style)
        base = base + values


def _draw_lines(panels, stack):
    for name, values in stack.lines.items():
        style = {"color": panels.colours[name], "linewidth": 1.8, "linestyle": (0, (4, 1.5)), "zorder": 3}
        panels.main.stairs(values, panels.edges, baseline=None, label=panels.labels[f"line {name}"], gid=f"line {name}", **style)


def _hatch(ax, lower, upper, edges, label=None):
    if not numpy.isnan(upper).all():
        style = {"facecolor": "none", "edgecolor": "0.25", "hatch": "///////", "linewidth": 0.0, "zorder": 2.5}
        ax.stairs(upper, edges, baseline=lower, fill=True, label=label, gid="uncertainty", **style)


def _shade(panels, hidden):
    """Shades the bins whose data are hidden."""
    for ax in (panels.main, panels.ratio):
        for i in numpy.flatnonzero(hidden):
            label = BLINDED if i == numpy.argmax(hidden) else None
            ax.axvspan(panels.edges[i], panels.edges[i + 1], facecolor=_SHADE, linewidth=0, label=label, zorder=0, gid=SHADING)


def _draw_points(ax, panels, values, errors):
    """Draws points with Poisson errors and the widths of their bins."""
    known = ~numpy.isnan(values)
    if not known.any():
        return
    half = 0.5 * numpy.diff(panels.edges)[known]
    style = {"fmt": "o", "color": "black", "markersize": _MARKER, "elinewidth": 1.1, "zorder": 4}
    ax.errorbar(panels.centers[known], values[known], xerr=half, yerr=errors[:, known], label=panels.labels["data"], **style)


def _draw_ratio(panels, stack):
    with numpy.errstate(divide="ignore", invalid="ignore"):
        inverse = numpy.where(stack.total > 0, 1 / stack.total, numpy.nan)
    _hatch(panels.ratio, 1 - stack.width * inverse, 1 + stack.width * inverse, panels.edges)
    panels.ratio.axhline(1, color=NEUTRAL, linewidth=0.9, zorder=1)
    ratio = stack.data * inverse
    _draw_points(panels.ratio, panels, ratio, stack.errors * inverse)
    low, high = panels.reach
    for outside, edge, marker in ((ratio > high, high, "^"), (ratio < low, low, "v")):
        if outside.any():
            # Inside of the axes, where their points are at an end.
            shift = 0.045 * (high - low) * (1 if marker == "v" else -1)
            style = {"marker": marker, "linestyle": "None", "color": "black", "markersize": _MARKER + 0.8, "gid": "outside"}
            panels.ratio.plot(panels.centers[outside], numpy.full(outside.sum(), edge + shift), **style, zorder=5)
    panels.ratio.set_ylim(low, high)


def _set_limits(panels, stack):
    """Lets the y axis begin at zero, or a logarithmic one below the smallest bin."""
    top = numpy.nanmax(numpy.concatenate([stack.data + stack.errors[1], stack.total + numpy.nan_to_num(stack.width), *stack.lines.values()]), initial=0.0)
    panels.main.set_xlim(panels.edges[0], panels.edges[-1])
    if not panels.log:
        panels.main.set_ylim(0.0, 1.05 * top if top > 0.0 else 1.0)
        return
    panels.main.set_yscale("log", nonpositive="clip")
    panels.main.set_ylim(_bottom(stack, top), 1.3 * top if top > 0.0 else 1.0)


def _bottom(stack, top):
    """Returns half of the smallest content, but not less than a hundredth of the smallest total:
    one small bin would squeeze all others.
    """
    positive = [values[values > 0].min() for values in (*stack.samples.values(), stack.data[stack.data > 0], stack.total) if (values > 0).any()]
    totals = stack.total[stack.total > 0]
    floor = 1e-2 * (totals.min() if totals.size else max(top, 1.0))
    return max(0.5 * min(positive, default=0.1), floor)


def write_legend(panels: Panels, stack: Stack) -> None:
    """Draws the legend: data first, then the stack from its top. Call it last."""
    handles = dict(zip(*reversed(panels.main.get_legend_handles_labels())))
    stacked = [panels.labels[name] for name in reversed(stack.samples)]
    lines = [panels.labels[f"line {name}"] for name in stack.lines]
    if BLINDED in handles:
        # With a frame: the shade alone is hardly seen on paper.
        handles[BLINDED] = Patch(facecolor=_SHADE, edgecolor="0.4", linewidth=0.6)
    names = [name for name in (panels.labels["data"], *stacked, *lines, UNCERTAINTY, BLINDED) if name in handles]
    legend(panels.main, [handles[name] for name in names], names)
