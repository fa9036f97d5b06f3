"""Distributions of a test statistic by toys, under both hypotheses, with what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .._results import ToyHypotestResult
from ._look import new_axes
from ._style import COLOURS, ascending, count, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_SYMBOLS = {"qtilde": r"$\tilde{q}_\mu$", "q": r"$q_\mu$", "q0": r"$q_0$"}


def toys(result: ToyHypotestResult, *, bins: int | Sequence[float] = 50, log: bool = True, ax: Axes | None = None) -> Axes:
    """Draws the test statistic of toys of the tested and of the alternative hypothesis, and of
    the data.

    Parameters
    ----------
    result : ToyHypotestResult
    bins : int or sequence of float
    log : bool
        Whether the y axis is logarithmic.

    Returns
    -------
    matplotlib.axes.Axes
    """
    needed(result, ToyHypotestResult, "hypotest_toys")
    tested, alternative = (numpy.asarray(values) for values in (result.toys_tested, result.toys_alternative))
    if tested.size + alternative.size == 0:
        raise ValueError("`result` has no toys whose fits converged")
    edges = _edges(numpy.concatenate([tested, alternative]), result.q, bins)
    ax = new_axes(ax, 5.4, 4.0)
    is_discovery = result.test_stat == "q0"
    names = ("background", "signal and background") if is_discovery else (rf"$\mu = {result.mu:g}$", r"$\mu = 0$")
    parts = ((tested, COLOURS[0], names[0], "CLsb_obs"), (alternative, COLOURS[1], names[1], "CLb_obs"))
    for values, colour, name, p_value in parts:
        density = numpy.histogram(values, bins=edges)[0] / max(values.size, 1) / numpy.diff(edges)
        label = f"{name}: {len(values)} toys, p = {getattr(result, p_value):.3g}"
        ax.stairs(density, edges, color=colour, fill=True, alpha=0.25, zorder=1)
        ax.stairs(density, edges, color=colour, linewidth=1.6, label=label, zorder=2)
    text = f"observed: {result.q:.3g}" + ("" if is_discovery else f", CLs = {result.CLs_obs:.3g}")
    ax.axvline(result.q, color="black", linewidth=1.5, label=text, zorder=3)
    if log:
        ax.set_yscale("log")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(_SYMBOLS.get(result.test_stat, result.test_stat))
    ax.set_ylabel("density")
    ax.margins(y=0.25)
    ax.legend(frameon=False, fontsize="small", loc="upper right")
    return ax


def _edges(values, observed, bins):
    if hasattr(bins, "__iter__"):
        return ascending("bins", bins)
    bins = count("bins", bins, 1)
    finite = values[numpy.isfinite(values)]
    return numpy.linspace(min(0.0, finite.min(initial=0.0)), 1.02 * max(finite.max(initial=0.0), observed, 1e-3), bins + 1)
