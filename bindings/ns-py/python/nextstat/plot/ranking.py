"""Figures of rankings: impacts on a parameter of interest, beside pulls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy
from matplotlib import rcParams
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from ._documents import document_of, require_fit
from ._labels import annotate_above, ticks
from ._look import figure, new_axes
from ._rows import PULL, draw_points, number, row_height, rows, set_reach, value_of, width_of, write_values
from ._style import DOWN, NEUTRAL, UP, chosen, literal, top_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Source
    from ._look import LookOptions

    _Entry = Mapping[str, Any]

# Definitions of impacts, and where the document has those after the fit.
_DEFINITIONS = {"classic": "postfit", "global": "global", "covariance": "covariance_postfit"}


@figure
def ranking(
    result: Source,
    *,
    top: int | None = 20,
    impacts: str | None = None,
    parameters: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws a ranking: impacts on the parameter of interest (upper axis, bars) and pulls (lower
    axis, points), largest impact first.

    Hollow bars are impacts of the width before the fit, filled ones of that after it. Parameters
    without a constraint have no pull: they are below a line, with their values beside them.

    Parameters
    ----------
    result : RankingResult, or a stored document of one
    top : int or None
        How many parameters; None for all.
    impacts : ``"classic"``, ``"global"`` or ``"covariance"``, optional
        Which definition is drawn, and sorted by; the first one that the result has if not given.
        Parameters without an impact of this kind are left out.
    parameters, exclude : str or sequence of str
        Names or patterns, as in `pulls`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the pulls; `ax.child_axes` has those of the impacts.
    """
    document = require_fit(document_of(result, "ranking"))
    entries, impacts = _entries(document["ranking"], impacts, chosen([entry["parameter"] for entry in document["ranking"]], parameters, exclude))
    entries = _constrained_first(entries[: top_of(top)])
    height, names = row_height(len(entries)), [entry["parameter"] for entry in entries]
    ax = new_axes(ax, 4.6 + width_of(names), 2.1 + height * len(entries))
    bars = _impact_axes(ax, literal(document["poi"]["name"]))
    handles = _draw_impacts(bars, entries, impacts)
    pulls = _draw_pulls(ax, entries)
    rows(ax, names, height)
    ticks(bars, x=True, y=False)
    bars.tick_params(axis="x", which="both", bottom=False)
    ax.tick_params(axis="x", which="both", top=False)
    _set_apart(ax, entries)
    _words_above(bars, [*handles, (pulls, "Pull")], document.is_asimov)
    return ax


def _entries(found: Sequence[_Entry], impacts: str | None, kept: Sequence[int]) -> tuple[list[_Entry], str]:
    """Returns the parameters with an impact of the definition, the largest first, and the
    definition.
    """
    if impacts is not None and impacts not in _DEFINITIONS:
        raise ValueError(f"`impacts` is `classic`, `global` or `covariance`, not `{impacts}`")
    if not kept:
        raise ValueError("`parameters` and `exclude` leave no parameter to draw")
    entries = [found[i] for i in sorted(kept)]
    for name in [impacts] if impacts else _DEFINITIONS:
        ranked = [(_size(entry, name), entry) for entry in entries]
        ranked = [(size, entry) for size, entry in ranked if not math.isnan(size)]
        if ranked:
            return [entry for _, entry in sorted(ranked, key=lambda one: -one[0])], name
    raise ValueError(f"the ranking has no impacts of the kind `{impacts}`" if impacts else "the ranking has no impacts")


def _size(entry: _Entry, impacts: str) -> float:
    """Returns the larger of both impacts after the fit; NaN without any."""
    known = [abs(side) for side in _sides(entry, impacts, "postfit") if not math.isnan(side)]
    return max(known, default=math.nan)


def _constrained_first(entries: Sequence[_Entry]) -> list[_Entry]:
    return sorted(entries, key=lambda entry: entry["pull"] is None)


