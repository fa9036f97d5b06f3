"""Fits, and what follows from one fit: yields, goodness of fit, a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _nextstat
from ._arguments import flag, levels_of, names, optional_toys, parse_aux, settings, text
from ._files import write_whole
from ._keywords import hinted
from ._models import text_of_fit
from ._nextstat import ParameterError
from ._progress import progress_of
from ._results import FitResult, GoodnessOfFit, ReportResult, YieldsResult, warn_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Start
    from ._models import StoredFit
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["fit", "goodness_of_fit", "report", "yields"]


@hinted
def fit(
    model: Model,
    *,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    covariance: bool = True,
    minos: str | Sequence[str] | bool = (),
    minos_cl: float | Sequence[float] = (),
    multi_start: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> FitResult:
    """Fits a model to data.

    Minimises -ln L by a bounded second-order iteration with exact Hessians. Uncertainties are
    square roots of the diagonal of the inverse Hessian.

    Parameters
    ----------
    model : Model
    data : array, optional
        Event counts (B), or event counts and auxiliary data (B + K), instead of the observed ones.
    init : array or dict, optional
        Starting values: all (P), or of some parameters by name.
    fixed : dict, optional
        Parameters fixed at a value, by name; the name of a vector fixes every element, a pattern
        (``"JES_*"``) all that it matches.
    bounds : dict, optional
        Ranges (lower, upper) instead of the model's, by name.
    fit_channels : str or sequence of str
        Channels to fit, by name or pattern (``"CR_*"``), instead of all.
    mask : str or sequence of str
        Channels or bins to leave out of the fit: ``"SR"``, ``"SR_*"``, ``"SR[3]"``, or
        ``"SR[2:5]"`` for bins 2 to 4. Yields and reports still predict them.
    covariance : bool
        Whether the result has covariance and correlation matrices. They are computed when they are
        first read.
    minos : str, sequence of str, or bool
        Parameters whose asymmetric intervals are wanted; True or ``"all"`` for all that are free.
    minos_cl : float or sequence of float
        Two-sided confidence levels of these intervals, such as 0.95, instead of one standard
        deviation.
    multi_start : int, optional
        Further random starting points; the lowest minimum is kept.
    seed : int
        Seed of the starting points.

    Returns
    -------
    FitResult

    Warns
    -----
    NextstatWarning
        If the fit did not converge; the result says why.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> result = nextstat.fit(model, minos="mu")
    >>> round(result.value("mu"), 4), round(result.uncertainty("mu"), 4)
    (0.7236, 0.561)
    >>> nextstat.fit(model, fixed={"mu": 0.0}).twice_nll > result.twice_nll
    True
    """
    given = settings(
        model,
        device,
        data=data,
        init=init,
        fixed=fixed,
        bounds=bounds,
        fit_channels=fit_channels,
        mask=mask,
        multi_start=multi_start,
        seed=seed,
    )
    levels = levels_of("minos_cl", minos_cl)
    if levels and not minos:
        raise ParameterError("`minos_cl` is the confidence level of `minos`, which is not given")
    wanted = {
        "errors": True,
        "minos": minos if isinstance(minos, bool) else names("minos", minos),
        "minos_cls": levels,
    }
    found = _nextstat.fit_model(model, given, wanted)
    if not flag("covariance", covariance):
        found |= {"covariance": None, "correlation": None}
    return warn_of(FitResult(found))


@hinted
def yields(
    model: Model,
    *,
    fit: StoredFit | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    blind: str | Sequence[str] = (),
    blind_above: float | None = None,
    blind_by: str | None = None,
    fit_blinded: bool = False,
    groups: Mapping[str, str | Sequence[str]] | None = None,
    uncertainty: str = "derivative",
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    device: str = "auto",
) -> YieldsResult:
    """Returns expected yields of every channel, sample and bin before the fit and after it.

    Uncertainties are from the full covariance. Channels and bins that `mask` or `fit_channels`
    leave out of the fit are predicted by it.

    Parameters
    ----------
    fit : FitResult, dict or path, optional
        A fit to predict with, instead of another one: a result of `fit`, its `to_dict()`, or the
        file that `nextstat fit --covariance` wrote. Parameters are matched by name, so that a fit
        in control regions predicts signal regions. Those that it does not have (`unmatched`) keep
        their starting values, with the uncertainty of their constraint term.
    blind : str or sequence of str
        Channels or bins, as in `mask`, that are not fitted and whose data the result does not have:
        they are NaN.
    blind_above : float, optional
        Likewise every bin whose signal over background is at least this before the fit.
    blind_by : ``"s/b"``, ``"s/(s+b)"``, ``"s/sqrt(b)"`` or ``"s/sqrt(s+b)"``, optional
        The measure of `blind_above`; ``"s/b"`` if not given. The signal is what the parameters of
        interest add when they go from 0 to 1.
    fit_blinded : bool
        Whether hidden data are fitted all the same, so that the parameters show what they are.
    groups : dict, optional
        Samples to sum, with the correlations between them: names or patterns such as ``"VV*"``, by
        the name of the group. Tables have a group in place of its samples.
    uncertainty : ``"derivative"`` or ``"half-difference"``
        How uncertainties of parameters become those of yields: by derivatives of the yields, or by
        half the difference of the yields one standard deviation up and down, as in cabinetry.

    Returns
    -------
    YieldsResult

    Warns
    -----
    NextstatWarning
        If the fit did not converge, or uses data that are hidden.

    Examples
    --------
    >>> import nextstat
    >>> channel = nextstat.yields(nextstat.load_workspace("examples/simple.json")).channels[0]
    >>> (
    ...     channel["postfit"]["total"]["yields"].round(1).tolist(),
    ...     round(channel["postfit"]["total"]["sum_uncertainty"], 2),
    ... )
    ([58.5, 61.3], 10.93)
    """
    if fit is not None:
        _refuse(
            fixed=fixed, bounds=bounds, fit_channels=fit_channels, mask=mask,
            fit_blinded=fit_blinded, multi_start=multi_start,
        )
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, blind=blind, blind_above=blind_above, blind_by=blind_by,
        fit_blinded=fit_blinded, may_hide_all=fit is not None, groups=groups,
        uncertainty=text("uncertainty", uncertainty), multi_start=multi_start, seed=seed, threads=threads,
    )
    return warn_of(YieldsResult(_nextstat.yields_model(model, given, text_of_fit(fit))))


@hinted
def goodness_of_fit(
    model: Model,
    *,
    toys: int = 0,
    aux: str = "fluctuated",
    fit: StoredFit | None = None,
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
) -> GoodnessOfFit:
    """Returns the distance of the best fit to the saturated model.

    Its p-value is by χ² and, if wanted, by toys.

    Parameters
    ----------
    toys : int
        How many toys to throw at the best fit and to fit, for p-values that need no large counts.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    fit : FitResult, dict or path, optional
        A fit, as `yields` takes it, that did not use the data: `statistic` is then
        χ² = (n - λ)ᵀ V⁻¹ (n - λ) of the counts n and its prediction λ, with
        V = diag(λ) + J C Jᵀ of the derivatives J of λ and the covariance C of the fit, and `n_dof`
        is the number of bins. `fit_channels` and `mask` choose the bins.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    GoodnessOfFit

    Examples
    --------
    >>> import nextstat
    >>> goodness = nextstat.goodness_of_fit(
    ...     nextstat.load_workspace("examples/shapes.json"), toys=200
    ... )
    >>> round(goodness.statistic, 4), goodness.n_dof, round(goodness.p_value, 4)
    (0.1171, 2, 0.9431)
    >>> goodness.toys["total"]["value"]
    0.985
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    is_aux_fixed = parse_aux(aux)
    if (text := text_of_fit(fit)) is not None:
        _refuse(fixed=fixed, bounds=bounds, toys=toys, aux=is_aux_fixed, multi_start=multi_start)
        return warn_of(GoodnessOfFit(_nextstat.compare_model(model, given, text)))
    wanted = {"n_toys": optional_toys(toys), "is_aux_fixed": is_aux_fixed}
    if is_aux_fixed and not wanted["n_toys"]:
        raise ParameterError("`aux` is how `toys` get their auxiliary data, and there are no toys")
    found = _nextstat.goodness_model(model, given, wanted, progress_of(progress, "toy"))
    return warn_of(GoodnessOfFit(found))


