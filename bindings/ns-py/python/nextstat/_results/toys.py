"""Fits of toys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _nextstat, _views
from .._arguments import path_of
from .base import Result, index_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy import ndarray

__all__ = ["ToysResult"]


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
        Whether each fit converged (T); toys whose fit failed stay in the arrays.
    outcomes : tuple of str
        How each fit ended (T).
    n_failed : int
    poi : str or None
        The parameter of interest.
    poi_uncertainty : ndarray or None
    par_names : tuple of str
    thrown_at : ndarray
        The parameter values at which the toys were thrown (P).
    devices : tuple of str
        The devices that found the minima, such as ``"cpu"``; empty if a file does not say.
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
    devices: tuple[str, ...]
    seed: int
    aux: str
    measurement: str

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        if "toys" in fields:
            object.__setattr__(self, "_alarm", "; ".join(self.warnings) or None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before using the toys."""
        return tuple(_nextstat.toys_warnings(len(self.toys), self.n_failed, self.aux == "fixed"))

    def values(self, name: str) -> ndarray:
        """Returns the best-fit values of the parameter `name` in the toys whose fits converged."""
        return self.params[self.converged, index_of(self.par_names, name)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a NumPy file (`.npy`) with a document beside it, as the command does.

        `load_toys` reads it.
        """
        # Imports NumPy, which results do without.
        from .. import _toy_files

        _toy_files.save(self._fields, path_of("path", path))

    def _view(self) -> _views.View:
        n_toys = len(self.toys)
        facts = [
            ("toys", str(n_toys)),
            ("failed", str(self.n_failed)),
            ("seed", str(self.seed)),
        ]
        view = _views.View("ToysResult", facts, is_bad=self.n_failed > 0)
        if self.poi in self.par_names and n_toys - self.n_failed > 1:
            values = self.values(self.poi)
            mean = _views.shown_number(float(values.mean()), 5)
            width = _views.shown_number(float(values.std(ddof=1)), 4)
            view.facts.append((self.poi, f"mean {mean}, width {width}"))
        return view

    def _document(self) -> dict[str, Any]:
        document = super()._document()
        columns = ("toys", "outcomes", "nll", "params", "poi_uncertainty")
        toys, outcomes, nll, params, widths = (document.pop(name) for name in columns)
        rows = [
            {"toy": toy, "status": outcome, "nll": value, "parameters": point}
            for toy, outcome, value, point in zip(toys, outcomes, nll, params)
        ]
        for row, width in zip(rows, widths or ()):
            row["poi_uncertainty"] = width
        failures: dict[str, int] = {}
        for outcome in outcomes:
            if outcome != "converged":
                failures[outcome] = failures.get(outcome, 0) + 1
        document.pop("converged")
        counts = {"n_done": len(rows), "n_toys": len(rows), "failures": failures}
        return {**document, "toys": rows, "complete": True, "warnings": list(self.warnings), **counts}
