"""Tests of the parameter of interest by formulas and by toys: CLs, significances, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import number, parse_aux, real, settings, text, toy_range
from ._errors import shown
from ._keywords import hinted
from ._nextstat import ParameterError
from ._progress import progress_of
from ._results import (
    HypotestResult,
    LimitResult,
    LimitScanResult,
    SignificanceResult,
    ToyHypotestResult,
    warn_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Start
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["hypotest", "hypotest_toys", "limit_scan", "significance", "upper_limit"]


@hinted
def hypotest(
    model: Model,
    mu: float | None = None,
    *,
    test_stat: str = "qtilde",
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> HypotestResult:
    """Tests a value of the parameter of interest by asymptotic formulas (arXiv:1007.1727).

    Parameters
    ----------
    mu : float, optional
        The tested value; 1 if not given, and 0 for `q0`, which tests no other.
    test_stat : ``"qtilde"``, ``"q"``, ``"q0"``, ``"t"`` or ``"ttilde"``
        For limits on a parameter that is not negative, for limits, for a discovery, two-sided,
        two-sided and not negative.
    poi : str, optional
        The parameter of interest, instead of the model's first.

    Returns
    -------
    HypotestResult

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest(nextstat.load_workspace("examples/simple.json"), 1.0)
    >>> round(result.CLs_obs, 5), [round(cls, 5) for cls in result.CLs_exp]
    (0.34567, [0.00322, 0.01625, 0.07233, 0.25283, 0.59393])
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed,
    )
    tested = None if mu is None else number(mu, "`mu`")
    return warn_of(HypotestResult(_nextstat.hypotest_model(model, given, tested, text("test_stat", test_stat))))


@hinted
def significance(
    model: Model,
    *,
    mu: float = 1.0,
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> SignificanceResult:
    """Returns the significance of a discovery, observed and expected of a signal of strength `mu`.

    Parameters
    ----------
    mu : float
        The signal strength that the expected significance is given for.
    poi : str, optional
        The parameter of interest, instead of the model's first.

    Returns
    -------
    SignificanceResult

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.significance(nextstat.load_workspace("examples/simple.json"))
    >>> round(result.Z_obs, 4), round(result.Z_exp, 4)
    (1.3228, 1.8309)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed,
    )
    return warn_of(SignificanceResult(_nextstat.significance_model(model, given, number(mu, "`mu`"))))


@hinted
def upper_limit(
    model: Model,
    *,
    cl: float | None = None,
    level: float | None = None,
    test_stat: str = "qtilde",
    grid: ArrayLike | None = None,
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> LimitResult:
    """Finds upper limits on the parameter of interest, observed and expected.

    Parameters
    ----------
    cl : float, optional
        Confidence level of the limits, such as 0.95.
    level : float, optional
        CLs at the limits, instead of `cl`: 1 minus the confidence level, below 0.5; 0.05 if
        neither is given.
    test_stat : ``"qtilde"`` or ``"q"``
    grid : array, optional
        Values between which CLs is interpolated, as in pyhf, instead of a root finder.
    poi : str, optional
        The parameter of interest, instead of the model's first.

    Returns
    -------
    LimitResult

    Examples
    --------
    >>> import nextstat
    >>> limits = nextstat.upper_limit(nextstat.load_workspace("examples/simple.json"))
    >>> round(limits.observed, 4), round(limits.expected[2], 4)
    (1.7053, 1.0943)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed,
    )
    wanted = _limit_wanted(cl, level, test_stat=test_stat, grid=grid)
    return warn_of(LimitResult(_nextstat.limit_model(model, given, wanted)))


