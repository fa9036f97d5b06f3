"""A folder with figures and a JSON record of what a build did to the templates of systematics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from .._arguments import path_of
from .._files import write_whole
from .._nextstat import ParameterError
from .sources import wanted

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .pipeline import BuildResult
    from .settings import Config
    from .templates import TemplatePair

FORMATS = ("png", "pdf")

# The record, and the overview of what was left out.
RECORD, OVERVIEW = "record.json", "overview"

# What is left of a systematic on a sample in a region, as the overview shows it.
_KINDS = ("normsys", "histosys")
_STATES = ("rate and shape", "rate only", "shape only", "nothing", "no systematic")


def report(result: BuildResult, folder: str | os.PathLike[str], *, format: str = "png") -> list[Path]:
    """Writes a record, an overview, and a figure for each pair of templates.

    Parameters
    ----------
    result : BuildResult
    folder : path
        Is made if it is not there; files of the same names are replaced.
    format : ``"png"`` or ``"pdf"``

    Returns
    -------
    list of pathlib.Path
        What was written: the record, the overview if there are systematics, the figures.
    """
    if format not in FORMATS:
        raise ParameterError(f"figures are `png` or `pdf`, not `{format}`")
    root = Path(path_of("folder", folder))
    root.mkdir(parents=True, exist_ok=True)
    figures = {}
    if _systematics(result):
        figures[root / f"{OVERVIEW}.{format}"] = overview(result)
    for pair, name in zip(result.pairs, _file_names((pair.region, pair.sample, pair.systematic) for pair in result.pairs)):
        figures[root / f"{name}.{format}"] = draw_pair(pair)
    for path, figure in figures.items():
        write_whole({path: lambda part, figure=figure: figure.savefig(part, format=format, dpi=150)})
    write_whole({root / RECORD: (json.dumps(result.record(), indent=2) + "\n").encode()})
    return [root / RECORD, *figures]


def written(config: Config, folder: str | os.PathLike[str], format: str) -> list[Path]:
    """Returns the files that `report` writes of what is built, and perhaps some more: of templates
    that turn out to be empty there is no figure.
    """
    root = Path(folder)
    parts = ((region.name, sample.name, systematic.name) for region, sample, systematic, side in wanted(config) if side == "Up")
    return [root / RECORD, *(root / f"{name}.{format}" for name in (OVERVIEW, *_file_names(parts)))]


def _file_names(parts):
    """Returns a file name for each region, sample and systematic, different from all others also
    where case does not count.
    """
    seen: dict[str, int] = {}
    for names in parts:
        name = re.sub(r"[^\w.+-]+", "-", "_".join(names), flags=re.ASCII)[:120]
        count = seen[name.lower()] = seen.get(name.lower(), 0) + 1
        yield name if count == 1 else f"{name}_{count}"


def require_matplotlib() -> None:
    """Says which packages are missing, if there are some."""
    _style()


def _style() -> Any:
    from ..plot import _style

    return _style


def _pyplot() -> Any:
    from ..plot._look import pyplot

    return pyplot


# One pair of templates


def draw_pair(pair: TemplatePair) -> Figure:
    """Returns a figure of the templates of a systematic: contents above, their ratio to the nominal
    ones below. Dashed lines are templates as they were read, full lines as they are used.
    """
    style = _style()
    figure, (main, ratio) = _pyplot().subplots(2, 1, figsize=(6.4, 5.4), sharex=True, height_ratios=(2.0, 1.4), layout="constrained")
    edges = numpy.arange(len(pair.nominal.values) + 1.0) if pair.nominal.edges is None else pair.nominal.edges
    _draw_contents(main, pair, edges, style)
    _draw_ratios(ratio, pair, edges, style)
    ratio.set_xlabel("bin" if pair.nominal.edges is None else "observable")
    ratio.set_xlim(edges[0], edges[-1])
    title = style.literal(f"{pair.systematic}: {pair.sample} in {pair.region}")
    main.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    main.set_title("\n".join(map(style.literal, pair.steps or ("as read",))), loc="right", fontsize="x-small")
    # matplotlib would keep it open.
    _pyplot().close(figure)
    return figure


def _sides(pair):
    """Returns label, contents as read (None if there were none) and as used, and the colour's
    name."""
    yield "up", pair.up.values, pair.varied[0], "UP"
    yield "down", None if pair.down is None else pair.down.values, pair.varied[1], "DOWN"


def _draw_contents(axes: Axes, pair, edges, style):
    nominal, errors = pair.nominal.values, pair.nominal.errors
    axes.stairs(nominal, edges, baseline=None, color="black", linewidth=1.3, label="nominal")
    axes.stairs(nominal + errors, edges, baseline=nominal - errors, fill=True, color="0.85", label="statistical error", zorder=0)
    tops = [nominal + errors]
    for label, read, used, colour in _sides(pair):
        axes.stairs(used, edges, baseline=None, color=getattr(style, colour), linewidth=1.6, label=label)
        tops.append(used)
        if read is not None and not numpy.array_equal(read, used):
            axes.stairs(read, edges, baseline=None, color=getattr(style, colour), linewidth=1.1, linestyle="--", label=f"{label}, as read")
            tops.append(read)
    axes.set_ylabel("events")
    # Room for the legend.
    top = float(numpy.max(tops))
    axes.set_ylim(min(0.0, 1.1 * float(numpy.min([pair.varied[0], pair.varied[1]]))), 1.45 * top if top > 0.0 else 1.0)
    axes.legend(ncols=3, fontsize="small", frameon=False, loc="upper center")


def _draw_ratios(axes: Axes, pair, edges, style):
    nominal = pair.nominal.values
    band = _percent(nominal + pair.nominal.errors, nominal)
    axes.stairs(band, edges, baseline=-band, fill=True, color="0.85", zorder=0)
    axes.axhline(0.0, color="black", linewidth=1.0)
    for _, read, used, colour in _sides(pair):
        axes.stairs(_percent(used, nominal), edges, baseline=None, color=getattr(style, colour), linewidth=1.6)
        if read is not None and not numpy.array_equal(read, used):
            axes.stairs(_percent(read, nominal), edges, baseline=None, color=getattr(style, colour), linewidth=1.1, linestyle="--")
    axes.set_ylabel("change [%]")
    found = [_percent(values, nominal) for _, read, used, _ in _sides(pair) for values in (read, used) if values is not None]
    largest = float(numpy.nanmax(numpy.abs(found), initial=0.0))
    # The band of statistical errors may go beyond: the change is what the panel is for.
    reach = 1.25 * largest if largest > 0.0 else 1.0
    axes.set_ylim(-reach, reach)


def _percent(values, nominal):
    """Returns relative differences in percent; NaN where the nominal content is zero."""
    return 100.0 * numpy.divide(values - nominal, nominal, out=numpy.full(len(nominal), numpy.nan), where=nominal != 0.0)


# The overview


def overview(result: BuildResult) -> Figure:
    """Returns a figure of what each systematic does to each sample of each region, and of what is
    left."""
    style = _style()
    systematics, columns = _systematics(result), _columns(result)
    colours = (style.COLOURS[0], style.COLOURS[9], style.COLOURS[7], style.COLOURS[3], "white")
    known = _states(result)
    states = numpy.array([[known.get((*column, name), 4) for column in columns] for name in systematics])
    width = 2.4 + 0.08 * max(map(len, systematics)) + 0.32 * len(columns)
    height = 1.6 + 0.26 * len(systematics) + 0.07 * max(len("  ".join(column)) for column in columns)
    figure, axes = _pyplot().subplots(figsize=(max(width, 5.0), height), layout="constrained")
    shown = _pyplot().matplotlib.colors.ListedColormap(colours)
    axes.pcolormesh(states, cmap=shown, vmin=-0.5, vmax=4.5, edgecolors="white", linewidth=1.5)
    axes.set_yticks(numpy.arange(len(systematics)) + 0.5, [style.literal(name) for name in systematics])
    axes.set_xticks(numpy.arange(len(columns)) + 0.5, [style.literal(f"{region}: {sample}") for region, sample in columns], rotation=90)
    axes.tick_params(length=0, which="both")
    axes.minorticks_off()
    axes.invert_yaxis()
    for spine in axes.spines.values():
        spine.set_visible(False)
    patches = [_pyplot().matplotlib.patches.Patch(facecolor=colours[k], edgecolor="0.7", label=_STATES[k]) for k in sorted(set(states.flat))]
    figure.legend(handles=patches, title="in the workspace", fontsize="small", title_fontsize="small", frameon=False, loc="outside right upper")
    _pyplot().close(figure)
    return figure


def _modifiers(result) -> Iterator[tuple[str, str, str, str]]:
    """Returns channel, sample, name and kind of all systematics, also of those that were left
    out."""
    for channel in result.before["channels"]:
        for sample in channel["samples"]:
            for modifier in sample["modifiers"]:
                if modifier["type"] in _KINDS:
                    yield channel["name"], sample["name"], modifier["name"], modifier["type"]
    for one in result.removed:
        if one.kind in _KINDS:
            yield one.channel, one.sample, one.modifier, one.kind


def _systematics(result):
    """Returns names of all systematics."""
    return list(dict.fromkeys(name for _, _, name, _ in _modifiers(result)))


def _columns(result):
    return list(dict.fromkeys((channel["name"], sample["name"]) for channel in result.before["channels"] for sample in channel["samples"]))


def _states(result):
    """Returns the index in `_STATES` by channel, sample and name."""
    left: dict[tuple[str, str, str], set[str]] = {}
    for *place, kind in _modifiers(result):
        left.setdefault(tuple(place), set()).add(kind)
    for one in result.removed:
        if one.kind in _KINDS:
            left[one.channel, one.sample, one.modifier].discard(one.kind)
    numbers = {_KINDS: 0, _KINDS[:1]: 1, _KINDS[1:]: 2, (): 3}
    return {place: numbers[tuple(kind for kind in _KINDS if kind in kinds)] for place, kinds in left.items()}
