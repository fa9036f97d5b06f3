#!/usr/bin/env python3
"""Predictions of validation regions by cabinetry and pyhf, for our own fit of a control region.

    python testdata/cabinetry/regions.py --nextstat target/release/nextstat > testdata/cabinetry/regions.json     (needs cabinetry 0.6.0)

The workspace has a control, a validation and a signal region. cabinetry gets the fit of the control region alone that `nextstat fit` prints,
matches it with the model of all regions (`match_fit_results`) and predicts their yields (`yield_stdev`), with uncertainties 100,000 times smaller,
times 100,000, as in `generate.py`. χ² of the data of a region is (n - λ)ᵀ V⁻¹ (n - λ) with V = diag(λ) + J C Jᵀ: λ is what pyhf expects, J its
derivatives by central differences, and C the covariance that cabinetry has matched.

`same_sign` is the same for a workspace with same-sign and asymmetric systematics, with the uncertainties as they are: half differences, which is
cabinetry's own definition.
"""
import argparse, datetime, json, subprocess, sys, tempfile

import cabinetry
import numpy
import pyhf
from cabinetry.fit.results_containers import FitResults
from cabinetry.model_utils import match_fit_results, yield_stdev

SMALL = 1e-5


def sample(name, data, *modifiers, stat=None):
    found = [{"name": name, "type": kind, "data": data} for name, kind, data in modifiers]
    found += [] if stat is None else [{"name": stat[0], "type": "staterror", "data": stat[1]}]
    return {"name": name, "data": data, "modifiers": found}



def channel(name, signal, ttbar, wjets, stat):
    shift = lambda data, size: {"hi_data": [x * (1 + size * (i + 1)) for i, x in enumerate(data)], "lo_data": [x * (1 - 0.8 * size * (i + 1)) for i, x in enumerate(data)]}
    samples = [
        sample("ttbar", ttbar, ("norm_ttbar", "normfactor", None), ("jes", "histosys", shift(ttbar, 0.04)), stat=(f"stat_{name}", stat)),
        sample("wjets", wjets, ("xs_wjets", "normsys", {"hi": 1.2, "lo": 0.85}), ("jes", "histosys", shift(wjets, 0.02))),
    ]
    if signal:
        samples.append(sample("signal", signal, ("mu", "normfactor", None), ("acceptance", "normsys", {"hi": 1.05, "lo": 0.96})))
    return {"name": name, "samples": samples}


WORKSPACE = {
    "version": "1.0.0",
    "channels": [
        channel("CR", None, [400.0, 250.0, 120.0], [60.0, 40.0, 30.0], [8.0, 6.0, 4.0]),
        channel("VR", [2.0, 3.0, 4.0], [80.0, 60.0, 35.0], [20.0, 15.0, 12.0], [3.5, 3.0, 2.0]),
        channel("SR", [4.0, 9.0], [30.0, 12.0], [9.0, 5.0], [2.0, 1.0]),
    ],
    "observations": [{"name": "CR", "data": [475.0, 301.0, 144.0]}, {"name": "VR", "data": [118.0, 70.0, 58.0]}, {"name": "SR", "data": [47.0, 21.0]}],
    "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": []}}],
}


def same_sign():
    """The workspace with systematics whose variations of a yield have the same sign or different sizes."""
    workspace = json.loads(json.dumps(WORKSPACE))
    for found in workspace["channels"]:
        for one in found["samples"]:
            data, n = one["data"], len(one["data"])
            if one["name"] == "ttbar":
                both = {"hi_data": [x * (1.10 + 0.02 * i) for i, x in enumerate(data)], "lo_data": [x * (1.04 + 0.03 * (n - i)) for i, x in enumerate(data)]}
                one["modifiers"].append({"name": "generator", "type": "histosys", "data": both})
            if one["name"] == "wjets":
                one["modifiers"].append({"name": "scale", "type": "normsys", "data": {"hi": 1.5, "lo": 0.9}})
    return workspace


