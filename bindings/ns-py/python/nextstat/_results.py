"""What procedures return: frozen containers with named fields, and how they show themselves."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy import ndarray

    from ._nextstat import RawFit

# How a fit ends, by the number that stands for it in files of toys.
OUTCOMES = ("converged", "iteration_limit", "stalled", "saddle", "not_finite")


def plain(value: Any) -> Any:
    """`value` as JSON has it: arrays and tuples as lists, numbers that are not finite as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Result):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value


def _frozen(value: Any) -> Any:
    if type(value) is list:
        return tuple(value)
    if hasattr(value, "flags"):
        value.flags.writeable = False
    return value


class Result:
    """Named fields that do not change.

    Every field is an attribute; arrays are read-only. `to_dict()` and `to_json()` have all fields as JSON has them, by the names that the command's JSON has,
    with None for numbers that are not finite.

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest(nextstat.load_workspace("examples/simple.json"))
    >>> result.mu
    1.0
    >>> sorted(result.to_dict())[:4]
    ['CLb_exp', 'CLb_obs', 'CLs_exp', 'CLs_obs']
    """

    __slots__ = ("_fields",)
    _fields: dict[str, Any]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_fields", {name: _frozen(value) for name, value in fields.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            known = ", ".join(self._fields)
            raise AttributeError(f"`{type(self).__name__}` has no field `{name}`; it has {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __reduce__(self) -> tuple[type[Result], tuple[dict[str, Any]]]:
        return type(self), (self._fields,)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python objects, such as `json` takes."""
        return {name: plain(value) for name, value in self._fields.items()}

    def to_json(self, indent: int | None = None) -> str:
        """The fields as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        from . import _show

        return _show.text(self)

    def _repr_html_(self) -> str:
        from . import _show

        return _show.html(self)


class FitResult(Result):
    """The result of a fit. P is the number of parameters.

    Attributes
    ----------
    par_names : tuple of str
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
        Why it stopped: converged, iteration_limit, stalled, saddle or not_finite.
    edm : float
        Estimated vertical distance to the minimum, ½ gᵀH⁻¹g.
    projected_gradient : float
        Largest gradient component that points into the allowed box.
    n_free, n_iterations, n_evaluations : int
        Free parameters, steps, evaluations of the likelihood.
    poi, pois : dict or None, tuple of dict
        Name, index, best fit and uncertainty of the parameter of interest, and of all that there are.
    mle_parameters : dict
        Best-fit values by the names that pyhf gives parameters: a list for each.
    pulls : tuple of dict
        Of each constrained parameter: best fit, uncertainty, pull and constraint.
    minos : tuple of dict
        Asymmetric intervals, if asked for.
    minima : tuple of dict
        Distinct minima, lowest first; only if several starts were asked for.
    at_bounds, flat_directions : tuple of dict
        Parameters at an end of their range, and those that the data do not tell apart.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    __slots__ = ("_later",)
    _later: Any
    par_names: tuple[str, ...]
    bestfit: ndarray
    uncertainties: ndarray
    covariance: ndarray | None
    correlation: ndarray | None
    twice_nll: float
    nll: float
    converged: bool
    outcome: str
    edm: float
    projected_gradient: float
    n_free: int
    n_iterations: int
    n_evaluations: int
    poi: dict[str, Any] | None
    pois: tuple[dict[str, Any], ...]
    mle_parameters: dict[str, list[float]]
    pulls: tuple[dict[str, Any], ...]
    minos: tuple[dict[str, Any], ...]
    minima: tuple[dict[str, Any], ...]
    at_bounds: tuple[dict[str, Any], ...]
    flat_directions: tuple[dict[str, Any], ...]
    measurement: str
    warnings: tuple[str, ...]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        # What follows from the fit is computed when somebody looks at it.
        super().__init__({name: value for name, value in fields.items() if name != "later"})
        object.__setattr__(self, "_later", fields.get("later"))

    def __getattr__(self, name: str) -> Any:
        if name in _LATER and name not in self._fields and self._later is not None:
            self._fields.update((key, _frozen(value)) for key, value in _LATER[name](self._later).items())
        return super().__getattr__(name)

    def _complete(self) -> None:
        for name in _LATER:
            getattr(self, name, None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_LATER]

    def __reduce__(self) -> tuple[type[Result], tuple[dict[str, Any]]]:
        self._complete()
        return super().__reduce__()

    def to_dict(self) -> dict[str, Any]:
        self._complete()
        return super().to_dict()

    to_dict.__doc__ = Result.to_dict.__doc__

    def value(self, name: str) -> float:
        """The best-fit value of the parameter `name`."""
        return float(self.bestfit[_index(self.par_names, name)])

    def uncertainty(self, name: str) -> float:
        """The standard deviation of the parameter `name`; NaN where it has none."""
        return float(self.uncertainties[_index(self.par_names, name)])


def _matrices(later: RawFit) -> dict[str, Any]:
    covariance = later.covariance()
    return {"covariance": covariance, "correlation": None if covariance is None else _correlation(covariance)}


# Fields that follow from a fit, by what computes them.
_LATER: dict[str, Callable[[RawFit], dict[str, Any]]] = {
    "covariance": _matrices,
    "correlation": _matrices,
    "pulls": lambda later: {"pulls": later.pulls()},
    "mle_parameters": lambda later: {"mle_parameters": later.mle_parameters()},
    "warnings": lambda later: {"warnings": later.warnings()},
}


def _correlation(covariance: ndarray) -> ndarray:
    """(P, P): 0 where there is no uncertainty, 1 on the diagonal."""
    import numpy as np

    widths = np.sqrt(np.diagonal(covariance))
    products = np.outer(widths, widths)
    correlation = np.divide(covariance, products, out=np.zeros_like(covariance), where=products > 0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _index(par_names: Sequence[str], name: str) -> int:
    try:
        return par_names.index(name)
    except ValueError:
        from ._nextstat import ParameterError

        raise ParameterError(f"there is no parameter `{name}`") from None


class HypotestResult(Result):
    """The test of one value of the parameter of interest.

    Attributes
    ----------
    CLs_obs : float or None
        Observed CLs; None where a fit failed, for a reason in `warnings`.
    CLs_exp : tuple of float or None
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    CLsb_obs, CLb_obs, CLsb_exp, CLb_exp
        The p-values that CLs is made of.
    q, q_asimov : float or None
        The test statistic of the data and of the Asimov data set.
    mu, mu_hat, mu_hat_asimov : float
        The tested and the fitted values.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    CLs_obs: float | None
    CLs_exp: tuple[float, ...] | None
    CLsb_obs: float | None
    CLb_obs: float | None
    CLsb_exp: tuple[float, ...] | None
    CLb_exp: tuple[float, ...] | None
    q: float | None
    q_asimov: float | None
    mu: float
    mu_hat: float
    mu_hat_asimov: float
    parameter: str
    converged: bool
    warnings: tuple[str, ...]


class SignificanceResult(Result):
    """The significance of a discovery.

    Attributes
    ----------
    Z_obs, p0_obs : float or None
        Observed significance and p-value; None where a fit failed.
    Z_exp : float or None
        Expected significance of a signal of strength `mu_expected`.
    p0_exp : tuple of float or None
        Expected p-values at -2, -1, 0, +1, +2 standard deviations.
    q0, q0_asimov : float or None
    mu_hat : float
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    Z_obs: float | None
    p0_obs: float | None
    Z_exp: float | None
    p0_exp: tuple[float, ...] | None
    mu_hat: float
    converged: bool
    warnings: tuple[str, ...]


class LimitResult(Result):
    """Upper limits on the parameter of interest.

    Attributes
    ----------
    observed : float or None
        None where there is no limit, for a reason in `warnings`.
    expected : tuple of float or None
        At -2, -1, 0, +1, +2 standard deviations of the background.
    level : float
        CLs at the limit.
    tested : tuple of dict
        Values of the parameter of interest that were tested, with their CLs.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    observed: float | None
    expected: tuple[float | None, ...]
    level: float
    tested: tuple[dict[str, Any], ...]
    mu_hat: float
    converged: bool
    warnings: tuple[str, ...]


class ScanResult(Result):
    """A profile likelihood scan over N points, or N1 x N2 of two parameters.

    Attributes
    ----------
    parameters : tuple of str
    values : tuple of ndarray
        The values of each parameter.
    delta_nll, twice_delta_nll : ndarray
        Rise of the profiled -ln L above the best fit (N) or (N1, N2); NaN where a fit failed.
    params : ndarray
        All parameters of the conditional fits (points, P).
    outcomes : tuple of str
    best : dict
        The free fit.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    parameters: tuple[str, ...]
    values: tuple[ndarray, ...]
    delta_nll: ndarray
    twice_delta_nll: ndarray
    params: ndarray
    outcomes: tuple[str, ...]
    best: dict[str, Any]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The command's document: one parameter has `parameter` and a list of values, two have lists of both."""
        document = super().to_dict()
        indices = [self.par_names.index(name) for name in self.parameters]
        best = document["best"]
        values, widths = ([best[key][i] for i in indices] for key in ("params", "uncertainties"))
        shape = self.delta_nll.shape
        params = [None if all(value is None for value in point) else point for point in document["params"]]
        if len(shape) == 2:
            best["values"], best["value_uncertainties"] = values, widths
            for key, items in (("params", params), ("outcomes", document["outcomes"])):
                document[key] = [items[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])]
            return document
        best["value"], best["value_uncertainty"] = values[0], widths[0]
        document["parameter"] = document.pop("parameters")[0]
        document["values"], document["params"] = document["values"][0], params
        return document


