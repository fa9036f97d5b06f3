"""Special functions that NumPy does not have, element by element."""

import math

import numpy as np


def _element_by_element(function):
    vectorised = np.frompyfunc(function, 1, 1)

    def apply(values):
        result = vectorised(values)
        return np.asarray(result, dtype=float) if isinstance(result, np.ndarray) else np.float64(result)

    return apply


def _log_gamma(x):
    return math.inf if math.isinf(x) or (x <= 0 and x == int(x)) else math.lgamma(x)


def _inverse_erf(x):
    """Returns erf⁻¹: the normal quantile, then one Newton step on the side where erf or erfc is
    exact."""
    if not -1.0 <= x <= 1.0:
        return math.nan
    if abs(x) == 1.0 or x == 0.0:
        return math.copysign(math.inf, x) if x else 0.0
    from statistics import NormalDist

    y = NormalDist().inv_cdf(0.5 * (1.0 - abs(x))) / -math.sqrt(2.0) if abs(x) < 1.0 else math.inf
    residual = math.erfc(y) - (1.0 - abs(x)) if abs(x) > 0.5 else abs(x) - math.erf(y)
    return math.copysign(y + residual * 0.5 * math.sqrt(math.pi) * math.exp(y * y), x)


erf = _element_by_element(math.erf)
erfinv = _element_by_element(_inverse_erf)
log_gamma = _element_by_element(_log_gamma)
_normal_cdf = _element_by_element(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)))


def normal_cdf(x):
    """Returns Φ(x), with full relative precision in the lower tail."""
    return _normal_cdf(x)


def x_log_y(x, y):
    """Returns x·ln y, and 0 where x = 0 whatever y is."""
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    with np.errstate(divide="ignore", invalid="ignore"):
        product = x * np.log(y)
    return np.where((x == 0.0) & ~np.isnan(y), 0.0, product)[()]
