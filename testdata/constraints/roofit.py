#!/usr/bin/env python3
"""Twice -ln L of HistFactory models with every constraint term, from ROOT.

    python testdata/constraints/roofit.py > testdata/constraints/roofit.json        (needs the wheel of ROOT)

Each model is built by the classes of HistFactory, and described in the documents of this project. At random
points of all parameters, ROOT evaluates the pdf; the first point is the reference, because ROOT leaves
constants out. Constraint terms are normalised in their parameters: in its global observable, which has the
range [0, 10], the normalisation of a gamma term depends on the parameter. ROOT's log-normal systematic is a normal α, with the effect of (κ^α - 1)/(κ - 1).
"""
import datetime, json, os, sys

import numpy as np
import ROOT

ROOT.gErrorIgnoreLevel = ROOT.kFatal
ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
HF = ROOT.RooStats.HistFactory
random = np.random.default_rng(7)
KEEP = []


def histogram(name, values):
    found = ROOT.TH1D(name, name, len(values), 0, len(values))
    found.SetDirectory(ROOT.nullptr)
    for i, value in enumerate(values):
        found.SetBinContent(i + 1, value)
    # HistFactory owns its histograms.
    ROOT.SetOwnership(found, False)
    return found


def histfactory(spec):
    """Returns the workspace of ROOT for one channel."""
    measurement = HF.Measurement("m", "m")
    measurement.SetPOI("mu")
    measurement.SetLumi(1.0)
    measurement.SetLumiRelErr(0.1)
    measurement.AddConstantParam("Lumi")
    for name, size in spec["gamma"].items():
        measurement.AddGammaSyst(name, size)
    for name, size in spec["lognormal"].items():
        measurement.AddLogNormSyst(name, size)
    for name, size in spec["uniform"].items():
        measurement.AddUniformSyst(name)
    channel = HF.Channel("SR")
    channel.SetData(histogram("data", spec["data"]))
    if spec["stat"]:
        channel.SetStatErrorConfig(spec["threshold"], spec["stat"])
    for sample in spec["samples"]:
        found = HF.Sample(sample["name"])
        found.SetHisto(histogram(sample["name"], sample["nominal"]))
        found.SetNormalizeByTheory(False)
        if sample["name"] == "signal":
            found.AddNormFactor("mu", 1, 0, 10)
        for name, (lo, hi) in sample["overall"].items():
            found.AddOverallSys(name, lo, hi)
        for name, (lo, hi) in sample["histo"].items():
            shape = HF.HistoSys()
            shape.SetName(name)
            shape.SetHistoLow(histogram(f"{name}_{sample['name']}_lo", lo))
            shape.SetHistoHigh(histogram(f"{name}_{sample['name']}_hi", hi))
            found.AddHistoSys(shape)
        if sample["stat"]:
            relative = np.array(sample["stat"]) / np.array(sample["nominal"])
            found.GetStatError().Activate(True)
            found.GetStatError().SetErrorHist(histogram(f"{sample['name']}_stat", relative))
        for name, (kind, errors) in sample["shape"].items():
            shape = HF.ShapeSys()
            shape.SetName(name)
            shape.SetConstraintType(getattr(HF.Constraint, kind))
            shape.SetErrorHist(histogram(f"{name}_{sample['name']}", np.array(errors) / np.array(sample["nominal"])))
            found.AddShapeSys(shape)
        channel.AddSample(found)
    measurement.AddChannel(channel)
    workspace = HF.MakeModelAndMeasurementFast(measurement)
    KEEP.extend([measurement, workspace])
    return workspace


