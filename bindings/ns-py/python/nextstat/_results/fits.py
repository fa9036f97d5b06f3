"""Results of fits, and of what is made of one fit."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import _nextstat, _views
from .._nextstat import schema_urn
from .._views import measured, shown_number
from .base import Result, index_of, plain
from .frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy import ndarray

    from .._nextstat import RawFit
    from .frozen import Poi

__all__ = ["FitResult", "GoodnessOfFit", "ReportResult", "YieldsResult"]


class FitResult(Result):
    """The result of a fit. P is the number of parameters.

    Attributes
    ----------
    par_names : tuple of str
        Parameter names (P).
    bestfit : ndarray
        Parameter values at the minimum (P).
    uncertainties : ndarray
        Standard deviations from the exact Hessian (P); NaN for fixed parameters, those at bounds,
        and those without curvature.
    covariance, correlation : ndarray or None
        Matrices (P, P), zero for parameters without uncertainty.
    twice_nll, nll : float
        2(-ln L) and -ln L at the minimum, with all constants.
    converged : bool
        Whether the fit found a minimum. If not, numbers are where the fit stopped, and `warnings`
        has the reason.
    outcome : str
        Why it stopped: converged, iteration_limit, stalled, saddle or not_finite.
    edm : float
        Estimated vertical distance to the minimum, ½ gᵀH⁻¹g.
    projected_gradient : float
        Largest gradient component that points into the allowed box.
    n_free, n_iterations, n_evaluations : int
        Free parameters, steps, evaluations of the likelihood.
    poi, pois : Poi or None, tuple of Poi
        `name`, `index`, `bestfit`, `uncertainty` and its parts `statistical` and `systematic` of
        the parameter of interest; of all of them.
    mle_parameters : dict
        Best-fit values by the names that pyhf gives parameters: a tuple for each.
    pulls : tuple of dict
        Of each constrained parameter: best fit, uncertainty, pull and constraint.
    minos : tuple of dict
        Asymmetric intervals, if asked for.
    minima : tuple of dict
        Distinct minima, lowest first, with their depth in 2NLL and how each was found; empty if
        there is one and no random starts were asked for.
    at_bounds, flat_directions : tuple of dict
        Parameters at an end of their range, and combinations that the data do not constrain.
    not_parabolic : tuple of dict
        Parameters whose uncertainty describes no parabola, with 2ΔNLL at -1σ and +1σ.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    __slots__ = ("_later",)
    _schema = "fit"
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
    poi: Poi | None
    pois: tuple[Poi, ...]
    mle_parameters: Mapping[str, tuple[float, ...]]
    pulls: tuple[Mapping[str, Any], ...]
    minos: tuple[Mapping[str, Any], ...]
    minima: tuple[Mapping[str, Any], ...]
    at_bounds: tuple[Mapping[str, Any], ...]
    flat_directions: tuple[Mapping[str, Any], ...]
    not_parabolic: tuple[Mapping[str, Any], ...]
    measurement: str
    warnings: tuple[str, ...]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        # What follows from the fit is computed when it is first read.
        super().__init__({name: value for name, value in fields.items() if name != "later"})
        object.__setattr__(self, "_later", fields.get("later"))

    def __getattr__(self, name: str) -> Any:
        if name in _LATER and name not in self._fields and self._later is not None:
            self._fields.update((key, frozen(value)) for key, value in _LATER[name](self._later).items())
        # Documents leave it out where there is one minimum.
        if name == "minima" and name not in self._fields:
            return ()
        return super().__getattr__(name)

    def _complete(self) -> None:
        for name in _LATER:
            getattr(self, name, None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_LATER]

    def __reduce__(self) -> tuple[type[Result], tuple[dict[str, Any]]]:
        self._complete()
        return super().__reduce__()

    def _document(self) -> dict[str, Any]:
        self._complete()
        found = super()._document()
        if not found.get("not_parabolic"):
            found.pop("not_parabolic", None)
        return {**found, "checksums": _checksums(found)}

    def value(self, name: str) -> float:
        """Returns the best-fit value of the parameter `name`."""
        return float(self.bestfit[index_of(self.par_names, name)])

    def uncertainty(self, name: str) -> float:
        """Returns the standard deviation of the parameter `name`; NaN where it has none."""
        return float(self.uncertainties[index_of(self.par_names, name)])

    def _view(self) -> _views.View:
        view = _views.View("FitResult", is_bad=not self.converged)
        said = f"NO ({self.outcome}); do not use these numbers"
        if self.converged:
            effort = f"{self.n_iterations} iterations, {self.n_evaluations} evaluations"
            said = f"yes: {effort}, EDM {shown_number(self.edm, 2)}"
        view.facts = [("converged", said), ("2NLL", shown_number(self.twice_nll, 10))]
        view.facts += [(poi["name"], self._fitted(poi["index"], poi)) for poi in self.pois]
        view.tables = [*self._table_of_free_parameters(), *self._table_of_pulls()]
        return view

    def _table_of_free_parameters(self) -> list[_views.Table]:
        """Returns the parameters that are not of interest and have no constraint term, or have an
        asymmetric interval.
        """
        intervals = {found["parameter"] for found in self.minos}
        others = {pull["parameter"] for pull in self.pulls or ()} - intervals
        others |= {poi["name"] for poi in self.pois}
        rows = [
            (name, self._fitted(i)) for i, name in enumerate(self.par_names) if name not in others
        ]
        return _views.tables(rows, ("parameters", "best fit"))

    def _fitted(self, i: int, parts: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Returns the value of parameter `i` with its uncertainty, the `parts` of that, and its
        intervals.
        """
        name, width = self.par_names[i], float(self.uncertainties[i])
        bound = next((at for at in self.at_bounds if at["parameter"] == name), None)
        return _nextstat.fitted(
            {
                "bestfit": float(self.bestfit[i]),
                "uncertainty": None if math.isnan(width) else width,
                "statistical": parts.get("statistical"),
                "systematic": parts.get("systematic"),
                "bound": None if bound is None else (bound["side"], bound["bound"]),
                "intervals": [
                    (found["cl"], found["down"], found["up"])
                    for found in self.minos
                    if found["parameter"] == name
                ],
            }
        )

    def _table_of_pulls(self) -> list[_views.Table]:
        pulls = [pull for pull in self.pulls or () if pull["uncertainty"] is not None]
        rows = [
            (
                pull["parameter"],
                measured(pull["bestfit"], pull["uncertainty"]),
                _nextstat.pull(pull["pull"]),
                shown_number(pull["constraint"], 2),
            )
            for pull in sorted(pulls, key=lambda pull: -abs(pull["pull"]))
        ]
        return _views.tables(
            rows, ("strongest pulls", "best fit", "pull", "constraint")
        )


def _matrices(later: RawFit) -> dict[str, Any]:
    covariance = later.covariance()
    return {"covariance": covariance, "correlation": None if covariance is None else _views.correlation_of(covariance)}


# Fields that follow from a fit, by what computes them.
_LATER: dict[str, Callable[[RawFit], dict[str, Any]]] = {
    "covariance": _matrices,
    "correlation": _matrices,
    "pulls": lambda later: {"pulls": later.pulls()},
    "mle_parameters": lambda later: {"mle_parameters": later.mle_parameters()},
    "warnings": lambda later: {"warnings": later.warnings()},
}


def _checksums(document: Mapping[str, Any]) -> dict[str, str]:
    """Returns the checksums of the names and numbers of a fit, by what they are of."""
    matrices = {"covariance": None, "correlation": None}
    return _nextstat.fit_checksums({**matrices, **document})


class GoodnessOfFit(Result):
    """The distance of the best fit to the saturated model, or of data to a stored fit's prediction.

    Attributes
    ----------
    statistic : float or None
        2 ln L of the saturated model over that of the fit; of a stored fit χ². None where the fit
        did not converge.
    n_dof : int
    p_value : float or None
        By χ²; None where there are no degrees of freedom, or where the fit did not converge.
    channels : tuple of dict
        The same of each channel by itself.
    fit : dict
        Whether the fit can be trusted; not of a stored fit.
    toys : dict or None
        p-values by toys, if asked for: `total`, `channels`, `n_failed`; not of a stored fit.
    unmatched, unused : tuple of str
        Of a stored fit: parameters of the model that it does not have, and the other way round.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "gof"
    statistic: float | None
    n_dof: int
    p_value: float | None
    channels: tuple[Mapping[str, Any], ...]
    fit: Mapping[str, Any]
    toys: Mapping[str, Any] | None
    converged: bool
    warnings: tuple[str, ...]

    def _head(self) -> dict[str, Any]:
        found = super()._head()
        return {**found, "$schema": schema_urn("comparison")} if "unmatched" in self._fields else found

    def _view(self) -> _views.View:
        facts = [
            ("statistic", shown_number(self.statistic, 5)),
            ("degrees of freedom", str(self.n_dof)),
            ("p-value", shown_number(self.p_value, 3)),
        ]
        if self._fields.get("toys"):
            total = self.toys["total"]  # type: ignore[index]
            value = f"{shown_number(total['value'], 3)} ± {shown_number(total['error'], 2)}"
            facts.append(("p-value by toys", f"{value} ({total['n_converged']} toys)"))
        rows = [
            (
                channel["channel"],
                shown_number(channel["deviance" if "deviance" in channel else "statistic"], 4),
                str(channel["n_bins" if "n_bins" in channel else "n_dof"]),
                shown_number(channel["p_value"], 3),
            )
            for channel in self.channels
        ]
        columns = ("channel", "statistic", "bins", "p-value")
        return _views.View("GoodnessOfFit", facts, _views.tables(rows, columns))


def _channels_of(channels: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns yields as the command's document has them, with a list of samples."""
    found = [plain(channel) for channel in channels]
    for channel in found:
        for part in (channel["prefit"], channel["postfit"]):
            part["samples"] = [{"sample": name, **sample} for name, sample in part["samples"].items()]
            if "groups" in part:
                part["groups"] = [{"group": name, **group} for name, group in part["groups"].items()]
    return found


class YieldsResult(Result):
    """Expected yields before and after a fit.

    Attributes
    ----------
    channels : tuple of dict
        Of each channel: `channel`, `data` (NaN where they are hidden), `prefit` and `postfit`,
        each with `samples` (by name) and `total`, which have `yields`, `uncertainties`, `sum` and
        `sum_uncertainty`; with `groups`, these likewise, each with the `samples` in it.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "yields"
    channels: tuple[Mapping[str, Any], ...]
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        tables = _table_of_channels(self.channels, self._said.counts)
        return _views.View("YieldsResult", tables=tables)

    def _document(self) -> dict[str, Any]:
        return {**super()._document(), "channels": _channels_of(self.channels)}


def _table_of_channels(
    channels: Iterable[Mapping[str, Any]], label: str
) -> list[_views.Table]:
    """Returns the sums of channels; `label` is that of the data."""
    rows = []
    for channel in channels:
        before, after = channel["prefit"]["total"], channel["postfit"]["total"]
        rows.append(
            (
                channel["channel"],
                _shown_data(channel["data"]),
                _predicted(before),
                _predicted(after),
            )
        )
    return _views.tables(rows, ("channel", label, "pre-fit", "post-fit"))


def _predicted(total: Mapping[str, Any]) -> str:
    """Returns the sum of yields with its uncertainty, or says that it has none."""
    found = {"bestfit": total["sum"], "uncertainty": total["sum_uncertainty"]}
    absent = {"statistical": None, "systematic": None, "bound": None, "intervals": []}
    return _nextstat.fitted({**found, **absent})


def _shown_data(data: ndarray) -> str:
    """Returns the sum of event counts; a sum over hidden ones is hidden, too."""
    total = float(data.sum())
    return "blinded" if math.isnan(total) else shown_number(total)


class ReportResult(Result):
    """Everything about one fit.

    Attributes
    ----------
    fit : FitResult
    goodness_of_fit : GoodnessOfFit or None
        None if the fit used data that are hidden.
    channels : tuple of dict
        Yields, as `YieldsResult` has them.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "report"
    fit: FitResult
    goodness_of_fit: GoodnessOfFit | None
    channels: tuple[Mapping[str, Any], ...]
    converged: bool
    warnings: tuple[str, ...]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        fit, goodness = fields["fit"], fields["goodness_of_fit"]
        fit = fit if isinstance(fit, FitResult) else FitResult(fit)
        if goodness is not None and not isinstance(goodness, GoodnessOfFit):
            about = fields.get("about", fields.get("provenance"))
            goodness = GoodnessOfFit({**goodness, "about": about})
        super().__init__({**fields, "fit": fit, "goodness_of_fit": goodness})

    def _view(self) -> _views.View:
        view = self.fit._view()
        view.title = "ReportResult"
        if "unmatched" in self._fields:
            view.facts[0] = ("fit", "stored, not fitted again")
        goodness = self.goodness_of_fit
        if goodness is not None:
            q, p = shown_number(goodness.statistic, 5), shown_number(goodness.p_value, 3)
            said = f"q = {q}, {goodness.n_dof} degrees of freedom, p = {p}"
            view.facts.append(("goodness of fit", said))
        view.tables += _table_of_channels(self.channels, self._said.counts)
        return view

    def _document(self) -> dict[str, Any]:
        fit = self.fit._document()
        fit.pop("covariance")
        fit["checksums"] = _checksums(fit)
        return {
            "fit": fit,
            "pulls": fit.pop("pulls"),
            "goodness_of_fit": None if self.goodness_of_fit is None else self.goodness_of_fit._document(),
            "yields": {"channels": _channels_of(self.channels)},
            "converged": self.converged,
            "warnings": list(self.warnings),
            **{name: plain(self._fields[name]) for name in ("unmatched", "unused") if name in self._fields},
        }
