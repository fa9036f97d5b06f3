"""Figures of pulls and constraints, of one fit or of several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._arguments import names as names_of
from .._errors import shown
from ._documents import document_of, require_fit
from ._labels import annotate_above, legend
from ._look import axes_of, figure, new_figure
from ._rows import PULL, draw_points, number, row_height, rows, set_reach, value_of, width_of, write_values
from ._style import COLOURS, NEUTRAL, ONE_SIGMA, TWO_SIGMA, chosen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Source
    from ._look import LookOptions

# Colours of several fits, and how much of the height of a row they take.
_SEVERAL, _SPREAD = ("black", COLOURS[2], COLOURS[0], COLOURS[4], COLOURS[6], COLOURS[5]), 0.56
_MARKERS = "osD^vP"

# The same where values are written, and the inches that the value of one fit needs.
_SPREAD_OF_WORDS, _WORDS = 0.84, 0.18

# The most rows of a column, and the most columns; beyond these, rows get lower.
_ROWS, _COLUMNS = 60, 4


class _Fit(NamedTuple):
    """A fit as it is drawn."""

    name: str | None
    #: Pulls by parameter.
    pulls: Mapping[str, Mapping[str, Any]]
    #: Best fit and uncertainty of parameters without a constraint.
    free: Mapping[str, Mapping[str, Any]]
    pois: Sequence[str]
    is_asimov: bool


@figure
def pulls(
    result: Source | Sequence[Source] | Mapping[str, Source],
    *,
    names: Sequence[str] | None = None,
    parameters: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    groups: Mapping[str, str | Sequence[str]] | None = None,
    normalisations: bool = True,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws pulls of constrained parameters, (θ̂ - θ₀)/σ₀, with what the fit leaves of σ₀ as the
    error bar; of several fits side by side.

    Parameters without a constraint, such as normalisations, have a panel of their own with their
    values.

    Parameters
    ----------
    result : FitResult, ReportResult, a stored one of these, or several
        Several as a sequence, or as a dictionary by name: ``{"B-only": first, "S+B": second}``.
    names : sequence of str, optional
        Names of several fits, for the legend.
    parameters : str or sequence of str, optional
        Names or patterns (``jes_*``), in the order wanted; all if not given.
    exclude : str or sequence of str
        Names or patterns to leave out, such as ``"staterror*"``.
    groups : dict, optional
        Patterns by the heading of the group that has these parameters: ``{"Jets": "JES_*"}``.
    normalisations : bool
        Whether there is a panel of parameters without a constraint; there is none on given axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the pulls; the other panel is the last of `ax.figure.axes`. More than 60 rows
        are in several columns, whose axes follow in `ax.figure.axes`.
    """
    fits = _fits(result, names)
    known = list(dict.fromkeys(name for fit in fits for name in fit.pulls))
    free = list(dict.fromkeys(name for fit in fits for name in (*fit.pois, *fit.free)))
    free = [name for name in free if any(name in fit.free for fit in fits)]
    both = known + free
    kept = [both[i] for i in chosen(both, parameters, exclude)]
    known, free = [name for name in kept if name in known], [name for name in kept if name in free and normalisations and ax is None]
    if not known:
        raise ValueError("`parameters` and `exclude` leave no constrained parameter to draw")
    lines = _grouped(known, groups)
    columns = [lines] if ax is not None else _columns(lines)
    axes, below = _panels(ax, columns, free, len(fits))
    ax, drawn = axes[0], [fit.pulls[name] for fit in fits for name in known if name in fit.pulls]
    for column, part in zip(axes, columns):
        handles = _draw_column(column, fits, part)
        set_reach(column, drawn, 2.4, 1.08)
    if below is not None:
        _draw_free(below, fits, free)
    annotate_above(ax, ["Asimov data"] if all(fit.is_asimov for fit in fits) else [])
    if fits[0].name is not None:
        legend(ax, handles, [str(fit.name) for fit in fits], room=False, columns=len(fits))
    return ax


def _fits(result: Any, names: Sequence[str] | None) -> list[_Fit]:
    """Returns the fits to draw, with their names if there are several."""
    if isinstance(result, dict) and "$schema" not in result:
        sources, names = list(result.values()), list(result)
    elif isinstance(result, (list, tuple)):
        sources = list(result)
    else:
        sources = [result]
    if not sources:
        raise ValueError("`result` is empty: there is nothing to draw")
    names = None if names is None else names_of("names", names)
    if names is not None and len(names) != len(sources):
        raise ValueError(f"`names` has {len(names)} for {len(sources)} fits: {shown(names)}")
    if names is None and len(sources) > 1:
        names = [f"fit {number}" for number in range(1, len(sources) + 1)]
    return [_fit(source, None if names is None else names[i]) for i, source in enumerate(sources)]


def _fit(source: Source, name: str | None) -> _Fit:
    document = require_fit(document_of(source, ("fit", "report")))
    fit = document["fit"] if document.kind == "report" else document.fields
    entries = document.fields.get("pulls")
    if entries is None:
        raise ValueError("the document of the fit has no pulls: it is of an older version; fit again")
    if not any(entry["uncertainty"] is not None for entry in entries):
        raise ValueError("`result` has no pulls: no constrained parameter was free")
    found = {entry["parameter"]: entry for entry in entries}
    values = zip(fit["par_names"], fit["bestfit"], fit["uncertainties"])
    free = {key: {"bestfit": value, "uncertainty": width} for key, value, width in values if key not in found and width is not None}
    pois = [poi["name"] for poi in fit.get("pois") or [] if poi]
    return _Fit(name, found, free, pois, document.is_asimov)


class _Line(NamedTuple):
    """A row: a parameter, or a heading without one."""

    text: str
    parameter: str | None