def document(spec):
    """Returns the same model as a document of this project."""
    samples = []
    for sample in spec["samples"]:
        modifiers = [{"name": "mu", "type": "normfactor", "data": None}] if sample["name"] == "signal" else []
        modifiers += [{"name": name, "type": "normsys", "data": {"lo": lo, "hi": hi}}
                      for name, (lo, hi) in sample["overall"].items()]
        modifiers += [{"name": name, "type": "histosys", "data": {"lo_data": lo, "hi_data": hi}}
                      for name, (lo, hi) in sample["histo"].items()]
        if sample["stat"]:
            modifiers.append({"name": "staterror_SR", "type": "staterror", "data": sample["stat"]})
        modifiers += [{"name": name, "type": "shapesys", "data": errors}
                      for name, (_, errors) in sample["shape"].items()]
        samples.append({"name": sample["name"], "data": sample["nominal"], "modifiers": modifiers})
    parameters = []
    for name, r in spec["gamma"].items():
        parameters.append({"name": name, "constraints": [{"type": "gamma", "tau": 1 / r ** 2}],
                           "auxdata": [1 / r ** 2], "beta": {"offset": 1, "factor": r}, "bounds": [[-1 / r, 9 / r]]})
    for name, r in spec["lognormal"].items():
        parameters.append({"name": name, "constraints": [{"type": "lognormal", "kappa": 1 + r}], "auxdata": [1],
                           "beta": {"offset": 1, "factor": r}})
    for name in spec["uniform"]:
        parameters.append({"name": name, "constraints": [{"type": "gaussian", "sigma": 100}]})
    if spec["stat"]:
        parameters.append({"name": "staterror_SR", "per_bin": {"constraint": spec["stat"].lower(),
                                                              "relative_threshold": spec["threshold"]}})
    for sample in spec["samples"]:
        for name, (kind, _) in sample["shape"].items():
            parameters.append({"name": name, "per_bin": {"constraint": kind.lower()}})
    return {"channels": [{"name": "SR", "samples": samples}],
            "observations": [{"name": "SR", "data": spec["data"]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": parameters}}], "version": "1.0.0"}


def model(stat, shape_kind, n_bins=3):
    """Returns a model in which every kind of systematic has an effect on every sample."""
    # The datum of a gamma term is 1/r², and ROOT cuts it at 10.
    sizes = {"gamma": {"g": 0.35}, "lognormal": {"l": 0.15}, "uniform": {"u": 0.3}}
    names = ["g", "l", "u", "n"]
    samples = []
    for name, scale in (("background", 60.0), ("signal", 12.0)):
        nominal = [scale * random.uniform(0.6, 1.4) for _ in range(n_bins)]
        vary = lambda low, high: [y * random.uniform(low, high) for y in nominal]
        samples.append({
            "name": name, "nominal": nominal,
            "overall": {x: (random.uniform(0.8, 0.95), random.uniform(1.05, 1.25)) for x in names},
            "histo": {x: (vary(0.9, 1.0), vary(1.0, 1.1)) for x in names[2:]},
            "stat": [y * r for y, r in zip(nominal, [0.02, 0.1, 0.2])] if stat else None,
            "shape": {f"shape_{name}": (shape_kind, [y * random.uniform(0.05, 0.2) for y in nominal])},
        })
    data = [float(round(sum(s["nominal"][i] for s in samples) * random.uniform(0.8, 1.2))) for i in range(n_bins)]
    return {**sizes, "samples": samples, "data": data, "stat": stat, "threshold": 0.05}


def parameters(spec):
    """Returns, by the name here, the name in ROOT, and the value here as a function of ROOT's."""
    r, kappa = spec["gamma"]["g"], 1 + spec["lognormal"]["l"]
    same = lambda x: x
    found = {"mu": ("mu", same), "n": ("alpha_n", same), "u": ("alpha_u", same),
             "g": ("beta_g", lambda beta: (beta - 1) / r), "l": ("alpha_l", lambda x: (kappa ** x - 1) / (kappa - 1))}
    for i in range(len(spec["data"])):
        if spec["stat"]:
            found[f"staterror_SR[{i}]"] = (f"gamma_stat_SR_bin_{i}", same)
        for sample in spec["samples"]:
            for name in sample["shape"]:
                found[f"{name}[{i}]"] = (f"gamma_{name}_bin_{i}", same)
    return found


def evaluate(spec, n_points=20):
    workspace = histfactory(spec)
    config = workspace.obj("ModelConfig")
    pdf, data = config.GetPdf(), workspace.data("obsData")
    nll = pdf.createNLL(data, ROOT.RooFit.Constrain(config.GetNuisanceParameters()), ROOT.RooFit.Offset("none"))
    rows = []
    for _ in range(n_points):
        point = {}
        for name, (root, here) in parameters(spec).items():
            variable = workspace.var(root)
            low, high = {"alpha": (-2, 2), "beta_": (0.6, 1.5), "gamma": (0.8, 1.2), "mu": (0.5, 2)}[root[:5]]
            value = variable.getVal() if variable.isConstant() else random.uniform(low, high)
            variable.setVal(value)
            point[name] = here(value)
        rows.append({"point": point, "twice_nll": 2 * nll.getVal()})
    reference = rows[0]["twice_nll"]
    for row in rows:
        row["twice_nll"] -= reference
    return {"workspace": document(spec), "rows": rows}


certificate = {"tool": "ROOT", "version": ROOT.__version__, "command": "python testdata/constraints/roofit.py",
               "date": datetime.date.today().isoformat()}
models = [evaluate(model(stat, kind)) for stat, kind in (("Poisson", "Gaussian"), ("Gaussian", "Poisson"), (None, "Poisson"))]
json.dump({"certificate": certificate, "models": models}, sys.stdout, indent=1)
print()
sys.stdout.flush()
# The destructors of ROOT and of Python do not agree on an order.
os._exit(0)
