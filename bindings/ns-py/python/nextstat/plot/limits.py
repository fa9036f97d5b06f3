"""Brazil bands: CLs against the parameter of interest with the limit, and limits over a grid of
signals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .._results import HypotestResult, LimitResult, ToyHypotestResult
from .._views import confidence
from ._look import new_axes
from ._style import COLOURS, INNER, NEUTRAL, OBSERVED, OUTER, data_label, levels_of, listed, literal, needed, numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


def _columns(values):
    return numpy.array([[numpy.nan if value is None else value for value in row] for row in values], dtype=float).reshape(len(values), 5).T


def _field(test, name):
    return (test if isinstance(test, dict) else test._fields).get(name)


def _band(ax, x, expected):
    """Draws the expected band and its median over `x`; `expected` is 5 × N, ascending in standard
    deviations.
    """
    lowest, low, median, high, highest = expected
    ax.fill_between(x, lowest, highest, color=OUTER, linewidth=0, label=r"expected $\pm 2\sigma$", zorder=1)
    ax.fill_between(x, low, high, color=INNER, linewidth=0, label=r"expected $\pm 1\sigma$", zorder=2)
    ax.plot(x, median, "--", color="black", linewidth=1.3, label="expected", zorder=3)


def _legend(ax, **placed):
    """Adds a legend: observed, expected, and the bands from the inside."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: (labels[i].startswith("expected"), "2" in labels[i], "1" in labels[i]))
    ax.legend([handles[i] for i in order], [labels[i] for i in order], frameon=False, **placed)


