#!/usr/bin/env python3
"""Writes numbers.json, which the unit tests compare with.

Needs scipy (written with 1.17.1) and uncertainties (3.2.3):

    make_numbers.py > unit/numbers.json

Intervals are Garwood's, from quantiles of the χ² distribution by SciPy. Roundings to two digits of
the uncertainty are those of the package uncertainties; the tests of the crate nextstat read them,
too, because the page and the command round alike.
"""

import json
import random

from scipy.special import gammainc, gammaln
from scipy.stats import chi2, norm
from uncertainties import ufloat

ALPHA = 2 * norm.sf(1)
COUNTS = [0, 0.02, 0.3, 0.5, 1, 1.5, 2, 3, 4, 5, 7.25, 10, 15, 27, 50, 99, 100.5, 391, 1000, 9999, 10001, 12345.6, 1e5, 3e6, 1e9]


def garwood(n):
    lower = float(chi2.ppf(ALPHA / 2, 2 * n) / 2) if n > 0 else 0.0
    return {"count": n, "lower": lower, "upper": float(chi2.isf(ALPHA / 2, 2 * n + 2) / 2)}


def incomplete_gamma():
    points = [(a, a * f) for a in (0.02, 0.5, 1, 3.7, 20, 400, 9000) for f in (0.5, 0.9, 1, 1.1, 2)]
    return [{"a": a, "x": x, "p": float(gammainc(a, x)), "log_gamma": float(gammaln(a))} for a, x in points]


def roundings():
    rng = random.Random(7)
    leading = [1.0, 1.19, 2.5, 3.53, 3.56, 3.67, 5.0, 7.4, 9.47, 9.52, 9.8]
    found = []
    for mantissa in leading:
        for power in (-5, -3, -1, 0, 1):
            uncertainty = float(f"{mantissa}e{power}")
            value = round(rng.uniform(-40, 40) * uncertainty, 12)
            text = f"{ufloat(value, uncertainty):.2uf}".replace("+/-", " ± ")
            found.append({"value": value, "uncertainty": uncertainty, "text": text})
    return found


if __name__ == "__main__":
    print(json.dumps({"garwood": [garwood(n) for n in COUNTS], "gamma": incomplete_gamma(), "roundings": roundings()}, indent=1, ensure_ascii=False))
