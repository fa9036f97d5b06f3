"""Figures of profile scans of one and two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from matplotlib.ticker import MaxNLocator

from .._views import measured
from ._contours import draw_best, draw_contour
from ._curves import crossings, refined, smooth
from ._documents import document_of, require_fit
from ._labels import annotate, annotate_above, legend, ticks
from ._look import figure, new_axes
from ._style import COLOURS, NEUTRAL, deviations, levels_of, literal, percent, quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

# One and two standard deviations.
_LEVELS = (0.6826894921370859, 0.9544997361036416)

_RISE = r"$-2\,\Delta\ln L$"

# Shades of a map.
_SHADES = 14


@figure
def scan(
    result: Source,
    *,
    levels: Sequence[float] = _LEVELS,
    name: str | None = None,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws a profile scan: the curve of one parameter with its crossings of confidence levels, or
    a map of two with contours.

    The curve goes through all points, which are drawn, too. The best fit with the interval of one
    standard deviation is written into the figure.

    Parameters
    ----------
    result : ScanResult, or a stored document of one
    levels : sequence of float
        Confidence levels, by Wilks' theorem for one or two parameters; one and two standard
        deviations if not given.
    name : str, optional
        A name for the legend, for several scans on the same axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document, levels = require_fit(document_of(result, "scan")), levels_of("levels", levels)
    rises = numpy.array(_numbers(document["twice_delta_nll"]), dtype=float)
    if not numpy.isfinite(rises).any():
        raise ValueError("`result` has no point whose fit converged")
    if _is_grid(document):
        return _draw_grid(document, rises, levels, ax)
    return _draw_curve(document, rises, levels, name, ax)


def _numbers(values: Any) -> Any:
    """Returns lists with NaN instead of what is not a number."""
    if isinstance(values, (list, tuple)):
        return [_numbers(value) for value in values]
    return numpy.nan if values is None else values


def _is_grid(document: Document) -> bool:
    return len(document.fields.get("parameters") or ()) == 2


def _draw_curve(document: Document, rises: Any, levels: Sequence[float], name: str | None, ax: Axes | None) -> Axes:
    ax = new_axes(ax, 5.2, 4.2)
    is_first = not any(line.get_gid() == "scan" for line in ax.lines)
    values, best = _sorted(document, rises), document.fields.get("bestfit")
    best = best[0] if isinstance(best, (list, tuple)) else best
    colour = COLOURS[sum(line.get_gid() == "scan" for line in ax.lines) % len(COLOURS)]
    known = numpy.isfinite(values[1])
    curve = smooth(*values[:, known], best)
    ax.plot(*curve, "-", color=colour, linewidth=1.8, label=name, gid="scan", zorder=3)
    ax.plot(*values[:, known], "o", color=colour, markersize=3, gid="points", zorder=3)
    if is_first:
        _frame(ax, document, values, levels)
    found = [_mark(ax, curve, _interval(document, level), level, colour) for level in levels]
    failed = values[0][~known]
    if failed.size:
        ax.plot(failed, numpy.zeros(failed.size), "x", color=NEUTRAL, label="fit failed", clip_on=False, gid="failed")
    if is_first:
        annotate(ax, [*_said(document, best, found, levels), "Asimov data" if document.is_asimov else ""])
    handles = [line for line in ax.lines if not line.get_label().startswith("_")]
    legend(ax, handles, [line.get_label() for line in handles])
    return ax


def _sorted(document: Document, rises: Any) -> Any:
    """Returns values and rises, ascending (2 × N)."""
    values = document["values"]
    values = values[0] if isinstance(values[0], (list, tuple)) else values
    found = numpy.array([_numbers(values), rises], dtype=float)
    return found[:, numpy.argsort(found[0], kind="stable")]


def _name_of(document: Document) -> str:
    return document.fields.get("parameter") or document["parameters"][0]


def _frame(ax: Axes, document: Document, values: Any, levels: Sequence[float]) -> None:
    heights = [quantile(level) for level in levels]
    for level, height in zip(levels, heights):
        ax.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle="--", zorder=1)
        place = {"xycoords": ("axes fraction", "data"), "xytext": (-4, 2), "textcoords": "offset points"}
        ax.annotate(deviations(level), (1.0, height), **place, ha="right", va="bottom", fontsize="small", color="0.3")
    low, high = values[0][0], values[0][-1]
    if low < high:
        ax.set_xlim(low, high)
    # What is far above the levels says nothing, and hides what is below them.
    highest = max([1.0, *heights])
    ax.set_ylim(0.0, min(max(1.05 * numpy.nanmax(values[1]), 1.25 * highest), 2.5 * highest))
    ax.set_xlabel(literal(_name_of(document)))
    ax.set_ylabel(_RISE)
    ticks(ax)


def _interval(document: Document, level: float) -> Mapping[str, Any] | None:
    """Returns the interval of a level that the document has."""
    same = [found for found in document.fields.get("intervals") or [] if abs(found["cl"] - level) < 1e-6]
    return same[0] if same else None


def _mark(ax: Axes, curve: Any, interval: Mapping[str, Any] | None, level: float, colour: str) -> list[float]:
    """Marks where the curve crosses a level; returns these places."""
    height = quantile(level)
    if interval is not None and interval["bestfit"] is not None:
        found = [interval["bestfit"] + interval[side] for side in ("down", "up") if interval[side] is not None]
    else:
        found = crossings(*curve, height)
    ax.vlines(found, 0.0, height, color=colour, linewidth=0.9, linestyle=":", zorder=2)
    ax.plot(found, [height] * len(found), "o", color=colour, markerfacecolor="white", markersize=5, zorder=4, gid="crossings")
    return found


def _said(document: Document, best: float | None, found: Sequence[Sequence[float]], levels: Sequence[float]) -> list[str]:
    """Returns the best fit with the interval of the first level in words."""
    if best is None or not found:
        return []
    low = max((at for at in found[0] if at < best), default=None)
    high = min((at for at in found[0] if at > best), default=None)
    text = _with_ends(best, None if low is None else best - low, None if high is None else high - best)
    of_level = "" if abs(levels[0] - _LEVELS[0]) < 1e-3 else f" ({deviations(levels[0])})"
    return [f"{literal(_name_of(document))} = {text}{of_level}"]


def _with_ends(value: float, down: float | None, up: float | None) -> str:
    """Returns a value with the distances to the ends of its interval, which have the decimals of
    two digits of the smaller one.

    >>> print(_with_ends(1.3669, 0.6921, 0.8793))
    1.37$^{\\,+0.88}_{\\,-0.69}$
    """
    known = [size for size in (down, up) if size is not None]
    if not known:
        return measured(value, None).removesuffix(" ± -")
    text, smallest = measured(value, min(known)).split(" ± ")
    decimals = len(smallest.partition(".")[2])
    ends = ("\\mathrm{open}" if size is None else f"{sign}{size:.{decimals}f}" for sign, size in (("+", up), ("-", down)))
    return "{}$^{{\\,{}}}_{{\\,{}}}$".format(text, *ends)


def _draw_grid(document: Document, rises: Any, levels: Sequence[float], ax: Axes | None) -> Axes:
    ax = new_axes(ax, 5.8, 4.6)
    x, y = (numpy.array(values, dtype=float) for values in document["values"])
    if min(len(x), len(y)) < 2:
        raise ValueError("a map needs two values of each parameter at least")
    heights = [quantile(level, 2) for level in levels]
    top = max(1.5 * max(heights, default=6.0), 4.0)
    whole = refined(*_ascending(x, y, rises))
    drawn = numpy.ma.masked_invalid(whole[2].T)
    # Between the points alone: half cells around them would reach beyond the range of a parameter.
    shades = numpy.linspace(0.0, top, _SHADES + 1)
    extend = "max" if drawn.max() > top else "neither"
    filled = ax.contourf(*whole[:2], numpy.ma.maximum(drawn, 0.0), levels=shades, cmap="Blues_r", extend=extend)
    ax.figure.colorbar(filled, ax=ax, label=_RISE, pad=0.02, ticks=MaxNLocator(6))
    handles = _draw_levels(ax, document, (*whole[:2], drawn), levels)
    handles.append(draw_best(ax, document["bestfit"], "black"))
    ax.set_xlim(x.min(), x.max())
    ax.set_ylim(y.min(), y.max())
    ax.set_xlabel(literal(document["parameters"][0]))
    ax.set_ylabel(literal(document["parameters"][1]))
    ticks(ax)
    annotate_above(ax, ["Asimov data"] if document.is_asimov else [])
    legend(ax, handles, [*(percent(level) for level in levels), "Best fit"], room=False, columns=3)
    return ax


def _ascending(x: Any, y: Any, rises: Any) -> tuple[Any, Any, Any]:
    first, second = numpy.argsort(x), numpy.argsort(y)
    return x[first], y[second], rises[numpy.ix_(first, second)]


def _draw_levels(ax: Axes, document: Document, grid: tuple[Any, Any, Any], levels: Sequence[float]) -> list[Any]:
    """Draws a contour of each level: that of the document, or one through the grid."""
    known = {round(contour["cl"], 6): contour for contour in document.fields.get("contours") or []}
    handles = []
    for k, level in enumerate(levels):
        if round(level, 6) in known:
            handles.append(draw_contour(ax, known[round(level, 6)], k, "black"))
            continue
        style = {"colors": "black", "linestyles": ["-", "--", ":", "-."][k % 4], "linewidths": 1.5}
        handles += ax.contour(*grid, levels=[quantile(level, 2)], **style).legend_elements()[0][:1]
    return handles