def brazil(
    tests: Sequence[HypotestResult | ToyHypotestResult] | LimitResult,
    limit: LimitResult | None = None,
    *,
    level: float | None = None,
    observed: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draws CLs against the tested value, observed and expected, with the upper limit where it
    crosses the level.

    Parameters
    ----------
    tests : sequence of HypotestResult or ToyHypotestResult, or LimitResult
        Tests of several values, or limits with the values that were tested for them; with
        `upper_limit(model, grid=values)` those are `values`.
    limit : LimitResult, optional
        The limits to mark, if `tests` are tests.
    level : float, optional
        0.05, or that of the limit.
    observed : bool
        False leaves the observation out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    tests = tests if isinstance(tests, LimitResult) else listed("tests", tests)
    label = data_label(limit or (tests if isinstance(tests, LimitResult) or not tests else tests[0]))
    level = _checked(tests, limit, level)
    if isinstance(tests, LimitResult):
        limit = tests if limit is None else limit
        tests = tests.tested
        if any(test["CLs_obs"] is None or None in test["CLs_exp"] for test in tests):
            raise ValueError("the limits were found without a grid, so that there are no curves: `upper_limit(model, grid=values)` has them")
    tests = sorted(tests, key=lambda test: _field(test, "mu"))
    ax = new_axes(ax, 5.4, 4.2)
    mu, expected = numpy.array([_field(test, "mu") for test in tests]), _columns([_field(test, "CLs_exp") for test in tests])
    known = ~numpy.isnan(expected).any(axis=0)
    _band(ax, mu[known], expected[:, known])
    if observed:
        _draw_observed(ax, tests, label)
    ax.axhline(level, color=COLOURS[2], linewidth=1.2, zorder=4)
    text = f"CLs = {level:g}"
    place = {"xycoords": ("axes fraction", "data"), "xytext": (-4, 3), "textcoords": "offset points"}
    ax.annotate(text, (1, level), **place, ha="right", color=COLOURS[2], fontsize="small")
    if limit is not None:
        _mark(ax, limit, level, label if observed else None)
    if mu[0] < mu[-1]:
        ax.set_xlim(mu[0], mu[-1])
    ax.set_ylim(0, 1.02)
    poi = limit._fields.get("poi") if limit is not None else _field(tests[0], "poi")
    ax.set_xlabel(literal(poi.name) if poi else r"$\mu$")
    ax.set_ylabel("CLs")
    _legend(ax, loc="upper right")
    return ax


def _checked(tests, limit, level):
    """Returns the level, if what must be drawn belongs together."""
    if limit is not None:
        needed(limit, LimitResult, "upper_limit", "limit")
    every = [tests] if isinstance(tests, LimitResult) else tests
    for test in every if isinstance(tests, list) else ():
        needed(test, (HypotestResult, ToyHypotestResult), "hypotest", "tests")
    if not every or not getattr(every[0], "tested", every):
        raise ValueError("`tests` is empty: there is nothing to draw")
    _one_model([*every, *([] if limit is None else [limit])])
    levels = [found.level for found in (tests, limit) if isinstance(found, LimitResult)]
    levels += [] if level is None else levels_of("level", [level])
    if len(set(levels)) > 1:
        raise ValueError(f"`level` is not that of the limits: {' and '.join(f'{found:g}' for found in levels)}")
    return levels[0] if levels else 0.05


def _one_model(found):
    """Refuses results of different models or data: all of one have the same parameter, statistic
    and best fit.
    """
    for what, values in (("parameters", {one.poi.name for one in found}), ("test statistics", {one.test_stat for one in found})):
        if len(values) > 1:
            raise ValueError(f"`tests` and `limit` are of different {what}: {', '.join(sorted(values))}")
    best = [result.poi.bestfit for result in found if result.poi.bestfit is not None]
    if best and max(best) - min(best) > 1e-3 * max(1.0, *map(abs, best)):
        raise ValueError(f"`tests` and `limit` are of different models or data: their best fits are {min(best):.4g} to {max(best):.4g}")


def _draw_observed(ax, tests, label):
    found = [(_field(test, "mu"), _field(test, "CLs_obs"), _field(test, "CLs_obs_error")) for test in tests]
    found = [(mu, cls, error) for mu, cls, error in found if cls is not None]
    if not found:
        return
    mu, cls, errors = zip(*found)
    # Toys know CLs up to an error.
    bars = None if errors[0] is None else errors
    ax.errorbar(mu, cls, yerr=bars, fmt="o-", color="black", markersize=3.5, linewidth=1.4, elinewidth=1, label=label, zorder=5)


def _mark(ax, limit, level, label):
    """Draws lines down from where expected CLs and, with a `label`, those of the data cross the
    level."""
    for value, style in ((limit.expected[2], "--"), (limit.observed if label else None, "-")):
        if value is not None:
            ax.plot([value, value], [0, level], style, color="black", linewidth=1.2, zorder=4)
    title = [] if limit.expected[2] is None else [f"expected limit {limit.expected[2]:.3g}"]
    if label and limit.observed is not None:
        whose = "observed limit" if label == OBSERVED else f"limit of {label}"
        title.insert(0, f"{whose} {limit.observed:.3g}")
    ax.set_title(", ".join(title), fontsize="medium", loc="left")


def _limits(results):
    """Draws limits of one kind."""
    results = listed("results", results)
    for result in results:
        needed(result, LimitResult, "upper_limit", "results")
    if not results:
        raise ValueError("`results` is empty: there is nothing to draw")
    of_all = (("levels", {one.level for one in results}), ("parameters", {one.poi.name for one in results}))
    for what, values in (*of_all, ("data", {data_label(one) for one in results})):
        if len(values) > 1:
            raise ValueError(f"`results` are limits of different {what}: {', '.join(map(str, sorted(values)))}")
    return results


def _as_many(name, values, n):
    found = numbers_of(name, values)
    if len(found) != n:
        raise ValueError(f"`{name}` has {len(found)} values for {n} limits")
    return found


def limits(
    values: Sequence[float],
    results: Sequence[LimitResult],
    *,
    theory: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
    log: bool = True,
    observed: bool = True,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws upper limits over a grid of signals, such as masses.

    Parameters
    ----------
    values : sequence of float
        Where each signal is (N).
    results : sequence of LimitResult
        Their limits (N).
    theory : sequence of float, optional
        A prediction to compare with (N), in units of the limits.
    scale : sequence of float, optional
        Factors to multiply the limits by (N), such as the cross section of each signal.
    log : bool
        Whether the y axis is logarithmic.
    observed : bool
        False leaves the observation out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    values, results = numbers_of("values", values), _limits(results)
    if len(values) != len(results):
        raise ValueError(f"`values` has {len(values)} for {len(results)} limits")
    scale = numpy.ones(len(values)) if scale is None else _as_many("scale", scale, len(values))
    theory = None if theory is None else _as_many("theory", theory, len(values))
    order = numpy.argsort(values)
    ax = new_axes(ax, 5.8, 4.4)
    expected = _columns([result.expected for result in results]) * scale
    _band(ax, values[order], expected[:, order])
    if observed:
        found = numpy.array([numpy.nan if result.observed is None else result.observed for result in results]) * scale
        ax.plot(values[order], found[order], "o-", color="black", markersize=3.5, linewidth=1.4, label=data_label(results[0]), zorder=5)
    if theory is not None:
        ax.plot(values[order], theory[order], "-.", color=COLOURS[2], linewidth=1.5, label="theory", zorder=4)
    elif (scale == 1.0).all():
        ax.axhline(1.0, color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=4)
    if log:
        ax.set_yscale("log")
    if values.min() < values.max():
        ax.set_xlim(values.min(), values.max())
    ax.set_xlabel(xlabel or "signal")
    ax.set_ylabel(ylabel or f"{confidence(results[0].level)} CL upper limit on {literal(results[0].poi.name)}")
    _legend(ax)
    return ax
