"""Fits of toys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Result, index_of

# How a fit ends, by the number that stands for it in files of toys.
OUTCOMES = ("converged", "iteration_limit", "stalled", "saddle", "not_finite")

if TYPE_CHECKING:
    import os

    from numpy import ndarray


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
    devices : tuple of str
        Where minima were found, such as ``"cpu"``; nothing if a file does not say.
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

    def values(self, name: str) -> ndarray:
        """The best-fit values of the parameter `name` in the toys whose fits converged."""
        return self.params[self.converged, index_of(self.par_names, name)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes them to a NumPy file (`.npy`) with a document beside it, as the command does; `load_toys` reads it."""
        from .. import _toy_files
        from .._common import path_of

        _toy_files.save(self, path_of("path", path))

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
