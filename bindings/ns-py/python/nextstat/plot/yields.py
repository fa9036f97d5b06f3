"""Data and prediction of a channel before or after the fit, with its uncertainty and their ratio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from .._arguments import names
from .._errors import shown
from .._nextstat import hidden_bins
from .._results import YieldsResult
from ._look import axes_of, pyplot
from ._style import COLOURS, NEUTRAL, ascending, data_label, literal, needed, top_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# The sum of samples that are too small to be seen by themselves.
OTHERS = "others, summed"
SIGNAL = COLOURS[2]


def poisson_interval(counts):
    """Returns the central 68 % intervals of Poisson means that counts allow (N × 2: lower, upper).

    Gehrels, ApJ 303 (1986) 336, equations 9 and 12; to 2 % of the exact ends, 0 for the lower one
    of no events.

    >>> poisson_interval([0, 9]).round(1).tolist()
    [[0.0, 1.8], [6.1, 13.1]]
    """
    n = numpy.asarray(counts, dtype=float)
    positive = numpy.maximum(n, 1e-9)
    lower = numpy.where(n > 0, positive * (1 - 1 / (9 * positive) - 1 / (3 * numpy.sqrt(positive))) ** 3, 0.0)
    upper = (n + 1) * (1 - 1 / (9 * (n + 1)) + 1 / (3 * numpy.sqrt(n + 1))) ** 3
    return numpy.stack([numpy.maximum(lower, 0.0), upper], axis=-1)


def data_mc(
    result: YieldsResult,
    channel: str | None = None,
    *,
    fit: str = "postfit",
    edges: Any = None,
    bins: Sequence[str] | None = None,
    signal: str | Sequence[str] = (),
    top: int | None = 8,
    log: bool = False,
    blind: bool | str | Sequence[str] = False,
    xlabel: str | None = None,
    ax: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draws data and stacked samples of a channel, with the uncertainty of their sum and the
    ratio of the two.

    Parameters
    ----------
    result : YieldsResult
    channel : str, optional
        Needed if the model has several.
    fit : ``"postfit"`` or ``"prefit"``
    edges : sequence or dict, optional
        Edges of the bins (B + 1), or those of each channel by name, such as
        `WorkspaceBuilder.edges`; bins are numbered if not given.
    bins : sequence of str, optional
        Labels of the bins (B).
    signal : str or sequence of str
        Samples that go on top of the stack; the others are sorted by their yields.
    top : int or None
        How many samples are drawn by themselves, those with the largest yields; the sum of the
        others is grey. None for all.
    log : bool
        Whether the y axis is logarithmic.
    blind : bool, str or sequence of str
        Data that are not drawn: True for all, or channels and bins (``"SR"``, ``"SR_*"``,
        ``"SR[2:5]"`` for bins 2 to 4). Data that a blinded `result` does not have are not drawn
        anyway. Bins without data are shaded.
    ax : pair of Axes, optional
        For the yields and for the ratio.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        Those of the yields and of the ratio.
    """
    needed(result, YieldsResult, "yields")
    found = _channel(result, channel)
    if fit not in ("prefit", "postfit"):
        raise ValueError(f"`fit` is `prefit` or `postfit`, not `{fit}`")
    prediction, data = found[fit], _shown(result, found, blind)
    edges = _edges(edges, result, (found["channel"], len(data)))
    bins = None if bins is None else _labels(bins, len(data))
    signal, top = names("signal", signal), top_of(top)
    samples = _largest({name: sample["yields"] for name, sample in prediction["samples"].items()}, signal, top)
    main, ratio = _panels() if ax is None else _pair(ax)
    stacked = _stack(main, samples, edges, (signal, _colours(result, signal)))
    total, width = numpy.asarray(prediction["total"]["yields"]), numpy.asarray(prediction["total"]["uncertainties"])
    _hatch(main, total - width, total + width, edges, label="uncertainty")
    errors = numpy.abs(poisson_interval(data).T - data)
    _shade(main, ratio, numpy.isnan(data), edges)
    label = data_label(result, "data")
    _points(main, data, errors, edges, label=label)
    _ratio(ratio, data, errors, (total, width), edges)
    _dress(main, ratio, found["channel"], fit, log)
    _legend(main, label, stacked)
    _scale(main, numpy.concatenate([data + errors[1], total + width]), samples, log)
    _name_bins(main, ratio, edges, bins, xlabel)
    return main, ratio


