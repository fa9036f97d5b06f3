"""Objectives and models that are Python code: SciPy minimises them, where it is installed."""

import numpy as np

from .. import exceptions


def minimize(objective, data, pdf, within):
    """Returns the minimum of `objective(params, data, pdf)` in a box, as the fields of an
    `OptimizeResult`.
    """
    try:
        from scipy.optimize import minimize as scipy_minimize
    except ImportError:
        raise exceptions.Unsupported(
            "the engine minimises `pyhf.infer.mle.twice_nll` of a `pyhf.Model`; another objective, or another model, is minimised by SciPy, which is not installed"
        ) from None
    init_pars, par_bounds, fixed_vals = within
    start = np.array(init_pars, dtype=float)
    free = np.ones(len(start), dtype=bool)
    for index, value in fixed_vals:
        start[index], free[index] = value, False

    def value_at(moved):
        params = start.copy()
        params[free] = moved
        return float(np.asarray(objective(params, data, pdf)).reshape(-1)[0])

    bounds = [bound for bound, is_free in zip(par_bounds, free) if is_free]
    found = scipy_minimize(value_at, start[free], method="SLSQP", bounds=bounds, options={"maxiter": 10000, "ftol": 1e-10}) if free.any() else None
    params = start.copy()
    params[free] = [] if found is None else found.x
    return {
        "x": params,
        "fun": np.asarray(value_at(params[free])),
        "success": found is None or bool(found.success),
        "message": "nothing to minimise" if found is None else found.message,
        "nfev": 1 if found is None else int(found.nfev),
        "unc": None,
        "corr": None,
    }
