"""Intervals, regions, limits and significances by toys, which are thrown until errors are small,
and the coverage of intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import count_of_toys, flag, names, number, parse_aux, settings, text
from ._errors import shown
from ._keywords import hinted
from ._nextstat import ParameterError
from ._progress import progress_of
from ._results import CoverageResult, IntervalResult, RegionResult, ToyLimitResult, ToySignificanceResult, warn_of
from ._tests import level_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Start
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["coverage", "interval", "region", "significance_toys", "upper_limit_toys"]


@hinted
def interval(
    model: Model,
    *,
    construction: str = "fc",
    cl: float = 0.95,
    tolerance: float = 0.02,
    max_toys: int = 200_000,
    seed: int = 0,
    aux: str = "fluctuated",
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> IntervalResult:
    """Finds a confidence interval of the parameter of interest by toys.

    Toys are thrown with the nuisance parameters at their conditional best fits to the data, and
    each is fitted. They are spent where a value is neither clearly accepted nor excluded.

    Parameters
    ----------
    construction : ``"fc"``, ``"central"`` or ``"upper"``
        Feldman-Cousins, both tails alike, or an upper limit.
    cl : float
        Confidence level.
    tolerance : float
        Throw toys until the Monte Carlo error of each end is below this number of standard
        deviations of the parameter.
    max_toys : int
        The largest number of toys.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    poi : str, optional
        The parameter of interest, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    IntervalResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> found = nextstat.interval(model, cl=0.68, tolerance=0.1, seed=1)
    >>> round(found.lower["value"], 1), round(found.upper["value"], 1)
    (0.2, 1.3)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = {
        "construction": text("construction", construction),
        "cl": number(cl, "`cl`"),
        "toys": _toys(tolerance, max_toys, aux),
    }
    return warn_of(IntervalResult(_nextstat.interval_model(model, given, wanted, progress_of(progress, "toy"))))


