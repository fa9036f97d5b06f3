"""Figures of the likelihood: profile scans of one and two parameters, contours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .._results import ContourResult, ScanResult
from ._look import new_axes, pyplot
from ._style import COLOURS, NEUTRAL, levels_of, literal, needed, percent, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_DASHES = ("-", "--", ":", "-.")


def _best(result, k):
    """Returns the best-fit value of the k-th scanned parameter."""
    return result.fit["bestfit"][list(result.par_names).index(result.parameters[k])]


def scan(result: ScanResult, *, levels: Sequence[float] = (0.6827, 0.95), label: str | None = None, ax: Axes | None = None) -> Axes:
    """Draws a profile scan: the curve of one parameter with lines at confidence levels, or a map
    of two with contours.

    Parameters
    ----------
    result : ScanResult
    levels : sequence of float
        Confidence levels, by Wilks' theorem for one or two parameters.
    label : str, optional
        A name for the legend, for several scans on the same axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, ScanResult, "profile_scan")
    levels = levels_of("levels", levels)
    if not numpy.isfinite(result.delta_nll).any():
        raise ValueError("`result` has no point whose fit converged")
    if len(result.parameters) == 2:
        return _map(result, levels, ax)
    is_first = ax is None or not ax.lines
    ax = new_axes(ax, 5.2, 4.0)
    values, rise = numpy.asarray(result.values[0]), numpy.asarray(result.twice_delta_nll)
    order = numpy.argsort(values)
    values, rise = values[order], rise[order]
    number = sum(line.get_gid() == "scan" for line in ax.lines)
    colour = COLOURS[number % len(COLOURS)]
    ax.plot(values, rise, "-", color=colour, linewidth=1.8, label=label, gid="scan", zorder=3)
    ax.plot(values, rise, ".", color=colour, markersize=4, zorder=3)
    failed = numpy.isnan(rise)
    if failed.any():
        ax.plot(values[failed], numpy.zeros(failed.sum()), "x", color=NEUTRAL, label="fit failed", clip_on=False)
    if is_first:
        _frame(ax, result, values, rise, levels)
    if label is not None or failed.any():
        ax.legend(frameon=False)
    return ax


def _frame(ax, result, values, rise, levels):
    heights = [quantile(level) for level in levels]
    for level, height in zip(levels, heights):
        ax.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle="--", zorder=1)
        place = {"xycoords": ("axes fraction", "data"), "xytext": (0, 2), "textcoords": "offset points"}
        ax.annotate(percent(level), (0.5, height), **place, ha="center", va="bottom", fontsize="small", color="0.3")
    best = _best(result, 0)
    if values[0] <= best <= values[-1]:
        ax.axvline(best, color=NEUTRAL, linewidth=0.8, linestyle=":", zorder=1)
    if values[0] < values[-1]:
        ax.set_xlim(values[0], values[-1])
    top = numpy.nanmax(rise, initial=max([1.0, *(1.25 * height for height in heights)]))
    ax.set_ylim(min(0.0, numpy.nanmin(rise, initial=0.0)), 1.05 * top)
    ax.set_xlabel(literal(result.parameters[0]))
    ax.set_ylabel(r"$2\Delta\mathrm{NLL}$")


def _map(result, levels, ax):
    ax = new_axes(ax, 5.8, 4.4)
    (x, y), rise = [numpy.asarray(values) for values in result.values], numpy.asarray(result.twice_delta_nll)
    heights = [quantile(level, 2) for level in levels]
    top = max(1.5 * max(heights, default=6.0), 4.0)
    drawn = numpy.ma.masked_invalid(rise.T)
    # A grid that is coarse is shown as it is: every cell is one fit.
    mesh = ax.pcolormesh(x, y, drawn, shading="nearest", cmap="cividis_r", vmin=0.0, vmax=top, rasterized=True)
    pyplot.colorbar(mesh, ax=ax, label=r"$2\Delta\mathrm{NLL}$", extend="max" if drawn.max() > top else "neither")
    lines = ax.contour(x, y, drawn, levels=sorted(heights), colors="white", linestyles=_DASHES[: len(heights)], linewidths=1.4)
    ax.clabel(lines, fmt={height: percent(level) for level, height in zip(levels, heights)}, fontsize=8)
    ax.plot(*(_best(result, k) for k in (0, 1)), "*", color="white", markeredgecolor="black", markersize=11)
    ax.set_xlabel(literal(result.parameters[0]))
    ax.set_ylabel(literal(result.parameters[1]))
    ax.grid(False)
    return ax


def _points(contour):
    return [point for point in contour["points"] if point["outcome"] in (None, "converged")]


def contours(result: ContourResult, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """Draws contours of two parameters, one closed curve for each confidence level.

    Parts that follow the end of a range, rather than the likelihood, are drawn thin.

    Parameters
    ----------
    result : ContourResult
    label : str, optional
        A name for the legend, for several results on the same axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, ContourResult, "contours")
    drawn = [(contour, _points(contour)) for contour in result.contours]
    drawn = [(contour, points) for contour, points in drawn if points]
    if not drawn:
        raise ValueError("`result` has no contour with points to draw")
    number = 0 if ax is None else len({line.get_gid() for line in ax.lines if str(line.get_gid()).startswith("contours")})
    ax = new_axes(ax, 5.2, 4.2)
    colour, name = COLOURS[number % len(COLOURS)], f"contours {number}"
    for k, (contour, points) in enumerate(drawn):
        x, y = numpy.array([point["values"] for point in points]).T
        free = numpy.array([point["cut"] is None for point in points])
        x, y, free = (numpy.append(part, part[0]) for part in (x, y, free))
        text = percent(contour["cl"]) if label is None else f"{label}, {percent(contour['cl'])}"
        ax.plot(x, y, "-", color=colour, linewidth=0.6, gid=name, zorder=2)
        inside = free & numpy.append(free[1:], free[1]) | free & numpy.append(free[-2], free[:-1])
        inner = [numpy.where(inside, part, numpy.nan) for part in (x, y)]
        ax.plot(*inner, _DASHES[k % 4], color=colour, linewidth=1.8, label=text, gid=name, zorder=3)
    best = [_best(result, k) for k in (0, 1)]
    ax.plot(*best, "*", color=colour, markeredgecolor="black", markersize=11, label=None if number else "best fit", zorder=4)
    ax.set_xlabel(literal(result.parameters[0]))
    ax.set_ylabel(literal(result.parameters[1]))
    # Above, where no curve is.
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax
