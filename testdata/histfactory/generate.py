"""Writes HistFactory XML with histograms, and what ROOT makes of it.

    python testdata/histfactory/generate.py    # needs root==0.1a12 (ROOT 6.40) from PyPI

ROOT's package for Python has no XML parser, so `measurement_of` builds HistFactory's classes from
the XML as ROOT's parser does (roofit/histfactory/src/ConfigParser.cxx), defaults included. For each
case `reference.json` has ROOT's parameters, and at some points the expected counts and 2NLL.
"""

import json
import math
import os
import random
import sys
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path

import numpy as np
import ROOT
from cases import CASES, HISTOGRAMS

HERE = Path(__file__).parent
N_POINTS = 8
SEED = 20260

kit = ROOT.RooStats.HistFactory


def write_histograms():
    """Writes `data.root`."""
    # The file has its own name in it, which should be of no machine.
    file = ROOT.TFile(os.path.relpath(HERE / "data.root"), "RECREATE", "", 505)
    for path, one in HISTOGRAMS.items():
        *folders, name = path.split("/")
        folder = file
        for step in folders:
            folder = folder.Get(step) or folder.mkdir(step)
        folder.cd()
        edges = np.array(one.get("edges", range(len(one["values"]) + 1)), dtype=float)
        histogram = getattr(ROOT, one.get("class", "TH1D"))(name, "", len(edges) - 1, edges)
        for bin, value in enumerate(one["values"]):
            histogram.SetBinContent(bin + 1, value)
        histogram.SetBinContent(0, 1000.0)  # no model counts what is below or above
        histogram.SetBinContent(len(edges), 2000.0)
        for bin, error in enumerate(one.get("errors", [])):
            histogram.SetBinError(bin + 1, error)
        histogram.Write()
    file.Close()


def write_xml(name, case):
    """Writes the files of a case."""
    inputs = []
    for channel, text in case["channels"].items():
        path = f"channels/{name}_{channel}.xml"
        body = f'<!DOCTYPE Channel SYSTEM \'../HistFactorySchema.dtd\'>\n\n<Channel Name="{channel}" {text[0]}>\n{text[1]}\n</Channel>\n'
        (HERE / path).write_text(body)
        inputs.append(f"  <Input>{path}</Input>")
    lines = ["<!DOCTYPE Combination SYSTEM 'HistFactorySchema.dtd'>", "", '<Combination OutputFilePrefix="results/model">']
    (HERE / f"{name}.xml").write_text("\n".join([*lines, *inputs, case["measurements"], "</Combination>"]) + "\n")


class Source:
    """What elements inherit of files and paths."""

    def __init__(self, element, outer=None):
        self.file = element.get("InputFile", outer.file if outer else "")
        self.path = element.get("HistoPath", outer.path if outer else "")

    def histogram(self, name, file=None, path=None):
        """A copy that HistFactory may delete."""
        opened = ROOT.TFile.Open(str(HERE / (self.file if file is None else file)))
        histogram = opened.Get("/".join(part for part in (self.path if path is None else path, name) if part)).Clone()
        histogram.SetDirectory(0)
        ROOT.SetOwnership(histogram, False)
        return histogram


def true(element, name, default=False):
    return {"True": True, "true": True, "False": False, "false": False}[element.get(name, str(default))]


def constraint(element, default):
    word = element.get("ConstraintType", default)
    return kit.Constraint.Gaussian if word in ("Gaussian", "Gauss") else kit.Constraint.Poisson


def measurement_of(top, element):
    """The measurement `element` of the combination `top`."""
    made = kit.Measurement(element.get("Name"), element.get("Name"))
    made.SetLumi(float(element.get("Lumi", 1.0)))
    made.SetLumiRelErr(float(element.get("LumiRelErr", 0.1)))
    for poi in element.findall("POI"):
        for name in (poi.text or "").split():
            made.AddPOI(name)
    for setting in element.findall("ParamSetting"):
        for name in setting.text.split():
            if setting.get("Const") == "True":
                made.AddConstantParam(name)
            if "Val" in setting.attrib:
                made.SetParamValue(name, float(setting.get("Val")))
    for term in element.findall("ConstraintTerm"):
        for name in term.text.split():
            relative = float(term.get("RelativeUncertainty", 0.0))
            match term.get("Type"):
                case "Gamma":
                    made.AddGammaSyst(name, relative)
                case "LogNormal":
                    made.AddLogNormSyst(name, relative)
                case "Uniform":
                    made.AddUniformSyst(name)
                case "NoConstraint":
                    made.AddNoSyst(name)
    for file in top.findall("Input"):
        made.AddChannel(channel_of(ET.parse(HERE / file.text.strip()).getroot()))
    return made


