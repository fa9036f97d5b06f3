"""Expected bands: their colours and their legend, with the curves of what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from .._errors import listed, shown
from ._labels import legend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from numpy import ndarray

    from ._documents import Document

#: Colours of one and two standard deviations: those that everyone knows, and two that stay
#: distinct with any colour vision deficiency (M. Petroff, arXiv:2107.02270).
PALETTES = {"classic": ("#00c62b", "#ffe600"), "accessible": ("#607641", "#f5bb54")}

EXPECTED = "Expected"

_BANDS = (r"Expected $\pm 1\sigma$", r"Expected $\pm 2\sigma$")


def palette_of(palette: object) -> tuple[str, str]:
    """Returns the colours of one and two standard deviations."""
    if palette not in PALETTES:
        raise ValueError(f"`palette` is {listed(PALETTES, 'or')}, not `{shown(palette)}`")
    return PALETTES[palette]  # type: ignore[index]


def columns(values: Iterable[Any]) -> ndarray:
    """Returns expected values (N lists of 5) as an array (5, N), NaN where there is none."""
    rows = [[numpy.nan if value is None else value for value in row or [None] * 5] for row in values]
    return numpy.array(rows, dtype=float).reshape(len(rows), 5).T


def draw_band(ax: Axes, x: ndarray, expected: ndarray, palette: tuple[str, str]) -> None:
    """Draws the band and its median over `x` (N); `expected` (5, N) ascends in standard deviations.
    """
    lowest, low, median, high, highest = expected
    inner, outer = palette
    ax.fill_between(x, lowest, highest, facecolor=outer, edgecolor="none", label=_BANDS[1], zorder=1)
    ax.fill_between(x, low, high, facecolor=inner, edgecolor="none", label=_BANDS[0], zorder=2)
    ax.plot(x, median, "--", color="black", linewidth=1.4, label=EXPECTED, zorder=3)


def write_legend(ax: Axes, first: str, title: str | None = None) -> None:
    """Draws the legend: the curve called `first`, the median, the bands from the inside, and the
    others.
    """
    handles = dict(zip(*reversed(ax.get_legend_handles_labels())))
    known = (first, EXPECTED, *_BANDS)
    names = [*(name for name in known if name in handles), *(name for name in handles if name not in known)]
    legend(ax, [handles[name] for name in names], names, title=title)


def one_kind(documents: Sequence[Document], name: str, **of_all: set[Any]) -> None:
    """Refuses documents that differ in what must be the same."""
    for what, values in {"data": {one.data_label for one in documents}, **of_all}.items():
        if len(values) > 1:
            raise ValueError(f"{name} are of different {what.replace('_', ' ')}: {', '.join(sorted(map(str, values)))}")
