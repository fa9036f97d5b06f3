"""A finished fit as `iminuit.Minuit` would show it: what tools read from the object behind pyhf's Minuit optimizer."""

from collections import namedtuple

import numpy as np

Param = namedtuple("Param", "number name value error merror is_const is_fixed has_limits lower_limit upper_limit")
FMin = namedtuple("FMin", "fval edm nfcn is_valid has_reached_call_limit is_above_max_edm has_covar has_accurate_covar")
MError = namedtuple("MError", "name lower upper is_valid")


class Matrix(np.ndarray):
    """A covariance matrix (P × P) that knows its correlations."""

    def correlation(self):
        """ρ_ij = V_ij / √(V_ii V_jj), zero where a variance is."""
        width = np.sqrt(np.diag(np.asarray(self)))
        scale = np.outer(width, width)
        values = np.divide(np.asarray(self), scale, out=np.zeros(self.shape), where=scale > 0.0)
        return values.view(Matrix)


class MinuitView:
    """Values, errors, covariance and MINOS intervals of a fit.

    Attributes
    ----------
    values, errors : ndarray
        Parameters and standard deviations (P).
    fixed : list of bool
    limits : list of tuple
    covariance : Matrix or None
        (P × P).
    fval : float
        -2 ln L at the minimum.
    merrors : dict
        MINOS intervals that were asked for, by parameter name.
    """

    def __init__(self, pdf, data, box, found, optimizer):
        self._pdf, self._data, self._box, self._found = pdf, data, box, found
        self.parameters = tuple(pdf.config.par_names)
        self.pos2var = self.parameters
        self.npar = len(self.parameters)
        self.fixed = list(box[3])
        self.limits = list(zip(np.asarray(box[1]).tolist(), np.asarray(box[2]).tolist()))
        self.values = np.array(found["bestfit"])
        self.errors = np.where(self.fixed, 0.0, found["uncertainties"])
        covariance = found["covariance"]
        self.covariance = None if covariance is None else np.asarray(covariance).view(Matrix)
        self.fval = found["twice_nll"]
        self.nfcn = self.ngrad = found["n_evaluations"]
        self.valid = self.accurate = found["converged"]
        self.nfit = self.fixed.count(False)
        self.errordef, self.strategy, self.tol, self.print_level = optimizer.errordef, optimizer.strategy, optimizer.tolerance, optimizer.verbose
        self.merrors = {}

    @property
    def fmin(self):
        """The state of the minimum."""
        return FMin(self.fval, self._found["edm"], self.nfcn, self.valid, False, not self.valid, self.covariance is not None, self.covariance is not None)

    @property
    def params(self):
        """One record for each parameter (P)."""
        return tuple(self._param(i) for i in range(self.npar))

    def _param(self, i):
        interval = self.merrors.get(self.parameters[i])
        merror = None if interval is None else (interval.lower, interval.upper)
        return Param(i, self.parameters[i], self.values[i], self.errors[i], merror, False, self.fixed[i], True, *self.limits[i])

    def minos(self, *names):
        """Asymmetric intervals of the parameters `names`, of all that are free if there are none; NaN for an end beyond the range."""
        wanted = [self.parameters.index(name) if isinstance(name, str) else name for name in names]
        wanted = wanted or [i for i in range(self.npar) if not self.fixed[i]]
        from_minimum = (self.values, *self._box[1:])
        found = self._pdf._fit(self._data, from_minimum, False, wanted)
        for interval in found["minos"]:
            ends = [np.nan if interval[side] is None else interval[side] for side in ("down", "up")]
            name = interval["parameter"]
            self.merrors[name] = MError(name, *ends, not np.isnan(ends).any())
        return self

    def __repr__(self):
        rows = (f"{p.name} = {p.value:.6g} ± {p.error:.3g}" + (" (fixed)" if p.is_fixed else "") for p in self.params)
        return "\n".join([f"-2 ln L = {self.fval:.6f}, edm = {self._found['edm']:.2g}, {'valid' if self.valid else 'not valid'}", *rows])
