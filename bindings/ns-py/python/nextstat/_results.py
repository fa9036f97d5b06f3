"""What procedures return: frozen containers with named fields, and how they show themselves."""

import json
import math

from . import _show


def _plain(value):
    """`value` as JSON has it: arrays as lists, numbers that are not finite as None."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Result:
    """Named fields that do not change.

    Every field is an attribute; `to_dict()` and `to_json()` have them all as JSON has them, with None for numbers that are not finite.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields):
        object.__setattr__(self, "_fields", fields)

    def __getattr__(self, name):
        if name.startswith("__") or name == "_fields":
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            known = ", ".join(self._fields)
            raise AttributeError(f"`{type(self).__name__}` has no field `{name}`; it has {known}") from None

    def __setattr__(self, name, value):
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __delattr__(self, name):
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __dir__(self):
        return [*super().__dir__(), *self._fields]

    def __reduce__(self):
        return type(self), (self._fields,)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None

    def to_dict(self):
        """The fields as plain Python objects, such as `json` takes."""
        return _plain(self._fields)

    def to_json(self, indent=None):
        """The fields as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self):
        return _show.text(type(self).__name__, self)

    def _repr_html_(self):
        return _show.html(type(self).__name__, self)


class FitResult(Result):
    """The result of a fit. P is the number of parameters.

    Attributes
    ----------
    par_names : list of str
        Parameter names (P).
    bestfit : ndarray
        Parameter values at the minimum (P).
    uncertainties : ndarray
        Standard deviations from the exact Hessian (P); NaN for fixed parameters, those at bounds, and those without curvature.
    covariance, correlation : ndarray or None
        Matrices (P, P), zero for parameters without uncertainty.
    twice_nll, nll : float
        2(-ln L) and -ln L at the minimum, with all constants.
    converged : bool
        Whether it arrived at a minimum. If not, numbers are where the fit stopped, and `warnings` has the reason.
    outcome : str
        Why it stopped.
    edm : float
        Estimated vertical distance to the minimum, ½ gᵀH⁻¹g.
    projected_gradient : float
        Largest gradient component that points into the allowed box.
    n_free, n_iterations, n_evaluations : int
        Free parameters, steps, evaluations of the likelihood.
    pulls : list of dict
        Of each constrained parameter: best fit, uncertainty, pull and constraint.
    minos : list of dict
        Asymmetric intervals, if asked for.
    minima : list of dict
        Distinct minima, lowest first, if several starts were asked for.
    at_bounds, flat_directions, warnings : list
        What a reader should know before using the numbers.
    """

    __slots__ = ()

    def value(self, name):
        """The best-fit value of the parameter `name`."""
        return float(self.bestfit[self._index(name)])

    def uncertainty(self, name):
        """The standard deviation of the parameter `name`; NaN where it has none."""
        return float(self.uncertainties[self._index(name)])

    def _index(self, name):
        try:
            return self.par_names.index(name)
        except ValueError:
            raise KeyError(f"no parameter `{name}`") from None


class HypotestResult(Result):
    """The test of one value of the parameter of interest.

    Attributes
    ----------
    CLs_obs : float or None
        Observed CLs; None where a fit failed, for a reason in `warnings`.
    CLs_exp : list of float or None
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    CLsb_obs, CLb_obs, CLsb_exp, CLb_exp
        The p-values that CLs is made of.
    q, q_asimov : float or None
        The test statistic of the data and of the Asimov data set.
    mu, mu_hat, mu_hat_asimov : float
        The tested and the fitted values.
    converged : bool
    warnings : list of str
    """

    __slots__ = ()


class SignificanceResult(Result):
    """The significance of a discovery: `Z_obs`, `p0_obs`, `Z_exp`, `p0_exp` (-2 ... +2 standard deviations), `q0`, `q0_asimov`."""

    __slots__ = ()


class LimitResult(Result):
    """Upper limits on the parameter of interest.

    Attributes
    ----------
    observed : float or None
        None where there is no limit, for a reason in `warnings`.
    expected : list of float or None
        At -2, -1, 0, +1, +2 standard deviations of the background.
    level : float
        CLs at the limit.
    tested : list of dict
        Values of the parameter of interest that were tested, with their CLs.
    converged : bool
    warnings : list of str
    """

    __slots__ = ()


class ScanResult(Result):
    """A profile likelihood scan over N points, or N1 x N2 of two parameters.

    Attributes
    ----------
    parameters : list of str
    values : list of ndarray
        The values of each parameter.
    delta_nll, twice_delta_nll : ndarray
        Rise of the profiled -ln L above the best fit (N) or (N1, N2); NaN where a fit failed.
    params : ndarray
        All parameters of the conditional fits (points, P).
    outcomes : list
    best : dict
        The free fit.
    """

    __slots__ = ()


class ContourResult(Result):
    """Contours of two parameters: `contours`, each with `confidence_level`, `twice_delta_nll` and `points`."""

    __slots__ = ()


class RankingResult(Result):
    """Impacts of nuisance parameters on the parameter of interest.

    Attributes
    ----------
    ranking : list of dict
        Largest impact first: `parameter`, `pull`, `constraint`, `prefit`, `postfit`, `global`, `covariance`.
    groups : list of dict
    breakdown : dict
        The squared sums of global impacts and what is left for event counts.
    poi : dict
        Name, best fit and uncertainty of the parameter of interest.
    """

    __slots__ = ()


class ToysResult(Result):
    """Fits of T toys.

    Attributes
    ----------
    toys : ndarray
        Their numbers (T).
    params : ndarray
        Best-fit parameters (T, P).
    nll : ndarray
        -ln L at the minima (T).
    converged : ndarray of bool
        Toys whose fit failed stay in the arrays; leave them out by this.
    n_failed : int
    poi_uncertainty : ndarray or None
    """

    __slots__ = ()


class ToyHypotestResult(Result):
    """CLs by toys: `CLs_obs`, `CLs_obs_error`, `CLs_exp`, `CLs_exp_errors`, `n_toys`, `n_failed`, and the statistic of every toy."""

    __slots__ = ()


class GoodnessOfFit(Result):
    """The distance to the saturated model: `statistic`, `n_dof`, `p_value`, `channels`, `toys`."""

    __slots__ = ()


class YieldsResult(Result):
    """Expected yields by channel: `data`, `prefit` and `postfit`, each with `samples` and `total` (`yields`, `uncertainties`, sums)."""

    __slots__ = ()
