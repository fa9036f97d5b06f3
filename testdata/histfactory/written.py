"""Writes models as HistFactory XML with nextstat, and what ROOT makes of the files.

    python testdata/histfactory/written.py    # needs root==0.1a12 (ROOT 6.40) and the command in target/debug

`written.json` has for every model and measurement ROOT's expected counts and 2NLL at some points,
and the XML that ROOT's classes were made from, as in `generate.py`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path

import generate
import ROOT

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "hs3"))

from models import MODELS, background, histosys, measurement, modifier, normsys, signal, workspace  # noqa: E402

COMMAND = os.environ.get("NEXTSTAT_COMMAND", HERE.parent.parent / "target" / "debug" / "nextstat")
SEED = 20261126

#: Models of `testdata/hs3` with what XML can hold.
SHARED = [
    "normsys",
    "histosys",
    "two_histosys",
    "lumi",
    "shapesys",
    "shapesys_gaussian",
    "shape_of_two_samples",
    "staterror",
    "staterror_poisson",
    "bins_without_uncertainty",
    "shapefactor",
    "two_measurements",
    "clipped",
]


#: Models with terms that ROOT cuts off: those over the range of a global observable, which starts at
#: 0 and ends at 10. Their likelihoods are those of whole terms.
CUT_OFF = ["gamma", "bins_without_uncertainty", "shape_of_two_samples"]


def replaced(term, relative, *, data, **more):
    """A model with a constraint term in place of the normal distribution of `a`."""
    beta = {"offset": 1.0, "factor": relative}
    setting = {"name": "a", "constraints": [term], "beta": beta, "auxdata": [data], **more}
    return workspace(signal(), background(normsys("a", 0.9, 1.2)), settings=[setting])


def own():
    lumi = {"name": "lumi", "auxdata": [2.5], "sigmas": [0.05], "bounds": [[0.0, 25.0]], "inits": [2.5], "fixed": True}
    stat = [modifier("staterror_SR", "staterror", errors) for errors in ([0.5, 0.75], [4.0, 5.0])]
    free = [{"name": "free", "inits": [1.25, 0.75]}]
    return {
        "gamma": replaced({"type": "gamma", "tau": 6.25}, 0.4, data=6.25, inits=[0.5]),
        "lognormal": replaced({"type": "lognormal", "kappa": 1.25}, 0.25, data=1.0, inits=[0.5]),
        "uniform": workspace(signal(), background(normsys("a", 0.9, 1.2)), settings=[{"name": "a", "constraints": [{"type": "flat"}]}]),
        "luminosity_of_some_samples": workspace(signal(modifier("lumi", "lumi"), stat[0]), background(normsys("JES", 0.9, 1.1), stat[1]), settings=[lumi]),
        "shapefactor_initial": workspace(
            signal(), background(modifier("free", "shapefactor")), settings=free, measurements=[measurement({"name": "free", "inits": [2.0, 0.5]}, name="other")]
        ),
        "overall_and_histo": workspace(
            signal(), background(normsys("a", 0.9, 1.2), histosys("a", [47.0, 62.0], [54.0, 57.0])), settings=[{"name": "a", "inits": [0.5]}, {"name": "mu", "inits": [0.5], "bounds": [[-1.0, 4.0]]}]
        ),
    }


def values_of(folder, name, top, element, notes):
    """ROOT's parameters, expected counts and 2NLL for one measurement."""
    generate.HERE = folder
    made = generate.measurement_of(top, element)
    ws = generate.kit.HistoToWorkspaceFactoryFast.MakeCombinedModel(made)
    ROOT.SetOwnership(ws, False)
    channels = [ET.parse(folder / file.text.strip()).getroot().get("Name") for file in top.findall("Input")]
    config, data = ws.obj("ModelConfig"), ws.data("obsData")
    nll = config.GetPdf().createNLL(data, ROOT.RooFit.GlobalObservables(config.GetGlobalObservables()))
    counts = generate.counts_of(data, channels, ws)
    found = generate.parameters_of(ws)
    start = {name: one.getVal() for name, one in found.items()}
    rng = random.Random(f"{SEED} {name} {element.get('Name')}")
    evaluated = []
    for values in generate.points(ws, made.GetLumi() * made.GetLumiRelErr(), 0.95 if notes else 2.5, rng):
        for parameter, value in (start | values).items():
            found[parameter].setVal(value)
        value = generate.of_terms(ws, counts, channels) if name in CUT_OFF else 2.0 * nll.getVal()
        evaluated.append({"parameters": start | values, "expected": generate.expected(ws, channels), "twice_nll": value})
    return {"observed": counts, "points": evaluated, **notes}


def case_of(name, model, folder):
    """Everything about one model."""
    source = folder / f"{name}.json"
    source.write_text(json.dumps(model))
    subprocess.run([COMMAND, "convert", source, folder / f"{name}.xml", "--to", "xml", "--quiet"], check=True)
    top = ET.parse(folder / f"{name}.xml").getroot()
    notes = {kind: {"a": relative} for kind, relative in (("gamma", 0.4), ("lognormal", 0.25)) if kind == name}
    measurements = {element.get("Name"): values_of(folder, name, top, element, notes) for element in top.findall("Measurement")}
    texts = {path.name: path.read_text() for path in sorted(folder.glob(f"{name}*.xml"))}
    return {"model": model, "files": texts, "measurements": measurements}


def main():
    ROOT.gErrorIgnoreLevel = ROOT.kFatal
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
    cases = {name: MODELS[name] for name in SHARED} | own()
    with tempfile.TemporaryDirectory() as folder:
        found = {name: case_of(name, model, Path(folder)) for name, model in cases.items()}
    made_by = f"ROOT {ROOT.__version__} ({sys.version.split()[0]})"
    document = {"made_by": made_by, "command": "python testdata/histfactory/written.py", "date": date.today().isoformat(), "cases": found}
    (HERE / "written.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
