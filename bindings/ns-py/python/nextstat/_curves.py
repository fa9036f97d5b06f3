"""Curves and impacts: profile scans, contours, rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._common import checked, count, names, progress_of, settings
from ._results import ContourResult, RankingResult, ScanResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._common import Bounds, Progress, Start
    from ._nextstat import Model


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
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ScanResult:
    """Scan the profile likelihood of one parameter, or of two.

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
    >>> nextstat.profile_scan(model, parameter=("mu", "uncorr_bkguncrt[0]"), points=5).delta_nll.shape
    (5, 5)
    """
    given = settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    points = count("points", points, 2)
    if parameter is None or isinstance(parameter, str):
        axes: list[tuple[str | None, Any, int]] = [(parameter, mu_values, points)]
    else:
        pair = names("parameter", parameter)
        values: tuple[Any, ...] = (None,) * len(pair) if mu_values is None else tuple(mu_values)  # type: ignore[arg-type]
        if not len(pair) == len(values) == 2:
            raise TypeError("one parameter is scanned, or two; of two, `mu_values` has an array for each")
        axes = [(name, axis, points) for name, axis in zip(pair, values)]
    return checked(ScanResult(_nextstat.scan_model(model, given, axes, progress_of(progress, "point"))))


def contours(
    model: Model,
    parameters: Sequence[str],
    levels: Sequence[float] = (0.68, 0.95),
    *,
    points: int = 40,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ContourResult:
    """Contours of two parameters at confidence levels.

    Parameters
    ----------
    parameters : pair of str
    levels : sequence of float
        Probabilities: the rise of 2NLL is the χ² quantile of two degrees of freedom.
    points : int
        How many points a contour has, beside those where a range cuts it off.

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
    given = settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    pair = names("parameters", parameters)
    if len(pair) != 2 or isinstance(parameters, str):
        raise TypeError("contours have two parameters")
    found = _nextstat.contours_model(
        model, given, (pair[0], pair[1]), [float(level) for level in levels], count("points", points, 4), progress_of(progress, "point")
    )
    return checked(ContourResult(found))


def ranking(
    model: Model,
    *,
    methods: str | Sequence[str] = ("classic", "global", "covariance"),
    groups: Mapping[str, str | Sequence[str]] | None = None,
    minos: bool = False,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> RankingResult:
    """Impacts of nuisance parameters on the parameter of interest.

    Parameters
    ----------
    methods : sequence of str
        ``"classic"``: conditional fits at the ends of each parameter's interval, before and after the fit. ``"global"``: fits to shifted auxiliary data.
        ``"covariance"``: the formula.
    groups : dict, optional
        Name patterns by group: the common impact of the parameters that match.
    minos : bool
        Post-fit impacts at the ends of MINOS intervals.
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
    >>> result = nextstat.ranking(nextstat.load_workspace("examples/shapes.json"), groups={"statistics": "mc_stat_*"})
    >>> result.ranking[0]["parameter"], round(result.ranking[0]["postfit"]["up"]["impact"], 3)
    ('fakes_control_region[0]', 0.248)
    """
    given = settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    patterns = [(name, names("groups", found)) for name, found in (groups or {}).items()]
    found = _nextstat.ranking_model(model, given, names("methods", methods), patterns, minos, progress_of(progress, "parameter"))
    return checked(RankingResult(found))
