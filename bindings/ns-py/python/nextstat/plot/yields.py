"""Data and prediction of a region before or after the fit, with their ratio; of all regions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from matplotlib.ticker import NullLocator

from .._arguments import names
from .._errors import shown
from .._nextstat import hidden_bins, number
from ._colours import OTHERS as GREY
from ._colours import colours_of
from ._documents import document_of, require_fit
from ._labels import ticks
from ._look import figure
from ._panels import Panels, draw, new_panels, write_legend
from ._stack import OTHERS, StackOptions, numbers, require_lengths, stack_of
from ._style import ascending, literal, top_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy import ndarray
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

# Names of bins with more letters than these do not fit side by side.
_ONE_LINE = 55
_FITS = {"prefit": "Pre-fit", "postfit": "Post-fit"}


@figure
def data_mc(
    result: Source,
    channel: str | None = None,
    *,
    fit: str = "postfit",
    edges: Any = None,
    bins: Sequence[str] | None = None,
    per: float | bool | None = None,
    signal: str | Sequence[str] = (),
    overlay: float | None = None,
    order: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    top: int | None = 8,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, str] | None = None,
    ratio: Sequence[float] = (0.5, 1.5),
    log: bool = False,
    blind: bool | str | Sequence[str] = False,
    goodness: Source | None = None,
    xlabel: str | None = None,
    ax: Sequence[Axes] | None = None,
    **look: Unpack[LookOptions],
) -> tuple[Axes, Axes]:
    """Draws data and stacked samples of a channel, with the uncertainty of their sum and the ratio
    of the two.

    Parameters
    ----------
    result : YieldsResult or ReportResult, or its document
        A report has the goodness of fit, which is written into the figure after the fit.
    channel : str, optional
        Needed if the model has several.
    fit : ``"postfit"`` or ``"prefit"``
    edges : sequence or dict, optional
        Edges of the bins (B + 1), or those of each channel by name, such as
        `WorkspaceBuilder.edges`; bins are numbered if not given.
    bins : sequence of str, optional
        Labels of the bins (B).
    per : float or False, optional
        The width that events are counted in, such as 20 for "Events / 20 GeV": that of the
        narrowest bin if not given. False for events in each bin.
    signal : str or sequence of str
        Samples that go on top of the stack; names and patterns.
    overlay : float, optional
        Draws the signals before the fit as dashed lines, too, times this factor.
    order : str or sequence of str, optional
        Samples from the top of the stack, by names and patterns; the others follow by their yields
        in all channels.
    groups : dict, optional
        Samples that are summed, by the name of their sum; names and patterns. Those of the result
        if not given.
    top : int or None
        How many samples are drawn by themselves, those that are the largest fraction of a channel;
        the sum of the others is grey. None for all.
    labels : dict, optional
        Words for samples and channels, such as ``{"ttbar": r"$t\\bar{t}$"}``.
    colors : dict, optional
        Colours of samples; those of `sample_colours` if not given.
    ratio : pair of float
        Ends of the axis of the ratio. Points outside are arrows.
    log : bool
        Whether the y axis is logarithmic.
    blind : bool, str or sequence of str
        Data that are not drawn: True for all, or channels and bins (``"SR"``, ``"SR_*"``,
        ``"SR[2:5]"`` for bins 2 to 4). Data that a blinded `result` does not have are not drawn
        anyway. Bins without data are shaded.
    goodness : GoodnessOfFit, or its document, optional
        The goodness of the fit, to write into the figure.
    xlabel : str, optional
        Its unit, as in ``"mass [GeV]"``, is also that of the y axis.
    ax : pair of Axes, optional
        For the yields and for the ratio.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        Those of the yields and of the ratio.
    """
    document, channels = _channels(result, fit)
    found = _channel(channels, channel)
    options = _checked(StackOptions(_fit(fit), signal, order, _groups(groups, found), top, overlay))
    stack = stack_of(channels, found, _shown(channels, found, blind), options)
    n_bins = len(stack.data)
    edges = _edges(edges, channels, found)
    bins = None if bins is None else _labels(bins, n_bins)
    said = _said(document, found["channel"], fit, goodness)
    layout = _Layout(edges, bins, _width(per, edges), xlabel, _reach(ratio), _switch("log", log), ax)
    words = _words(document, stack, options, labels)
    lines = [words.get(found["channel"], literal(found["channel"])), _FITS[fit], said]
    return _draw(stack, layout, words, _colours(channels, stack, colors), lines)


@figure
def regions(
    result: Source,
    channels: str | Sequence[str] | None = None,
    *,
    fit: str = "postfit",
    signal: str | Sequence[str] = (),
    overlay: float | None = None,
    order: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    top: int | None = 8,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, str] | None = None,
    ratio: Sequence[float] = (0.5, 1.5),
    log: bool = True,
    blind: bool | str | Sequence[str] = False,
    ax: Sequence[Axes] | None = None,
    **look: Unpack[LookOptions],
) -> tuple[Axes, Axes]:
    """Draws data and stacked samples of several channels, each summed over its bins, with the
    uncertainty of the sum and the ratio of the two.

    Parameters
    ----------
    result : YieldsResult or ReportResult, or its document
    channels : str or sequence of str, optional
        Names of channels, in the order wanted; all if not given.
    fit, signal, overlay, order, groups, top, labels, colors, ratio, log, blind, ax
        As in `data_mc`. The data of a channel with a hidden bin are not drawn.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        Those of the yields and of the ratio.
    """
    document, known = _channels(result, fit)
    wanted = [channel["channel"] for channel in known] if channels is None else names("channels", channels)
    found = [_channel(known, name) for name in wanted]
    shown = [_shown(known, channel, blind).sum() for channel in found]
    options = _checked(StackOptions(_fit(fit), signal, order, _groups(groups, found[0]), top, overlay))
    stack = stack_of(known, _summed(found), numpy.array(shown), options)
    words = _words(document, stack, options, labels)
    bins = [words.get(name, literal(name)) for name in wanted]
    edges = numpy.arange(len(found) + 1) - 0.5
    layout = _Layout(edges, bins, None, None, _reach(ratio), _switch("log", log), ax)
    return _draw(stack, layout, words, _colours(known, stack, colors), [_FITS[fit]])


class _Layout(NamedTuple):
    """The axes of a figure."""

    edges: ndarray
    bins: Sequence[str] | None
    #: The width that events are counted in; None for bins.
    unit: float | None
    xlabel: str | None
    reach: tuple[float, float]
    log: bool
    ax: Any


def _draw(stack, layout, words, colours, lines):
    panels = Panels(*new_panels(layout.ax), layout.edges, layout.reach, layout.log, words, colours)
    scaled = stack if layout.unit is None else stack.divided(numpy.diff(layout.edges) / layout.unit)
    draw(panels, scaled, lines)
    _name_axes(panels, layout)
    write_legend(panels, stack)
    return panels.main, panels.ratio


def _channels(result, fit) -> tuple[Document, list[Mapping[str, Any]]]:
    """Returns the document and its channels; yields before the fit need none that converged."""
    document = document_of(result, ("yields", "report"))
    if fit != "prefit":
        require_fit(document)
    channels = (document["yields"] if document.kind == "report" else document)["channels"]
    for channel in channels:
        require_lengths(channel)
    return document, channels


def _channel(channels, name):
    known = [channel["channel"] for channel in channels]
    if name is None and len(known) == 1:
        name = known[0]
    if name not in known:
        wrong = "a channel is needed" if name is None else f"there is no channel `{name}`"
        raise ValueError(f"{wrong}; choose one of {', '.join(known)}")
    return channels[known.index(name)]


def _summed(channels) -> dict[str, Any]:
    """Returns a channel whose bins are the sums of channels."""

    def part(found):
        values = {key: [one[name] for one in found] for key, name in (("yields", "sum"), ("uncertainties", "sum_uncertainty"))}
        return {**values, "sum": sum(value or 0.0 for value in values["yields"])}

    def prediction(fit):
        absent = {"sum": 0.0, "sum_uncertainty": 0.0}
        tables = [{sample["sample"]: sample for sample in channel[fit]["samples"]} for channel in channels]
        samples = dict.fromkeys(name for table in tables for name in table)
        found = [{"sample": name, **part([table.get(name, absent) for table in tables])} for name in samples]
        return {"samples": found, "total": part([channel[fit]["total"] for channel in channels])}

    return {fit: prediction(fit) for fit in _FITS}


def _fit(fit):
    if fit not in _FITS:
        raise ValueError(f"`fit` is `prefit` or `postfit`, not `{fit}`")
    return fit


def _checked(options: StackOptions) -> StackOptions:
    """Returns options as they are drawn, of those that a caller gave."""
    overlay = None if options.overlay is None else number(options.overlay, "`overlay`")
    signal = names("signal", options.signal)
    if overlay is not None and not (overlay > 0 and signal):
        raise ValueError(f"`overlay` is a factor above 0 of samples that `signal` names, not {overlay:g} of {len(signal)} samples")
    order = None if options.order is None else names("order", options.order)
    return replace(options, signal=signal, order=order, top=top_of(options.top), overlay=overlay)


def _groups(groups, channel):
    """Returns the groups of the figure, or those of the document."""
    if groups is not None:
        return groups
    return {group["group"]: group["samples"] for group in channel["prefit"].get("groups", [])} if "prefit" in channel else None


def _shown(channels, found, blind):
    """Returns the data of a channel, NaN where they are hidden."""
    data = numbers(found["data"])
    if isinstance(blind, bool):
        return numpy.full_like(data, numpy.nan) if blind else data
    known = [channel["channel"] for channel in channels]
    n_bins = [len(channel["data"]) for channel in channels]
    hidden = numpy.array(hidden_bins({"channels": known, "n_bins": n_bins, "blind": names("blind", blind)}), dtype=bool)
    place = known.index(found["channel"])
    data[hidden[sum(n_bins[:place]) :][: len(data)]] = numpy.nan
    return data


def _edges(edges, channels, found):
    name, n_bins = found["channel"], len(found["data"])
    if isinstance(edges, dict):
        known = [channel["channel"] for channel in channels]
        for wanted in edges:
            if wanted not in known:
                raise ValueError(f"`edges` are of a channel `{wanted}`, which is not there; choose one of {', '.join(known)}")
        edges = edges.get(name)
    if edges is None:
        return numpy.arange(n_bins + 1) - 0.5
    edges = ascending("edges", edges)
    if len(edges) != n_bins + 1:
        raise ValueError(f"channel `{name}` has {n_bins} bins, which do not have {len(edges)} edges")
    return edges


def _labels(bins, n_bins):
    labels = names("bins", bins)
    if len(labels) != n_bins:
        raise ValueError(f"`bins` has {len(labels)} labels for {n_bins} bins")
    return labels


def _are_numbered(edges):
    return numpy.array_equal(edges, numpy.arange(len(edges)) - 0.5)


def _width(per, edges):
    """Returns the width that events are counted in; None for events in each bin."""
    if per is False or (per is None and _are_numbered(edges)):
        return None
    per = numpy.diff(edges).min() if per is None else number(per, "`per`")
    if not 0 < per < numpy.inf:
        raise ValueError(f"`per` is a width above 0, not {per:g}")
    return float(per)


def _reach(ratio):
    reach = ascending("ratio", ratio)
    if len(reach) != 2 or not reach[0] < 1 < reach[1]:
        raise ValueError(f"`ratio` is two numbers with 1 between them, such as (0.5, 1.5), not {shown(ratio)}")
    return float(reach[0]), float(reach[1])


def _switch(name, value):
    if not isinstance(value, (bool, numpy.bool_)):
        raise TypeError(f"`{name}` is True or False, not `{shown(value)}`")
    return bool(value)


def _words(document: Document, stack, options, labels) -> dict[str, str]:
    """Returns what the legend says of each part."""
    found = {name: literal(name) for name in stack.samples} | dict(labels or {})
    before = ", pre-fit" if options.fit == "postfit" else ""
    lines = {f"line {name}": f"{found[name]}{before}" + (rf" $\times$ {options.overlay:g}" if options.overlay != 1 else "") for name in stack.lines}
    return {**found, **lines, "data": document.data_label if document.is_asimov else "Data"}


def _said(document, channel, fit, goodness) -> str:
    """Returns the goodness of the fit in a channel; empty before the fit and where it is unknown.
    """
    if goodness is not None:
        parts = document_of(goodness, ("gof", "comparison"), "goodness")["channels"]
    elif document.kind == "report" and document["goodness_of_fit"] is not None:
        parts = document["goodness_of_fit"]["channels"]
    else:
        return ""
    found = next((part for part in parts if part["channel"] == channel), None)
    if found is None:
        raise ValueError(f"`goodness` has no channel `{channel}`")
    statistic, p_value = found.get("deviance", found.get("statistic")), found["p_value"]
    if fit == "prefit" or statistic is None or p_value is None:
        return ""
    return rf"$\chi^2$/ndf = {statistic:.3g}/{found['n_dof']:.3g}, $p$ = {p_value:.2g}"


def _colours(channels, stack, colors):
    known = dict.fromkeys(sample["sample"] for channel in channels for sample in channel["prefit"]["samples"])
    for name in colors or {}:
        if name not in known and name not in stack.samples:
            raise ValueError(f"`colors` has no sample `{name}` to colour; choose one of {', '.join(known)}")
    colours = colours_of(known, colors)
    groups = [name for name in stack.samples if name not in colours and name != OTHERS]
    return {OTHERS: GREY, **colours_of([*known, *groups], colors)} if groups else {OTHERS: GREY, **colours}


def _name_axes(panels, layout):
    """Writes the names of axes and bins."""
    numbered = layout.bins is None and _are_numbered(layout.edges)
    unit = re.search(r"[\[(]([^\[\]()]+)[\])]\s*$", layout.xlabel or "")
    of_unit = f" {unit[1]}" if unit else ""
    uneven = layout.unit is None and not numbered and layout.bins is None
    panels.main.set_ylabel("Events" + (f" / {layout.unit:g}{of_unit}" if layout.unit is not None else " / bin" if uneven else ""))
    panels.ratio.set_ylabel("Data / Pred.", loc="center")
    panels.main.tick_params(axis="x", which="both", labelbottom=False)
    if layout.bins is not None:
        panels.ratio.set_xticks(panels.centers, layout.bins)
        if sum(len(str(name)) for name in layout.bins) > _ONE_LINE:
            for text in panels.ratio.get_xticklabels():
                text.set(rotation=40, ha="right", rotation_mode="anchor")
        ticks(panels.main, x=False)
        ticks_of_ratio = panels.ratio.xaxis
        ticks_of_ratio.set_minor_locator(NullLocator())
        panels.ratio.tick_params(axis="x", which="both", length=0)
    elif numbered:
        panels.ratio.set_xticks(range(0, len(layout.edges) - 1, 1 + len(layout.edges) // 13))
        for axes in (panels.main, panels.ratio):
            axes.xaxis.set_minor_locator(NullLocator())
            axes.tick_params(axis="x", which="both", length=0)
    panels.ratio.set_xlabel(layout.xlabel or ("Bin" if numbered else ""))
    panels.main.figure.align_ylabels([panels.main, panels.ratio])
