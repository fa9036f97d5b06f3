"""Figures over parameters: pulls, rankings, correlations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy

from .._results import FitResult, RankingResult
from ._look import new_axes, pyplot
from ._style import DOWN, NEUTRAL, UP, chosen, literal, needed, number, top_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# Inches of figure for each parameter.
_ROW = 0.26


def _number(value):
    return math.nan if value is None else value


def _width(entries):
    """Returns how many inches the names need."""
    return 0.085 * max(len(entry["parameter"]) for entry in entries)


def _rows(ax, names):
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(False)


def _draw_pulls(ax, rows, pulls, widths):
    ax.errorbar(pulls, rows, xerr=widths, fmt="o", color="black", markersize=4, elinewidth=1.2, capsize=2, zorder=4)


def pulls(result: FitResult, *, parameters: str | Sequence[str] | None = None, exclude: str | Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draws pulls of constrained parameters: (θ̂ - θ₀)/σ₀, with what the fit leaves of σ₀ as the
    error bar.

    Parameters
    ----------
    result : FitResult
    parameters : str or sequence of str, optional
        Names or patterns (`jes_*`), in the order wanted; all if not given.
    exclude : str or sequence of str
        Names or patterns to leave out, such as ``"staterror*"``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, FitResult, "fit")
    entries = result.pulls or []
    if not any(entry["uncertainty"] is not None for entry in entries):
        raise ValueError("`result` has no pulls: no constrained parameter was free")
    kept = [entries[i] for i in chosen([entry["parameter"] for entry in entries], parameters, exclude)]
    if not kept:
        raise ValueError("`parameters` and `exclude` leave no constrained parameter to draw")
    ax = new_axes(ax, 3.6 + _width(kept), 0.9 + _ROW * len(kept))
    centers = [_number(entry["pull"]) for entry in kept]
    widths = [_number(entry["constraint"]) for entry in kept]
    ax.axvspan(-2, 2, color="0.93", zorder=0)
    ax.axvspan(-1, 1, color="0.84", zorder=0)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
    _draw_pulls(ax, range(len(kept)), centers, widths)
    reach = max([abs(c) + (0 if math.isnan(w) else w) for c, w in zip(centers, widths) if not math.isnan(c)], default=0.0)
    ax.set_xlim(-max(2.4, 1.08 * reach), max(2.4, 1.08 * reach))
    ax.set_xlabel(r"$(\hat{\theta} - \theta_0)\,/\,\Delta\theta$")
    _rows(ax, [entry["parameter"] for entry in kept])
    return ax


def ranking(
    result: RankingResult,
    *,
    top: int | None = 20,
    impacts: str | None = None,
    parameters: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draws a ranking: impacts on the parameter of interest (upper axis, bars) and pulls (lower
    axis, points), largest impact first.

    Hollow bars are impacts of the width before the fit, filled ones of that after it. Parameters
    without a constraint have no pull; their values are written beside them.

    Parameters
    ----------
    result : RankingResult
    top : int or None
        How many parameters; None for all.
    impacts : ``"classic"``, ``"global"`` or ``"covariance"``, optional
        Which definition is drawn; the first one that the result has if not given.
    parameters, exclude : str or sequence of str
        Names or patterns, as in `pulls`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the pulls; `ax.child_axes` has those of the impacts.
    """
    needed(result, RankingResult, "ranking")
    entries = result.ranking
    kept = sorted(chosen([entry["parameter"] for entry in entries], parameters, exclude))[: top_of(top)]
    entries = [entries[i] for i in kept]
    if not entries:
        raise ValueError("`parameters` and `exclude` leave no parameter to draw")
    if impacts not in (None, "classic", "global", "covariance"):
        raise ValueError(f"`impacts` is `classic`, `global` or `covariance`, not `{impacts}`")
    impacts = _definition(entries) if impacts is None else impacts
    ax = new_axes(ax, 4.6 + _width(entries), 1.7 + _ROW * len(entries))
    bars = _impact_axes(ax)
    reach = _draw_impacts(bars, entries, impacts)
    bars.set_xlim(-1.12 * reach, 1.12 * reach)
    bars.set_xlabel(rf"$\Delta$ {literal(result.poi['name'])}")
    bars.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), bbox_transform=_above(bars), ncols=2, frameon=False, fontsize="small")
    _draw_pulls(ax, range(len(entries)), [_number(e["pull"]) for e in entries], [_number(e["constraint"]) for e in entries])
    _write_values(ax, entries)
    _rows(ax, [entry["parameter"] for entry in entries])
    for x in (-1, 1):
        ax.axvline(x, color=NEUTRAL, linewidth=0.8, linestyle=":", zorder=1)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
    ax.set_xlim(-2.24, 2.24)
    ax.set_xticks(range(-2, 3))
    ax.set_xlabel(r"$(\hat{\theta} - \theta_0)\,/\,\Delta\theta$")
    return ax


