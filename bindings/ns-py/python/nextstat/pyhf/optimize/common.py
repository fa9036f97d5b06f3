"""The objective of a fit in the form that minimisers of other packages take.

`nextstat.pyhf` itself does not minimise by it: see `pyhf.optimize`.
"""

import numpy as np

from ..tensor.common import _TensorViewer
from .._current import get_backend
from ._engine import _need_gradients

__all__ = ["shim"]


def __dir__():
    return __all__


def _make_stitch_pars(tv=None, fixed_values=None):
    """Returns a function that puts fixed parameters and the others together; without fixed ones it
    returns what it is given.
    """
    if tv is None or fixed_values is None:
        return lambda pars, stitch_with=None: pars

    def stitch_pars(pars, stitch_with=fixed_values):
        return tv.stitch([get_backend()[0].astensor(stitch_with, dtype="float"), pars])

    return stitch_pars


def shim(objective, data, pdf, init_pars, par_bounds, fixed_vals=None, do_grad=False, do_stitch=False):
    """Returns the arguments of a minimiser such as `scipy.optimize.minimize`, and how to complete
    its parameters.

    Parameters
    ----------
    objective : callable
        A function of parameters, data and model, such as `pyhf.infer.mle.twice_nll`.
    init_pars, par_bounds : sequences
        Starting values (P) and ranges (P × 2).
    fixed_vals : list of (index, value), optional
        Parameters that do not move.
    do_grad : bool
        Whether the function also returns its gradient, which the engine computes exactly.
    do_stitch : bool
        Whether the minimiser sees the free parameters only.

    Returns
    -------
    dict
        ``func``, ``x0``, ``do_grad``, ``bounds`` and ``fixed_vals``.
    callable
        Makes all parameters (P) of those that the minimiser sees.

    Raises
    ------
    Unsupported
        ``do_grad`` with the NumPy backend, which has no gradients, or with an objective other than
        `pyhf.infer.mle.twice_nll` of a `pyhf.Model`.

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> from nextstat.pyhf.optimize.common import shim
    >>> pyhf.set_backend("nextstat")
    >>> model = pyhf.simplemodels.uncorrelated_background([12.0, 11.0], [50.0, 52.0], [3.0, 7.0])
    >>> config, data = model.config, [51, 48] + model.config.auxdata
    >>> arguments, _ = shim(
    ...     pyhf.infer.mle.twice_nll,
    ...     data,
    ...     model,
    ...     config.suggested_init(),
    ...     config.suggested_bounds(),
    ...     do_grad=True,
    ... )
    >>> value, gradient = arguments["func"](arguments["x0"])
    >>> round(float(value), 6), round(float(gradient[0]), 6)
    (30.775254, 9.49616)
    >>> pyhf.set_backend("numpy")
    """
    tensorlib, _ = get_backend()
    fixed_vals = fixed_vals or []
    fixed = [index for index, _ in fixed_vals]
    free = [index for index in range(pdf.config.npars) if index not in set(fixed)]
    stitch_pars = _make_stitch_pars()
    if do_stitch:
        stitch_pars = _make_stitch_pars(_TensorViewer([fixed, free]), [value for _, value in fixed_vals])
        init_pars = tensorlib.tolist(tensorlib.astensor(init_pars)[free])
        par_bounds, fixed_vals = [par_bounds[index] for index in free], []
    moving = free if do_stitch else slice(None)
    wrap = _with_gradient if do_grad else _without_gradient
    func = wrap(objective, tensorlib.astensor(data), pdf, (stitch_pars, moving))
    return {"func": func, "x0": init_pars, "do_grad": do_grad, "bounds": par_bounds, "fixed_vals": fixed_vals}, stitch_pars


def _without_gradient(objective, data, pdf, stitching):
    stitch_pars, _ = stitching

    def func(pars):
        return objective(stitch_pars(get_backend()[0].astensor(pars)), data, pdf)[0]

    return func


def _with_gradient(objective, data, pdf, stitching):
    _need_gradients(objective, pdf)
    stitch_pars, moving = stitching

    def func(pars):
        nll, gradient = pdf._nll_and_grad(stitch_pars(np.asarray(pars, dtype=float)), data)
        return 2.0 * nll, 2.0 * gradient[moving]

    return func
