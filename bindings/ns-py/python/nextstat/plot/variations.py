"""Figures of templates: the yields of a region with a parameter moved up and down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._errors import shown, with_hint
from .._nextstat import FloatingModel, Model
from ._labels import annotate, legend, ticks
from ._look import axes_of, figure, new_figure
from ._style import DOWN, NEUTRAL, UP, ascending, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._look import LookOptions


class _Templates(NamedTuple):
    """Yields of a region (b), nominal, up and down."""

    nominal: Any
    up: Any
    down: Any


@figure
def variations(
    model: Model,
    channel: str,
    parameter: str,
    *,
    samples: str | Sequence[str] | None = None,
    edges: Sequence[float] | None = None,
    xlabel: str | None = None,
    ax: tuple[Axes, Axes] | None = None,
    **look: Unpack[LookOptions],
) -> tuple[Axes, Axes]:
    """Draws yields of a region with one parameter at ±1σ of its constraint, and their ratios to the
    nominal ones.

    All other parameters are at their nominal values, so that what is drawn is the templates of the
    workspace, for all samples or some.

    Parameters
    ----------
    model : Model
    channel : str
    parameter : str
        A constrained parameter; an element of a vector as ``name[0]``.
    samples : str or sequence of str, optional
        The samples whose sum is drawn; all if not given.
    edges : sequence of float, optional
        Edges of the bins; their numbers if not given.
    xlabel : str, optional
    ax : tuple of Axes, optional
        Axes of the yields and of the ratios.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The axes of the yields and those of the ratios.
    """
    if not isinstance(model, Model):
        raise TypeError(f"`model` must be a `Model`, as `nextstat.load_workspace` returns it, not a `{type(model).__name__}`")
    templates = _templates(model, _one_of("channel", channel, model.channels), parameter, _samples(model, samples))
    n_bins = len(templates.nominal)
    bounds = numpy.arange(n_bins + 1) - 0.5 if edges is None else ascending("edges", edges)
    if len(bounds) != n_bins + 1:
        raise ValueError(f"`edges` has {len(bounds)} numbers for {n_bins} bins, which have {n_bins + 1}")
    main, ratio = _axes(ax)
    handles = _draw(main, ratio, templates, bounds)
    _frame(main, ratio, bounds, edges is None, xlabel)
    which = "" if samples is None else ", ".join(literal(name) for name in _samples(model, samples))
    annotate(main, [literal(channel), literal(parameter), which])
    legend(main, handles, ["Nominal", r"$+1\sigma$", r"$-1\sigma$"])
    return main, ratio


def _one_of(what: str, name: object, known: Sequence[str]) -> str:
    if name not in known:
        error = ValueError(f"the model has no {what} `{shown(name)}`")
        raise with_hint(error, f"there are {', '.join(f'`{one}`' for one in known)}")
    return str(name)


def _samples(model: Model, samples: str | Sequence[str] | None) -> list[str]:
    if samples is None:
        return list(model.samples)
    return [_one_of("sample", name, model.samples) for name in ([samples] if isinstance(samples, str) else samples)]


def _templates(model: Model, channel: str, parameter: str, samples: Sequence[str]) -> _Templates:
    """Returns the yields of the samples at the nominal value of the parameter and at ±1σ."""
    index = model.index(parameter)
    found = next(one for one in model.parameter_sets() if one["start"] <= index < one["start"] + one["len"])
    below, above = found["widths"][index - found["start"]]
    if numpy.isnan(below):
        raise ValueError(f"`{parameter}` has no constraint, so that there is no variation of one standard deviation")
    points = numpy.tile(numpy.asarray(model.init, dtype=float), (3, 1))
    points[1, index] += above
    points[2, index] -= below
    first = sum(model.channel_n_bins[: model.channels.index(channel)])
    bins = slice(first, first + model.channel_n_bins[model.channels.index(channel)])
    of_sample = numpy.asarray(FloatingModel(model).by_sample(points))[:, [list(model.samples).index(name) for name in samples], bins]
    return _Templates(*of_sample.sum(axis=1))


def _axes(ax: Any) -> tuple[Axes, Axes]:
    if ax is None:
        panels = new_figure(5.4, 5.0, nrows=2, sharex=True, gridspec_kw={"height_ratios": [3, 1.2]})
        panels[0].get_layout_engine().set(hspace=0.0, h_pad=0.01)
        return panels[1][0], panels[1][1]
    if not isinstance(ax, (tuple, list)) or len(ax) != 2:
        raise TypeError(f"`ax` must be the axes of the yields and of the ratios, not `{shown(ax)}`")
    return axes_of(ax[0]), axes_of(ax[1])


def _draw(main: Axes, ratio: Axes, templates: _Templates, bounds: Any) -> list[Any]:
    handles = []
    with numpy.errstate(divide="ignore", invalid="ignore"):
        ratios = [numpy.where(templates.nominal > 0, one / templates.nominal, numpy.nan) for one in templates]
    for values, relative, colour in zip(templates, ratios, ("black", UP, DOWN)):
        handles.append(main.stairs(values, bounds, color=colour, linewidth=1.6))
        ratio.stairs(relative, bounds, color=colour, linewidth=1.6, baseline=None)
    distances = numpy.abs(numpy.concatenate(ratios[1:]) - 1.0)
    reach = max(float(numpy.max(distances[numpy.isfinite(distances)], initial=0.0)), 0.01)
    ratio.set_ylim(1.0 - 1.25 * reach, 1.0 + 1.25 * reach)
    main.set_ylim(min(0.0, float(numpy.min(templates))), 1.15 * max(float(numpy.max(templates)), 1e-300))
    return handles


def _frame(main: Axes, ratio: Axes, bounds: Any, are_bins: bool, xlabel: str | None) -> None:
    ratio.axhline(1.0, color=NEUTRAL, linewidth=0.8, zorder=0)
    main.set_xlim(bounds[0], bounds[-1])
    ratio.set_xlim(bounds[0], bounds[-1])
    if are_bins:
        ratio.set_xticks(range(len(bounds) - 1))
    ratio.set_xlabel(xlabel or ("Bin" if are_bins else ""))
    main.set_ylabel("Events")
    ratio.set_ylabel("Ratio")
    ticks(main, x=not are_bins, y=True)
    ticks(ratio, x=not are_bins, y=True)
    main.tick_params(axis="x", labelbottom=False)
