"""Upper limits: the value of the parameter of interest where CLs falls to a level."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...exceptions import FailedMinimization
from ..._current import get_backend
from .._hypotest import hypotest
from ..mle import _given, fit
from ._root import crossing

__all__ = ["upper_limit", "linear_grid_scan", "toms748_scan"]

#: How often a search interval is halved or doubled before it is given up.
_MOST_STEPS = 40


def __dir__():
    return __all__


class _Curve:
    """CLs, observed and expected, as a function of the tested value; every value is computed once.
    """

    def __init__(self, data, model, options) -> None:
        self.data, self.model, self.options = data, model, options
        self.results = {}

    def tests(self, poi) -> Any:
        """Returns the six values of CLs at `poi`: observed, then expected."""
        poi = float(poi)
        if poi not in self.results:
            self.results[poi] = hypotest(poi, self.data, self.model, return_expected_set=True, **self._wide_enough(poi))
        observed, expected = self.results[poi][:2]
        return np.array([float(observed), *map(float, expected)])

    def _wide_enough(self, poi):
        """Returns the options, with a range of the parameter of interest that `poi` is in."""
        bounds = [tuple(pair) for pair in _given(self.model, None, self.options.get("par_bounds"), None)[1]]
        index = self.model.config.poi_index
        if index is None or bounds[index][0] <= poi <= bounds[index][1]:
            return self.options
        bounds[index] = (min(bounds[index][0], poi), max(bounds[index][1], poi))
        return {**self.options, "par_bounds": bounds}

    def bracket(self, which, level) -> Any:
        """Returns the closest tested values on both sides of the crossing of curve `which`."""
        tested = sorted(self.results)
        above = [poi for poi in tested if self.tests(poi)[which] >= level]
        below = [poi for poi in tested if self.tests(poi)[which] < level and (not above or poi > above[0])]
        lower = max((poi for poi in above if not below or poi < below[0]), default=above[-1] if above else tested[0])
        return lower, min((poi for poi in below if poi > lower), default=tested[-1])


def toms748_scan(data, model, bounds_low, bounds_up, level=0.05, atol=2e-12, rtol=1e-4, from_upper_limit_fn=False, **hypotest_kwargs) -> Any:
    """Returns upper limits by a search for the crossings, which starts in `bounds_low` to
    `bounds_up` and widens it as needed.

    Returns
    -------
    The observed limit and the five expected ones, at -2 … +2 standard deviations.

    Raises
    ------
    ValueError
        If no range has the level in it.

    Warns
    -----
    UserWarning
        Where the best fit is at the upper end of its range: tests beyond that end are made in a
        range that reaches as far as the tested value.

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> observed, expected = pyhf.infer.intervals.upper_limits.toms748_scan(
    ...     [51, 48] + model.config.auxdata, model, 0.0, 5.0
    ... )
    >>> round(float(observed), 3), round(float(expected[2]), 3)
    (1.012, 1.062)
    """
    curve = _Curve(data, model, hypotest_kwargs)
    _warn_of_end(data, model, hypotest_kwargs)
    _reach(curve, bounds_low, 0.5, lambda tests: np.any(tests < level), level)
    _reach(curve, bounds_up, 2.0, lambda tests: np.any(tests > level), level)
    tensorlib, _ = get_backend()
    limits = []
    for which in range(6):
        found = crossing(lambda poi, which=which: curve.tests(poi)[which] - level, *curve.bracket(which, level), atol, rtol)
        limits.append(tensorlib.astensor(found))
    if from_upper_limit_fn:
        return limits[0], limits[1:], (list(curve.results), list(curve.results.values()))
    return limits[0], limits[1:]


def _warn_of_end(data, model, options):
    """Says that the range of the parameter of interest ends where the best fit is, as other limits
    than these then depend on it.
    """
    index = model.config.poi_index
    if index is None:
        return
    given = _given(model, *(options.get(name) for name in ("init_pars", "par_bounds", "fixed_params")))
    upper = given[1][index][1]
    try:
        best = fit(data, model, *given)[index]
    except (FailedMinimization, ValueError):
        # The tests say it in their own way.
        return
    if upper != 0.0 and best >= upper - 1e-8 * max(1.0, abs(upper)):
        message = f"the best fit of `{model.config.poi_name}` is at the end of its range, {upper:g}; tests beyond it are made in a wider range"
        warnings.warn(message, UserWarning, stacklevel=4)


def _reach(curve, poi, factor, is_inside, level):
    """Moves `poi` outwards until all six curves are on one side of `level`."""
    for _ in range(_MOST_STEPS):
        if not is_inside(curve.tests(poi)):
            return
        if poi == 0.0:
            break
        poi *= factor
    raise ValueError(f"CLs does not cross {level} between the values that were tried, the last of which is {poi}")


def linear_grid_scan(data, model, scan, level=0.05, return_results=False, **hypotest_kwargs) -> Any:
    """Returns upper limits by linear interpolation of CLs at the values `scan`, which are sorted
    first.

    Returns
    -------
    The observed limit, the five expected ones, and, if asked for, `scan` and the test at each of
    its values.

    Warns
    -----
    UserWarning
        Where CLs does not cross the level inside `scan`: the limit is then the end of `scan`.
    """
    ascending = np.sort(np.asarray(scan, dtype=float))
    scan = scan if np.array_equal(ascending, scan) else ascending
    results = [hypotest(mu, data, model, return_expected_set=True, **hypotest_kwargs) for mu in scan]
    curves = np.array([[float(observed), *map(float, expected)] for observed, expected in results]).T
    outside = [which for which, curve in enumerate(curves) if not curve.min() <= level <= curve.max()]
    if outside:
        warnings.warn(f"{len(outside)} of 6 curves of CLs do not cross {level} inside the scan, and those limits are its end", UserWarning, stacklevel=2)
    tensorlib, _ = get_backend()
    limits = [tensorlib.astensor(np.interp(level, curve[::-1], ascending[::-1])) for curve in curves]
    return (limits[0], limits[1:], (scan, results)) if return_results else (limits[0], limits[1:])


def upper_limit(data, model, scan=None, level=0.05, return_results=False, **hypotest_kwargs) -> Any:
    """Returns upper limits at the confidence level 1 - `level`: on the grid `scan`, or by a search
    where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> observed, expected = pyhf.infer.intervals.upper_limits.upper_limit(
    ...     [51, 48] + model.config.auxdata, model, np.linspace(0, 5, 21)
    ... )
    >>> round(float(observed), 5), round(float(expected[2]), 5)
    (1.01764, 1.08506)
    """
    if scan is not None:
        return linear_grid_scan(data, model, scan, level, return_results, **hypotest_kwargs)
    low, up = model.config.suggested_bounds()[model.config.poi_index]
    found = toms748_scan(data, model, low, up, level, from_upper_limit_fn=True, **hypotest_kwargs)
    return found if return_results else found[:2]
