"""A finished fit as `iminuit.Minuit` would show it: what tools read from, and call on, the object
behind pyhf's Minuit optimizer.
"""

import math
from collections import namedtuple
from statistics import NormalDist

import numpy as np

from . import _profile
from ._hessian import inverse as inverse_of
from ._views import ByName, Limits, Named

Param = namedtuple("Param", "number name value error merror is_const is_fixed has_limits lower_limit upper_limit")
FMin = namedtuple("FMin", "fval edm nfcn is_valid has_reached_call_limit is_above_max_edm has_covar has_accurate_covar")
MError = namedtuple("MError", "number name lower upper is_valid lower_valid upper_valid at_lower_limit at_upper_limit")


class Matrix(np.ndarray):
    """A covariance matrix (P × P) that knows its correlations."""

    def correlation(self):
        """Returns ρ_ij = V_ij / √(V_ii V_jj), zero where a variance is."""
        width = np.sqrt(np.diag(np.asarray(self)))
        scale = np.outer(width, width)
        values = np.divide(np.asarray(self), scale, out=np.zeros(self.shape), where=scale > 0.0)
        return values.view(Matrix)


def rise_of(cl, n_params):
    """Returns by how much -2 ln L rises at a confidence level: a probability, or from 1 on a number
    of standard deviations of one parameter.

    >>> (
    ...     round(rise_of(None, 1), 6),
    ...     round(rise_of(2.0, 1), 6),
    ...     round(rise_of(0.95, 1), 6),
    ...     round(rise_of(0.68, 2), 6),
    ...     round(rise_of(1.0, 2), 6),
    ... )
    (1.0, 4.0, 3.841459, 2.278869, 2.295749)
    """
    if cl is None:
        cl = 1.0 if n_params == 1 else 0.68
    if not cl > 0.0:
        raise ValueError("`cl` must be positive")
    if n_params == 1:
        return float(cl) ** 2 if cl >= 1.0 else NormalDist().inv_cdf(0.5 * (1.0 + cl)) ** 2
    outside = math.erfc(cl / math.sqrt(2.0)) if cl >= 1.0 else 1.0 - cl
    return -2.0 * math.log(outside)