class ContourResult(Result):
    """Contours of two parameters.

    Attributes
    ----------
    parameters : tuple of str
    contours : tuple of dict
        Of each level: `confidence_level`, `twice_delta_nll` and `points`.
    best : dict
        The free fit.
    par_names : tuple of str
        Names of its parameters (P).
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    parameters: tuple[str, ...]
    contours: tuple[dict[str, Any], ...]
    best: dict[str, Any]
    par_names: tuple[str, ...]
    converged: bool
    warnings: tuple[str, ...]


class RankingResult(Result):
    """Impacts of nuisance parameters on the parameter of interest.

    Attributes
    ----------
    ranking : tuple of dict
        Largest impact first: `parameter`, `pull`, `constraint`; `prefit`, `postfit` and `global`, each with the `impact` of both ends (`up`, `down`);
        `covariance_prefit`, `covariance_postfit`.
    groups : tuple of dict
    breakdown : dict
        The squared sums of global impacts and what is left for event counts.
    poi : dict
        Name, best fit and uncertainty of the parameter of interest.
    best : dict
        The free fit.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    ranking: tuple[dict[str, Any], ...]
    groups: tuple[dict[str, Any], ...]
    breakdown: dict[str, Any]
    poi: dict[str, Any]
    best: dict[str, Any]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]


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
    outcomes : tuple of str
        How each fit ended (T).
    n_failed : int
    poi : str or None
        The parameter of interest.
    poi_uncertainty : ndarray or None
    par_names : tuple of str
    thrown_at : ndarray
        Where they were thrown (P).
    seed, aux, measurement
    """

    __slots__ = ()
    toys: ndarray
    params: ndarray
    nll: ndarray
    converged: ndarray
    outcomes: tuple[str, ...]
    n_failed: int
    poi: str | None
    poi_uncertainty: ndarray | None
    par_names: tuple[str, ...]
    thrown_at: ndarray
    seed: int
    aux: str
    measurement: str

    def values(self, name: str) -> ndarray:
        """The best-fit values of the parameter `name` in the toys whose fits converged."""
        return self.params[self.converged, _index(self.par_names, name)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes them to a NumPy file (`.npy`) with a document beside it, as the command does; `load_toys` reads it."""
        from . import _toy_files

        _toy_files.save(self, os.fspath(path))

    def to_dict(self) -> dict[str, Any]:
        """The command's document: a row for each toy, and what they are together."""
        document = super().to_dict()
        columns = ("toys", "outcomes", "nll", "params", "poi_uncertainty")
        toys, outcomes, nll, params, widths = (document.pop(name) for name in columns)
        rows = [{"toy": toy, "status": outcome, "nll": value, "parameters": point} for toy, outcome, value, point in zip(toys, outcomes, nll, params)]
        for row, width in zip(rows, widths or ()):
            row["poi_uncertainty"] = width
        failures: dict[str, int] = {}
        for outcome in outcomes:
            if outcome != "converged":
                failures[outcome] = failures.get(outcome, 0) + 1
        document.pop("converged")
        return {**document, "toys": rows, "complete": True, "n_done": len(rows), "n_toys": len(rows), "failures": failures}


