"""The result of exclusion contours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._views import shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ExclusionResult"]


class ExclusionResult(Result):
    """Exclusion contours of a grid of signals in the plane of two labels.

    Attributes
    ----------
    measurement : str or None
    x, y : str
        The labels of the axes.
    at : dict
        The selected values of other labels.
    cl : float
        The confidence level.
    quantity : str
        ``"CLs"`` or ``"limit"``: what the values of points are.
    mu : float or None
        The signal strength that was tested, of CLs.
    coordinates : tuple of str
        The coordinates of the triangulation.
    points : tuple of dict
        Of each signal: `patch`, `x`, `y`, `observed` and `expected` (five values),
        `excluded` and `excluded_expected`.
    observed : dict
        `contours`, each with `vertices` (N x 2), the excluded side on their left, and
        `ends_at_edge`, False for closed ones; and `region`, closed rings (N x 2) around the
        excluded part of the grid.
    expected : tuple of dict
        The same at -2, -1, 0, +1, +2 standard deviations of the background.
    left_out : tuple of dict
        `patch` and `reason` of the signals without a result.
    converged : bool
        Whether all signals have a result.
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "exclusion"
    measurement: str | None
    x: str
    y: str
    at: Mapping[str, Any]
    cl: float
    quantity: str
    mu: float | None
    coordinates: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    observed: Mapping[str, Any]
    expected: tuple[Mapping[str, Any], ...]
    left_out: tuple[Mapping[str, Any], ...]
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        words = {True: "yes", False: "no", None: "-"}
        rows = [
            (
                point["patch"],
                *(shown_number(point[key]) for key in ("x", "y", "observed")),
                shown_number(point["expected"][2]),
                words[point["excluded"]],
                words[point["excluded_expected"]],
            )
            for point in self.points
        ]
        columns = ("patch", self.x, self.y, self.quantity, "expected", "excluded", "expected")
        facts = [("confidence level", shown_number(self.cl))]
        for name, curve in (("observed", self.observed), ("expected", self.expected[2])):
            facts.append((f"contours {name}", str(len(curve["contours"]))))
        return _views.View("ExclusionResult", facts, _views.tables(rows, columns))
