"""The engine's minimiser behind the names of pyhf's optimizers."""

import logging

import numpy as np

from ... import _internal
from .. import exceptions
from .._current import get_backend
from . import _other
from ._hessian import inverse as inverse_of

# Where pyhf says that a fit failed.
log = logging.getLogger("pyhf.optimize.mixins")

#: Evaluations that a fit may take.
_MAXITER = 100000


class OptimizeResult(dict):
    """A fit's result: a dictionary whose items are attributes too.

    Where SciPy is installed, users get SciPy's own class of this name.

    Attributes
    ----------
    x : ndarray
        Parameter values (P), or values and uncertainties (P × 2) if those were asked for.
    fun : ndarray
        -2 ln L there.
    success : bool
    message : str
    unc, corr : ndarray or None
        Standard deviations (P) and correlations (P × P).
    hess_inv : ndarray or None
        Of the Minuit optimizer the covariance (P × P). Of the SciPy optimizer the inverse Hessian
        of -2 ln L, and only if a method is chosen that has one, ``"BFGS"`` or ``"L-BFGS-B"``.
    minuit : MinuitView
        The same by iminuit's names, of the Minuit optimizer only.
    jac : ndarray
        Gradient of -2 ln L (P), of the SciPy optimizer only.
    status : int
        0 if the fit converged.
    nfev, njev, nit : int
    """

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __repr__(self):
        width = max(map(len, self), default=0)
        return "\n".join(f"{key:>{width}}: {value!r}" for key, value in self.items())


def _for_users(result):
    """Returns the result in SciPy's class where SciPy is installed.

    It is imported here, since only a caller of this needs it.
    """
    try:
        from scipy.optimize import OptimizeResult as scipys
    except ImportError:
        return result
    return scipys(result)


class _InverseHessian(np.ndarray):
    """An inverse Hessian (P × P) that can be read as an array, as SciPy's BFGS gives it, or by
    `todense`, as its L-BFGS-B does.
    """

    def todense(self):
        """Returns the matrix as a plain array."""
        return np.array(self)

    def matvec(self, x):
        """Returns the product with a vector (P)."""
        return np.asarray(self) @ np.asarray(x)


#: SciPy's methods whose results have an inverse Hessian.
_QUASI_NEWTON = ("bfgs", "l-bfgs-b")




def _need_gradients(objective, pdf):
    """Raises `Unsupported` if the backend has no gradients, or the engine none of this objective.
    """
    tensorlib = get_backend()[0]
    if not tensorlib.default_do_grad:
        raise exceptions.Unsupported(f"the backend `{tensorlib.name}` has no gradients; `pyhf.set_backend(\"nextstat\")` has the engine's")
    if not _is_of_the_engine(objective, pdf):
        raise exceptions.Unsupported("the engine has the gradient of `pyhf.infer.mle.twice_nll` of a `pyhf.Model` only")


def _is_of_the_engine(objective, pdf):
    from ..infer.mle import twice_nll
    from ..pdf import Model

    return objective is twice_nll and isinstance(pdf, Model)


