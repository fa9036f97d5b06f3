"""Results of scans, contours and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _nextstat, _views
from .._views import NOT_CONVERGED, measured, shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray

    from .frozen import Poi

__all__ = ["ContourResult", "RankingResult", "ScanResult"]


class ScanResult(Result):
    """A profile likelihood scan over N points, or N1 x N2 of two parameters.

    Attributes
    ----------
    parameters : tuple of str
    values : tuple of ndarray
        The values of each parameter.
    delta_nll, twice_delta_nll : ndarray
        Rise of the profiled -ln L above the best fit (N) or (N1, N2); NaN where a fit failed.
    conditional_bestfit : ndarray
        All parameters of the conditional fits (points, P).
    outcomes : tuple of str
    fit : dict
        The free fit.
    intervals : tuple of dict
        Where the profile of a single parameter crosses one and two standard deviations: `cl`,
        `bestfit`, `down` and `up`; empty for two parameters.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "scan"
    parameters: tuple[str, ...]
    values: tuple[ndarray, ...]
    delta_nll: ndarray
    twice_delta_nll: ndarray
    conditional_bestfit: ndarray
    outcomes: tuple[str, ...]
    fit: Mapping[str, Any]
    intervals: tuple[Mapping[str, Any], ...]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        shape = " x ".join(str(n) for n in self.delta_nll.shape)
        view = _views.View("ScanResult", [("points", shape)])
        for name, values in zip(self.parameters, self.values):
            if not len(values):
                continue
            ends = f"{shown_number(values.min())} to {shown_number(values.max())}"
            i = self.par_names.index(name)
            best = measured(self.fit["bestfit"][i], self.fit["uncertainties"][i])
            view.facts.append((name, f"{ends}, best fit {best if self.fit['converged'] else NOT_CONVERGED}"))
        if self.delta_nll.ndim == 1:
            pairs = zip(self.values[0], self.twice_delta_nll)
            rows = [
                (shown_number(float(value)), shown_number(float(rise), 4)) for value, rise in pairs
            ]
            view.tables = _views.tables(rows, (self.parameters[0], "2 Δ(-ln L)"))
        return view

    def _document(self) -> dict[str, Any]:
        document = super()._document()
        indices = [self.par_names.index(name) for name in self.parameters]
        fit = document["fit"]
        values, widths = ([fit[key][i] if fit["converged"] else None for i in indices] for key in ("bestfit", "uncertainties"))
        shape = self.delta_nll.shape
        points = [None if all(value is None for value in point) else point for point in document["conditional_bestfit"]]
        if len(shape) == 2:
            document.pop("intervals", None)
            document["bestfit"], document["uncertainties"] = values, widths
            for key, items in (("conditional_bestfit", points), ("outcomes", document["outcomes"])):
                document[key] = [items[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])]
            return document
        document["bestfit"], document["uncertainty"] = values[0], widths[0]
        document["parameter"] = document.pop("parameters")[0]
        document["values"], document["conditional_bestfit"] = document["values"][0], points
        return document


class ContourResult(Result):
    """Contours of two parameters.

    Attributes
    ----------
    parameters : tuple of str
    contours : tuple of dict
        Of each level: `cl`, `twice_delta_nll` and `points`.
    fit : dict
        The free fit.
    par_names : tuple of str
        Names of its parameters (P).
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "contours"
    parameters: tuple[str, ...]
    contours: tuple[Mapping[str, Any], ...]
    fit: Mapping[str, Any]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        rows = [
            (
                shown_number(contour["cl"]),
                shown_number(contour["twice_delta_nll"], 5),
                str(len(contour["points"])),
            )
            for contour in self.contours
        ]
        tables = _views.tables(rows, ("level", "2 Δ(-ln L)", "points"))
        return _views.View("ContourResult", tables=tables)


class RankingResult(Result):
    """Impacts of nuisance parameters on the parameter of interest.

    Attributes
    ----------
    ranking : tuple of dict
        Largest impact first: `parameter`, `pull`, `constraint`; `prefit`, `postfit` and `global`,
        each with the `impact` of both ends (`up`, `down`); `covariance_prefit`,
        `covariance_postfit`.
    groups : tuple of dict
    breakdown : dict
        The uncertainty of the parameter of interest, split: the squared sum of global impacts
        ("syst.") and the rest ("stat.").
    poi : Poi
        `name`, `index`, `bestfit` and `uncertainty` of the parameter of interest.
    fit : dict
        The free fit.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "ranking"
    ranking: tuple[Mapping[str, Any], ...]
    groups: tuple[Mapping[str, Any], ...]
    breakdown: Mapping[str, Any]
    poi: Poi
    fit: Mapping[str, Any]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        poi = self.poi
        rows = [
            (
                entry["parameter"],
                _nextstat.pull(entry["pull"]),
                shown_number(entry["constraint"], 2),
                *_impacts(entry["prefit"]),
                *_impacts(entry["postfit"]),
                *_impacts(entry["global"]),
                _nextstat.impact(entry["covariance_postfit"]),
            )
            for entry in self.ranking
        ]
        view = _views.View("RankingResult", self._facts())
        view.tables = _views.tables(rows, (f"impact on {poi['name']}", *_COLUMNS))
        groups = (
            (
                group["group"],
                str(len(group["members"])),
                shown_number(group["frozen"], 4),
                shown_number(group["global"], 4),
            )
            for group in self.groups
        )
        view.tables += _views.tables(groups, ("group", "parameters", "frozen", "global"))
        return view

    def _facts(self) -> list[tuple[str, str]]:
        """Returns the parameter of interest, and the parts of its uncertainty if they are known."""
        best = self.poi["bestfit"]
        facts = [(self.poi["name"], NOT_CONVERGED if best is None else measured(best, self.poi["uncertainty"]))]
        syst, stat = (self.breakdown[f"global_{part}"] for part in ("systematic", "statistical"))
        if syst is not None:
            said = f"syst. {shown_number(syst, 4)}, stat. {shown_number(stat, 4)}"
            facts.append(("parts", f"{said}, by refits with shifted auxiliary data"))
        return facts


#: Columns of a ranking, after the parameters.
_COLUMNS = (
    *("pull", "constraint", "pre-fit +1σ", "-1σ", "post-fit +1σ", "-1σ", "global +1σ", "-1σ"),
    "covariance",
)


def _impacts(pair: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Returns the impacts of +1σ and of -1σ."""
    if pair is None:
        return "-", "-"
    impacts = (pair[end]["impact"] if pair[end] else None for end in ("up", "down"))
    return tuple("failed" if found is None else _nextstat.impact(found) for found in impacts)