class ToyHypotestResult(Result):
    """The test of one value of the parameter of interest by toys.

    Attributes
    ----------
    CLs_obs, CLs_obs_error : float
        Observed CLs and its Monte-Carlo error; for `q0` the p-value of the background.
    CLs_exp, CLs_exp_errors : tuple of float
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    CLsb_obs, CLsb_obs_error, CLb_obs, CLb_obs_error : float
        The p-values that CLs is made of.
    q, mu, mu_hat : float
        The statistic of the data, the tested and the fitted value.
    n_toys, n_failed : tuple of int
        Toys of the tested and of the other hypothesis, and those whose fits failed.
    toys_tested, toys_alternative : ndarray
        The statistic of every toy whose fit did not fail.
    warnings : tuple of str
    """

    __slots__ = ()
    CLs_obs: float
    CLs_obs_error: float
    CLs_exp: tuple[float, ...]
    CLs_exp_errors: tuple[float, ...]
    parameter: str
    test_stat: str
    CLsb_obs: float
    CLsb_obs_error: float
    CLb_obs: float
    CLb_obs_error: float
    q: float
    mu: float
    mu_hat: float
    n_toys: tuple[int, int]
    n_failed: tuple[int, int]
    toys_tested: ndarray
    toys_alternative: ndarray
    warnings: tuple[str, ...]