def channel_of(element):
    made = kit.Channel(element.get("Name"))
    source = Source(element)
    data = element.find("Data")
    if data is not None:
        made.SetData(Source(data, source).histogram(data.get("HistoName")))
    config = element.find("StatErrorConfig")
    if config is not None:
        made.SetStatErrorConfig(float(config.get("RelErrorThreshold", 0.05)), constraint(config, "Poisson"))
    for sample in element.findall("Sample"):
        made.AddSample(sample_of(sample, source))
    return made


def sample_of(element, outer):
    source = Source(element, outer)
    made = kit.Sample(element.get("Name"))
    made.SetHisto(source.histogram(element.get("HistoName")))
    made.SetNormalizeByTheory(true(element, "NormalizeByTheory", True))
    for child in element:
        name = child.get("Name")
        match child.tag:
            case "NormFactor":
                made.AddNormFactor(name, float(child.get("Val", 1.0)), float(child.get("Low")), float(child.get("High")))
            case "OverallSys":
                made.AddOverallSys(name, float(child.get("Low")), float(child.get("High")))
            case "HistoSys":
                one = kit.HistoSys()
                one.SetName(name)
                for side, set_histogram in (("Low", one.SetHistoLow), ("High", one.SetHistoHigh)):
                    set_histogram(source.histogram(child.get(f"HistoName{side}"), child.get(f"HistoFile{side}"), child.get(f"HistoPath{side}")))
                made.AddHistoSys(one)
            case "ShapeSys":
                one = kit.ShapeSys()
                one.SetName(name)
                one.SetErrorHist(Source(child, source).histogram(child.get("HistoName")))
                one.SetConstraintType(constraint(child, "Gaussian"))
                made.AddShapeSys(one)
            case "ShapeFactor":
                one = kit.ShapeFactor()
                one.SetName(name)
                if child.get("HistoName"):
                    one.SetInitialShape(Source(child, source).histogram(child.get("HistoName")))
                one.SetConstant(true(child, "Const"))
                made.AddShapeFactor(one)
            case "StatError":
                if true(child, "Activate"):
                    made.ActivateStatError()
                    if child.get("HistoName"):
                        made.GetStatError().SetUseHisto(True)
                        made.GetStatError().SetErrorHist(Source(child, source).histogram(child.get("HistoName")))
    return made


def expected(workspace, channels):
    """Expected counts of every bin of every channel."""
    found = {}
    for channel in channels:
        pdf, observable = workspace.pdf(f"{channel}_model"), workspace.var(f"obs_x_{channel}")
        counts = []
        for bin in range(observable.getBins()):
            observable.setBin(bin)
            counts.append(pdf.getVal() * observable.getBinWidth(bin))
        found[channel] = counts
    return found


def parameters_of(workspace):
    """ROOT's parameters: neither observables nor global ones."""
    config = workspace.obj("ModelConfig")
    observed = {one.GetName() for one in config.GetObservables()} | {one.GetName() for one in config.GetGlobalObservables()}
    inner = ("nom_", "nominal", "tau_", "kappa_", "theta_", "obs_x_", "weightVar", "binWidth")
    found = {}
    for one in config.GetPdf().getVariables():
        if one.GetName() not in observed and not one.GetName().startswith(inner) and one.ClassName() == "RooRealVar":
            found[one.GetName()] = one
    return found


def widths(workspace):
    """Widths of constraint terms in units of the parameter, for points that are not absurd."""
    found = {}
    for name, one in parameters_of(workspace).items():
        if name.startswith("gamma_") and one.getMax() < 10.0:
            found[name] = (one.getMax() - 1.0) / 5.0
    return found