@hinted
def report(
    model: Model,
    *,
    html: str | os.PathLike[str] | None = None,
    fit: StoredFit | None = None,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    blind: str | Sequence[str] = (),
    blind_above: float | None = None,
    blind_by: str | None = None,
    fit_blinded: bool = False,
    groups: Mapping[str, str | Sequence[str]] | None = None,
    uncertainty: str = "derivative",
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ReportResult:
    """Returns everything about one fit.

    Parameters, pulls, correlations, yields before and after, and goodness of fit. `blind`,
    `blind_above`, `blind_by` and `fit_blinded` hide data as in `yields`.

    Parameters
    ----------
    html : path, optional
        Writes a page for a browser to this file: the report with the ranking, scans, limits and the
        findings of `check`. It is one file, which needs no network.
    progress : callable or True, optional
        Called with (done, total) while the page is made; True shows a bar.
    fit : FitResult, dict or path, optional
        A fit to report instead of another one, as `yields` takes it. `goodness_of_fit` then
        compares the data with what it predicts, as `goodness_of_fit(fit=...)` does.
    groups, uncertainty
        As in `yields`.

    Returns
    -------
    ReportResult

    Examples
    --------
    >>> import nextstat
    >>> report = nextstat.report(nextstat.load_workspace("examples/shapes.json"))
    >>> (
    ...     report.fit.converged,
    ...     report.goodness_of_fit.n_dof,
    ...     [channel["channel"] for channel in report.channels],
    ... )
    (True, 2, ['control_region', 'signal_region'])
    """
    if fit is not None:
        _refuse(fixed=fixed, bounds=bounds, fit_blinded=fit_blinded, multi_start=multi_start)
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, blind=blind, blind_above=blind_above, blind_by=blind_by,
        fit_blinded=fit_blinded, may_hide_all=fit is not None, groups=groups, uncertainty=text("uncertainty", uncertainty),
        multi_start=multi_start, seed=seed, threads=threads,
    )
    page = None if html is None else {"progress": progress_of(progress, "fit")}
    if html is not None:
        _nextstat.require_page(html)
    found = _nextstat.report_model(model, given, text_of_fit(fit), page)
    if html is not None:
        from pathlib import Path

        write_whole({Path(html): found.pop("page").encode()})
    return warn_of(ReportResult(found))


def _refuse(**conditions: object) -> None:
    """Refuses conditions of a fit where a stored one is not fitted again."""
    for name, value in conditions.items():
        if value:
            raise ParameterError(f"`fit` is not fitted again, and `{name}` is a condition of a fit")