def _definition(entries):
    for name, field in (("classic", "postfit"), ("global", "global"), ("covariance", "covariance_postfit")):
        if any(entry[field] is not None for entry in entries):
            return name
    raise ValueError("the ranking has no impacts")


def _impact_axes(ax):
    """Returns axes of the same rows with an x axis of their own, above, and drawn below those of
    the pulls.
    """
    bars = ax.inset_axes((0, 0, 1, 1), sharey=ax, zorder=0.5)
    bars.xaxis.set_ticks_position("top")
    bars.xaxis.set_label_position("top")
    bars.tick_params(axis="y", left=False, labelleft=False)
    ax.patch.set_visible(False)
    ax.tick_params(axis="x", top=False)
    return bars


def _above(ax):
    """Returns where a legend clears the ticks and the label above the axes."""
    from matplotlib.transforms import ScaledTranslation

    return ax.transAxes + ScaledTranslation(0, 0.48, ax.figure.dpi_scale_trans)


def _sides(entry, impacts, when):
    """Returns impacts (down, up) before or after the fit; NaN for what there is not."""
    if impacts == "covariance":
        value = _number(entry[f"covariance_{when}"])
        return -value, value
    found = entry["global" if impacts == "global" else when] if impacts != "global" or when == "postfit" else None
    return (math.nan, math.nan) if found is None else (_number(found["down"]["impact"]), _number(found["up"]["impact"]))


def _draw_impacts(ax, entries, impacts):
    """Draws bars of every entry; returns how far they reach."""
    if impacts not in ("classic", "global", "covariance"):
        raise ValueError(f"`impacts` is `classic`, `global` or `covariance`, not `{impacts}`")
    rows = numpy.arange(len(entries))
    reach = 0.0
    for side, (colour, label) in enumerate([(DOWN, r"$-1\sigma$"), (UP, r"$+1\sigma$")]):
        before = numpy.array([_sides(entry, impacts, "prefit")[side] for entry in entries])
        after = numpy.array([_sides(entry, impacts, "postfit")[side] for entry in entries])
        if not numpy.isnan(before).all():
            ax.barh(rows, before, height=0.78, facecolor="none", edgecolor=colour, linewidth=1.3, label=f"{label} pre-fit", zorder=2)
        name = f"{label} of the auxiliary datum" if impacts == "global" else f"{label} post-fit"
        ax.barh(rows, after, height=0.78, color=colour, alpha=0.55, linewidth=0, label=name, zorder=1)
        known = numpy.abs(numpy.concatenate([before, after]))
        reach = max(reach, numpy.max(known[~numpy.isnan(known)], initial=0.0))
    return reach or 1.0


def _write_values(ax, entries):
    for row, entry in enumerate(entries):
        if entry["pull"] is None:
            width = "" if entry["uncertainty"] is None else f" ± {entry['uncertainty']:.2g}"
            text = f"{entry['bestfit']:.3g}{width}"
            ax.annotate(text, (1.015, row), xycoords=("axes fraction", "data"), va="center", fontsize="x-small", color="0.25")


def correlation(
    result: FitResult,
    *,
    threshold: float = 0.2,
    parameters: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draws the correlation matrix of the parameters that have a correlation of at least
    `threshold` with another one.

    Parameters
    ----------
    result : FitResult
    threshold : float
        0 for all parameters.
    parameters, exclude : str or sequence of str
        Names or patterns, as in `pulls`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, FitResult, "fit")
    threshold = number(threshold, "`threshold`")
    if result.correlation is None:
        raise ValueError("the fit has no correlations: `nextstat.fit(..., covariance=True)`")
    kept = chosen(result.par_names, parameters, exclude)
    matrix = numpy.asarray(result.correlation)[numpy.ix_(kept, kept)]
    others = numpy.abs(matrix - numpy.diag(numpy.diag(matrix)))
    strong = numpy.flatnonzero(others.max(axis=1, initial=0.0) >= threshold)
    if strong.size == 0:
        raise ValueError(f"no two parameters have a correlation of {threshold} or more")
    matrix, names = matrix[numpy.ix_(strong, strong)], [literal(result.par_names[kept[i]]) for i in strong]
    size = max(3.2, 1.9 + 0.36 * len(names))
    ax = new_axes(ax, size + 0.5, size)
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(which="both", length=0)
    ax.grid(False)
    if len(names) <= 25:
        _write_correlations(ax, matrix)
    pyplot.colorbar(image, ax=ax, label="correlation", shrink=0.8, ticks=[-1, -0.5, 0, 0.5, 1])
    return ax


def _write_correlations(ax, matrix):
    for (row, column), value in numpy.ndenumerate(matrix):
        if abs(value) >= 0.005 and row != column:
            colour = "white" if abs(value) > 0.6 else "black"
            ax.text(column, row, f"{value:.2f}".replace("0.", ".").replace("-", "\N{MINUS SIGN}"), ha="center", va="center", fontsize=7, color=colour)