def points(workspace, lumi_error, alpha_range, rng):
    """Values of the parameters that are not constant: the start, and random ones, α up to
    `alpha_range` on both sides."""
    free = {name: one for name, one in parameters_of(workspace).items() if not one.isConstant()}
    start = {name: one.getVal() for name, one in free.items()}
    yield start
    sigma = widths(workspace)
    for _ in range(N_POINTS - 1):
        values = {}
        for name, one in free.items():
            if name in sigma:
                values[name] = max(0.2, 1.0 + sigma[name] * rng.uniform(-2.0, 2.0))
            elif name.startswith("alpha_"):
                values[name] = rng.uniform(-alpha_range, alpha_range)
            elif name == "Lumi":
                # ROOT normalises the term over nominalLumi in 0 … Lumi + 10σ: not near its end.
                values[name] = start[name] + rng.uniform(-2.0, 2.0) * lumi_error
            elif name.startswith("gamma_"):
                values[name] = rng.uniform(0.5, 2.0)
            else:
                values[name] = rng.uniform(max(one.getMin(), 0.2), min(one.getMax(), 3.0))
        yield values


def counts_of(data, channels, workspace):
    """Observed counts in the order of the bins."""
    category = workspace.cat("channelCat")
    found = {channel: [] for channel in channels}
    for entry in range(data.numEntries()):
        row = data.get(entry)
        found[row.getCatLabel(category.GetName())].append(data.weight())
    return found


def of_terms(workspace, counts, channels):
    """2NLL of ROOT's expected counts and of its constraint terms, not normalised over the ranges of
    global observables."""
    total = 0.0
    for channel, means in expected(workspace, channels).items():
        total += sum(mean - count * math.log(mean) for mean, count in zip(means, counts[channel]))
    terms = {one.GetName(): one for channel in channels for one in workspace.pdf(f"model_{channel}").pdfList() if one.GetName() != f"{channel}_model"}
    return 2.0 * (total - sum(math.log(one.getVal()) for one in terms.values()))


def reference_of(name, case):
    """What ROOT makes of a case."""
    top = ET.parse(HERE / f"{name}.xml").getroot()
    elements = {element.get("Name"): element for element in top.findall("Measurement")}
    chosen = case.get("measurement", next(iter(elements)))
    # Channels, samples and histograms live as long as the measurement.
    measurement = measurement_of(top, elements[chosen])
    workspace = kit.HistoToWorkspaceFactoryFast.MakeCombinedModel(measurement)
    ROOT.SetOwnership(workspace, False)
    channels = list(case["channels"])
    data = workspace.data("obsData") or workspace.data("asimovData")
    counts = counts_of(data, channels, workspace)
    config = workspace.obj("ModelConfig")
    nll = config.GetPdf().createNLL(data, ROOT.RooFit.GlobalObservables(config.GetGlobalObservables()))
    found = parameters_of(workspace)
    described = {
        name: {"value": one.getVal(), "low": one.getMin(), "high": one.getMax(), "is_const": one.isConstant()} for name, one in sorted(found.items())
    }
    start = {name: one.getVal() for name, one in found.items()}
    rng = random.Random(f"{SEED} {name}")
    evaluated = []
    lumi_error = measurement.GetLumi() * measurement.GetLumiRelErr()
    for values in points(workspace, lumi_error, case.get("alpha_range", 2.5), rng):
        for parameter, value in (start | values).items():
            found[parameter].setVal(value)
        value = of_terms(workspace, counts, channels) if "of_terms" in case else 2.0 * nll.getVal()
        evaluated.append({"parameters": start | values, "expected": expected(workspace, channels), "twice_nll": value})
    return {"measurement": chosen, "observed": counts, "parameters": described, "points": evaluated, **case.get("notes", {})}


def main():
    ROOT.gErrorIgnoreLevel = ROOT.kFatal
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
    write_histograms()
    for name, case in CASES.items():
        write_xml(name, case)
    document = {
        "made_by": f"ROOT {ROOT.__version__} ({sys.version.split()[0]})",
        "command": "python testdata/histfactory/generate.py",
        "date": date.today().isoformat(),
        "cases": {name: reference_of(name, case) for name, case in CASES.items() if "not_in_root" not in case},
    }
    (HERE / "reference.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
