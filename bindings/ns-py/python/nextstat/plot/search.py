"""The figure of a search: local p-values against a label of the signals, such as a mass."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._views import shown_number
from ._bands import EXPECTED, columns
from ._documents import document_of, nothing_to_draw
from ._labels import annotate, legend, ticks
from ._look import figure, new_axes
from ._style import NEUTRAL, literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy import ndarray
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

# The colours of what is expected: the median, and one standard deviation.
_MEDIAN, _ONE_SIGMA = "#5790fc", "#bcd2fe"

# The axis shows at least this number of standard deviations, and no p-values below this.
_DEVIATIONS, _LOWEST = 3, 1e-200

# Lines at more standard deviations than this have no room.
_MOST_LINES = 9


@figure
def search(
    result: Source,
    *,
    x: str | None = None,
    observed: bool = True,
    expected: bool = True,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws the local p-values of a search against a label of its signals, such as a mass.

    Lines are at whole standard deviations. The largest local significance and the global one are
    written into the figure. Where several signals have the same value of the label, each is a
    point, the curve goes through the smallest p-value of each value, and nothing expected is drawn.

    Parameters
    ----------
    result : SearchResult, or a stored document of one
    x : str, optional
        The label that is the x axis. If not given, that along which upcrossings were counted, and
        else the only one whose values are numbers that are not all the same.
    observed : bool
        False leaves the observation out, and what is written of it.
    expected : bool
        False leaves out the p-values that are expected of each signal at its strength 1: the
        median and one standard deviation.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document = document_of(result, "search")
    found = _local(document, x)
    ax = new_axes(ax, 5.6, 4.4)
    smallest = []
    if expected and not found.is_shared:
        smallest.append(_draw_expected(ax, found))
    if observed:
        smallest.append(_draw_observed(ax, found))
    if found.places.min() < found.places.max():
        ax.set_xlim(found.places.min(), found.places.max())
    _draw_deviations(ax, min((p for p in smallest if p > 0.0), default=1.0))
    ax.set_xlabel(literal(found.x) if xlabel is None else xlabel)
    ax.set_ylabel("Local p-value" if ylabel is None else ylabel)
    annotate(ax, _in_words(document, found) if observed else [])
    ticks(ax)
    handles, names = ax.get_legend_handles_labels()
    legend(ax, handles[::-1], names[::-1])
    _leave_out_above_one(ax)
    return ax


class _Local(NamedTuple):
    """Local p-values of signals, in ascending order of their places."""

    places: ndarray
    p_values: ndarray
    #: At -2, -1, 0, 1 and 2 standard deviations of the signal (5 × N).
    expected: ndarray
    patches: list[str]
    #: The label of what the data give.
    label: str
    #: What the places are.
    x: str

    @property
    def is_shared(self) -> bool:
        """Whether several signals have the same place."""
        return len(numpy.unique(self.places)) < len(self.places)


def _local(document: Document, x: str | None) -> _Local:
    """Returns the signals that have a local p-value."""
    known = [patch for patch in document["patches"] if (patch.get("result") or {}).get("p0_obs") is not None]
    if not known:
        raise nothing_to_draw(document.fields)
    x = _axis(document, x)
    places = numpy.array([_number(patch["values"].get(x), x) for patch in known])
    order = numpy.argsort(places, kind="stable")
    p_values = numpy.array([patch["result"]["p0_obs"] for patch in known], dtype=float)
    expected = columns([patch["result"].get("p0_exp") for patch in known])
    names = [known[k]["patch"] for k in order]
    return _Local(places[order], p_values[order], expected[:, order], names, document.data_label, x)


def _axis(document: Document, x: str | None) -> str:
    """Returns the label that is the x axis."""
    patches = document["patches"]
    labels = list(dict.fromkeys(label for patch in patches for label in patch["values"]))
    if x is None and document["upcrossings"] is not None:
        x = document["upcrossings"]["label"]
    if x is None:
        varied = [label for label in labels if _varies([patch["values"].get(label) for patch in patches])]
        x = varied[0] if len(varied) == 1 else None
    if x not in labels:
        wrong = "`x` is needed" if x is None else f"there is no label `{x}`"
        raise ValueError(f"{wrong}; choose one of {', '.join(labels)}")
    return x


def _varies(values: list[Any]) -> bool:
    """Returns whether all values are numbers, and not all the same."""
    numbers = [_as_number(value) for value in values]
    return None not in numbers and len(set(numbers)) > 1


def _as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _number(value: Any, x: str) -> float:
    number = _as_number(value)
    if number is None:
        raise ValueError(f"`{x}` has the value `{value}`, which has no place on an axis")
    return number


def _draw_expected(ax: Axes, found: _Local) -> float:
    """Draws the median and the band of what is expected; returns the smallest median."""
    values = numpy.maximum(found.expected, _LOWEST)
    if numpy.isnan(values[2]).all():
        return 1.0
    of_one = r"$\pm 1\sigma$"
    ax.fill_between(found.places, values[1], values[3], facecolor=_ONE_SIGMA, edgecolor="none", label=f"{EXPECTED} {of_one}", zorder=1)
    ax.plot(found.places, values[2], "--", color=_MEDIAN, linewidth=1.4, label=EXPECTED, zorder=3)
    return float(numpy.nanmin(values[2]))


def _draw_observed(ax: Axes, found: _Local) -> float:
    """Draws the p-values of the data; returns the smallest."""
    values = numpy.maximum(found.p_values, _LOWEST)
    style = {"color": "black", "markersize": 4, "linewidth": 1.4, "zorder": 5}
    if found.is_shared:
        places = numpy.unique(found.places)
        lowest = [values[found.places == place].min() for place in places]
        ax.plot(found.places, values, "o", color=NEUTRAL, markersize=3, label="Every signal", zorder=4)
        ax.plot(places, lowest, "o-", label=f"{found.label}, smallest", **style)
    else:
        ax.plot(found.places, values, "o-", label=found.label, **style)
    return float(values.min())


def _draw_deviations(ax: Axes, smallest: float) -> None:
    """Sets the y axis, whose lowest p-value is below `smallest`, with lines at whole standard
    deviations.
    """
    normal = NormalDist()
    reached = -normal.inv_cdf(min(max(smallest, 1e-18), 0.5))
    deepest = max(_DEVIATIONS, math.ceil(reached + 0.3))
    lines = [k for k in range(1, deepest + 1) if deepest <= _MOST_LINES]
    ax.set_yscale("log")
    bottom = 0.4 * normal.cdf(-deepest)
    ax.set_ylim(min(bottom, 0.3 * smallest), 1.5)
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-4, 2), "textcoords": "offset points"}
    for k in lines:
        height = normal.cdf(-k)
        ax.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=2)
        ax.annotate(rf"{k}$\sigma$", (1.0, height), **place, ha="right", va="bottom", fontsize="small", color="0.3")


def _leave_out_above_one(ax: Axes) -> None:
    """Removes the ticks of what is no p-value, where text is."""
    low, _ = ax.get_ylim()
    for minor in (False, True):
        ax.set_yticks([tick for tick in ax.get_yticks(minor=minor) if low <= tick <= 1.0], minor=minor)


def _in_words(document: Document, found: _Local) -> list[str]:
    """Returns the largest local significance, and the global ones."""
    strongest = document["strongest"]
    if strongest is None:
        return []
    at = ""
    if strongest["patch"] in found.patches:
        place = found.places[found.patches.index(strongest["patch"])]
        at = f" at {literal(found.x)} = {place:g}"
    said = [rf"Largest local: {shown_number(strongest['Z_obs'], 3)}$\sigma${at}"]
    ways: list[tuple[str, Mapping[str, Any] | None]] = [("Global", document["field"])]
    if document["toys"] is not None:
        ways.append(("Global by toys", document["toys"]["global"]))
    return said + [f"{way}: {_global(value)}" for way, value in ways if value is not None]


def _global(value: Mapping[str, Any]) -> str:
    """Returns a global significance, or the p-value where there is none."""
    if value["Z"] is None:
        # No toy was as large: an upper limit at 95 % confidence level.
        is_limit = value["p_value"] == 0.0 and value["error"] is not None
        return f"p < {shown_number(3 * value['error'], 2)}" if is_limit else f"p = {shown_number(value['p_value'], 3)}"
    return rf"{shown_number(value['Z'], 3)}$\sigma$ (p = {shown_number(value['p_value'], 2)})"