class _Optimizer:
    """What the two optimizers have in common: everything but their options."""

    __slots__ = ["maxiter", "verbose", "tolerance"]
    _options = ("maxiter", "verbose", "tolerance")

    def __init__(self, **kwargs):
        for name, value in self._defaults().items():
            setattr(self, name, kwargs.pop(name, value))
        if kwargs:
            raise exceptions.Unsupported(f"Unsupported kwargs were passed in: {list(kwargs)}.")

    @classmethod
    def _defaults(cls):
        return {"maxiter": _MAXITER, "verbose": 0}

    def minimize(
        self,
        objective,
        data,
        pdf,
        init_pars,
        par_bounds,
        fixed_vals=None,
        return_fitted_val=False,
        return_result_obj=False,
        return_uncertainties=False,
        return_correlations=False,
        do_grad=None,
        do_stitch=False,
        **kwargs,
    ):
        """Minimises -2 ln L of `pdf` and `data`.

        Returns
        -------
        The parameters (P), or a tuple: parameters (with uncertainties, P × 2, if asked for),
        correlations, -2 ln L, the whole result.

        Raises
        ------
        FailedMinimization
            The fit did not converge; with the reason.
        Unsupported
            Unknown options; ``do_grad=True`` with the NumPy backend or another objective, which
            have no gradients; without SciPy also another objective than `pyhf.infer.mle.twice_nll`,
            or a model of another class.
        """
        if do_grad:
            _need_gradients(objective, pdf)
        unknown = [name for name in kwargs if name not in self._options]
        if unknown:
            raise exceptions.Unsupported(f"Unsupported options were passed in: {unknown}.")
        given = (kwargs.get("maxiter"), self.maxiter, _MAXITER)
        maxiter = next(limit for limit in given if limit is not None)
        wants_errors = return_uncertainties or return_correlations or (return_result_obj and self.name == "minuit")
        within = (init_pars, par_bounds, fixed_vals or [])
        if _is_of_the_engine(objective, pdf):
            result = self._fit(data, pdf, within, wants_errors)
        else:
            result = OptimizeResult(_other.minimize(objective, data, pdf, within))
        if not result.success or result.nfev > maxiter:
            if result.success:
                result.success, result.message = False, "Optimization failed. Call limit was reached."
            log.error(result)
            raise exceptions.FailedMinimization(_for_users(result))
        if return_result_obj and self.name == "scipy" and _is_of_the_engine(objective, pdf):
            result.update(self._derivatives(data, pdf, result.x, fixed_vals or [], kwargs.get("method")))
        if return_uncertainties and result.unc is not None:
            result.x = np.stack([result.x, result.unc], axis=1)
        wanted = [result.x]
        wanted += [result.corr] if return_correlations else []
        wanted += [result.fun] if return_fitted_val else []
        wanted += [_for_users(result)] if return_result_obj else []
        return tuple(wanted) if len(wanted) > 1 else wanted[0]

    def _minimize_each(self, data, pdf, init_pars, par_bounds, fixed_vals, progress):
        """Returns parameters (T × P) and -2 ln L (T) of the fits of many data sets (T × D), NaN
        where a fit failed.
        """
        found = pdf._fit_each(data, pdf._box(init_pars, par_bounds, fixed_vals), progress)
        limit = _MAXITER if self.maxiter is None else self.maxiter
        succeeded = found["converged"] & (found["n_evaluations"] <= limit)
        return found["params"], np.where(succeeded, found["twice_nll"], np.nan)

    def _fits_of_test(self, data, pdf, within, tested):
        """Returns the fits of an asymptotic test; None where one fails.

        `tested` has the parameter of interest, its value, and that of the Asimov data set.
        """
        init_pars, par_bounds, fixed_params = within
        try:
            box = pdf._box(init_pars, par_bounds, [(i, init_pars[i]) for i, is_fixed in enumerate(fixed_params) if is_fixed])
            poi, mu, asimov_mu = tested
            most = _MAXITER if self.maxiter is None else self.maxiter
            value = float(np.asarray(mu).reshape(()))
            return pdf._fits_of_test(data, box, {"poi": poi, "mu": value, "asimov_mu": asimov_mu, "most": most})
        except (ValueError, TypeError, LookupError, OverflowError, exceptions.Unsupported, exceptions.InvalidPdfData):
            return None

    def _derivatives(self, data, pdf, params, fixed_vals, method):
        """Returns gradient and, if `method` has one, inverse Hessian of -2 ln L at the minimum, as
        SciPy names them.
        """
        found = {"jac": 2.0 * pdf._nll_and_grad(params, data)[1]}
        if str(method).lower() in _QUASI_NEWTON:
            free = np.setdiff1d(np.arange(len(params)), [index for index, _ in fixed_vals])
            block = np.ix_(free, free)
            inverse = inverse_of(2.0 * pdf._hessian(params, data)[block])
            if inverse is not None:
                found["hess_inv"] = np.zeros((len(params), len(params))).view(_InverseHessian)
                found["hess_inv"][block] = inverse
        return found

    def _fit(self, data, pdf, within, wants_errors):
        init_pars, par_bounds, fixed_vals = within
        box = pdf._box(init_pars, par_bounds, fixed_vals)
        try:
            found = pdf._fit(data, box, wants_errors)
        except _internal.DataError as error:
            # NaN for a count, for example.
            message = f"Optimization failed. {error}"
            return OptimizeResult(x=np.asarray(init_pars, dtype=float), fun=np.asarray(np.nan), success=False, status=1, message=message, nfev=0)
        fixed = np.asarray(box[3], dtype=bool)
        message = "Optimization terminated successfully." if found["converged"] else "; ".join(["Optimization failed.", *found["warnings"]])
        result = OptimizeResult(
            x=found["bestfit"],
            fun=np.asarray(found["twice_nll"]),
            success=found["converged"],
            status=0 if found["converged"] else 1,
            message=message,
            nit=found["n_iterations"],
            nfev=found["n_evaluations"],
            njev=found["n_evaluations"],
            unc=None,
            corr=None,
        )
        if wants_errors:
            result.unc = np.where(fixed, 0.0, found["uncertainties"])
            if found["covariance"] is not None:
                # Of -ln L; of parameters that did not move, nothing.
                result.corr = np.where(fixed, 0.0, np.where(fixed[:, None], 0.0, found["correlation"]))
        if self.name == "minuit":
            from ._minuit import MinuitView

            result.hess_inv = found["covariance"] if wants_errors else None
            result.minuit = MinuitView(pdf, data, box, found, self)
        return result


class scipy_optimizer(_Optimizer):
    """The engine's minimiser, with the options of pyhf's SciPy optimizer; those that tune SciPy do
    nothing.
    """

    __slots__ = ["name", "solver_options"]
    _options = (*_Optimizer._options, "method", "solver_options")

    def __init__(self, *args, **kwargs):
        self.name = "scipy"
        super().__init__(*args, **kwargs)

    @classmethod
    def _defaults(cls):
        return {**super()._defaults(), "tolerance": None, "solver_options": {}}


class minuit_optimizer(_Optimizer):
    """The engine's minimiser, with the options of pyhf's Minuit optimizer; those that tune Minuit
    do nothing.
    """

    __slots__ = ["name", "errordef", "steps", "strategy"]
    _options = (*_Optimizer._options, "strategy")

    def __init__(self, *args, **kwargs):
        self.name = "minuit"
        super().__init__(*args, **kwargs)

    @classmethod
    def _defaults(cls):
        return {**super()._defaults(), "errordef": 1, "steps": 1000, "strategy": None, "tolerance": 0.1}


for _class in (scipy_optimizer, minuit_optimizer):
    _class.__module__ = __package__
