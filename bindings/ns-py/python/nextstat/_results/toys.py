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

    from .frozen import Poi

__all__ = ["ToysResult"]


class ToysResult(Result):
    """Fits of T toys.

    Attributes
    ----------
    toys : ndarray
        Their numbers (T).
    bestfit : ndarray
        Best-fit parameters (T, P).
    nll : ndarray
        -ln L at the minima (T).
    converged : ndarray of bool
        Whether each fit converged (T); toys whose fit failed stay in the arrays.
    outcomes : tuple of str
        How each fit ended (T).
    n_failed : int
    poi : Poi or None
        `name`, `index`, and `mean` and `standard_deviation` of the best fits that converged, of the
        parameter of interest.
    poi_uncertainty : ndarray or None
    par_names : tuple of str
    thrown_at : ndarray
        The parameter values at which the toys were thrown (P).
    devices : tuple of str
        The devices that found the minima, such as ``"cpu"``; empty if a file does not say.
    seed, aux, measurement
    """

    __slots__ = ()
    _schema = "toys"
    toys: ndarray
    bestfit: ndarray
    nll: ndarray
    converged: ndarray
    outcomes: tuple[str, ...]
    n_failed: int
    poi: Poi | None
    poi_uncertainty: ndarray | None
    par_names: tuple[str, ...]
    thrown_at: ndarray
    devices: tuple[str, ...]
    seed: int
    aux: str
    measurement: str

    def __init__(self, fields: Mapping[str, Any]) -> None:
        if isinstance(fields.get("poi"), str):
            fields = {**fields, "poi": _poi(fields)}
        super().__init__(fields)
        if "toys" in fields:
            object.__setattr__(self, "_alarm", "; ".join(self.warnings) or None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before using the toys."""
        return tuple(_nextstat.toys_warnings(len(self.toys), self.n_failed, self.aux == "fixed"))

    def values(self, name: str) -> ndarray:
        """Returns the best-fit values of the parameter `name` in the toys whose fits converged."""
        return self.bestfit[self.converged, index_of(self.par_names, name)]

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
        if self.poi is not None and self.poi.mean is not None:
            mean = _views.shown_number(self.poi.mean, 5)
            width = _views.shown_number(self.poi.standard_deviation, 4)
            view.facts.append((self.poi.name, f"mean {mean}, width {width}"))
        return view

    def _document(self) -> dict[str, Any]:
        document = super()._document()
        columns = ("toys", "outcomes", "nll", "bestfit", "poi_uncertainty")
        toys, outcomes, nll, points, widths = (document.pop(name) for name in columns)
        rows = [
            {"toy": toy, "outcome": outcome, "nll": value, "bestfit": point}
            for toy, outcome, value, point in zip(toys, outcomes, nll, points)
        ]
        for row, width in zip(rows, widths or ()):
            row["poi_uncertainty"] = width
        failures: dict[str, int] = {}
        for outcome in outcomes:
            if outcome != "converged":
                failures[outcome] = failures.get(outcome, 0) + 1
        document["converged"] = self.n_failed == 0
        document["thrown_at"] = {"values": document["thrown_at"]}
        if len(self.par_names) == len(self.thrown_at):
            document["thrown_at"]["par_names"] = document["par_names"]
        counts = {"n_toys": len(rows), "n_toys_wanted": len(rows), "failures": failures}
        return {**document, "toys": rows, "complete": True, "warnings": list(self.warnings), **counts}


def _poi(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameter of interest of fits of toys: its index is None if it is not written."""
    name, names = fields["poi"], list(fields["par_names"])
    index = names.index(name) if name in names else None
    values = [] if index is None else fields["bestfit"][fields["converged"], index]
    mean, width = _nextstat.mean_and_standard_deviation(values) or (None, None)
    return {"name": name, "index": index, "mean": mean, "standard_deviation": width}
