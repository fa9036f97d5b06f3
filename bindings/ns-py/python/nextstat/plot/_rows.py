"""What figures with a row for each parameter share: rows, points with bars, values in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib import rcParams

from .._views import measured
from ._labels import ticks
from ._look import TEXT
from ._style import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

#: Inches of a row, and the most inches of all rows together.
ROW, _MOST = 0.26, 36.0

#: What pulls are, in units of what.
PULL = r"$(\hat{\theta} - \theta_0)\,/\,\Delta\theta$"


def row_height(n: int) -> float:
    """Returns the inches of each of `n` rows: less where they would make a figure too high.

    >>> row_height(20), round(row_height(600), 3)
    (0.26, 0.06)
    """
    return min(ROW, _MOST / max(n, 1))


def width_of(names: Sequence[str]) -> float:
    """Returns the inches that names need beside their rows."""
    return 0.085 * max((len(name) for name in names), default=0)


def number(value: float | None) -> float:
    """Returns NaN for what is not a number."""
    return math.nan if value is None else value


def set_reach(ax: Axes, entries: Sequence[Mapping[str, Any]], least: float, margin: float) -> None:
    """Ends an axis of pulls beyond the bars of all `entries`, by a factor `margin`, and at `least`
    there.
    """
    ends = [abs(number(entry["pull"])) + (0.0 if entry["constraint"] is None else entry["constraint"]) for entry in entries]
    reach = max(least, margin * max((end for end in ends if not math.isnan(end)), default=0.0))
    ax.set_xlim(-reach, reach)
    if reach < 5:
        ax.set_xticks(range(-int(reach), int(reach) + 1))


def rows(ax: Axes, names: Sequence[str], height: float = ROW) -> None:
    """Names the rows of the axes, from the top."""
    size = min(rcParams["font.size"], 0.85 * 72 * height * rcParams["font.size"] / TEXT)
    ax.set_yticks(range(len(names)), [literal(name) for name in names], fontsize=size)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ticks(ax, x=True, y=False)


def value_of(entry: Mapping[str, Any]) -> str:
    """Returns the best-fit value of a parameter in words.

    >>> value_of({"bestfit": 1.156, "uncertainty": 0.123})
    '1.16 ± 0.12'
    """
    if entry["bestfit"] is None:
        return ""
    return measured(entry["bestfit"], entry["uncertainty"]).removesuffix(" ± -")


def write_values(ax: Axes, entries: Mapping[float, str], color: str = "0.25") -> None:
    """Writes words to the right of rows, or of places between them."""
    for row, text in entries.items():
        options = {"xycoords": ("axes fraction", "data"), "xytext": (5, 0), "textcoords": "offset points"}
        ax.annotate(text, (1.0, row), va="center", fontsize="small", color=color, annotation_clip=False, **options)


def draw_points(ax: Axes, where: Sequence[float], centers: Sequence[float], widths: Sequence[float], **options: Any) -> Any:
    """Draws points with bars, one in each row; returns what a legend shows of them."""
    style = {"fmt": "o", "color": "black", "markersize": 4, "elinewidth": 1.2, "capsize": 2, "zorder": 4, **options}
    return ax.errorbar(centers, where, xerr=widths, **style)
