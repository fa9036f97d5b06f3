"""Figures of the correlations of parameters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy
from matplotlib import rcParams
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from .._views import correlation_of
from ._documents import document_of, require_fit
from ._labels import annotate_above, ticks
from ._look import figure, new_axes
from ._rows import width_of
from ._style import chosen, literal, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.path import Path
    from typing_extensions import Unpack

    from ._documents import Source
    from ._look import LookOptions

# Inches of a cell, and up to how many parameters have numbers in their cells.
_CELL, _WRITTEN = 0.36, 30

#: The `gid` of the numbers in the cells.
NUMBERS = "nextstat numbers"


@figure
def correlation(
    result: Source,
    *,
    threshold: float = 0.2,
    parameters: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws the correlation matrix of the parameters that have a correlation of at least
    `threshold` with another one, and of the parameters of interest beside them.

    Parameters
    ----------
    result : FitResult, ReportResult, or a stored document of one
    threshold : float
        0 for all parameters.
    parameters, exclude : str or sequence of str
        Names or patterns, as in `pulls`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document = require_fit(document_of(result, ("fit", "report")))
    fit = document["fit"] if document.kind == "report" else document.fields
    names, matrix = _strong(fit, number(threshold, "`threshold`"), chosen(fit["par_names"], parameters, exclude))
    cell = _CELL if len(names) <= _WRITTEN else max(_CELL * _WRITTEN / len(names), 0.12)
    size, room = max(1.6, cell * len(names)), width_of(names)
    ax = new_axes(ax, size + room + 1.3, size + room + 0.5)
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    small = min(rcParams["font.size"], 0.8 * 72 * cell)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=small)
    ax.set_yticks(range(len(names)), names, fontsize=small)
    ticks(ax, x=False, y=False)
    if len(names) <= _WRITTEN:
        _write(ax, matrix)
    _bar(ax, image)
    annotate_above(ax, ["Asimov data"] if document.is_asimov else [])
    return ax


def _strong(fit: Mapping[str, Any], threshold: float, kept: Sequence[int]) -> tuple[list[str], Any]:
    """Returns the names and the matrix of the parameters to draw."""
    matrix = _matrix(fit)[numpy.ix_(kept, kept)]
    others = numpy.nan_to_num(numpy.abs(matrix - numpy.diag(numpy.diag(matrix))))
    strong = others.max(axis=1, initial=0.0) >= threshold
    # A parameter that is fixed has no correlations, and its row would be empty.
    strong &= numpy.isfinite(numpy.diag(matrix)) & (others.max(axis=1, initial=0.0) > 0.0)
    if not strong.any():
        raise ValueError(f"no two parameters have a correlation of {threshold:g} or more")
    pois = {poi["name"] for poi in fit.get("pois") or [] if poi}
    strong |= numpy.array([fit["par_names"][i] in pois for i in kept])
    order = numpy.flatnonzero(strong)
    return [literal(fit["par_names"][kept[i]]) for i in order], matrix[numpy.ix_(order, order)]


def _matrix(fit: Mapping[str, Any]) -> Any:
    """Returns the correlations (P, P) of a fit, or those of its covariance if it has no others."""
    key = next((key for key in ("correlation", "covariance") if fit.get(key) is not None), None)
    if key is None:
        raise ValueError(
            "the fit has no correlations: `nextstat.fit` with `covariance=True`, or `nextstat fit` with `--correlation` or `--covariance`, has them"
        )
    found = [[numpy.nan if value is None else value for value in row] for row in fit[key]]
    matrix = numpy.array(found, dtype=float)
    return matrix if key == "correlation" else correlation_of(matrix)


def _bar(ax: Axes, image: Any) -> None:
    """Draws the scale of colours, as high as the matrix."""
    bar = ax.inset_axes((1.02, 0.0, 0.12 / max(ax.figure.get_figwidth() - 1.3, 1.0), 1.0))
    ax.figure.colorbar(image, cax=bar, label="Correlation", ticks=[-1, -0.5, 0, 0.5, 1])
    bar.tick_params(which="both", length=0)


def _write(ax: Axes, matrix: Any) -> None:
    """Writes the numbers into the cells: their outlines in one collection, which takes a small
    part of the time of a text for each.
    """
    written = [
        (column, row, f"{value:.2f}".replace("0.", ".").replace("-", "\N{MINUS SIGN}"), "white" if abs(value) > 0.6 else "black")
        for (row, column), value in numpy.ndenumerate(matrix)
        if row != column and numpy.isfinite(value) and abs(value) >= 0.005
    ]
    places = [(column, row) for column, row, _, _ in written]
    outlines, colours = [_outline(text) for _, _, text, _ in written], [colour for _, _, _, colour in written]
    numbers = PathCollection(outlines, offsets=places, offset_transform=ax.transData, facecolors=colours, linewidths=0, gid=NUMBERS)
    numbers.set_transform(Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans)
    ax.add_collection(numbers, autolim=False)
    # They are inside the axes, so no layout asks for them.
    numbers.set_in_layout(False)


def _outline(text: str) -> Path:
    """Returns the outline of `text` around its middle, in points."""
    return _outline_of(text, 0.72 * rcParams["font.size"], tuple(rcParams["font.family"]))


@cache
def _outline_of(text: str, size: float, family: tuple[str, ...]) -> Path:
    path = TextPath((0, 0), text, size, prop=FontProperties(family=list(family)))
    box = path.get_extents()
    return path.transformed(Affine2D().translate(-0.5 * (box.x0 + box.x1), -0.5 * (box.y0 + box.y1)))
