"""Conditional fits round a minimum: where -2 ln L, minimised in all other parameters, has risen by
a given amount.
"""

import math
from collections import namedtuple

import numpy as np

from ..infer.intervals._root import crossing

#: The end of an interval: how far it is from the best fit, NaN if it is not known, and whether it
#: is that of the range.
End = namedtuple("End", "distance is_at_limit")

#: Ends are found to this fraction of the parameter's width.
_PRECISION = 1e-6


class Profiler:
    """Conditional fits of `data` in a box, each from where the last one ended, and by how much they
    lie above `least`.
    """

    def __init__(self, pdf, data, box, least):
        self._pdf, self._data, self._least = pdf, data, least
        self.best, self.lower, self.upper, self._fixed = box
        self._start = self.best.copy()

    def at(self, values):
        """Fits with parameters fixed: values by position."""
        start, fixed = self._start.copy(), list(self._fixed)
        for i, value in values.items():
            start[i], fixed[i] = value, True
        found = self._pdf._fit(self._data, (start, self.lower, self.upper, fixed), False)
        if found["converged"]:
            self._start = np.array(found["bestfit"])
        return found

    def rise(self, values):
        """Returns by how much -2 ln L is above the minimum; infinite where it is not finite."""
        found = self.at(values)["twice_nll"]
        return found - self._least if math.isfinite(found) else math.inf


def interval_end(profiler, i, sign, rise_and_width):
    """Returns the lower end (`sign` -1) or the upper one (1) of the interval of parameter `i`:
    where -2 ln L has risen by an amount.
    """
    (rise, width), best = rise_and_width, profiler.best[i]
    limit = profiler.lower[i] if sign < 0.0 else profiler.upper[i]
    step = math.sqrt(rise) * width if width > 0.0 else 0.1 * max(abs(best), 1.0)
    found = _end(lambda distance: profiler.rise({i: best + sign * distance}) - rise, step, sign * (limit - best))
    return End(float(sign * found.distance), found.is_at_limit)


def _end(above, step, room):
    """Returns the distance, at most `room`, at which `above` changes its sign from negative; `step`
    is the first guess.
    """
    inner, outer = 0.0, min(step, room)
    while outer < room and above(outer) < 0.0:
        inner, outer = outer, min(2.0 * outer, room)
    if outer == room:
        at_limit = above(room) if math.isfinite(room) and room > 0.0 else -1.0
        if at_limit < 0.0:
            return End(room if math.isfinite(room) else math.nan, math.isfinite(room))
    # Where -2 ln L is infinite, a large number lets the search interpolate.
    return End(crossing(lambda distance: min(above(distance), 1e3), inner, outer, _PRECISION * step, 0.0), False)


def contour(profiler, pair, rise, points_and_widths):
    """Returns points (N + 1 × 2) round the minimum, one on each of N rays, at which -2 ln L has
    risen by `rise`; the last is the first.
    """
    n_points, widths = points_and_widths
    best, lower, upper = (np.asarray(ends)[list(pair)] for ends in (profiler.best, profiler.lower, profiler.upper))
    found = []
    for angle in 2.0 * math.pi * np.arange(n_points) / n_points:
        ray = np.array([math.cos(angle), math.sin(angle)]) * widths
        ahead = np.where(ray < 0.0, lower, upper) - best
        room = min((gap / component for gap, component in zip(ahead, ray) if component != 0.0), default=math.inf)
        end = _end(lambda r, ray=ray: profiler.rise(dict(zip(pair, best + r * ray))) - rise, math.sqrt(rise), max(room, 0.0))
        found.append(np.clip(best + end.distance * ray, lower, upper))
    return np.array([*found, found[0]])


def subtracted(values, is_wanted):
    """Returns `values`, without the least of them if that is wanted."""
    return values - np.min(values) if is_wanted else values


def interpolated(points, n):
    """Returns `n` points of a periodic spline through `points`."""
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(np.linspace(0.0, 1.0, len(points)), points, bc_type="periodic")
    return spline(np.linspace(0.0, 1.0, n))