def _grouped(known: Sequence[str], groups: Mapping[str, str | Sequence[str]] | None) -> list[_Line]:
    if not groups:
        return [_Line(name, name) for name in known]
    lines: list[_Line] = []
    rest = list(known)
    for heading, patterns in groups.items():
        members = [known[i] for i in chosen(known, patterns, ())]
        members = [name for name in members if name in rest]
        if members:
            lines += [_Line(heading, None), *(_Line(name, name) for name in members)]
        rest = [name for name in rest if name not in members]
    if rest:
        lines += [_Line("Others", None), *(_Line(name, name) for name in rest)]
    return lines


def _columns(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Returns the rows of each column, of which none ends with a heading.

    >>> [len(column) for column in _columns([_Line("a", "a")] * 130)]
    [44, 44, 42]
    """
    n = min(-(-len(lines) // _ROWS), _COLUMNS)
    size, found = -(-len(lines) // n), []
    rest = list(lines)
    while rest:
        # The last column takes what headings before it moved on.
        end = len(rest) if len(found) == n - 1 else min(size, len(rest))
        while 1 < end < len(rest) and rest[end - 1].parameter is None:
            end -= 1
        found.append(rest[:end])
        rest = rest[end:]
    return found


def _height(lines: Sequence[_Line], n_fits: int) -> float:
    """Returns the inches of a row, which has room for every fit."""
    return row_height(len(lines)) * (1.0 + 0.28 * (n_fits - 1))


def _panels(ax: Axes | None, columns: Sequence[Sequence[_Line]], free: Sequence[str], n_fits: int) -> tuple[list[Axes], Axes | None]:
    """Returns the axes of each column of pulls, and those of the other parameters where there are
    some, which are below the first column.
    """
    if ax is not None:
        return [axes_of(ax)], None
    n, most = len(columns), max(columns, key=len)
    height = _height(most, n_fits) * len(most)
    width = n * (3.4 + width_of([*(line.text for lines in columns for line in lines), *free]))
    if not free:
        made = new_figure(width, 1.0 + height, ncols=n, squeeze=False)[1]
        return list(made[0]), None
    below = max(row_height(len(free)), _WORDS * n_fits if n_fits > 1 else 0.0) * len(free)
    ratios = [height, max(below, 0.3)]
    made = new_figure(width + 0.9, 1.9 + sum(ratios), nrows=2, ncols=n, squeeze=False, gridspec_kw={"height_ratios": ratios})[1]
    for unused in made[1][1:]:
        unused.remove()
    return list(made[0]), made[1][0]


def _draw_column(ax: Axes, fits: Sequence[_Fit], lines: Sequence[_Line]) -> list[Any]:
    """Draws the rows of a column; returns what a legend shows of each fit."""
    _draw_bands(ax)
    handles = [_draw_pulls(ax, fit, lines, place) for fit, place in zip(fits, _places(len(fits)))]
    rows(ax, [line.text for line in lines], _height(lines, len(fits)))
    _mark_headings(ax, lines)
    ax.set_xlabel(PULL)
    return handles


def _draw_bands(ax: Axes) -> None:
    ax.axvspan(-2, 2, color=TWO_SIGMA, linewidth=0, zorder=0)
    ax.axvspan(-1, 1, color=ONE_SIGMA, linewidth=0, zorder=0.1)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=1)


def _places(n: int, spread: float = _SPREAD) -> list[float]:
    """Returns how far the rows of each of `n` fits are from the middle.

    >>> _places(1), [round(place, 2) for place in _places(2)]
    ([0.0], [-0.14, 0.14])
    """
    return [spread * ((k + 0.5) / n - 0.5) for k in range(n)]


def _style_of(k: int) -> dict[str, Any]:
    return {"color": _SEVERAL[k % len(_SEVERAL)], "fmt": _MARKERS[k % len(_MARKERS)]}


def _draw_pulls(ax: Axes, fit: _Fit, lines: Sequence[_Line], place: float) -> Any:
    found = [(row + place, fit.pulls[line.parameter]) for row, line in enumerate(lines) if line.parameter in fit.pulls]
    where, entries = [row for row, _ in found], [entry for _, entry in found]
    k = sum(container.get_label() == "pulls" for container in ax.containers)
    made = draw_points(ax, where, [number(e["pull"]) for e in entries], [number(e["constraint"]) for e in entries], **_style_of(k))
    made.set_label("pulls")
    return made


def _mark_headings(ax: Axes, lines: Sequence[_Line]) -> None:
    for tick, line in zip(ax.get_yticklabels(), lines):
        if line.parameter is None:
            tick.set_fontweight("bold")
    for row, line in enumerate(lines):
        if line.parameter is None and row > 0:
            ax.axhline(row - 0.5, color=NEUTRAL, linewidth=0.6, zorder=1)


def _draw_free(ax: Axes, fits: Sequence[_Fit], free: Sequence[str]) -> None:
    """Draws the parameters without a constraint, with their values in words, each beside its point
    and in its colour.
    """
    for k, (fit, place) in enumerate(zip(fits, _places(len(fits), _SPREAD_OF_WORDS))):
        found = [(row + place, fit.free[name]) for row, name in enumerate(free) if name in fit.free]
        values, widths = ([number(entry[key]) for _, entry in found] for key in ("bestfit", "uncertainty"))
        draw_points(ax, [row for row, _ in found], values, widths, **_style_of(k))
        colour = "0.25" if len(fits) == 1 else _style_of(k)["color"]
        write_values(ax, {row: value_of(entry) for row, entry in found}, colour)
    low, high = ax.get_xlim()
    if low < 1.0 < high:
        ax.axvline(1.0, color=NEUTRAL, linewidth=0.8, zorder=1)
    rows(ax, free)
    ax.set_xlabel("Best-fit value")
