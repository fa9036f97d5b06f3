"""The result of simplifying a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._views import shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SimplifiedModel"]


class SimplifiedModel(Result):
    """A simplified model, and how far its results are from those of the full one.

    Attributes
    ----------
    workspace : dict
        The simplified workspace, as `model_of` takes it.
    measurement : str or None
    n_patches : int or None
        The patches of the set whose background it is; None without a patch set.
    form : str
        ``"linear"`` or ``"third_moments"``.
    n_variables : int
        The number of normal variables.
    channels : tuple of dict
        Of each simplified channel: `channel`, and for its bins `data`, `yields`, `means`,
        `linear_uncertainties`, `uncertainties`, `skewness`, and `signal` or None.
    covariance : tuple of tuple of float
        Covariance of the yields in all bins.
    comparison : dict or None
        `signals` with CLs in the `full` and in both simplified models, and `largest_differences`.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "simplify"
    workspace: Mapping[str, Any]
    measurement: str | None
    n_patches: int | None
    form: str
    n_variables: int
    channels: tuple[Mapping[str, Any], ...]
    covariance: tuple[tuple[float, ...], ...]
    comparison: Mapping[str, Any] | None
    converged: bool
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields but the workspace as the command's report has them."""
        found = super().to_dict()
        found.pop("workspace")
        return found

    def _view(self) -> _views.View:
        mean, width = ("yields", "linear_uncertainties") if self.form == "linear" else ("means", "uncertainties")
        rows = [
            (channel["channel"], str(i), *(shown_number(channel[key][i]) for key in ("data", mean, width, "skewness")))
            for channel in self.channels
            for i in range(len(channel["data"]))
        ]
        facts = [("form", self.form), ("variables", str(self.n_variables))]
        if self.comparison is not None:
            largest = self.comparison["largest_differences"][self.form]["CLs_obs"]
            facts.append(("largest difference of CLs", shown_number(largest)))
        columns = ("channel", "bin", "data", "background", "uncertainty", "skewness")
        return _views.View("SimplifiedModel", facts, _views.tables(rows, columns))
