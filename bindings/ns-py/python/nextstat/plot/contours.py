"""Figures of contours of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D

from ._contours import draw_best, draw_contour, draw_region, points_of
from ._documents import document_of, require_fit
from ._labels import annotate, legend, ticks
from ._look import figure, new_axes
from ._style import COLOURS, literal, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

# How the `gid` of what belongs to a result begins.
_GID = "contours"


@figure
def contours(result: Source, *, name: str | None = None, ax: Axes | None = None, **look: Unpack[LookOptions]) -> Axes:
    """Draws contours of two parameters, one closed curve for each confidence level.

    Parts that follow the end of a range, rather than the likelihood, are drawn thin. So are those
    of a region by toys that follow the edge of its grid.

    Parameters
    ----------
    result : ContourResult or RegionResult, or a stored document of one, or a scan with contours
    name : str, optional
        A name for the legend, for several results on the same axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document = document_of(result, ("contours", "scan", "region"))
    # A region is a grid of p-values, which are numbers even if some have larger errors than wanted.
    is_region = document.kind == "region"
    if not is_region:
        require_fit(document)
    has_points = (lambda contour: contour["region"]) if is_region else points_of
    drawn = [contour for contour in document.fields.get("contours") or [] if has_points(contour)]
    if not drawn:
        raise ValueError("`result` has no contour with points to draw")
    ax = new_axes(ax, 5.2, 4.4)
    k = len({line.get_gid() for line in ax.lines if str(line.get_gid()).startswith(_GID)})
    colour, gid = COLOURS[k % len(COLOURS)], f"{_GID} {k}"
    for place, contour in enumerate(drawn):
        line = (draw_region if is_region else draw_contour)(ax, contour, place, colour, gid=gid)
        line.set_label(percent(contour["cl"]) if name is None else f"{name}, {percent(contour['cl'])}")
    best = draw_best(ax, _best(document), colour, gid=gid)
    best.set_label("_" if k else "Best fit")
    ax.set_xlabel(literal(document["parameters"][0]))
    ax.set_ylabel(literal(document["parameters"][1]))
    ticks(ax)
    if k == 0:
        annotate(ax, ["Asimov data"] if document.is_asimov else [])
    handles = [line for line in ax.lines if isinstance(line, Line2D) and not line.get_label().startswith("_")]
    legend(ax, handles, [line.get_label() for line in handles])
    return ax


def _best(document: Document) -> Any:
    """Returns the best fit of the two parameters."""
    if document.kind == "region":
        return document["bestfit"]
    fit, names = document["fit"], list(document["par_names"])
    return [fit["bestfit"][names.index(name)] for name in document["parameters"]]