def _impact_axes(ax: Axes, poi: str) -> Axes:
    """Returns axes of the same rows with an x axis of their own, above, which are drawn below those
    of the pulls.
    """
    bars = ax.inset_axes((0, 0, 1, 1), sharey=ax, zorder=0.5)
    bars.xaxis.set_ticks_position("top")
    bars.xaxis.set_label_position("top")
    bars.tick_params(axis="y", left=False, right=False, labelleft=False)
    bars.set_xlabel(rf"$\Delta$ {poi}")
    ax.patch.set_visible(False)
    return bars


def _sides(entry: _Entry, impacts: str, when: str) -> tuple[float, float]:
    """Returns impacts (down, up) before or after the fit; NaN for what there is not."""
    if impacts == "covariance":
        value = number(entry[f"covariance_{when}"])
        return -value, value
    found = entry["global" if impacts == "global" else when] if impacts != "global" or when == "postfit" else None
    return (math.nan, math.nan) if found is None else (number(found["down"]["impact"]), number(found["up"]["impact"]))


def _draw_impacts(ax: Axes, entries: Sequence[_Entry], impacts: str) -> list[tuple[Any, str]]:
    """Draws the bars of every entry; returns what a legend shows of them."""
    where = numpy.arange(len(entries))
    reach, before_fit, after_fit = 0.0, [], []
    for side, (colour, label) in enumerate([(DOWN, r"$-1\sigma$"), (UP, r"$+1\sigma$")]):
        before, after = (numpy.array([_sides(entry, impacts, when)[side] for entry in entries]) for when in ("prefit", "postfit"))
        if not numpy.isnan(before).all():
            hollow = ax.barh(where, before, height=0.78, facecolor="none", edgecolor=colour, linewidth=1.3, zorder=2)
            before_fit.append((hollow, f"{label} pre-fit"))
        filled = ax.barh(where, after, height=0.78, color=colour, alpha=0.55, linewidth=0, zorder=1)
        after_fit.append((filled, f"{label} of the auxiliary datum" if impacts == "global" else f"{label} post-fit"))
        known = numpy.abs(numpy.concatenate([before, after]))
        reach = max(reach, numpy.max(known[~numpy.isnan(known)], initial=0.0))
    ax.set_xlim(-1.12 * (reach or 1.0), 1.12 * (reach or 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(5, symmetric=True, steps=[1, 2, 5, 10]))
    # The columns of the legend are below one another: those of one side.
    return [one for pair in zip(before_fit, after_fit) for one in pair] if before_fit else after_fit


def _draw_pulls(ax: Axes, entries: Sequence[_Entry]) -> Any:
    for x, style in ((-1, ":"), (0, "-"), (1, ":")):
        ax.axvline(x, color=NEUTRAL, linewidth=0.8, linestyle=style, zorder=1)
    pulls, widths = ([number(entry[key]) for entry in entries] for key in ("pull", "constraint"))
    set_reach(ax, entries, 2.24, 1.06)
    ax.set_xlabel(PULL)
    return draw_points(ax, range(len(entries)), pulls, widths)


def _set_apart(ax: Axes, entries: Sequence[_Entry]) -> None:
    """Draws a line above the parameters without a constraint, and writes their values."""
    free = [row for row, entry in enumerate(entries) if entry["pull"] is None]
    if free and free[0] > 0:
        ax.axhline(free[0] - 0.5, color="black", linewidth=0.8, zorder=3)
    write_values(ax, {row: value_of(entries[row]) for row in free})


def _words_above(bars: Axes, handles: Sequence[tuple[Any, str]], is_asimov: bool) -> None:
    """Draws legend and label above the axes, clear of ticks and their label."""
    size = rcParams["font.size"]
    above = bars.transAxes + ScaledTranslation(0, 3.6 * size / 72, bars.figure.dpi_scale_trans)
    options = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "bbox_transform": above, "borderaxespad": 0.0}
    legend = bars.legend(*zip(*handles), ncols=(len(handles) + 1) // 2, **options)
    bars.figure.draw_without_rendering()
    high = legend.get_window_extent().y1 - bars.get_window_extent().y1
    annotate_above(bars, ["Asimov data"] if is_asimov else [], offset=72 * high / bars.figure.dpi + 3)
