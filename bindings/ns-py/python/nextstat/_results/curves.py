"""Results of scans, contours and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray


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
    best: Mapping[str, Any]
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
    contours: tuple[Mapping[str, Any], ...]
    best: Mapping[str, Any]
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
    ranking: tuple[Mapping[str, Any], ...]
    groups: tuple[Mapping[str, Any], ...]
    breakdown: Mapping[str, Any]
    poi: Mapping[str, Any]
    best: Mapping[str, Any]
    par_names: tuple[str, ...]
    complete: bool
    converged: bool
    warnings: tuple[str, ...]
