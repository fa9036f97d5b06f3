"""Brazil bands: CLs over the tested values with the limit, and limits over a grid of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._results import LimitResult
from .._views import confidence
from ._bands import columns, draw_band, one_kind, palette_of, write_legend
from ._documents import GIVEN, OBSERVED, document_of, is_document, nothing_to_draw
from ._labels import annotate, ticks
from ._look import figure, new_axes
from ._style import COLOURS, NEUTRAL, levels_of, listed, literal, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy import ndarray
    from typing_extensions import Unpack

    from ._documents import Document, Source
    from ._look import LookOptions

_TESTS = ("hypotest", "hypotest-toys")

# The lowest CLs that are drawn: further down nothing is excluded more.
_LOWEST = 1e-4


@figure
def brazil(
    tests: Sequence[Source] | Source,
    limit: Source | None = None,
    *,
    level: float | None = None,
    observed: bool = True,
    log: bool = True,
    palette: str = "classic",
    xlabel: str | None = None,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws CLs against the tested value, observed and expected, with the upper limit where it
    crosses the level.

    Parameters
    ----------
    tests : sequence of HypotestResult or ToyHypotestResult, or LimitResult, or their documents
        Tests of several values, or limits with the values that were tested for them; with
        `upper_limit(model, grid=values)` those are `values`.
    limit : LimitResult, or its document, optional
        The limits to mark, if `tests` are tests. Curves go through them.
    level : float, optional
        0.05, or that of the limit.
    observed : bool
        False leaves the observation out.
    log : bool
        Whether the y axis is logarithmic.
    palette : ``"classic"`` or ``"accessible"``
        Green and yellow, or colours that stay distinct with colour vision deficiencies.
    xlabel : str, optional
        The label of the x axis, instead of the name of the parameter.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    colours, found = palette_of(palette), _tested(tests, limit, level)
    ax = new_axes(ax, 5.4, 4.3)
    _draw_expected(ax, found, colours)
    if observed:
        _draw_observed(ax, found)
    ax.axhline(found.level, color=COLOURS[2], linewidth=1.2, label=f"CLs = {found.level:g}", zorder=4)
    _mark(ax, found, observed)
    mu = [test["mu"] for test in found.tests]
    if mu[0] < mu[-1]:
        ax.set_xlim(mu[0], mu[-1])
    if log:
        ax.set_yscale("log", nonpositive="clip")
    ax.set_ylim(_lowest(found) if log else 0.0, 1.2 if log else 1.05)
    ax.set_xlabel(literal(found.poi) if xlabel is None else xlabel)
    ax.set_ylabel(r"CL$_{\mathrm{s}}$")
    annotate(ax, _limits_in_words(found, observed))
    ticks(ax)
    write_legend(ax, found.label)
    return ax


class _Tested(NamedTuple):
    """Tests in the order of their values, and the limit."""

    tests: list[Mapping[str, Any]]
    limit: Document | None
    level: float
    poi: str
    #: The label of what the data give.
    label: str
    #: Whether the data were tested at every value.
    is_scan: bool


def _tested(tests, limit, level) -> _Tested:
    """Returns what is drawn, if it belongs together."""
    is_limit = is_document(tests)
    limit = None if limit is None else document_of(limit, "limit", "limit")
    documents = [document_of(tests, "limit", "tests")] if is_limit else [document_of(one, _TESTS, "tests") for one in listed("tests", tests)]
    every = [*documents, *([] if limit is None else [limit])]
    values = list(documents[0]["tested"]) if is_limit else [one.fields for one in documents]
    if not values:
        raise nothing_to_draw(documents[0].fields) if is_limit else ValueError("`tests` is empty: there is nothing to draw")
    _require_one_model(every)
    if all(test["CLs_obs"] is None and test["CLs_exp"] is None for test in values):
        raise nothing_to_draw(documents[0].fields)
    limit = documents[0] if is_limit and limit is None else limit
    values = sorted(values, key=lambda test: test["mu"])
    is_scan = not is_limit or not any(test["CLs_obs"] is None or None in (test["CLs_exp"] or [None]) for test in values)
    return _Tested(values, limit, _level(every, level), every[0]["poi"]["name"], every[0].data_label, is_scan)


def _level(documents, level) -> float:
    levels = [one["level"] for one in documents if one.kind == "limit"] + ([] if level is None else levels_of("level", [level]))
    if len(set(levels)) > 1:
        raise ValueError(f"`level` is not that of the limits: {' and '.join(f'{found:g}' for found in levels)}")
    return levels[0] if levels else 0.05


def _require_one_model(documents):
    """Refuses results of different models or data: all of one have the same parameter, statistic
    and best fit.
    """
    name = "`tests` and `limit`"
    one_kind(documents, name, parameters={one["poi"]["name"] for one in documents}, test_statistics={one["test_stat"] for one in documents})
    best = [one["poi"]["bestfit"] for one in documents if one["poi"].get("bestfit") is not None]
    if best and max(best) - min(best) > 1e-3 * max(1.0, *map(abs, best)):
        raise ValueError(f"{name} are of different models or data: their best fits are {min(best):.4g} to {max(best):.4g}")


def _draw_expected(ax, found, colours):
    """Draws the expected band. Between tested values CLs is interpolated by its logarithm, and each
    curve goes through its limit.
    """
    mu, expected = numpy.array([test["mu"] for test in found.tests]), columns([test["CLs_exp"] for test in found.tests])
    known = ~numpy.isnan(expected).any(axis=0)
    mu, expected = mu[known], expected[:, known]
    if not mu.size:
        return
    limits = [None] * 5 if found.limit is None else found.limit["expected"]
    inside = [value for value in limits if value is not None and mu[0] < value < mu[-1]]
    x = numpy.unique(numpy.concatenate([mu, inside]))
    curves = [_through(x, mu, values, limit, found.level) for values, limit in zip(expected, limits)]
    draw_band(ax, x, numpy.array(curves), colours)


def _through(x, mu, values, limit, level):
    """Returns the curve of `values` over `mu` at `x`, interpolated in its logarithm, that has
    `level` at `limit`, if there is one.
    """
    if limit is not None and mu[0] < limit < mu[-1] and limit not in mu:
        place = numpy.searchsorted(mu, limit)
        mu, values = numpy.insert(mu, place, limit), numpy.insert(values, place, level)
    return numpy.exp(numpy.interp(x, mu, numpy.log(numpy.maximum(values, 1e-300))))


def _draw_observed(ax, found):
    known = [test for test in found.tests if test["CLs_obs"] is not None]
    if not known:
        return
    mu, values = numpy.array([[test["mu"], test["CLs_obs"]] for test in known]).T
    # Toys know CLs up to an error.
    errors = [test.get("CLs_obs_error") for test in known]
    bars = [numpy.nan if error is None else error for error in errors] if any(error is not None for error in errors) else None
    limit = None if found.limit is None else found.limit["observed"]
    if bars is not None:
        ax.errorbar(mu, values, yerr=bars, fmt="none", ecolor="black", elinewidth=1.0, zorder=5)
    style = {"color": "black", "markersize": 4, "linewidth": 1.4, "label": found.label, "zorder": 5}
    if found.is_scan and limit is not None and mu[0] < limit < mu[-1]:
        x = numpy.unique(numpy.append(mu, limit))
        tested = numpy.flatnonzero(numpy.isin(x, mu)).tolist()
        ax.plot(x, _through(x, mu, values, limit, found.level), "o-", markevery=tested, **style)
    else:
        # Without a grid, the data were tested near the limit only.
        ax.plot(mu, values, "o-" if found.is_scan else "o", **style)


def _lowest(found) -> float:
    """Returns the lower end of a logarithmic axis: below the level and the smallest median."""
    medians = [test["CLs_exp"][2] for test in found.tests if test["CLs_exp"] and test["CLs_exp"][2]]
    return max(_LOWEST, min([0.2 * found.level, *(0.3 * value for value in medians)]))


def _mark(ax, found, observed):
    """Draws lines down from where the median expected CLs and, if wanted, those of the data cross
    the level.
    """
    if found.limit is None:
        return
    for value, style in ((found.limit["expected"][2], "--"), (found.limit["observed"] if observed else None, "-")):
        if value is not None:
            ax.plot([value, value], [0.0, found.level], style, color="black", linewidth=1.1, zorder=4)


def _limits_in_words(found, observed) -> list[str]:
    if found.limit is None:
        return []
    said = []
    if observed and found.limit["observed"] is not None:
        whose = {OBSERVED: "Observed limit", GIVEN: "Limit of given data"}.get(found.label, f"Limit of {found.label}")
        said.append(f"{whose}: {found.limit['observed']:.3g}")
    _, low, median, high, _ = found.limit["expected"]
    if median is not None:
        band = "" if low is None or high is None else rf" $^{{+{high - median:.2g}}}_{{-{median - low:.2g}}}$"
        said.append(f"Expected limit: {median:.3g}{band}")
    return said


@figure
def limits(
    values: Sequence[float] | Source,
    results: Sequence[LimitResult | Source] | None = None,
    *,
    x: str | None = None,
    theory: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    theory_errors: Any = None,
    scale: Sequence[float] | None = None,
    log: bool = True,
    observed: bool = True,
    palette: str = "classic",
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
    **look: Unpack[LookOptions],
) -> Axes:
    """Draws upper limits over a grid of signals, such as masses.

    Parameters
    ----------
    values : sequence of float, or LimitScanResult or GridResult, or its document
        Where each signal is (N), or limits with their values.
    results : sequence of LimitResult, or their documents, optional
        The limits (N), with `values`.
    x : str, optional
        The label of a patch set that is the x axis, of a `GridResult` with several.
    theory : sequence of float or dict, optional
        A prediction to compare with (N), in units of the limits; several by their names.
    theory_errors : sequence of float, pair of sequences, or dict, optional
        The errors of the prediction (N), or those downwards and upwards (2, N); by their names if
        there are several.
    scale : sequence of float, optional
        Factors to multiply the limits by (N), such as the cross section of each signal.
    log : bool
        Whether the y axis is logarithmic.
    observed : bool
        False leaves the observation out.
    palette : ``"classic"`` or ``"accessible"``
        Green and yellow, or colours that stay distinct with colour vision deficiencies.
    **look
        `style`, `label`, `energy` and `luminosity`, as in the block `style`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    colours, grid = palette_of(palette), _grid(values, results, x)
    n = len(grid.values)
    scale = numpy.ones(n) if scale is None else _as_many("scale", scale, n)
    theories = _theories(theory, theory_errors, n)
    order = numpy.argsort(grid.values)
    places, expected = grid.values[order], (columns([one["expected"] for one in grid.limits]) * scale)[:, order]
    ax = new_axes(ax, 5.6, 4.4)
    draw_band(ax, places, expected, colours)
    if observed:
        found = numpy.array([numpy.nan if one["observed"] is None else one["observed"] for one in grid.limits]) * scale
        ax.plot(places, found[order], "o-", color="black", markersize=4, linewidth=1.4, label=grid.label, zorder=5)
    for k, (name, curve) in enumerate(theories.items()):
        _draw_theory(ax, places, curve[:, order], COLOURS[(2, 0, 4)[k % 3]], name)
    if not theories and (scale == 1.0).all():
        ax.axhline(1.0, color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=4)
    _dress(ax, grid, log, xlabel, ylabel)
    annotate(ax)
    ticks(ax)
    write_legend(ax, grid.label, f"{confidence(grid.limits[0]['level'])} CL limits")
    return ax


