#!/usr/bin/env python3
"""-ln f(a | θ) of every constraint term, from the distributions of SciPy.

    python testdata/constraints/scipy_densities.py > testdata/constraints/scipy.json

Beta is offset + factor·θ. The log-normal density of the parameter is normalised in a numerically.
"""
import datetime, json, math

import numpy as np
import scipy
from scipy import integrate, special, stats

random = np.random.default_rng(1)


def poisson(tau):
    # With the gamma function in place of the factorial, for counts that are not whole.
    return lambda a, theta: tau * theta - a * math.log(tau * theta) + special.gammaln(a + 1)


def asymmetric(lo, hi):
    def nll(a, theta):
        pull = (theta - a) / (lo if theta < a else hi)
        return -math.log(2 / (lo + hi)) - stats.norm.logpdf(pull)
    return nll


def lognormal_of_parameter(kappa):
    def density(a, theta):
        return stats.lognorm.pdf(theta, math.log(kappa), scale=a)

    def nll(a, theta):
        # In the logarithm of a, where the density is a Gaussian.
        s = math.log(kappa)
        middle = math.log(theta) + s * s
        norm = integrate.quad(lambda x: density(math.exp(x), theta) * math.exp(x), middle - 12 * s, middle + 12 * s,
                              epsabs=0, epsrel=1e-13, limit=500)[0]
        return -math.log(density(a, theta) / norm)
    return nll


def rows():
    for _ in range(8):
        sigma, lo, hi = random.uniform(0.1, 2, 3)
        tau, kappa = random.uniform(4, 200), random.uniform(1.05, 1.6)
        offset, factor = 1.0, random.uniform(0.05, 0.4)
        alpha, near_one, count = random.normal(), random.uniform(0.7, 1.4), tau * random.uniform(0.7, 1.4)
        beta = offset + factor * alpha
        quantity = {"offset": offset, "factor": factor}
        datum = lambda a, x: -stats.lognorm.logpdf(a, math.log(kappa), scale=x)
        yield {"type": "gaussian", "sigma": sigma}, None, random.normal(), alpha, (
            lambda a, x: -stats.norm.logpdf(a, x, sigma)), alpha
        yield {"type": "asymmetric_gaussian", "sigma_lo": lo, "sigma_hi": hi}, None, random.normal(), alpha, (
            asymmetric(lo, hi)), alpha
        yield {"type": "poisson", "tau": tau}, None, count, near_one, poisson(tau), near_one
        yield {"type": "gamma", "tau": tau}, None, count, near_one, (
            lambda a, x: -stats.gamma.logpdf(x, a + 1, scale=1 / tau)), near_one
        yield {"type": "gamma", "tau": tau}, quantity, count, alpha, (
            lambda a, x: -stats.gamma.logpdf(x, a + 1, scale=1 / tau)), beta
        yield {"type": "lognormal", "kappa": kappa}, None, near_one, 1.1, datum, 1.1
        yield {"type": "lognormal", "kappa": kappa}, quantity, near_one, alpha, datum, beta
        yield {"type": "lognormal", "kappa": kappa, "density": "parameter"}, quantity, near_one, alpha, (
            lognormal_of_parameter(kappa)), beta


certificate = {"tool": "scipy", "version": scipy.__version__,
               "command": "python testdata/constraints/scipy_densities.py", "date": datetime.date.today().isoformat()}
cases = [{"term": term, "beta": quantity, "aux": a, "theta": theta, "nll": float(nll(a, x))}
         for term, quantity, a, theta, nll, x in rows()]
print(json.dumps({"certificate": certificate, "rows": cases}, indent=1))
