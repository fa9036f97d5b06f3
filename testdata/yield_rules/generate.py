#!/usr/bin/env python3
"""Models with rules of yields, with expected counts and -ln L at random points.

    python testdata/yield_rules/generate.py > testdata/yield_rules/reference.json        (needs pyhf, NumPy, SciPy)

`clipped` come from pyhf with its clip options, minima included. `combine` come from the formulas of
autoMCStats, of morphed shapes and of shapeN, written here in NumPy from their definitions and with SciPy's densities.
"""
import datetime, json, sys

import numpy as np
import pyhf
import scipy, scipy.optimize, scipy.stats

RANDOM = np.random.default_rng(20261125)


def document(samples, observed, config, name="SR"):
    return {
        "channels": [{"name": name, "samples": samples}],
        "observations": [{"name": name, "data": observed}],
        "measurements": [{"name": "m", "config": config}],
        "version": "1.0.0",
    }


def clipped(clip):
    """A falling background that a histosys pulls below zero, and a signal; minima by a simplex on pyhf's -ln L."""
    options = {"clip_sample_data": clip.get("samples"), "clip_bin_data": clip.get("bins")}
    background = {"name": "background", "data": [50.0, 8.0, 0.6, 0.2], "modifiers": [
        {"name": "tail", "type": "histosys", "data": {"lo_data": [45.0, 9.5, 1.1, 0.5], "hi_data": [57.0, 5.5, 0.1, -0.2]}},
        {"name": "rate", "type": "normsys", "data": {"lo": 0.9, "hi": 1.15}},
    ]}
    signal = {"name": "signal", "data": [2.0, 3.0, 1.5, 0.1], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    observed = [56.0, 7.0, 0.0, 0.0]
    spec = document([background, signal], observed, {"poi": "mu", "parameters": []})
    settings = {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}
    workspace = pyhf.Workspace(spec)
    model = workspace.model(modifier_settings=settings, **options)
    data = workspace.data(model)
    points = []
    for _ in range(12):
        values = dict(zip(model.config.par_names, RANDOM.normal([0.0, 1.0, 0.0], [2.0, 0.7, 1.0])))
        values["mu"] = abs(values["mu"])
        params = [values[name] for name in model.config.par_names]
        # Above zero pyhf's -ln L is finite.
        expected = model.expected_actualdata(params)
        nll = float(-model.logpdf(params, data)[0]) if (expected > 0).all() else None
        points.append({"parameters": values, "expected": expected.tolist(), "nll": nll})
    # Minuit does not converge where a limit makes a kink; the simplex does not mind.
    objective = lambda params: -float(model.logpdf(params, data)[0])
    starts = [dict(tail=tail, mu=mu, rate=0.0) for tail in (-1.0, 0.0, 1.0) for mu in (0.05, 1.0)]
    starts = [[start[name] for name in model.config.par_names] for start in starts]
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 5000, "maxfev": 5000}
    bounds = model.config.suggested_bounds()
    found = [scipy.optimize.minimize(objective, start, method="Nelder-Mead", bounds=bounds, options=options) for start in starts]
    lowest = min(float(result.fun) for result in found)
    spec["measurements"][0]["config"]["clip"] = clip
    return {"workspace": spec, "points": points, "lowest_nll": lowest}


def smooth_step(x):
    return np.where(abs(x) >= 1, np.sign(x), x * (x * x * (3 * x * x - 10) + 15) / 8)


def weights(x):
    """Of the differences up and down."""
    return x / 2 * (smooth_step(x) + 1), x / 2 * (smooth_step(x) - 1)


def morphed(sample, values, is_logarithmic, clip):
    nominal = np.array(sample["data"])
    shape = np.log(nominal) if is_logarithmic else nominal.copy()
    for name, (down, up) in sample["shapes"].items():
        p, q = weights(values[name])
        down, up = np.array(down), np.array(up)
        differences = (np.log(up / nominal), np.log(down / nominal)) if is_logarithmic else (up - nominal, down - nominal)
        shape = shape + p * differences[0] + q * differences[1]
    shape = np.exp(shape) if is_logarithmic else np.maximum(shape, clip)
    return shape * nominal.sum() / shape.sum()


