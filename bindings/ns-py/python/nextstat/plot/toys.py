"""Distributions of a test statistic by toys, under both hypotheses, with what the data give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ._documents import document_of
from ._labels import annotate, legend, ticks
from ._look import figure, new_axes
from ._style import COLOURS, ascending, count, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

_SYMBOLS = {"qtilde": r"$\tilde{q}_\mu$", "q": r"$q_\mu$", "q0": r"$q_0$"}


@figure
def toys(result: Source, *, bins: int | Sequence[float] = 50, log: bool = True, ax: Axes | None = None, **look: Unpack[LookOptions]) -> Axes:
    """Draws the test statistic of toys of the tested and of the alternative hypothesis, and of the
    data.

    Parameters
    ----------
    result : ToyHypotestResult, or its document in Python, which has the statistic of each toy
    bins : int or sequence of float
    log : bool
        Whether the y axis is logarithmic.

    Returns
    -------
    matplotlib.axes.Axes
    """
    document = document_of(result, "hypotest-toys")
    if "toys_tested" not in document.fields:
        raise ValueError("the document has no statistics of toys: those of `nextstat.hypotest_toys` have them")
    tested, alternative = (_numbers(document[key]) for key in ("toys_tested", "toys_alternative"))
    if tested.size + alternative.size == 0:
        raise ValueError("`result` has no toys whose fits converged")
    edges = _edges(numpy.concatenate([tested, alternative]), document["q"], bins)
    ax = new_axes(ax, 5.4, 4.2)
    handles, highest = [], 0.0
    for values, colour, text in zip((tested, alternative), COLOURS, _hypotheses(document)):
        density = numpy.histogram(values, bins=edges)[0] / max(values.size, 1) / numpy.diff(edges)
        highest = max(highest, density.max(initial=0.0))
        ax.stairs(density, edges, color=colour, fill=True, alpha=0.25, zorder=1)
        handles.append((ax.stairs(density, edges, color=colour, linewidth=1.6, zorder=2), text))
    if log:
        ax.set_yscale("log")
    # No higher than the toys: the label is above.
    line = ax.vlines(document["q"], ax.get_ylim()[0], highest, color="black", linewidth=1.5, zorder=3)
    handles.append((line, _of_data(document)))
    ax.set_ylim(bottom=ax.get_ylim()[0])
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(_SYMBOLS.get(document["test_stat"], document["test_stat"]))
    ax.set_ylabel("Density of toys")
    ticks(ax)
    annotate(ax)
    legend(ax, *zip(*handles), columns=1)
    return ax


def _numbers(values: Any) -> Any:
    return numpy.array([numpy.nan if value is None else value for value in values], dtype=float)


def _hypotheses(document: Document) -> list[str]:
    """Returns both hypotheses in words, with how many toys they have and their p-values."""
    poi = literal(document["poi"]["name"])
    is_discovery = document["test_stat"] == "q0"
    names = ("Background", "Signal and background") if is_discovery else (f"{poi} = {document['mu']:g}", f"{poi} = 0")
    sizes = (len(document["toys_tested"]), len(document["toys_alternative"]))
    p_values = (document["CLsb_obs"], document["CLb_obs"])
    known = ("" if p is None else f", p = {p:.3g}" for p in p_values)
    return [f"{name}: {size} toys{text}" for name, size, text in zip(names, sizes, known)]


def _of_data(document: Document) -> str:
    text = f"{document.data_label}: {document['q']:.3g}"
    has_cls = document["test_stat"] != "q0" and document["CLs_obs"] is not None
    return text + (f", CLs = {document['CLs_obs']:.3g}" if has_cls else "")


def _edges(values: Any, observed: float, bins: Any) -> Any:
    if hasattr(bins, "__iter__"):
        return ascending("bins", bins)
    bins = count("bins", bins, 1)
    finite = values[numpy.isfinite(values)]
    return numpy.linspace(min(0.0, finite.min(initial=0.0)), 1.02 * max(finite.max(initial=0.0), observed, 1e-3), bins + 1)