def half_differences(nextstat):
    """The fit of the control region, and cabinetry's prediction with it."""
    workspace = same_sign()
    ours = fit(nextstat, dict(pyhf.Workspace(workspace).prune(channels=["VR", "SR"])), "--poi", "none")
    kept = {key: ours[key] for key in ("par_names", "bestfit", "uncertainties", "correlation")}
    widths = numpy.array([u or 0.0 for u in ours["uncertainties"]])
    stored = FitResults(numpy.array(ours["bestfit"]), widths, ours["par_names"], numpy.array(ours["correlation"]), ours["twice_nll"])
    model = pyhf.Workspace(workspace).model(modifier_settings={"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}})
    matched = match_fit_results(model, stored)
    bins, sums = yield_stdev(model, matched.bestfit, matched.uncertainty, matched.corr_mat)
    regions = {name: {"uncertainties": list(bins[c][-1]), "sum_uncertainty": sums[c][-1]} for c, name in enumerate(model.config.channels)}
    return {"workspace": workspace, "fit": kept, "regions": regions}


def fit(nextstat, workspace, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(workspace, file)
        file.flush()
        done = subprocess.run([nextstat, "fit", file.name, "--quiet", "--correlation", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def jacobian(model, params, widths):
    """∂λ/∂θ of the main bins (B × P), by central differences of 4th order."""
    columns = []
    for i, width in enumerate(widths):
        h = 1e-2 * (width or 1.0)
        at = lambda k: model.expected_data([x + k * h * (j == i) for j, x in enumerate(params)], include_auxdata=False)
        columns.append((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h))
    return numpy.array(columns).T


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nextstat", required=True)
    arguments = parser.parse_args()
    control = pyhf.Workspace(WORKSPACE).prune(channels=["VR", "SR"])
    ours = fit(arguments.nextstat, dict(control), "--poi", "none")
    widths = numpy.array([u or 0.0 for u in ours["uncertainties"]])
    stored = FitResults(numpy.array(ours["bestfit"]), widths, ours["par_names"], numpy.array(ours["correlation"]), ours["twice_nll"])
    model = pyhf.Workspace(WORKSPACE).model(modifier_settings={"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}})
    matched = match_fit_results(model, stored)
    bins, sums = yield_stdev(model, matched.bestfit, SMALL * matched.uncertainty, matched.corr_mat)
    expected = model.expected_data(matched.bestfit, include_auxdata=False)
    J = jacobian(model, matched.bestfit, matched.uncertainty)
    covariance = J @ (matched.corr_mat * numpy.outer(matched.uncertainty, matched.uncertainty)) @ J.T
    observed = numpy.array([n for name in model.config.channels for o in WORKSPACE["observations"] if o["name"] == name for n in o["data"]])
    V, residual = numpy.diag(expected) + covariance, observed - expected
    regions, start = {}, 0
    for c, name in enumerate(model.config.channels):
        stop = start + model.config.channel_nbins[name]
        part = slice(start, stop)
        regions[name] = {
            "yields": expected[part].tolist(),
            "uncertainties": [u / SMALL for u in bins[c][-1]],
            "sum_uncertainty": sums[c][-1] / SMALL,
            "chi_squared": float(residual[part] @ numpy.linalg.solve(V[part, part], residual[part])),
        }
        start = stop
    outside = [i for i, name in enumerate(n for c in model.config.channels for n in [c] * model.config.channel_nbins[c]) if name != "CR"]
    both = float(residual[outside] @ numpy.linalg.solve(V[numpy.ix_(outside, outside)], residual[outside]))
    certificate = {"tool": "cabinetry", "version": cabinetry.__version__, "pyhf": pyhf.__version__, "numpy": numpy.__version__,
                   "python": sys.version.split()[0], "command": "python testdata/cabinetry/regions.py --nextstat target/release/nextstat",
                   "date": datetime.date.today().isoformat()}
    found = {"certificate": certificate, "workspace": WORKSPACE, "regions": regions, "chi_squared_of_both": both}
    print(json.dumps({**found, "same_sign": half_differences(arguments.nextstat)}))


if __name__ == "__main__":
    main()