@hinted
def region(
    model: Model,
    grid: Mapping[str, ArrayLike],
    *,
    cl: Sequence[float] = (0.68, 0.95),
    tolerance: float = 0.05,
    max_toys: int = 2_000_000,
    seed: int = 0,
    aux: str = "fluctuated",
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> RegionResult:
    """Finds a Feldman-Cousins region of two parameters by toys.

    Parameters
    ----------
    grid : dict
        The names of the two parameters and their values, ascending:
        ``{"mu": [0.0, 0.5, 1.0], "theta": [-1.0, 0.0, 1.0]}``.
    cl : sequence of float
        Confidence levels of the contours.
    tolerance : float
        Throw toys until the Monte Carlo error of the p-values next to a contour moves it by less
        than this number of standard deviations.
    max_toys : int
        The largest number of toys.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    RegionResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/shapes.json")
    >>> grid = {"mu": [0.0, 1.0, 2.0, 3.0], "norm_ttbar": [0.85, 0.95, 1.05, 1.15]}
    >>> found = nextstat.region(model, grid, cl=[0.68], tolerance=0.3)
    >>> len(found.points), found.parameters
    (16, ('mu', 'norm_ttbar'))
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    parameters, values = _axes(grid)
    levels = [number(level, "`cl`") for level in cl]
    wanted = {"parameters": parameters, "values": values, "cls": levels, "toys": _toys(tolerance, max_toys, aux)}
    return warn_of(RegionResult(_nextstat.region_model(model, given, wanted, progress_of(progress, "toy"))))


@hinted
def coverage(
    model: Model,
    true_values: ArrayLike,
    *,
    methods: str | Sequence[str] = ("hessian", "minos", "cls"),
    cl: float = 0.95,
    n_toys: int = 5000,
    max_inner_toys: int = 10_000,
    tolerance: float = 0.02,
    seed: int = 0,
    aux: str = "fluctuated",
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> CoverageResult:
    """Determines how often intervals contain the true value, by toys.

    Toys are thrown at each true value of the parameter of interest, with the nuisance parameters at
    their conditional best fits to the data, and each is fitted.

    Parameters
    ----------
    true_values : array of float
        True values of the parameter of interest, in its range.
    methods : sequence of str
        What makes the intervals: ``"hessian"`` (z standard deviations), ``"minos"`` (the profile
        likelihood), ``"cls"`` (upper limits by the asymptotic CLs), ``"fc"`` (Feldman-Cousins by
        toys).
    cl : float
        Confidence level of the intervals.
    n_toys : int
        Toys at each true value.
    max_inner_toys : int
        The largest number of inner toys of each toy, for ``"fc"``.
    tolerance : float
        The deviation of the coverage from `cl` that is small enough.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    poi : str, optional
        The parameter of interest, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    CoverageResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> found = nextstat.coverage(model, [1.0], methods="minos", n_toys=2000, tolerance=0.03)
    >>> round(found.points[0]["coverage"], 2), found.methods[0]["verdict"]
    (0.96, 'compatible')
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = {
        "true_values": true_values,
        "methods": names("methods", methods),
        "cl": number(cl, "`cl`"),
        "n_toys": count_of_toys("n_toys", n_toys),
        "max_inner_toys": count_of_toys("max_inner_toys", max_inner_toys),
        "tolerance": number(tolerance, "`tolerance`"),
        "is_aux_fixed": parse_aux(aux),
    }
    return warn_of(CoverageResult(_nextstat.coverage_model(model, given, wanted, progress_of(progress, "toy"))))


@hinted
def upper_limit_toys(
    model: Model,
    *,
    cl: float | None = None,
    level: float | None = None,
    test_stat: str = "qtilde",
    criterion: str = "CLs",
    expected: bool = True,
    tolerance: float = 0.02,
    max_toys: int = 200_000,
    seed: int = 0,
    aux: str = "fluctuated",
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ToyLimitResult:
    """Finds upper limits on the parameter of interest by toys, observed and expected.

    Parameters
    ----------
    cl : float, optional
        Confidence level of the limits, such as 0.95.
    level : float, optional
        CLs or CLs+b at the limits, instead of `cl`; 0.05 if neither is given.
    test_stat : ``"qtilde"`` or ``"q"``
    criterion : ``"CLs"`` or ``"CLsb"``
        What falls to the level at a limit.
    expected : bool
        Whether expected limits are wanted, too; they take more toys.
    tolerance : float
        Throw toys until the Monte Carlo error of the observed and of the median expected limit is
        below this fraction of the limit; 2.5 and 5 times as much at 1 and 2 standard deviations.
    max_toys : int
        The largest number of toys.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    poi : str, optional
        The parameter of interest, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ToyLimitResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> found = nextstat.upper_limit_toys(model, expected=False, tolerance=0.05)
    >>> round(found.observed, 1), round(found.asymptotic["observed"], 3)
    (1.8, 1.705)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = {
        **level_of(cl, level),
        "test_stat": text("test_stat", test_stat),
        "criterion": text("criterion", criterion),
        "expected": bool(expected),
        "toys": _toys(tolerance, max_toys, aux),
    }
    return warn_of(ToyLimitResult(_nextstat.limit_toys_model(model, given, wanted, progress_of(progress, "toy"))))


@hinted
def significance_toys(
    model: Model,
    *,
    tolerance: float = 0.1,
    max_toys: int = 100_000,
    importance_sampling: bool = False,
    seed: int = 0,
    aux: str = "fluctuated",
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ToySignificanceResult:
    """Returns the significance of a discovery by toys of the background.

    `hypotest_toys` with `q0` has the expected significance, too.

    Parameters
    ----------
    tolerance : float
        Throw toys until the Monte Carlo error of the p-value is below this fraction of the
        p-value.
    max_toys : int
        The largest number of toys.
    importance_sampling : bool
        Whether to throw toys with a signal, too, and to weight them by the likelihood ratio: a
        p-value of 10⁻⁷ then takes thousands of toys.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    poi : str, optional
        The parameter of interest, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ToySignificanceResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> found = nextstat.significance_toys(model)
    >>> round(found.Z_obs, 1), found.p0_obs_error < 0.1 * found.p0_obs
    (1.3, True)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = {
        "importance_sampling": flag("importance_sampling", importance_sampling),
        "toys": _toys(tolerance, max_toys, aux),
    }
    found = _nextstat.significance_toys_model(model, given, wanted, progress_of(progress, "toy"))
    return warn_of(ToySignificanceResult(found))


def _toys(tolerance: float, max_toys: int, aux: str) -> dict[str, Any]:
    """Returns how long toys are thrown, as the extension module takes it."""
    return {
        "tolerance": number(tolerance, "`tolerance`"),
        "max_toys": count_of_toys("max_toys", max_toys),
        "is_aux_fixed": parse_aux(aux),
    }


def _axes(grid: Any) -> tuple[list[str], list[Any]]:
    """Returns the two parameters of `grid` and their values."""
    example = "{'mu': [0.0, 0.5, 1.0], 'theta': [-1.0, 0.0, 1.0]}"
    if not hasattr(grid, "items"):
        message = f"`grid` is a dictionary of two parameters and their values, such as {example}, not `{shown(grid)}`"
        raise TypeError(message)
    if len(grid) != 2:
        raise ParameterError(f"`grid` has two parameters and their values, such as {example}, not {len(grid)}")
    return [text("grid", name) for name in grid], list(grid.values())
