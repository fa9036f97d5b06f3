"""Labels, legends and ticks of figures: the label of the experiment, a legend where nothing is
drawn, and room above the data where there is no such place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
from matplotlib import rcParams
from matplotlib.font_manager import FontProperties
from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker
from matplotlib.ticker import AutoLocator, AutoMinorLocator, Formatter, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from ._look import look
from ._room import extent, is_free, lengthen, obstacles, overlaps, stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.transforms import Bbox

# Since matplotlib 3.8.
_HAS_TICK_FONTS = matplotlib.__version_info__ >= (3, 8)

#: The `gid` of labels, by which they are found.
LABEL = "nextstat label"

# Points between the frame, or its ticks, and what is written inside, and between the frame and
# what is written above.
_INSIDE, _ABOVE = 4.0, 3.0

# By how much the y axis may get longer for a legend, and decades of a logarithmic axis that is
# labelled like a linear one.
_LARGEST, _NARROW = 2.2, 0.4

_CORNERS = ("upper right", "upper left", "lower left", "lower right")


def luminosity_text() -> str:
    """Returns the integrated luminosity of the look, such as 140 fb⁻¹; empty if it has none."""
    value = look().luminosity
    return value or "" if value is None or isinstance(value, str) else rf"{value:g} fb$^{{-1}}$"


def energy_text() -> str:
    """Returns the centre-of-mass energy of the look, such as 13 TeV; empty if it has none."""
    value = look().energy
    if value is None:
        return ""
    text = value if isinstance(value, str) else f"{value:g}"
    return f"{text} TeV" if text[-1:].isdigit() else text


def _conditions() -> str:
    """Returns energy and luminosity in a line."""
    energy = rf"$\sqrt{{s}}$ = {energy_text()}" if look().energy else ""
    return ", ".join(part for part in (energy, luminosity_text()) if part)


def _area(text: str, size: float = 1.0, weight: str = "normal", slant: str = "normal") -> TextArea:
    return TextArea(text, textprops={"fontsize": size * rcParams["font.size"], "fontweight": weight, "fontstyle": slant})


def _experiment() -> list[TextArea]:
    """Returns the name of the experiment and the words after it, as the experiment writes them."""
    name, words = look().name, look().label
    if name == "ATLAS":
        return [_area("ATLAS", 1.15, "bold", "italic")] + ([_area(words, 1.15)] if words else [])
    if name == "CMS":
        return [_area("CMS", 1.25, "bold")] + ([_area(words, slant="italic")] if words else [])
    if name == "LHCb":
        return [_area(f"LHCb {words}" if words else "LHCb", 1.15)]
    return [_area(words, 1.1, "bold")] if words else []


def _inside() -> float:
    """Returns the points between the frame and what is written inside of it."""
    return _INSIDE + max(rcParams["ytick.major.size"], rcParams["xtick.major.size"])


def _row(areas: Sequence[TextArea]) -> HPacker:
    return HPacker(children=list(areas), align="baseline", pad=0, sep=0.4 * rcParams["font.size"])


def _anchor(ax: Axes, child: Any, place: str, at: tuple[float, float], transform: Any) -> None:
    size = rcParams["font.size"]
    pad = _inside() / size if transform is ax.transAxes else 0.0
    options = {"bbox_to_anchor": at, "bbox_transform": transform, "prop": {"size": size}}
    box = AnchoredOffsetbox(place, child=child, pad=0, borderpad=pad, frameon=False, **options)
    box.set_gid(LABEL)
    box.set_zorder(10)
    ax.add_artist(box)


def annotate(ax: Axes, lines: Iterable[str] = ()) -> None:
    """Writes the label of the look, and `lines` below it, into the upper left corner; what CMS
    writes above the axes goes there.
    """
    words, conditions = _experiment(), _conditions()
    if look().name == "CMS":
        _write_above(ax, words, _of_cms(), 0.0)
        words, conditions = [], ""
    rows: list[Any] = [_row(words)] if words else []
    rows += [_area(text) for text in (conditions, *lines) if text]
    if rows:
        column = VPacker(children=rows, align="left", pad=0, sep=0.3 * rcParams["font.size"])
        _anchor(ax, column, "upper left", (0, 1), ax.transAxes)


def annotate_above(ax: Axes, lines: Iterable[str] = (), offset: float = 0.0) -> None:
    """Writes the label of the look and `lines` above the axes, for figures without room inside;
    what is there already, such as the labels of ticks, is `offset` points high.
    """
    right = _of_cms() if look().name == "CMS" else _conditions()
    _write_above(ax, [*_experiment(), *(_area(line) for line in lines if line)], right, offset)


def _of_cms() -> str:
    """Returns luminosity and energy as CMS writes them."""
    energy, luminosity = energy_text(), luminosity_text()
    return f"{luminosity} ({energy})" if energy and luminosity else energy or luminosity


def _write_above(ax: Axes, left: Sequence[TextArea], right: str, offset: float) -> None:
    transform = ax.transAxes + ScaledTranslation(0, (_ABOVE + offset) / 72, ax.figure.dpi_scale_trans)
    if left:
        _anchor(ax, _row(left), "lower left", (0, 1), transform)
    if right:
        _anchor(ax, _area(right), "lower right", (1, 1), transform)


def labels_of(ax: Axes) -> list[Artist]:
    """Returns the labels that `annotate` put on the axes."""
    return [artist for artist in ax.artists if artist.get_gid() == LABEL]


def legend(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], *, columns: int | None = None, title: str | None = None, room: bool = True
) -> None:
    """Draws the legend where it overlaps neither the label nor what is drawn.

    If there is no such place, the y axis gets longer, so that legend and label are above
    everything. Without `room`, or if they would take most of the axes, the legend goes above the
    axes. Call it last: what is drawn later is not looked at.

    Parameters
    ----------
    columns : int, optional
        How many columns; one or two if not given.
    title : str, optional
    room : bool
        Whether the y axis may get longer.
    """
    ax.figure.canvas.figure.draw_without_rendering()
    labels = [extent(label) for label in labels_of(ax)]
    inside = [box for box in labels if box.y0 < ax.get_window_extent().y1]
    if room:
        lengthen(ax, stretch(ax, inside, obstacles(ax)))
    if not handles:
        return
    counts = [columns] if columns else [2, 1] if len(handles) > 5 else [1, 2]
    wanted = Legend(ax, list(handles), list(names), title)
    if not (_put_where_free(wanted, counts, inside) or (room and _put_on_top(wanted, counts, inside))):
        _put_above(wanted, labels)


class Legend(NamedTuple):
    """The entries of a legend, and its axes."""

    ax: Axes
    handles: list[Any]
    names: list[str]
    title: str | None

    def put(self, count: int, place: str, at: tuple[float, float] | None = None) -> Bbox:
        """Draws the legend in `count` columns at a place in the axes, or with its corner at a
        point; returns its box.
        """
        pad = _inside() / _points_of(rcParams["legend.fontsize"]) if at is None else 0.0
        options = {"ncols": count, "loc": place, "borderaxespad": pad, "bbox_to_anchor": at, "title": self.title, "alignment": "left"}
        return extent(self.ax.legend(self.handles, self.names, **options))


def _points_of(size: float | str) -> float:
    return FontProperties(size=size).get_size_in_points()


def _put_where_free(wanted: Legend, counts: Sequence[int], labels: Sequence[Bbox]) -> bool:
    drawn = obstacles(wanted.ax)
    for place in _CORNERS:
        for count in counts:
            box = wanted.put(count, place)
            if not overlaps(box, labels) and is_free(box, drawn):
                return True
    return False


def _put_on_top(wanted: Legend, counts: Sequence[int], labels: Sequence[Bbox]) -> bool:
    """Puts the legend beside or below the label, whichever needs less room."""
    ax, drawn, frame = wanted.ax, obstacles(wanted.ax), wanted.ax.get_window_extent()
    pad = _inside() * ax.figure.dpi / 72
    below = (min(box.y0 for box in labels) - frame.y0) / frame.height if labels else 1.0
    sides = (pad / frame.width, 1.0 - pad / frame.width)
    places: list[tuple[str, tuple[float, float] | None]] = [("upper right", None), ("upper left", None)]
    places += [("upper left", (sides[0], below)), ("upper right", (sides[1], below))]
    best: tuple[float, int, str, tuple[float, float] | None] | None = None
    for place, at in places:
        for count in counts:
            box = wanted.put(count, place, at)
            if (overlaps(box, labels) and at is None) or box.x0 < frame.x0 or box.x1 > frame.x1:
                continue
            needed = stretch(ax, [box, *labels], drawn)
            if best is None or needed < best[0]:
                best = (needed, count, place, at)
    if best is None or best[0] > _LARGEST:
        return False
    lengthen(ax, best[0])
    wanted.put(*best[1:])
    return True


def _put_above(wanted: Legend, labels: Sequence[Bbox]) -> None:
    """Puts the legend above the axes, and above what is written there."""
    frame = wanted.ax.get_window_extent()
    top = max([frame.y1, *(box.y1 for box in labels)])
    wanted.put(min(3, len(wanted.names)), "lower left", (0.0, (top - frame.y0) / frame.height + 0.01))


def ticks(ax: Axes, x: bool = True, y: bool = True) -> None:
    """Sets the ticks of both axes: minor ones on continuous axes (True), and no marks at all on
    those of categories (False). Call it after the scales of the axes are set.
    """
    for name, axis, is_continuous in (("x", ax.xaxis, x), ("y", ax.yaxis, y)):
        if look().name != "matplotlib":
            _set_marks(ax, name)
        if not is_continuous:
            axis.set_minor_locator(NullLocator())
            axis.set_tick_params(which="both", length=0)
        elif axis.get_scale() == "log":
            _set_log(axis)
        elif look().name != "matplotlib":
            axis.set_minor_locator(AutoMinorLocator())


def _set_marks(ax: Axes, name: str) -> None:
    """Gives ticks that are made later, too, the lengths of the style."""
    sides = ("bottom", "top") if name == "x" else ("left", "right")
    options = {"labelfontfamily": rcParams["font.family"]} if _HAS_TICK_FONTS else {}
    for kind in ("major", "minor"):
        found = {part: rcParams[f"{name}tick.{kind}.{key}"] for part, key in (("length", "size"), ("width", "width"))}
        ax.tick_params(axis=name, which=kind, direction="in", **dict.fromkeys(sides, True), **found, **options)


def _set_log(axis: Axis) -> None:
    """Ticks of a logarithmic axis, with numbers beside as many as there is room for."""
    low, high = sorted(axis.get_view_interval())
    if math.log10(high / low) < _NARROW:
        axis.set_major_locator(AutoLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(AutoMinorLocator())
        return
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=99))
    axis.set_major_formatter(_Decades())
    axis.set_minor_formatter(_BetweenDecades())


class _Decades(Formatter):
    """Powers of ten: as decimals if those of the whole axis are short."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        low, high = sorted(self.axis.get_view_interval())
        is_short = low >= 0.99e-3 and high <= 1.01e5
        return f"{value:g}" if is_short else f"$10^{{{round(math.log10(value))}}}$"


class _BetweenDecades(Formatter):
    """Numbers beside ticks between powers of ten, on axes with few of those."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        low, high = sorted(self.axis.get_view_interval())
        span = math.log10(high / low)
        digit = round(value / 10 ** math.floor(math.log10(value) + 1e-9))
        shown = () if span > 2.0 else (2, 5) if span > 1.0 else (2, 3, 5) if span > 0.6 else range(2, 10)
        return f"{value:g}" if digit in shown and -4 < math.log10(value) < 5 else ""
