"""Curves and impacts: profile scans, contours, rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import count, flag, group_patterns, levels_of, names, pair_of_names, settings
from ._errors import shown
from ._keywords import hinted
from ._models import text_of_fit
from ._nextstat import ParameterError
from ._progress import progress_of
from ._results import ContourResult, RankingResult, ScanResult, warn_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Start
    from ._models import StoredFit
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["contours", "profile_scan", "ranking"]


@hinted
def profile_scan(
    model: Model,
    mu_values: ArrayLike | Sequence[ArrayLike | None] | None = None,
    *,
    parameter: str | Sequence[str] | None = None,
    points: int = 21,
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
) -> ScanResult:
    """Scans the profile likelihood of one parameter, or of two.

    Parameters
    ----------
    mu_values : array or pair of arrays, optional
        Values of the parameter; if not given, `points` values up to a rise of 2NLL of about 9.
    parameter : str or pair of str, optional
        The parameter of interest if not given.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ScanResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> scan = nextstat.profile_scan(model, [0.0, 0.5, 1.0, 1.5])
    >>> scan.twice_delta_nll.round(3).tolist()
    [1.75, 0.161, 0.238, 1.819]
    >>> nextstat.profile_scan(
    ...     model, parameter=("mu", "uncorr_bkguncrt[0]"), points=5
    ... ).delta_nll.shape
    (5, 5)
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    points = count("points", points, 2)
    if parameter is None or isinstance(parameter, str):
        axes = [_axis(parameter, mu_values, points)]
    else:
        axes = axes_of_grid(mu_values, parameter, points)
    return warn_of(ScanResult(_nextstat.scan_model(model, given, axes, progress_of(progress, "point"))))


def _values(given: Any) -> Any:
    """Returns the values of one parameter, or None; a single number was likely meant as `points`.
    """
    if isinstance(given, (int, float)) or (hasattr(given, "shape") and given.shape == ()):
        raise TypeError(
            f"`mu_values` is an array of values, not `{shown(given)}`: `points=` sets their number"
        )
    return given


def _axis(parameter: str | None, values: Any, points: int) -> dict[str, Any]:
    return {"parameter": parameter, "values": _values(values), "points": points}


def axes_of_grid(mu_values: Any, parameter: Sequence[str], points: int) -> list[dict[str, Any]]:
    """Returns the axes of a grid of two parameters, as the extension module takes them."""
    pair = pair_of_names("parameter", parameter)
    values = (None, None)
    if mu_values is not None:
        values = tuple(mu_values) if hasattr(mu_values, "__iter__") else ()
    if len(values) != 2:
        raise TypeError("of two parameters `mu_values` has an array, or None, for each")
    return [_axis(name, axis, points) for name, axis in zip(pair, values)]


@hinted
def contours(
    model: Model,
    parameters: Sequence[str],
    levels: float | Sequence[float] = (0.68, 0.95),
    *rest: NoReturn,
    points: int = 40,
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
) -> ContourResult:
    """Finds contours of two parameters at confidence levels.

    Parameters
    ----------
    parameters : pair of str
    levels : float or sequence of float
        Probabilities: the rise of 2NLL is the χ² quantile of two degrees of freedom.
    points : int
        The number of points of a contour, apart from those where a range ends it.

    Returns
    -------
    ContourResult

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> found = nextstat.contours(model, ("mu", "uncorr_bkguncrt[0]"), [0.68])
    >>> round(found.contours[0]["twice_delta_nll"], 4)
    2.2789
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    if rest:
        raise TypeError(
            "`parameters` is one argument, a pair: `contours(model, ('mu', 'lumi'), 0.68)`; "
            "options are given by name"
        )
    wanted = {
        "parameters": pair_of_names("parameters", parameters),
        "levels": _levels(levels),
        "n_points": count("points", points, 4),
    }
    found = _nextstat.contours_model(model, given, wanted, progress_of(progress, "point"))
    return warn_of(ContourResult(found))


def _levels(given: Any) -> list[float]:
    levels = levels_of("levels", given)
    if not levels:
        raise ParameterError("`levels` is empty: a contour needs a confidence level")
    return levels


@hinted
def ranking(
    model: Model,
    *,
    methods: str | Sequence[str] = ("classic", "global", "covariance"),
    groups: Mapping[str, str | Sequence[str]] | str | Sequence[str] | None = None,
    minos: bool = False,
    fit: StoredFit | None = None,
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
) -> RankingResult:
    """Ranks nuisance parameters by their impact on the parameter of interest.

    Parameters
    ----------
    methods : sequence of str
        ``"classic"``: conditional fits at the ends of each parameter's interval, before and after
        the fit. ``"global"``: fits to shifted auxiliary data. ``"covariance"``: the formula.
    groups : dict, or name or sequence of names, optional
        Name patterns by group: the common impact of the parameters that match. Names choose among
        the groups that the measurement has, as Combine cards define them; if not given, all of
        those, and none if empty.
    minos : bool
        Post-fit impacts at the ends of MINOS intervals.
    fit : FitResult, dict or path, optional
        A fit to refer to, as `yields` takes it. The method ``"covariance"`` ranks by its covariance
        without a refit, for any fit; the others only if it is the minimum of this likelihood.
    poi : str, optional
        The parameter of interest, instead of the model's first.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    RankingResult

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.ranking(
    ...     nextstat.load_workspace("examples/shapes.json"), groups={"statistics": "mc_stat_*"}
    ... )
    >>> result.ranking[0]["parameter"], round(result.ranking[0]["postfit"]["up"]["impact"], 3)
    ('fakes_control_region[0]', 0.248)
    """
    given = settings(
        model, device, poi=poi, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    if fit is not None and multi_start is not None:
        raise ParameterError("`fit` ranks at a stored fit, and `multi_start` looks for another")
    wanted = ranking_wanted(methods, groups, minos) | {"fit": text_of_fit(fit)}
    told = progress_of(progress, "parameter")
    return warn_of(
        RankingResult(_nextstat.ranking_model(model, given, wanted, told))
    )


def ranking_wanted(
    methods: str | Sequence[str],
    groups: Mapping[str, str | Sequence[str]] | str | Sequence[str] | None,
    minos: bool,
) -> dict[str, Any]:
    """Returns a ranking as the extension module takes it."""
    chosen = [groups] if isinstance(groups, str) else groups
    patterns: Sequence[tuple[str, list[str] | None]] | None
    # Patterns need the name of a group.
    if groups is None:
        patterns = None
    elif isinstance(chosen, (list, tuple)) and not any("*" in str(name) for name in chosen):
        patterns = [(name, None) for name in names("groups", chosen)]
    else:
        patterns = group_patterns(groups, "{'jets': 'jes_*'}")
    wanted = names("methods", methods)
    if not wanted:
        raise ParameterError("`methods` is empty: choose one of `classic`, `global`, `covariance`")
    return {"methods": wanted, "groups": patterns, "minos": flag("minos", minos), "fit": None}
