"""Maximum-likelihood fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import UnspecifiedPOI
from .._current import get_backend

__all__ = ["fit", "fixed_poi_fit", "twice_nll"]


def __dir__():
    return __all__


def twice_nll(pars, data, pdf) -> Any:
    """Returns -2 ln L of `data` at `pars`."""
    return -2 * pdf.logpdf(pars, data)


def _given(pdf, init_pars, par_bounds, fixed_params):
    """Returns settings, which are the model's own where none are given."""

    def chosen(given, suggested) -> Any:
        return suggested() if given is None or len(given) == 0 else given

    config = pdf.config
    return (
        chosen(init_pars, config.suggested_init),
        chosen(par_bounds, config.suggested_bounds),
        chosen(fixed_params, config.suggested_fixed),
    )


def _check_start(init_pars, par_bounds):
    for index, (value, bound) in enumerate(zip(init_pars, par_bounds)):
        if not bound[0] <= value <= bound[1]:
            raise ValueError(
                f"fit initialization parameter (index: {index}, value: {value}) lies outside of its bounds: {bound}"
                "\nadjust the initial values, in the specification or in the call, or the bounds"
            )


def fit(data, pdf, init_pars=None, par_bounds=None, fixed_params=None, **kwargs) -> Any:
    """Fits all parameters that are not fixed.

    Parameters
    ----------
    init_pars, par_bounds, fixed_params : sequences, optional
        Starting values (P), ranges (P × 2), and which parameters stay where they start (P), instead
        of the model's.
    **kwargs
        What to return, and options of the optimizer: see `pyhf.optimize`.

    Raises
    ------
    ValueError
        A starting value outside its range.
    FailedMinimization

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> pars, twice_nll = pyhf.infer.mle.fit(
    ...     [51, 48] + model.config.auxdata, model, return_fitted_val=True
    ... )
    >>> [round(float(value), 5) for value in pars], round(float(twice_nll), 6)
    ([0.0, 1.00305, 0.96268], 24.983935)
    """
    _, optimizer = get_backend()
    return optimizer.minimize(twice_nll, data, pdf, *_within(pdf, init_pars, par_bounds, fixed_params), **kwargs)


def _within(pdf, init_pars, par_bounds, fixed_params):
    """Returns where a fit starts, its box, and the fixed parameters."""
    init_pars, par_bounds, fixed_params = _given(pdf, init_pars, par_bounds, fixed_params)
    _check_start(init_pars, par_bounds)
    return init_pars, par_bounds, [(index, init_pars[index]) for index, is_fixed in enumerate(fixed_params) if is_fixed]


def _fits_ensembles(pdf):
    """Returns whether the engine fits many data sets of this model in one call."""
    from ..pdf import Model

    return isinstance(pdf, Model) and hasattr(get_backend()[1], "_minimize_each")


def _fit_each(data, pdf, init_pars, par_bounds, fixed_params, progress=None):
    """Fits many data sets (T × D) as `fit` does: parameters (T × P) and -2 ln L (T), NaN where a
    fit failed; `progress` is told how many are done.
    """
    told = None if progress is None else lambda done, total: progress(done)
    return get_backend()[1]._minimize_each(data, pdf, *_within(pdf, init_pars, par_bounds, fixed_params), told)


def fixed_poi_fit(poi_val, data, pdf, init_pars=None, par_bounds=None, fixed_params=None, **kwargs) -> Any:
    """Fits with the parameter of interest fixed at `poi_val`."""
    return fit(data, pdf, *_at(poi_val, pdf, init_pars, par_bounds, fixed_params), **kwargs)


def _at(poi_val, pdf, init_pars, par_bounds, fixed_params):
    """Returns the settings of a fit with the parameter of interest fixed at `poi_val`."""
    if pdf.config.poi_index is None:
        raise UnspecifiedPOI("No POI is defined. A POI is required to fit with a fixed POI.")
    init_pars, par_bounds, fixed_params = _given(pdf, init_pars, par_bounds, fixed_params)
    init_pars, fixed_params = [*init_pars], [*fixed_params]
    init_pars[pdf.config.poi_index] = float(np.asarray(poi_val).reshape(()))
    fixed_params[pdf.config.poi_index] = True
    return init_pars, par_bounds, fixed_params