class _Grid(NamedTuple):
    """Limits over values."""

    values: ndarray
    limits: list[Mapping[str, Any]]
    label: str
    poi: str
    #: What the values are.
    x: str


def _grid(values, results, x) -> _Grid:
    if results is None and is_document(values):
        document = document_of(values, ("limit-scan", "every-patch"), "values")
        if x is not None and document.kind == "limit-scan":
            raise ValueError(f"`x` is a label of a patch set; the limits of a scan are over `{document['at']['parameter']}`")
        found, x = _of_scan(document) if document.kind == "limit-scan" else _of_patches(document, x)
        places, limits, label = [value for value, _ in found], [one for _, one in found], document.data_label
    else:
        documents = [document_of(one, "limit", "results") for one in listed("results", results)]
        places, limits, x = values, [one.fields for one in documents], x or "Signal"
        one_kind(documents, "`results`")
        label = documents[0].data_label if documents else ""
    if not limits:
        raise ValueError("`results` is empty: there is nothing to draw")
    if all(number is None for one in limits for number in (one["observed"], *(one["expected"] or ()))):
        raise nothing_to_draw(limits[0])
    for what, of_all in (("levels", {one["level"] for one in limits}), ("parameters", {one["poi"]["name"] for one in limits})):
        if len(of_all) > 1:
            raise ValueError(f"`results` are limits of different {what}: {', '.join(map(str, sorted(of_all)))}")
    places = numbers_of("values", places)
    if len(places) != len(limits):
        raise ValueError(f"`values` has {len(places)} for {len(limits)} limits")
    return _Grid(places, limits, label, limits[0]["poi"]["name"], x)


