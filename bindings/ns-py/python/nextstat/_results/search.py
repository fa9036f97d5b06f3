"""The result of a search for many signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._views import shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SearchResult"]


class SearchResult(Result):
    """Local significances of many signals, and the global significance of the largest.

    Global p-values are dictionaries with `p_value`, its Monte Carlo `error` (None if it has none)
    and `Z`.

    Attributes
    ----------
    measurement : str or None
    patches : tuple of dict
        Of each signal: `patch`, `values`, and `result`, with the fields of `SignificanceResult`,
        `Z_linear` (the local significance to first order in the data) and `skewness` (of its score
        under the background), with `limits` also `limit`; or `error`.
    strongest : dict or None
        `patch`, `Z_obs` and `p0_obs` of the signal with the largest local significance.
    field : dict or None
        The global p-value by the joint distribution of the local significances.
    upcrossings : dict or None
        For signals in a row: `label`, `level`, `expected` and `observed` upcrossings, and the
        global p-value that follows if the largest local significance is above the level.
    toys : dict or None
        `n_toys`, `n_failed`, and the global p-value by toys.
    curve : tuple of dict
        `Z_local`, `p_local` and the global p-values `field`, `upcrossings` and `toys` of several
        local significances.
    correlation : tuple of tuple of float, or None
        Correlations of the local significances.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "search"
    measurement: str | None
    patches: tuple[Mapping[str, Any], ...]
    strongest: Mapping[str, Any] | None
    field: Mapping[str, Any] | None
    upcrossings: Mapping[str, Any] | None
    toys: Mapping[str, Any] | None
    curve: tuple[Mapping[str, Any], ...]
    correlation: tuple[tuple[float, ...], ...] | None
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        def row(patch: Mapping[str, Any]) -> tuple[str, ...]:
            result = patch.get("result") or {"poi": {}}
            numbers = (result["poi"].get("bestfit"), result.get("Z_obs"), result.get("p0_obs"), patch.get("Z_linear"))
            return (patch["patch"], *map(shown_number, numbers))

        facts = []
        if self.strongest is not None:
            facts.append(("largest local significance", f"{shown_number(self.strongest['Z_obs'])} ({self.strongest['patch']})"))
        ways = [("field", self.field)]
        ways += [(name, found and found["global"]) for name, found in (("upcrossings", self.upcrossings), ("toys", self.toys))]
        for name, found in ways:
            if found is not None:
                facts.append((f"global p-value by {name}", shown_number(found["p_value"])))
        columns = ("patch", "best fit", "Z", "p-value", "linear Z")
        return _views.View("SearchResult", facts, _views.tables([row(patch) for patch in self.patches], columns))