def _channel(result, name):
    names = [channel["channel"] for channel in result.channels]
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        wrong = "a channel is needed" if name is None else f"there is no channel `{name}`"
        raise ValueError(f"{wrong}; choose one of {', '.join(names)}")
    return result.channels[names.index(name)]


def _shown(result, found, blind):
    """Returns the data of a channel, NaN where they are hidden."""
    data = numpy.array(found["data"], dtype=float)
    if isinstance(blind, bool):
        return numpy.full_like(data, numpy.nan) if blind else data
    channels = [channel["channel"] for channel in result.channels]
    n_bins = [len(channel["data"]) for channel in result.channels]
    wanted = {"channels": channels, "n_bins": n_bins, "blind": names("blind", blind)}
    hidden = numpy.array(hidden_bins(wanted), dtype=bool)
    place = channels.index(found["channel"])
    data[hidden[sum(n_bins[:place]) :][: len(data)]] = numpy.nan
    return data


def _edges(edges, result, place):
    channel, n_bins = place
    if isinstance(edges, dict):
        known = [found["channel"] for found in result.channels]
        for name in edges:
            if name not in known:
                raise ValueError(f"`edges` are of a channel `{name}`, which is not there; choose one of {', '.join(known)}")
        edges = edges.get(channel)
    if edges is None:
        return numpy.arange(n_bins + 1) - 0.5
    edges = ascending("edges", edges)
    if len(edges) != n_bins + 1:
        raise ValueError(f"channel `{channel}` has {n_bins} bins, which do not have {len(edges)} edges")
    return edges


def _labels(bins, n_bins):
    labels = names("bins", bins)
    if len(labels) != n_bins:
        raise ValueError(f"`bins` has {len(labels)} labels for {n_bins} bins")
    return labels


def _pair(ax):
    if not hasattr(ax, "__len__") or len(ax) != 2:
        raise TypeError(f"`ax` is a pair of axes, for the yields and for the ratio, not `{shown(ax)}`")
    return [axes_of(one) for one in ax]


def _panels():
    _, panels = pyplot.subplots(2, 1, figsize=(5.6, 5.4), sharex=True, height_ratios=(3, 1), layout="constrained")
    panels[0].figure.get_layout_engine().set(hspace=0.02, h_pad=0.02)
    return panels


def _colours(result, signal):
    """Returns a colour for each sample of the model, the same in every channel and before and after
    the fit: red for the signal, then by yield.
    """
    sums = {}
    for channel in result.channels:
        for name, sample in channel["prefit"]["samples"].items():
            sums[name] = sums.get(name, 0.0) + sample["sum"]
    names = signal + sorted((name for name in sums if name not in signal), key=lambda name: (-sums[name], name))
    colours = [SIGNAL, *(colour for colour in COLOURS if colour != SIGNAL)] if signal else COLOURS
    return {name: colours[i % len(colours)] for i, name in enumerate(names)}


def _largest(samples, signal, top):
    """Returns yields by sample, with the smallest samples, but not the signal, summed as
    `others`."""
    unknown = [name for name in signal if name not in samples]
    if unknown:
        raise ValueError(f"there is no sample `{unknown[0]}`; choose one of {', '.join(samples)}")
    small = sorted((name for name in samples if name not in signal), key=lambda name: -numpy.sum(samples[name]))
    small = [] if top is None else small[max(top - len(signal), 0) :]
    if len(small) < 2:
        return samples
    rest = numpy.sum([samples[name] for name in small], axis=0)
    return {OTHERS: rest, **{name: values for name, values in samples.items() if name not in small}}


def _stack(ax, samples, edges, order):
    """Draws the samples; returns their names from the bottom of the stack."""
    import mplhep

    signal, colours = order
    # Smallest at the bottom, so that it is seen on a logarithmic axis too.
    names = sorted((name for name in samples if name not in signal), key=lambda name: numpy.sum(samples[name])) + signal
    values = [numpy.asarray(samples[name]) for name in names]
    style = {"label": [literal(name) for name in names], "color": [colours.get(name, "0.8") for name in names], "edgecolor": "white", "linewidth": 0.4}
    mplhep.histplot(values, bins=edges, stack=True, histtype="fill", ax=ax, **style)
    return [literal(name) for name in names]


