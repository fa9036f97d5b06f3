"""Exclusion contours in the plane of two labels, such as two masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .._errors import shown
from ._bands import PALETTES, palette_of
from ._documents import document_of
from ._labels import annotate, legend, ticks
from ._look import figure, new_axes
from ._room import SHADING
from ._style import COLOURS, NEUTRAL, literal, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Source
    from ._look import LookOptions

NUMBERS = (None, "observed", "expected")

_BAND, _THEORY = r"Expected $\pm 1\sigma$", r"$\pm 1\sigma$ theory"


@figure
def exclusion(
    result: Source,
    *,
    theory: Sequence[Source] = (),
    observed: bool = True,
    points: bool = True,
    numbers: str | None = None,
    forbidden: bool = False,
    palette: str = "classic",
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws exclusion contours: the observed one solid, the expected one dashed with its band of
    ±1σ.

    Parameters
    ----------
    result : ExclusionResult, or its document
    theory : sequence of ExclusionResult, or their documents
        The same with the cross sections of the signals varied by their theory uncertainty, such as
        downwards and upwards; their observed contours are dotted.
    observed : bool
        False leaves the observation out.
    points : bool
        Whether to mark the signals of the grid, those that are excluded with filled circles.
    numbers : str, optional
        ``"observed"`` or ``"expected"``: writes CLs or the limit beside each signal.
    forbidden : bool
        Whether to shade y > x, as where a particle cannot decay to a heavier one.
    palette : ``"classic"`` or ``"accessible"``
        The colour of the band: yellow, or one that stays distinct with colour vision deficiencies.
    xlabel, ylabel : str, optional
        Instead of the labels of the patch set.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document = document_of(result, "exclusion")
    varied = [_varied(document, one) for one in theory]
    if numbers not in NUMBERS:
        raise ValueError(f"`numbers` is `observed` or `expected`, not `{shown(numbers)}`")
    palette_of(palette)
    ax = new_axes(ax, 5.8, 4.6)
    expected = document["expected"]
    _band(ax, expected[1]["region"], expected[3]["region"], PALETTES["classic"][1] if palette == "classic" else PALETTES["accessible"][0])
    _lines(ax, expected[2], "Expected", linestyle="--", color="black", linewidth=1.4)
    if observed:
        for one in varied:
            _lines(ax, one["observed"], _THEORY, linestyle=":", color=COLOURS[2], linewidth=1.2)
        _lines(ax, document["observed"], document.data_label, linestyle="-", color=COLOURS[2], linewidth=1.9)
    _draw_points(ax, document, points, numbers, observed)
    place = numpy.array([[point["x"], point["y"]] for point in document["points"]])
    _limits(ax, place)
    if forbidden:
        _forbid(ax)
    ax.set_xlabel(literal(document["x"]) if xlabel is None else xlabel)
    ax.set_ylabel(literal(document["y"]) if ylabel is None else ylabel)
    annotate(ax, [f"{percent(document['cl'])} CL"])
    ticks(ax)
    _legend(ax, document.data_label)
    return ax


def _varied(document, other):
    """Returns the exclusion with varied cross sections, if it is of the same plane and level."""
    found = document_of(other, "exclusion", "theory")
    for what in ("x", "y", "cl"):
        if found[what] != document[what]:
            raise ValueError(f"`theory` has another `{what}` than `result`: `{found[what]}`, not `{document[what]}`")
    return found


def _draw_points(ax, document, points, numbers, observed):
    key = "excluded" if observed else "excluded_expected"
    if points:
        place = numpy.array([[point["x"], point["y"]] for point in document["points"]])
        inside = numpy.array([point[key] is True for point in document["points"]])
        ax.plot(*place[inside].T, "o", color=NEUTRAL, markersize=3, zorder=3)
        ax.plot(*place[~inside].T, "o", color=NEUTRAL, markersize=3, markerfacecolor="white", zorder=3)
    if numbers is not None:
        _numbers(ax, document, numbers)


def _legend(ax, observed):
    """Draws the legend: the observation and its band, then the expectation and its band."""
    handles = dict(zip(*reversed(ax.get_legend_handles_labels())))
    names = [name for name in (observed, _THEORY, "Expected", _BAND) if name in handles]
    legend(ax, [handles[name] for name in names], names)


def _band(ax, larger, smaller, colour):
    """Fills what is excluded at -1 standard deviation and not at +1."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # Rings of opposite directions: what is in both is not filled.
    rings = [Path(numpy.asarray(ring), closed=True) for ring in larger] + [Path(numpy.asarray(ring)[::-1], closed=True) for ring in smaller]
    if rings:
        path = Path.make_compound_path(*rings)
        ax.add_patch(PathPatch(path, facecolor=colour, alpha=0.7, linewidth=0, label=_BAND, zorder=1))


def _lines(ax, curve, label, **style):
    for contour in curve["contours"]:
        ax.plot(*numpy.asarray(contour["vertices"]).T, label=label, zorder=4, **style)
        label = None


def _numbers(ax, document, which):
    for point in document["points"]:
        value = point["observed"] if which == "observed" else point["expected"][2]
        if value is not None:
            place = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center"}
            ax.annotate(f"{value:.2g}", (point["x"], point["y"]), **place, fontsize="x-small", color="0.25", zorder=5)


def _limits(ax, place):
    """Ends of the axes, with a margin around the grid."""
    low, high = place.min(axis=0), place.max(axis=0)
    margin = 0.05 * (high - low)
    ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
    ax.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _forbid(ax):
    """Shades y > x."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    x = numpy.array([left, right])
    # Up to the top, also where room is made for labels.
    ax.fill_between(x, x, max(top, right) + 10 * (top - bottom), color="0.92", linewidth=0, zorder=0, gid=SHADING)
    ax.plot(x, x, "-", color=NEUTRAL, linewidth=0.8, zorder=1)
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
