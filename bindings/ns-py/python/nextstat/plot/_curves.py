"""Smooth curves through the points of a scan, and where they cross a height."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Points of a curve.
_DENSE = 400


def smooth(values: ArrayLike, rise: ArrayLike, best: float | None) -> tuple[Any, Any]:
    """Returns a smooth curve (x, y) through the points of a scan of 2ΔNLL.

    Interpolates the root of the rise, negative left of the best fit, which is a straight line where
    the likelihood is Gaussian, by cubic polynomials that keep its monotony (F. N. Fritsch and R. E.
    Carlson, SIAM J. Numer. Anal. 17 (1980) 238).

    Parameters
    ----------
    values : array
        Ascending (N), without points whose fit failed.
    rise : array
        Of -2 ln L (N).
    best : float or None
        The best fit, which is on the curve; None if it is not known.

    Examples
    --------
    >>> x, y = smooth([0.0, 1.0, 3.0], [4.0, 1.0, 1.0], 2.0)
    >>> round(float(numpy.abs(y - (x - 2.0) ** 2).max()), 12)
    0.0
    """
    x, y = numpy.asarray(values, dtype=float), numpy.maximum(numpy.asarray(rise, dtype=float), 0.0)
    if best is not None and len(x) and x[0] < best < x[-1] and not numpy.isclose(x, best, rtol=0.0, atol=1e-9 * (x[-1] - x[0])).any():
        place = numpy.searchsorted(x, best)
        x, y = numpy.insert(x, place, best), numpy.insert(y, place, 0.0)
    if len(x) < 3:
        return x, y
    centre = x[numpy.argmin(y)] if best is None else best
    root = numpy.where(x < centre, -1.0, 1.0) * numpy.sqrt(y)
    dense = numpy.union1d(numpy.linspace(x[0], x[-1], _DENSE), x)
    return dense, _cubic(x, root, dense) ** 2


def _cubic(x: Any, y: Any, at: Any) -> Any:
    """Returns the values at `at` of the monotone cubic polynomials through the points."""
    steps, secants = numpy.diff(x), numpy.diff(y) / numpy.diff(x)
    inner = numpy.zeros(len(x) - 2)
    same = secants[:-1] * secants[1:] > 0
    weights = 2 * steps[1:] + steps[:-1], steps[1:] + 2 * steps[:-1]
    inner[same] = (sum(weights) / (weights[0] / numpy.where(same, secants[:-1], 1.0) + weights[1] / numpy.where(same, secants[1:], 1.0)))[same]
    tangents = numpy.concatenate([[secants[0]], inner, [secants[-1]]])
    cell = numpy.clip(numpy.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    t, h = (at - x[cell]) / steps[cell], steps[cell]
    low, high = (1 + 2 * t) * (1 - t) ** 2 * y[cell], t**2 * (3 - 2 * t) * y[cell + 1]
    return low + high + h * (t * (1 - t) ** 2 * tangents[cell] + t**2 * (t - 1) * tangents[cell + 1])


def refined(x: Any, y: Any, rises: Any) -> tuple[Any, Any, Any]:
    """Returns a grid (X × Y) with more points between those of a scan of two parameters, so that
    contours are smooth; the grid itself if a point is missing.
    """
    if min(len(x), len(y)) < 4 or not numpy.isfinite(rises).all():
        return x, y, rises
    dense = [numpy.linspace(values[0], values[-1], 8 * len(values)) for values in (x, y)]
    along = numpy.stack([_cubic(x, column, dense[0]) for column in rises.T], axis=1)
    return (*dense, numpy.stack([_cubic(y, row, dense[1]) for row in along]))


def crossings(x: Any, y: Any, height: float) -> list[float]:
    """Returns where a curve crosses a height.

    >>> crossings([0.0, 1.0, 2.0], [2.0, 0.0, 4.0], 1.0)
    [0.5, 1.25]
    """
    found = []
    for (x0, y0), (x1, y1) in pairwise(zip(x, y)):
        if (y0 - height) * (y1 - height) < 0:
            found.append(float(x0 + (height - y0) / (y1 - y0) * (x1 - x0)))
    return found