def _hatch(ax, lower, upper, edges, label=None):
    if numpy.isnan(upper).all():
        return
    lower, upper = (numpy.append(values, values[-1]) for values in (lower, upper))
    ax.fill_between(edges, lower, upper, step="post", facecolor="none", edgecolor="0.25", hatch="//////", linewidth=0, label=label, zorder=2.5)


def _shade(main, ratio, hidden, edges):
    """Shades the bins whose data are hidden."""
    for ax in (main, ratio):
        for i in numpy.flatnonzero(hidden):
            label = "blinded" if i == numpy.argmax(hidden) else None
            ax.axvspan(edges[i], edges[i + 1], facecolor="0.92", linewidth=0, label=label, zorder=0)


def _points(ax, values, errors, edges, label=None):
    import mplhep

    if numpy.isnan(values).all():
        return
    mplhep.histplot(values, bins=edges, histtype="errorbar", yerr=errors, color="black", markersize=5, elinewidth=1.2, label=label, ax=ax, zorder=4)


def _ratio(ax, data, errors, prediction, edges):
    total, width = prediction
    with numpy.errstate(divide="ignore", invalid="ignore"):
        inverse = numpy.where(total > 0, 1 / total, numpy.nan)
    _hatch(ax, 1 - width * inverse, 1 + width * inverse, edges)
    ax.axhline(1, color=NEUTRAL, linewidth=0.9, zorder=1)
    _points(ax, data * inverse, errors * inverse, edges)
    reach = numpy.abs(data * inverse - 1) + numpy.max(errors, axis=0) * inverse
    # Wide enough for most bins; arrows of empty ones would hide the rest.
    reach = numpy.clip(1.1 * numpy.nanmax(reach, initial=0.1), 0.1, 1.0)
    ax.set_ylim(1 - reach, 1 + reach)


def _dress(main, ratio, channel, fit, log):
    main.set_ylabel("events")
    ratio.set_ylabel("data / pred.")
    main.set_title(literal(channel), loc="left", fontsize="medium")
    main.set_title({"prefit": "pre-fit", "postfit": "post-fit"}[fit], loc="right", fontsize="medium")
    if log:
        main.set_yscale("log")


def _legend(ax, data, stacked):
    """Adds a legend: data first, then the stack from its top."""
    handles = dict(zip(*reversed(ax.get_legend_handles_labels())))
    names = [name for name in (data, *reversed(stacked), "uncertainty", "blinded") if name in handles]
    size = "medium" if len(names) <= 8 else "small"
    ax.legend([handles[name] for name in names], names, frameon=False, ncols=1 + (len(names) > 4), loc="upper right", fontsize=size)


def _scale(ax, tops, samples, log):
    """Leaves room for the legend above the highest bin."""
    n_lines = (len(samples) + 3) // 2
    top = numpy.nanmax(tops, initial=1.0)
    if not log:
        ax.set_ylim(0, (1.25 + 0.1 * n_lines) * top)
        return
    positive = [y for sample in samples.values() for y in sample if y > 0]
    bottom = max(min(positive, default=0.1) / 3, 1e-4 * top)
    ax.set_ylim(bottom, top * (top / bottom) ** (0.25 + 0.1 * n_lines))


def _name_bins(main, ratio, edges, bins, xlabel):
    main.tick_params(axis="x", which="both", labelbottom=False)
    ratio.set_xlim(edges[0], edges[-1])
    is_numbered = numpy.array_equal(edges, numpy.arange(len(edges)) - 0.5)
    if bins is not None:
        ratio.set_xticks((edges[:-1] + edges[1:]) / 2, bins)
        ratio.tick_params(axis="x", which="both", length=0)
    elif is_numbered:
        step = 1 + len(edges) // 13
        ratio.set_xticks(range(0, len(edges) - 1, step))
    ratio.set_xlabel(xlabel or ("bin" if is_numbered and bins is None else ""))
