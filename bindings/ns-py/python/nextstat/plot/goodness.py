"""Goodness of fit: p-values of all channels together and of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._bands import palette_of
from ._documents import document_of, require_fit
from ._labels import annotate_above, legend, ticks
from ._look import figure, new_axes
from ._room import SHADING
from ._style import NEUTRAL, literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Source
    from ._look import LookOptions

# P(|z| > 1), P(|z| > 2), P(|z| > 3) of a normal variable.
_TAILS = (0.31731050786291415, 0.04550026389635842, 0.0026997960632601866)

_ALL = "All channels"


@figure
def gof(
    result: Source,
    *,
    labels: Mapping[str, str] | None = None,
    palette: str = "classic",
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws a goodness of fit: the p-value of all channels together and of each channel, by the χ²
    distribution and, where there are some, by toys.

    Shaded are probabilities that a normal variable is less than one and two standard deviations
    away. χ² and degrees of freedom are beside the rows.

    Parameters
    ----------
    result : GoodnessOfFit or ReportResult, or its document
    labels : dict, optional
        Words for channels.
    palette : ``"classic"`` or ``"accessible"``
        Green and yellow, or colours that stay distinct with colour vision deficiencies.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    inner, outer = palette_of(palette)
    found = _found(result)
    words = dict(labels or {})
    rows = [(_ALL, found), *((words.get(one["channel"], literal(one["channel"])), one) for one in found["channels"])]
    toys = [] if not found.get("toys") else [found["toys"]["total"], *found["toys"]["channels"]]
    ax = new_axes(ax, 4.4 + 0.085 * max(len(name) for name, _ in rows), 1.1 + 0.36 * len(rows))
    for low, high, colour in ((_TAILS[0], 1.25, inner), (_TAILS[1], _TAILS[0], outer)):
        ax.axvspan(low, high, facecolor=colour, alpha=0.55, linewidth=0, zorder=0, gid=SHADING)
    ax.axvline(_TAILS[2], color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=1)
    _draw_rows(ax, [one for _, one in rows], toys)
    _dress(ax, [name for name, _ in rows], [one for _, one in rows], toys)
    return ax


def _found(result) -> Mapping[str, Any]:
    """Returns the goodness of fit of a document."""
    document = require_fit(document_of(result, ("gof", "comparison", "report")))
    if document.kind != "report":
        return document.fields
    if document["goodness_of_fit"] is None:
        raise ValueError("the report has no goodness of fit: the fit used data that are hidden")
    return document["goodness_of_fit"]


def _draw_rows(ax, rows, toys):
    known = [(row, one["p_value"]) for row, one in enumerate(rows) if one["p_value"] is not None]
    if not known:
        raise ValueError("`result` has no p-value: there are no degrees of freedom")
    ax.plot([p for _, p in known], [row for row, _ in known], "o", color="black", markersize=5, label=r"$\chi^2$", zorder=3)
    known = [(row, one) for row, one in enumerate(toys) if one["value"] is not None]
    if known:
        values, errors = [one["value"] for _, one in known], [one["error"] or 0.0 for _, one in known]
        style = {"color": "black", "markersize": 5.5, "markerfacecolor": "white", "elinewidth": 1.1}
        ax.errorbar(values, [row + 0.22 for row, _ in known], xerr=errors, fmt="s", label="toys", zorder=4, **style)


def _dress(ax, names, rows, toys):
    values = [one["p_value"] for one in rows] + [one["value"] for one in toys]
    # A p-value of 0 is too small for a double, and has no place on the axis.
    smallest = min((value for value in values if value), default=1.0)
    ax.set_xscale("log")
    ax.set_xlim(min(1e-3, 0.4 * smallest), 1.25)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_yticks(range(len(rows)), names)
    ax.set_xlabel("p-value")
    for row, one in enumerate(rows):
        statistic, n_dof = one.get("deviance", one.get("statistic")), one["n_dof"]
        if statistic is not None and n_dof is not None:
            text = rf"$\chi^2$/ndf = {statistic:.2g}/{n_dof:.2g}"
            ax.annotate(text, (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize="small", annotation_clip=False)
    annotate_above(ax)
    ticks(ax, y=False)
    if toys:
        legend(ax, *ax.get_legend_handles_labels(), room=False)
