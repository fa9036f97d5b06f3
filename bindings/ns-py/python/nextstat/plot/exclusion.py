"""Exclusion contours in the plane of two labels, such as two masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .._results import ExclusionResult
from ._look import new_axes
from ._style import COLOURS, INNER, NEUTRAL, literal, needed, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = (None, "observed", "expected")


def exclusion(
    result: ExclusionResult,
    *,
    observed: bool = True,
    points: bool = True,
    numbers: str | None = None,
    forbidden: bool = False,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws exclusion contours: the observed one solid, the expected one dashed with its band of
    ±1σ.

    Parameters
    ----------
    result : ExclusionResult
    observed : bool
        False leaves the observation out.
    points : bool
        Whether to mark the signals of the grid, those that are excluded with filled circles.
    numbers : str, optional
        ``"observed"`` or ``"expected"``: writes CLs or the limit beside each signal.
    forbidden : bool
        Whether to shade y > x, as where a particle cannot decay to a heavier one.
    xlabel, ylabel : str, optional
        The labels if not given.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, ExclusionResult, "exclusion")
    if numbers not in NUMBERS:
        raise ValueError(f"`numbers` is `observed` or `expected`, not `{numbers}`")
    ax = new_axes(ax, 6.0, 4.6)
    place = numpy.array([[point["x"], point["y"]] for point in result.points])
    _band(ax, result.expected[1]["region"], result.expected[3]["region"])
    _lines(ax, result.expected[2], "--", "expected")
    if observed:
        _lines(ax, result.observed, "-", "observed", color=COLOURS[2], linewidth=1.9)
    if points:
        key = "excluded" if observed else "excluded_expected"
        inside = numpy.array([point[key] is True for point in result.points])
        ax.plot(*place[inside].T, "o", color=NEUTRAL, markersize=3, zorder=3)
        ax.plot(*place[~inside].T, "o", color=NEUTRAL, markersize=3, markerfacecolor="white", zorder=3)
    if numbers is not None:
        _numbers(ax, result, numbers)
    _limits(ax, place)
    if forbidden:
        _forbid(ax)
    ax.set_xlabel(literal(result.x) if xlabel is None else xlabel)
    ax.set_ylabel(literal(result.y) if ylabel is None else ylabel)
    ax.set_title(f"{percent(result.cl)} CL", fontsize="medium", loc="right")
    # Above, where no curve is.
    handles, labels = (found[::-1] for found in ax.get_legend_handles_labels())
    if handles:
        ax.legend(handles, labels, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax


def _band(ax, larger, smaller):
    """Fills what is excluded at -1 standard deviation and not at +1."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # Rings of opposite directions: what is in both is not filled.
    rings = [Path(ring, closed=True) for ring in larger] + [Path(ring[::-1], closed=True) for ring in smaller]
    if rings:
        path = Path.make_compound_path(*rings)
        ax.add_patch(PathPatch(path, facecolor=INNER, alpha=0.4, linewidth=0, label=r"expected $\pm 1\sigma$", zorder=1))


def _lines(ax, curve, style, label, color="black", linewidth=1.4):
    for contour in curve["contours"]:
        ax.plot(*contour["vertices"].T, style, color=color, linewidth=linewidth, label=label, zorder=4)
        label = None


def _numbers(ax, result, which):
    for point in result.points:
        value = point["observed"] if which == "observed" else point["expected"][2]
        if value is not None:
            place = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center"}
            ax.annotate(f"{value:.2g}", (point["x"], point["y"]), **place, fontsize=6, color="0.35", zorder=5)


def _limits(ax, place):
    """Ends of the axes, with a margin around the grid."""
    low, high = place.min(axis=0), place.max(axis=0)
    margin = 0.05 * (high - low)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _forbid(ax):
    """Shades y > x."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    x = numpy.array([left, right])
    ax.fill_between(x, x, max(top, right), color="0.9", linewidth=0, zorder=0)
    ax.plot(x, x, "-", color=NEUTRAL, linewidth=0.8, zorder=1)
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