class GoodnessOfFit(Result):
    """The distance of the best fit to the saturated model.

    Attributes
    ----------
    statistic : float
        2 ln L of the saturated model over that of the fit.
    n_dof : int
    p_value : float or None
        By χ²; None where there are no degrees of freedom.
    channels : tuple of dict
        The same of each channel by itself.
    fit : dict
        Whether the fit can be trusted.
    toys : dict or None
        p-values by toys, if asked for: `total`, `channels`, `n_failed`.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    statistic: float
    n_dof: int
    p_value: float | None
    channels: tuple[dict[str, Any], ...]
    fit: dict[str, Any]
    toys: dict[str, Any] | None
    converged: bool
    warnings: tuple[str, ...]


class YieldsResult(Result):
    """Expected yields before and after a fit.

    Attributes
    ----------
    channels : tuple of dict
        Of each channel: `channel`, `data`, `prefit` and `postfit`, each with `samples` (by name) and `total`, which have `yields`, `uncertainties`, `sum` and
        `sum_uncertainty`.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    channels: tuple[dict[str, Any], ...]
    converged: bool
    warnings: tuple[str, ...]


class ReportResult(Result):
    """Everything about one fit.

    Attributes
    ----------
    fit : FitResult
    goodness_of_fit : GoodnessOfFit
    channels : tuple of dict
        Yields, as `YieldsResult` has them.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    fit: FitResult
    goodness_of_fit: GoodnessOfFit
    channels: tuple[dict[str, Any], ...]
    converged: bool
    warnings: tuple[str, ...]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        fit, goodness = fields["fit"], fields["goodness_of_fit"]
        fit = fit if isinstance(fit, FitResult) else FitResult(fit)
        goodness = goodness if isinstance(goodness, GoodnessOfFit) else GoodnessOfFit(goodness)
        super().__init__({**fields, "fit": fit, "goodness_of_fit": goodness})

    def to_dict(self) -> dict[str, Any]:
        """The command's document: `fit`, `pulls`, `goodness_of_fit` and `yields`."""
        fit = self.fit.to_dict()
        fit.pop("covariance")
        channels = [plain(channel) for channel in self.channels]
        for channel in channels:
            for part in (channel["prefit"], channel["postfit"]):
                part["samples"] = [{"sample": name, **found} for name, found in part["samples"].items()]
        return {
            "fit": fit,
            "pulls": fit.pop("pulls"),
            "goodness_of_fit": self.goodness_of_fit.to_dict(),
            "yields": channels,
        }


class InspectResult(Result):
    """What a workspace contains.

    Attributes
    ----------
    summary : dict
        Numbers of channels, bins, samples, parameters and modifiers.
    channels, samples, parameters, systematics, measurements : tuple
        As `pyhf inspect` has them.
    modifiers : dict
        Their types, by name.
    measurement : str
        The one that is used.
    """

    __slots__ = ()
    summary: dict[str, int]
    channels: tuple[Any, ...]
    samples: tuple[str, ...]
    modifiers: dict[str, str]
    parameters: tuple[Any, ...]
    systematics: tuple[Any, ...]
    measurements: tuple[Any, ...]
    measurement: str


class CheckResult(Result):
    """What is wrong with a model.

    Attributes
    ----------
    findings : tuple of dict
        Worst first: `severity`, `code`, `message`, and the place.
    n_errors, n_warnings, n_notes : int
    measurement : str
    """

    __slots__ = ()
    findings: tuple[dict[str, Any], ...]
    n_errors: int
    n_warnings: int
    n_notes: int
    measurement: str


class GridResult(Result):
    """Answers for every patch of a set.

    Attributes
    ----------
    patches : tuple of dict
        In the set's order: `patch` (the name), `values` (by label), and `result`, or `error` with the reason why there is none.
    n_patches : int
    """

    __slots__ = ()
    patches: tuple[dict[str, Any], ...]
    n_patches: int

    def to_dict(self) -> dict[str, Any]:
        """The command's document: each patch with its answer's fields beside its name and values."""
        patches = []
        for found in self.patches:
            result = found.get("result")
            rest = {} if result is None else result.to_dict() if isinstance(result, Result) else {"result": plain(result)}
            patches.append({**rest, **{key: plain(value) for key, value in found.items() if key != "result"}})
        return {"complete": True, "n_patches": self.n_patches, "patches": patches}


class CommandResult(Result):
    """What the command did: `exit_code`, `output` (standard output) and `messages` (standard error)."""

    __slots__ = ()
    exit_code: int
    output: str
    messages: str

    def json(self) -> Any:
        """Its output as Python objects."""
        return json.loads(self.output)