class MinuitView:
    """A fit with its intervals, profiles and contours. Parameters are named by their names or
    positions.

    `values`, `errors`, `fixed` and `limits` can be changed, as in ``view.values["mu"] = 1.0``,
    before `migrad` fits again.

    Attributes
    ----------
    values, errors : ndarray
        Parameters and standard deviations (P).
    fixed : ndarray of bool
        (P).
    limits : ndarray
        (P × 2).
    covariance : Matrix or None
        (P × P).
    fval : float
        -2 ln L at the minimum.
    merrors : dict
        MINOS intervals that were asked for, by parameter name.
    """

    #: Numbers of the engine are double precision; iminuit has None for that.
    precision = None
    #: What iminuit says of a function that does not know its number of data.
    ndof = math.nan

    def __init__(self, pdf, data, box, found, optimizer):
        self._pdf, self._data = pdf, data
        self.parameters = tuple(pdf.config.par_names)
        self.pos2var = self.parameters
        self.var2pos = {name: i for i, name in enumerate(self.parameters)}
        self.npar = len(self.parameters)
        start, lower, upper, fixed = box
        self.fixed = Named.of(np.array(fixed, dtype=bool), self.parameters)
        self.limits = Limits.of(np.stack([lower, upper], axis=1), self.parameters)
        self._start = np.array(start, dtype=float)
        self.values = Named.of(self._start.copy(), self.parameters)
        self.errordef, self.strategy, self.tol, self.print_level = optimizer.errordef, optimizer.strategy, optimizer.tolerance, optimizer.verbose
        self.merrors = ByName()
        self._take(found)

    def _take(self, found):
        """Takes the results of a fit."""
        self.values[:] = found["bestfit"]
        self._minimum, self._edm = np.array(self.values), found["edm"]
        self.fval = found["twice_nll"]
        self.nfcn = self.ngrad = found["n_evaluations"]
        self.valid = self.accurate = found["converged"]
        self._take_errors(found["uncertainties"], found["covariance"])

    def _take_errors(self, uncertainties, covariance):
        self.errors = Named.of(np.where(self.fixed, 0.0, uncertainties), self.parameters)
        self.covariance = None if covariance is None else np.asarray(covariance).view(Matrix)

    @property
    def nfit(self):
        """How many parameters are not fixed."""
        return int(self.npar - np.count_nonzero(self.fixed))

    @property
    def fmin(self):
        """The state of the minimum."""
        return FMin(self.fval, self._edm, self.nfcn, self.valid, False, not self.valid, self.covariance is not None, self.covariance is not None)

    @property
    def params(self):
        """One record for each parameter (P)."""
        return tuple(self._param(i, self.values[i], self.errors[i]) for i in range(self.npar))

    @property
    def init_params(self):
        """The same where the fit started, with no errors."""
        return tuple(self._param(i, self._start[i], 0.0) for i in range(self.npar))

    def _param(self, i, value, error):
        interval = self.merrors.get(self.parameters[i])
        merror = None if interval is None else (interval.lower, interval.upper)
        lower, upper = self.limits[i]
        return Param(i, self.parameters[i], value, error, merror, False, bool(self.fixed[i]), bool(np.isfinite([lower, upper]).any()), lower, upper)

    def _position(self, parameter):
        if not isinstance(parameter, str):
            return range(self.npar)[parameter]
        if parameter not in self.var2pos:
            raise RuntimeError(f"Cannot find parameter `{parameter}` in list of names")
        return self.var2pos[parameter]

    # -- the function --

    def fcn(self, values):
        """Returns -2 ln L at `values` (P)."""
        return float(-2.0 * np.asarray(self._pdf.logpdf(values, self._data)).reshape(()))

    def grad(self, values):
        """Returns the gradient (P) of `fcn`."""
        return 2.0 * self._pdf._nll_and_grad(values, self._data)[1]

    def hessian(self, values):
        """Returns the Hessian (P × P) of `fcn`."""
        return 2.0 * self._pdf._hessian(values, self._data)

    # -- fits --

    def _box(self):
        """Returns values, limits and what is fixed, as they are now."""
        limits = np.asarray(self.limits)
        return np.array(self.values), limits[:, 0], limits[:, 1], np.asarray(self.fixed).tolist()

    def migrad(self, ncall=None, iterate=5, use_simplex=True):
        """Fits again from `values` with what `fixed` and `limits` say. The arguments, which tune
        Minuit's minimiser, do nothing.
        """
        self._take(self._pdf._fit(self._data, self._box(), True))
        self.merrors.clear()
        return self

    def hesse(self, ncall=None):
        """Computes `errors` and `covariance` from the exact Hessian at `values`."""
        start, lower, upper, fixed = self._box()
        hessian, fixed = self._pdf._hessian(start, self._data), np.array(fixed)
        at_limit = ~fixed & ((start <= lower) | (start >= upper))
        uncertainties, covariance = np.full(self.npar, np.nan), None
        for free in (~fixed, ~fixed & ~at_limit):
            # A parameter at its limit has the width of its curvature there, and no correlations.
            inverse = inverse_of(hessian[np.ix_(free, free)])
            covariance = None if inverse is None else np.zeros((self.npar, self.npar))
            if inverse is not None:
                covariance[np.ix_(free, free)] = inverse
                uncertainties[free] = np.sqrt(np.diag(inverse))
        self._take_errors(uncertainties, covariance)
        return self

    def reset(self):
        """Puts `values` back to where the fit started."""
        self.values[:] = self._start
        self.merrors.clear()
        return self

    # -- intervals, profiles, contours --

    def minos(self, *parameters, cl=None, ncall=None):
        """Returns asymmetric intervals of `parameters`, of all that are free if there are none.

        Where a range ends before the interval does, the interval ends at the limit, as in iminuit;
        it is NaN where the likelihood ends.

        Parameters
        ----------
        cl : float, optional
            Confidence level: a probability below 1, or else a number of standard deviations; one
            standard deviation if not given.
        ncall : int, optional
            Does nothing.
        """
        rise = rise_of(cl, 1)
        self._need_valid()
        wanted = [self._position(name) for name in parameters] or list(range(self.npar))
        wanted = [i for i in wanted if not self.fixed[i]]
        known = self._standard_intervals(wanted) if rise == 1.0 else {}
        for i in wanted:
            found = known.get(self.parameters[i], {})
            self.merrors[self.parameters[i]] = self._interval(i, rise, (found.get("down"), found.get("up")))
        return self

    def _standard_intervals(self, wanted):
        """Returns what the engine's MINOS finds, by the name of the parameter; an end is None where
        the range ends before.
        """
        found = self._pdf._fit(self._data, self._box(), False, wanted)
        return {interval["parameter"]: interval for interval in found["minos"]}

    def _interval(self, i, rise, known):
        """Returns the interval of parameter `i`, whose ends may be known already."""
        ends = []
        for sign, distance in zip((-1.0, 1.0), known):
            is_known = distance is not None
            ends.append(_profile.End(distance, False) if is_known else _profile.interval_end(self._profiler(), i, sign, (rise, self.errors[i])))
        valid = [not math.isnan(end.distance) for end in ends]
        return MError(i, self.parameters[i], *(end.distance for end in ends), all(valid), *valid, *(end.is_at_limit for end in ends))

    def _need_valid(self):
        if not self.valid:
            raise RuntimeError(f"Function minimum is not valid: {self.fmin!r}")

    def _profiler(self):
        return _profile.Profiler(self._pdf, self._data, self._box(), self.fval)

    def profile(self, vname, *, size=100, bound=2, grid=None, subtract_min=False):
        """Returns -2 ln L along one parameter, with the others where they are: values, and -2 ln L
        (`size`).
        """
        i = self._position(vname)
        axis = self._axis(i, size, bound, grid)
        points = np.tile(np.array(self.values), (len(axis), 1))
        points[:, i] = axis
        return axis, _profile.subtracted(self._at(points), subtract_min)

    def mnprofile(self, vname, *, size=30, bound=2, grid=None, subtract_min=False, ncall=0, iterate=5, use_simplex=True):
        """Returns -2 ln L along one parameter, minimised in the others: values, -2 ln L, and
        whether each fit converged (`size`).
        """
        i = self._position(vname)
        axis = self._axis(i, size, bound, grid)
        fits = [self._profiler().at({i: value}) for value in axis]
        twice_nll = np.array([fit["twice_nll"] for fit in fits])
        return axis, _profile.subtracted(twice_nll, subtract_min), np.array([fit["converged"] for fit in fits])

    def contour(self, x, y, *, size=50, bound=2, grid=None, subtract_min=False):
        """Returns -2 ln L over two parameters, with the others where they are: both axes, and -2 ln
        L (`size` × `size`).
        """
        pair = self._position(x), self._position(y)
        sizes = size if np.iterable(size) else (size, size)
        bounds = bound if np.iterable(bound) else (bound, bound)
        axes = [self._axis(i, n, ends, given) for i, n, ends, given in zip(pair, sizes, bounds, grid or (None, None))]
        points = np.tile(np.array(self.values), (len(axes[0]) * len(axes[1]), 1))
        points[:, pair[0]], points[:, pair[1]] = (plane.ravel() for plane in np.meshgrid(*axes, indexing="ij"))
        plane = self._at(points).reshape(len(axes[0]), len(axes[1]))
        return *axes, _profile.subtracted(plane, subtract_min)

    def mncontour(self, x, y, *, cl=None, size=100, interpolated=0, experimental=False, ncall=0, iterate=5, use_simplex=True):
        """Returns the contour of two parameters, the others fitted, at a confidence level.

        Parameters
        ----------
        cl : float, optional
            A probability below 1, or else the probability within that number of standard deviations
            of one parameter; 0.68 if not given.
        size : int
            Number of points, each on a ray from the minimum. Where a ray leaves the limits before
            the level is reached, the contour follows the limits.
        interpolated : int
            If above `size`, that many points of a cubic spline, by SciPy.

        Returns
        -------
        ndarray
            Points (`size` + 1 × 2), the last equal to the first.
        """
        rise = rise_of(cl, 2)
        self._need_valid()
        pair = self._position(x), self._position(y)
        if any(self.fixed[i] for i in pair):
            raise ValueError("mncontour can only be run on free parameters")
        if self.covariance is None:
            raise RuntimeError("there is no covariance: the data do not determine all parameters")
        points = _profile.contour(self._profiler(), pair, rise, (size, [self.errors[i] for i in pair]))
        return _profile.interpolated(points, interpolated) if interpolated > size else points

    def _axis(self, i, size, bound, grid):
        """Returns values of parameter `i`: those of `grid`, or `size` values between two ends, or
        to `bound` standard deviations on either side.
        """
        if grid is not None:
            axis = np.array(grid, dtype=float)
            if axis.ndim != 1:
                raise ValueError("`grid` is one-dimensional")
            return axis
        width = bound * self.errors[i] if not np.iterable(bound) else None
        ends = bound if width is None else (self.values[i] - width, self.values[i] + width)
        return np.linspace(*ends, size)

    def _at(self, points):
        """Returns -2 ln L at each of `points` (N × P)."""
        return -2.0 * self._pdf._floating.log_density(points, self._pdf._data(self._data))

    def __repr__(self):
        rows = (f"{p.name} = {p.value:.6g} ± {p.error:.3g}" + (" (fixed)" if p.is_fixed else "") for p in self.params)
        return "\n".join([f"-2 ln L = {self.fval:.6f}, edm = {self._edm:.2g}, {'valid' if self.valid else 'not valid'}", *rows])
