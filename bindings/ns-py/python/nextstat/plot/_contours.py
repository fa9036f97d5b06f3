"""How contours and best fits of two parameters are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

_DASHES = ("-", "--", ":", "-.")


def points_of(contour: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the points whose fit converged."""
    return [point for point in contour["points"] if point["outcome"] in (None, "converged")]


def draw_contour(ax: Axes, contour: Mapping[str, Any], k: int, colour: str, **options: Any) -> Any:
    """Draws the k-th contour of a result as a closed curve, thin where the end of a range cuts it
    off; returns its line.
    """
    points = points_of(contour)
    x, y = numpy.array([point["values"] for point in points], dtype=float).reshape(-1, 2).T
    free = numpy.array([point["cut"] is None for point in points], dtype=bool)
    x, y, free = (numpy.append(part, part[:1]) for part in (x, y, free))
    ax.plot(x, y, "-", color=colour, linewidth=0.6, zorder=2, **options)
    inside = free & numpy.append(free[1:], free[1:2]) | free & numpy.append(free[-2:-1], free[:-1])
    inner = [numpy.where(inside, part, numpy.nan) for part in (x, y)]
    return ax.plot(*inner, _DASHES[k % 4], color=colour, linewidth=1.8, zorder=3, **options)[0]


def draw_region(ax: Axes, contour: Mapping[str, Any], k: int, colour: str, **options: Any) -> Any:
    """Draws the k-th region by toys of a result: its closed rings thin, and the contours that bound
    it, without the edge of the grid; returns a line of the contours.
    """
    for ring in contour["region"]:
        ax.plot(*_closed(ring).T, "-", color=colour, linewidth=0.6, zorder=2, **options)
    # Contours are parts of one line, so that a legend has one entry.
    gap = numpy.full((1, 2), numpy.nan)
    parts = [gap]
    for found in contour["contours"]:
        vertices = numpy.array(found["vertices"], dtype=float) if found["ends_at_edge"] else _closed(found["vertices"])
        parts += [vertices, gap]
    return ax.plot(*numpy.concatenate(parts).T, _DASHES[k % 4], color=colour, linewidth=1.8, zorder=3, **options)[0]


def _closed(vertices: Sequence[Sequence[float]]) -> Any:
    """Returns the vertices of a ring (N, 2), the first one again at the end."""
    found = numpy.array(vertices, dtype=float)
    return found if (found[0] == found[-1]).all() else numpy.append(found, found[:1], axis=0)


def draw_best(ax: Axes, best: Sequence[float], colour: str, **options: Any) -> Any:
    """Draws a star at the best fit; returns what a legend shows of it."""
    style = {"color": colour, "markeredgecolor": "white", "markersize": 13, "linestyle": "none", "zorder": 4}
    return ax.plot(*best, marker="*", **{**style, **options})[0]