def _of_scan(document):
    return [(one["value"], one) for one in document["limits"]], document["at"]["parameter"]


def _of_patches(document, x):
    """Returns the limits of a patch set that were found, by the label `x` of its patches."""
    labels = list(dict.fromkeys(label for patch in document["patches"] for label in patch["values"]))
    if x is None and len(labels) == 1:
        x = labels[0]
    if x not in labels:
        wrong = "`x` is needed" if x is None else f"there is no label `{x}`"
        raise ValueError(f"{wrong}; choose one of {', '.join(labels)}")
    found = [(patch["values"][x], patch["result"]) for patch in document["patches"] if "result" in patch]
    if any("expected" not in one or "level" not in one for _, one in found):
        raise ValueError("`values` has results of patches that are not limits")
    if len({value for value, _ in found}) < len(found):
        raise ValueError(f"several patches have the same `{x}`, so that there is no curve over it")
    return found, x


def _as_many(name, values, n):
    found = numbers_of(name, values)
    if len(found) != n:
        raise ValueError(f"`{name}` has {len(found)} values for {n} limits")
    return found


def _theories(theory, errors, n) -> dict[str, ndarray]:
    """Returns the prediction and the ends of its band (3, N) by name."""
    if theory is None:
        if errors is not None:
            raise ValueError("`theory_errors` are errors of `theory`, which is not given")
        return {}
    by_name = theory if isinstance(theory, dict) else {"Theory": theory}
    errors = errors if isinstance(errors, dict) else {} if errors is None else {next(iter(by_name)): errors}
    for name in errors:
        if name not in by_name:
            raise ValueError(f"`theory_errors` has no prediction `{name}`; there are {', '.join(by_name)}")
    return {name: _with_errors(_as_many("theory", values, n), errors.get(name), n) for name, values in by_name.items()}


def _with_errors(values, errors, n):
    if errors is None:
        return numpy.array([values, values, values])
    pair = list(errors)
    is_pair = len(pair) == 2 and all(hasattr(part, "__iter__") for part in pair)
    down, up = (_as_many("theory_errors", part, n) for part in (pair if is_pair else (pair, pair)))
    if (down < 0).any() or (up < 0).any():
        raise ValueError("`theory_errors` are differences from `theory`, and not negative")
    return numpy.array([values, values - down, values + up])


def _draw_theory(ax, places, curve, colour, name):
    values, low, high = curve
    if (low < high).any():
        ax.fill_between(places, low, high, facecolor=colour, edgecolor="none", alpha=0.3, zorder=3.5)
    ax.plot(places, values, "-.", color=colour, linewidth=1.6, label=name, zorder=4)


def _dress(ax, grid, log, xlabel, ylabel):
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)
    if grid.values.min() < grid.values.max():
        ax.set_xlim(grid.values.min(), grid.values.max())
    ax.set_xlabel(literal(grid.x) if xlabel is None else xlabel)
    ax.set_ylabel(f"Upper limit on {literal(grid.poi)}" if ylabel is None else ylabel)