@hinted
def limit_scan(
    model: Model,
    at: Mapping[str, ArrayLike],
    *,
    cl: float | None = None,
    level: float | None = None,
    test_stat: str = "qtilde",
    grid: ArrayLike | None = None,
    poi: str | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> LimitScanResult:
    """Finds upper limits with another parameter fixed at each of several values.

    Each is the limit that `upper_limit` finds with the parameter in `fixed`.

    Parameters
    ----------
    at : dict
        The name of the other parameter and its values (N): ``{"b": [0.0, 0.5, 1.0]}``.
    cl, level, test_stat, grid
        As in `upper_limit`.
    poi : str, optional
        The parameter that the limits are on, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    LimitScanResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/shapes.json")
    >>> scan = nextstat.limit_scan(model, {"norm_ttbar": [0.9, 1.0, 1.1]})
    >>> scan.observed.round(3).tolist(), scan.expected[:, 2].round(3).tolist()
    ([3.012, 2.813, 2.65], [1.394, 1.415, 1.425])
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = _limit_wanted(cl, level, test_stat=test_stat, grid=grid)
    told = progress_of(progress, "limit")
    return warn_of(LimitScanResult(_nextstat.limit_scan_model(model, given, wanted, _at(at), told)))


def _at(at: Any) -> dict[str, Any]:
    """Returns the one parameter of `at` and its values."""
    example = "{'b': [0.0, 0.5, 1.0]}"
    if not hasattr(at, "items"):
        message = f"`at` is a dictionary of a parameter and its values, such as {example}, not `{shown(at)}`"
        raise TypeError(message)
    if len(at) != 1:
        raise ParameterError(f"`at` has one parameter and its values, such as {example}, not {len(at)}")
    [(name, values)] = at.items()
    return {"parameter": text("at", name), "values": values}


def _limit_wanted(cl, level, *, test_stat, grid):
    """Returns limits as the extension module takes them."""
    return {**level_of(cl, level), "test_stat": text("test_stat", test_stat), "grid": grid}


def level_of(cl: float | None, level: float | None) -> dict[str, float | None]:
    """Returns the level of limits as the extension module takes it."""
    if cl is not None and level is not None:
        raise ParameterError("`cl` and `level` exclude each other")
    return {
        "cl": None if cl is None else number(cl, "`cl`"),
        "level": 0.05 if level is None else number(level, "`level`"),
    }


@hinted
def hypotest_toys(
    model: Model,
    mu: float | None = None,
    *,
    n_toys: int = 1000,
    n_toys_b: int | None = None,
    test_stat: str = "qtilde",
    seed: int = 0,
    aux: str = "fluctuated",
    stop_at_error: float | None = None,
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
) -> ToyHypotestResult:
    """Tests a value of the parameter of interest by toys.

    Auxiliary data of toys fluctuate like the main bins. Toys are thrown at the conditional best
    fits to the data, and each is fitted.

    Parameters
    ----------
    mu : float, optional
        The tested value; 1 if not given, and always 0 for `q0`.
    n_toys, n_toys_b : int
        Toys of the tested and of the other hypothesis; equally many if not given.
    test_stat : ``"qtilde"``, ``"q"`` or ``"q0"``
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    stop_at_error : float, optional
        Stop as soon as the Monte-Carlo error of CLs is below this.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ToyHypotestResult

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest_toys(
    ...     nextstat.load_workspace("examples/simple.json"), 1.0, n_toys=500, seed=1
    ... )
    >>> round(result.CLs_obs, 3), round(result.CLs_obs_error, 3)
    (0.329, 0.023)
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    wanted = toys_wanted(mu, n_toys, n_toys_b, test_stat=test_stat, stop_at_error=stop_at_error)
    wanted["is_aux_fixed"] = parse_aux(aux)
    return warn_of(ToyHypotestResult(_nextstat.hypotest_toys_model(model, given, wanted, progress_of(progress, "toy"))))


def toys_wanted(
    mu: float | None,
    n_toys: int,
    n_toys_b: int | None,
    *,
    test_stat: str,
    stop_at_error: float | None,
) -> dict[str, Any]:
    """Returns a test by toys as the extension module takes it, without `is_aux_fixed`."""
    error = None if stop_at_error is None else real("stop_at_error", stop_at_error)
    if error is not None and error <= 0:
        raise ParameterError(f"`stop_at_error` is {error:g}, and must be positive")
    _, n_tested = toy_range("n_toys", n_toys)
    n_other = n_tested if n_toys_b is None else toy_range("n_toys_b", n_toys_b)[1]
    return {
        "mu": None if mu is None else number(mu, "`mu`"),
        "test_stat": text("test_stat", test_stat),
        "n_toys": [n_tested, n_other],
        "stop_at_error": error,
        "range": None,
    }
