"""Test statistics made of the profile likelihood ratio λ(μ). Equation numbers are those of arXiv:1007.1727."""

import logging

import numpy as np

from ..exceptions import FailedMinimization, UnspecifiedPOI
from ..tensor.manager import get_backend
from .mle import _at, _fit_each, fit, fixed_poi_fit

log = logging.getLogger(__name__)

__all__ = ["q0", "qmu", "qmu_tilde", "tmu", "tmu_tilde"]


def __dir__():
    return __all__


def _need_poi(pdf):
    if pdf.config.poi_index is None:
        raise UnspecifiedPOI("No POI is defined. A POI is required for profile likelihood based test statistics.")


def _warn_of_bound(name, other, pdf, par_bounds, wants_zero):
    """Statistics with a tilde are for a parameter of interest that starts at zero, the others for one that does not."""
    if (par_bounds[pdf.config.poi_index][0] == 0) != wants_zero:
        log.warning(
            f"{name} test statistic used for fit configuration with POI {'not ' if wants_zero else ''}bounded at zero.\n"
            f"Use the {other} test statistic (pyhf.infer.test_statistics.{other}) instead."
        )


def _rise(mu, data, pdf, within):
    """-2 ln λ(μ), the conditional and the free best fit.

    A conditional minimum below the free one shows another minimum, so the free fit is repeated from there.
    """
    conditional, at_mu = fixed_poi_fit(mu, data, pdf, *within, return_fitted_val=True)
    best, at_best = fit(data, pdf, *within, return_fitted_val=True)
    if at_mu < at_best:
        again, at_again = fit(data, pdf, conditional.tolist(), *within[1:], return_fitted_val=True)
        if at_again < at_best:
            best, at_best = again, at_again
    return np.asarray(max(float(at_mu - at_best), 0.0)), conditional, best


def _statistic(mu, data, pdf, within, return_fitted_pars, counts=lambda mu_hat: True):
    rise, conditional, best = _rise(mu, data, pdf, within)
    tensorlib, _ = get_backend()
    value = tensorlib.astensor(rise if counts(best[pdf.config.poi_index]) else 0.0)
    return (value, (conditional, best)) if return_fitted_pars else value


def _of_each(name, mu, data, pdf, within, progress=None):
    """The statistic `name` of many data sets (T × D): values (T), NaN where a fit failed; `progress` is told of 2 T fits."""
    mu = 0.0 if name == "q0" else mu
    told = progress and (lambda done: progress(len(data) + done))
    conditional, at_mu = _fit_each(data, pdf, *_at(mu, pdf, *within), progress)
    best, at_best = _fit_each(data, pdf, *within, told)
    for i in np.flatnonzero(at_mu < at_best):
        try:
            again, at_again = fit(data[i], pdf, conditional[i].tolist(), *within[1:], return_fitted_val=True)
        except FailedMinimization:
            at_again = np.nan
        if not at_again >= at_best[i]:
            best[i], at_best[i] = (best[i], np.nan) if np.isnan(at_again) else (again, at_again)
    mu_hat = best[:, pdf.config.poi_index]
    rise = at_mu - at_best
    counts = mu_hat >= 0 if name == "q0" else mu_hat <= mu
    return np.where(np.isnan(rise), np.nan, np.where(counts, np.maximum(rise, 0.0), 0.0))


def qmu(mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False):
    """q_μ, eq. 14: -2 ln λ(μ) for μ̂ ≤ μ, else 0."""
    _need_poi(pdf)
    _warn_of_bound("qmu", "qmu_tilde", pdf, par_bounds, False)
    return _statistic(mu, data, pdf, (init_pars, par_bounds, fixed_params), return_fitted_pars, lambda mu_hat: mu_hat <= mu)


def qmu_tilde(mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False):
    """q̃_μ, eq. 16: the same for μ ≥ 0.

    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0])
    >>> settings = model.config.suggested_init(), model.config.suggested_bounds(), model.config.suggested_fixed()
    >>> round(float(pyhf.infer.test_statistics.qmu_tilde(1.0, [51, 48] + model.config.auxdata, model, *settings)), 5)
    3.93824
    """
    _need_poi(pdf)
    _warn_of_bound("qmu_tilde", "qmu", pdf, par_bounds, True)
    return _statistic(mu, data, pdf, (init_pars, par_bounds, fixed_params), return_fitted_pars, lambda mu_hat: mu_hat <= mu)


def tmu(mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False):
    """t_μ = -2 ln λ(μ), eq. 8."""
    _need_poi(pdf)
    _warn_of_bound("tmu", "tmu_tilde", pdf, par_bounds, False)
    return _statistic(mu, data, pdf, (init_pars, par_bounds, fixed_params), return_fitted_pars)


def tmu_tilde(mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False):
    """t̃_μ, eq. 11: the same for μ ≥ 0."""
    _need_poi(pdf)
    _warn_of_bound("tmu_tilde", "tmu", pdf, par_bounds, True)
    return _statistic(mu, data, pdf, (init_pars, par_bounds, fixed_params), return_fitted_pars)


def q0(mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False):
    """q₀, eq. 12: -2 ln λ(0) for μ̂ ≥ 0, else 0; `mu` is 0 whatever it is."""
    _need_poi(pdf)
    if mu != 0.0:
        log.warning("q0 test statistic only used for fit configuration with POI set to zero. Setting mu=0.")
    return _statistic(0.0, data, pdf, (init_pars, par_bounds, fixed_params), return_fitted_pars, lambda mu_hat: mu_hat >= 0)
