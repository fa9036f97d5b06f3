"""Fits of many data sets, and the covariance of two analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._arguments import path_of
from .base import Result, index_of, plain

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy import ndarray

    from .frozen import Poi

__all__ = ["FitsResult", "ReplicaCovariance"]


class FitsResult(Result):
    """Fits of N data sets. P is the number of parameters.

    Attributes
    ----------
    par_names : tuple of str
        Parameter names (P).
    bestfit : ndarray
        Best-fit parameters (N, P); NaN where the fit did not converge.
    uncertainties : ndarray or None
        Their standard deviations (N, P), if asked for; NaN also for parameters that have none.
    twice_nll : ndarray
        2(-ln L) at the minima (N); NaN where the fit did not converge.
    converged : ndarray of bool
        Whether each fit converged (N).
    outcomes : tuple of str
        How each fit ended (N).
    n_data_sets, n_data_sets_wanted, n_failed : int
        Data sets that were fitted, how many there are, and how many of these fits did not
        converge.
    failures : dict
        How many fits failed for each reason.
    parameters : tuple of dict
        Of each parameter: `bestfit` and `uncertainty` of the nominal data, `mean` and
        `standard_deviation` over the data sets whose fits converged.
    correlation : ndarray
        Correlations of the parameters over these data sets (P, P); NaN where one does not vary.
    poi : Poi or None
        `name`, `index`, `bestfit` and `uncertainty` of the parameter of interest for the nominal
        data.
    nominal : dict
        Whether the fit to the nominal data converged, and its 2(-ln L).
    data_sha256 : str
        Digest of the data sets, as little-endian doubles.
    complete, measurement, warnings

    `nextstat.load_fits` reads those of a file, which `save` writes.
    """

    __slots__ = ()
    _schema = "fits"
    par_names: tuple[str, ...]
    bestfit: ndarray
    uncertainties: ndarray | None
    twice_nll: ndarray
    converged: ndarray
    outcomes: tuple[str, ...]
    n_data_sets: int
    n_data_sets_wanted: int
    n_failed: int
    failures: Mapping[str, int]
    parameters: tuple[Mapping[str, Any], ...]
    correlation: ndarray
    poi: Poi | None
    nominal: Mapping[str, Any]
    data_sha256: str
    complete: bool
    measurement: str
    warnings: tuple[str, ...]

    def values(self, name: str) -> ndarray:
        """Returns the best-fit values of the parameter `name` where the fits converged."""
        return self.bestfit[self.converged, index_of(self.par_names, name)]

    def standard_deviation(self, name: str) -> float:
        """Returns the standard deviation of the parameter `name` over the data sets; NaN for fewer
        than two.
        """
        found = self.parameters[index_of(self.par_names, name)]["standard_deviation"]
        return float("nan") if found is None else found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a NumPy file (`.npy`) with a document beside it, as the command does.

        `load_fits` reads it.
        """
        # Imports NumPy, which results do without.
        from .. import _data_set_files

        _data_set_files.save(self._fields, path_of("path", path))

    def _view(self) -> _views.View:
        facts = [("data sets", str(self.n_data_sets)), ("failed", str(self.n_failed))]
        view = _views.View("FitsResult", facts, is_bad=self.n_failed > 0)
        poi = self.poi["index"] if self.poi else None
        order = sorted(range(len(self.parameters)), key=lambda i: i != poi)
        n = int(self.converged.sum())
        rows = [_row(self.parameters[i], n) for i in order if self.parameters[i]["standard_deviation"]]
        view.tables = _views.tables(rows, ("parameter", "nominal", "mean", "standard deviation"))
        return view

    def _document(self) -> dict[str, Any]:
        fields = dict(self._fields)
        columns = ("outcomes", "twice_nll", "bestfit", "uncertainties", "converged")
        outcomes, twice_nll, bestfit, uncertainties, converged = (
            plain(fields.pop(name)) for name in columns
        )
        document = {name: plain(value) for name, value in fields.items() if name != "measurement"}
        rows = [
            {"data_set": i, "outcome": outcome, "twice_nll": value, "bestfit": point}
            for i, (outcome, value, point) in enumerate(zip(outcomes, twice_nll, bestfit))
        ]
        for row, widths in zip(rows, uncertainties or ()):
            row["uncertainties"] = widths
        document["converged"] = all(converged) and bool(self.nominal["converged"])
        return {**document, "data_sets": rows}


def _row(parameter: Mapping[str, Any], n: int) -> tuple[str, str, str, str]:
    """Returns the fit to the nominal data, and the mean with its error over `n` data sets."""
    return (
        parameter["parameter"],
        _views.measured(parameter["bestfit"], parameter["uncertainty"]),
        _views.measured(parameter["mean"], parameter["standard_deviation"] / n**0.5),
        _views.shown_number(parameter["standard_deviation"], 4),
    )


class ReplicaCovariance(Result):
    """The covariance between the results of two analyses, a with P parameters and b with Q.

    Attributes
    ----------
    par_names_a, par_names_b : tuple of str
        Their parameters (P) and (Q).
    covariance, correlation, correlation_error : ndarray
        Of a's parameters with b's (P, Q): the sample covariance over the replicas, the correlation
        ρ, NaN where a parameter does not vary, and its statistical error (1 - ρ²)/√(n - 1).
    covariance_a, covariance_b : ndarray
        Of a's parameters (P, P), and of b's (Q, Q).
    mean_a, mean_b : ndarray
        Means over the replicas (P) and (Q).
    n_replicas, n_common : int
        Replicas, and those in which both fits converged; all numbers are of these.
    warnings : tuple of str
    """

    __slots__ = ()
    par_names_a: tuple[str, ...]
    par_names_b: tuple[str, ...]
    covariance: ndarray
    correlation: ndarray
    correlation_error: ndarray
    covariance_a: ndarray
    covariance_b: ndarray
    mean_a: ndarray
    mean_b: ndarray
    n_replicas: int
    n_common: int
    warnings: tuple[str, ...]

    def value(self, a: str, b: str) -> float:
        """Returns the correlation of the parameter `a` of the first analysis with the parameter `b`
        of the second.
        """
        return float(self.correlation[self._place(a, b)])

    def error(self, a: str, b: str) -> float:
        """Returns the statistical error of this correlation."""
        return float(self.correlation_error[self._place(a, b)])

    def _place(self, a: str, b: str) -> tuple[int, int]:
        return index_of(self.par_names_a, a), index_of(self.par_names_b, b)

    def _view(self) -> _views.View:
        facts = [("replicas", f"{self.n_common} of {self.n_replicas}")]
        view = _views.View("ReplicaCovariance", facts)
        pairs = [
            (a, b, self.correlation[i, j], self.correlation_error[i, j])
            for i, a in enumerate(self.par_names_a)
            for j, b in enumerate(self.par_names_b)
        ]
        pairs = [pair for pair in pairs if pair[2] == pair[2]]
        pairs.sort(key=lambda pair: -abs(pair[2]))
        rows = [(a, b, _views.signed(rho, 3), f"{error:.3f}") for a, b, rho, error in pairs]
        view.tables = _views.tables(rows, ("parameter of a", "of b", "correlation", "error"))
        return view