def combine(is_logarithmic):
    """Two samples with shapes that are normalised, and autoMCStats."""
    n_bins, clip = 5, 0.9
    samples = {}
    for k, (name, total) in enumerate((("background", 80.0), ("other", 30.0), ("signal", 12.0))):
        data = total * RANDOM.dirichlet(np.full(n_bins, 4.0))
        shapes = {}
        for syst in ("shape_a", "shape_b")[: 3 - k]:
            down, up = (data * RANDOM.uniform(0.6, 1.4, n_bins) for _ in range(2))
            shapes[syst] = tuple((x * data.sum() / x.sum()).tolist() for x in (down, up))
        samples[name] = {"data": data.tolist(), "shapes": shapes, "errors": (data * RANDOM.uniform(0.03, 0.25, n_bins)).tolist(),
                         "rates": {"lumi_8TeV": 1.05, **({"r": None} if name == "signal" else {"xs_" + name: 1.2})}}
    observed = [float(RANDOM.poisson(sum(s["data"][b] for s in samples.values()))) for b in range(n_bins)]

    def expected(values):
        total, variance = np.zeros(n_bins), np.zeros(n_bins)
        for sample in samples.values():
            rate = np.prod([values[name] if kappa is None else np.exp(values[name] * np.log(kappa)) for name, kappa in sample["rates"].items()])
            total += rate * morphed(sample, values, is_logarithmic, clip)
            variance += (rate * np.array(sample["errors"])) ** 2
        nu = np.array([values[f"prop_binSR_bin{b}"] for b in range(n_bins)])
        return total + nu * np.sqrt(variance)

    def nll(values):
        main = scipy.stats.poisson.logpmf(observed, expected(values)).sum()
        return float(-main - sum(scipy.stats.norm.logpdf(value) for name, value in values.items() if name != "r"))

    written = []
    for name, sample in samples.items():
        modifiers = [{"name": "r", "type": "normfactor", "data": None}] if name == "signal" else []
        modifiers += [{"name": rate, "type": "normsys", "data": {"lo": 1 / kappa, "hi": kappa}, "interpolation": "combine_lnn"}
                      for rate, kappa in sample["rates"].items() if kappa is not None]
        modifiers += [{"name": syst, "type": "histosys", "data": {"lo_data": down, "hi_data": up},
                       "interpolation": "smooth_logarithm" if is_logarithmic else "smooth_linear"} for syst, (down, up) in sample["shapes"].items()]
        modifiers.append({"name": "prop_binSR", "type": "mcstat", "data": sample["errors"]})
        written.append({"name": name, "data": sample["data"], "modifiers": modifiers, "normalize": True,
                        **({} if is_logarithmic else {"clip": clip})})
    names = sorted({name for sample in samples.values() for name in (*sample["rates"], *sample["shapes"])})
    names += [f"prop_binSR_bin{b}" for b in range(n_bins)]
    points = []
    for _ in range(12):
        values = {name: float(RANDOM.normal(0, 1.2)) for name in names}
        values["r"] = float(RANDOM.uniform(0.2, 3.0))
        points.append({"parameters": values, "expected": expected(values).tolist(), "nll": nll(values)})
    return {"workspace": document(written, observed, {"poi": "r", "parameters": []}), "points": points, "lowest_nll": None}


cases = {
    "clipped_samples": clipped({"samples": 0.0}),
    "clipped_bins": clipped({"bins": 0.3}),
    "clipped_both": clipped({"samples": 0.0, "bins": 0.1}),
    "morphing": combine(False),
    "logarithms": combine(True),
}
certificate = {"tool": "pyhf, SciPy", "version": f"{pyhf.__version__}, {scipy.__version__}",
               "command": "python testdata/yield_rules/generate.py", "date": datetime.date.today().isoformat()}
json.dump({"certificate": certificate, "cases": cases}, sys.stdout, indent=1)
print()
