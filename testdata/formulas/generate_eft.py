"""Evaluates and minimises -ln L of `examples/eft.json` with NumPy, SciPy and pyhf's interpolation.

The likelihood is written here from the document, without the engine: formulas are evaluated by
Python's `eval`, normsys and histosys by pyhf's codes 4 and 4p.

    python testdata/formulas/generate_eft.py
"""

import datetime
import json
import math
import pathlib

import numpy as np
import pyhf
import scipy
from pyhf.interpolators.code4 import _slow_code4
from pyhf.interpolators.code4p import _slow_code4p
from scipy.optimize import minimize
from scipy.stats import norm, poisson

ROOT = pathlib.Path(__file__).parents[2]
NAMES = ["JES", "cW", "cB", "k", "theory", "tilt"]
CONSTRAINED = ["JES", "theory", "tilt"]
STARTS = [-4.0, -1.0, 1.0, 4.0]


def evaluated(data, values):
    """Returns the value of a formula of the document."""
    text = data["expression"]
    for i, name in enumerate(data.get("parameters", [])):
        text = text.replace(f"@{i}", name)
    return eval(text.replace("^", "**"), {"exp": math.exp}, values)


def normsys(data, alpha):
    """Returns the factor of a normsys."""
    return float(_slow_code4([[[[data["lo"]], [1.0], [data["hi"]]]]])([[alpha]])[0][0][0][0])


def histosys(data, nominal, alpha):
    """Returns the shift of a histosys."""
    histograms = [[[data["lo_data"], nominal, data["hi_data"]]]]
    return np.array(_slow_code4p(histograms)([[alpha]])[0][0][0])


def expected(document, values):
    """Returns the expected counts of all channels in the order of the document."""
    counts = []
    for channel in document["channels"]:
        total = 0.0
        for sample in channel["samples"]:
            nominal = np.array(sample["data"])
            yields, factor = nominal.copy(), 1.0
            for modifier in sample["modifiers"]:
                name, kind, data = modifier["name"], modifier["type"], modifier["data"]
                if kind == "morphing":
                    for term in data["terms"]:
                        yields += evaluated(term, values) * np.array(term["data"])
                elif kind == "formula":
                    factor *= evaluated(data, values)
                elif kind == "normsys":
                    factor *= normsys(data, values[name])
                else:
                    yields += histosys(data, nominal, values[name])
            total = total + factor * yields
        counts.extend(total)
    return np.array(counts)


def twice_nll(document, point):
    """Returns 2·(-ln L)."""
    values = dict(zip(NAMES, map(float, point), strict=True))
    observations = {o["name"]: o["data"] for o in document["observations"]}
    observed = np.concatenate([observations[c["name"]] for c in document["channels"]])
    counts = expected(document, values)
    if (counts <= 0).any():
        return math.inf
    main = -2 * poisson.logpmf(observed, counts).sum()
    return float(main - 2 * sum(norm.logpdf(0.0, values[name], 1.0) for name in CONSTRAINED))


def main():
    document = json.loads((ROOT / "examples" / "eft.json").read_text(encoding="utf-8"))
    rng = np.random.default_rng(7)
    low, high = np.array([-2, -2, -2, 0.7, -2, -2]), np.array([2, 2, 2, 1.3, 2, 2])
    points = [[float(x) for x in rng.uniform(low, high)] for _ in range(20)]
    minima = []
    for c_w in STARTS:
        for c_b in STARTS:
            start = [0.0, c_w, c_b, 1.0, 0.0, 0.0]
            for _ in range(3):
                found = minimize(lambda x: twice_nll(document, x), start, method="Nelder-Mead", options={"maxiter": 20000, "maxfev": 20000, "xatol": 1e-9, "fatol": 1e-11, "adaptive": True})
                start = found.x
            if all(abs(found.fun - known["twice_nll"]) > 1e-4 for known in minima):
                minima.append({"twice_nll": float(found.fun), "point": [float(x) for x in found.x]})
    minima.sort(key=lambda minimum: minimum["twice_nll"])
    result = {
        "certificate": {
            "tool": f"SciPy {scipy.__version__}, pyhf {pyhf.__version__}",
            "command": "python testdata/formulas/generate_eft.py",
            "date": datetime.date.today().isoformat(),
        },
        "parameters": NAMES,
        "points": [{"point": point, "twice_nll": twice_nll(document, point)} for point in points],
        "minima": minima,
    }
    path = pathlib.Path(__file__).with_name("eft.json")
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
