"""Writes models as HS3 with nextstat, and what ROOT makes of the documents.

    python testdata/hs3/evaluate.py    # needs root==0.1a12 (ROOT 6.40) and the command in target/debug

-ln L of every document at 20 random points goes to `reference.json`; `evaluate_pyhs3.py` adds that
of pyhs3. ROOT's is the sum of its expected counts and of its constraint terms, which are not
normalised over the ranges of global observables.
"""

import json
import math
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import ROOT
from models import MODELS

HERE = Path(__file__).parent
COMMAND = HERE.parent.parent / "target" / "debug" / "nextstat"
SEED = 20261125
N_POINTS = 20


def write(name, model):
    """Writes a model in both formats, and returns the HS3 document."""
    source, target = HERE / "models" / f"{name}.json", HERE / "written" / f"{name}.json"
    for path in (source, target):
        path.parent.mkdir(exist_ok=True)
    source.write_text(json.dumps(model, indent=1) + "\n")
    subprocess.run([COMMAND, "convert", source, target, "--to", "hs3", "--quiet"], check=True)
    return json.loads(target.read_text())


def points(document, rng):
    """The start, and random points within a quarter of the ranges around it."""
    ranges = {axis["name"]: (axis["min"], axis["max"]) for axis in document["domains"][0]["axes"]}
    start = {one["name"]: one for one in document["parameter_points"][0]["parameters"]}
    yield {name: start[name]["value"] for name in ranges}
    for _ in range(N_POINTS - 1):
        values = {}
        for name, (low, high) in ranges.items():
            value = start[name]["value"]
            width = 0.0 if start[name].get("const") else 1.5 if value == 0.0 else 0.25
            values[name] = rng.uniform(max(low, value - width), min(high, value + width))
        yield values


def nll(workspace, document):
    """-ln L of the first likelihood but for terms that do not depend on parameters."""
    likelihood = document["likelihoods"][0]
    data = {one["name"]: one["contents"] for one in document["data"]}
    axes = {one["name"]: one["axes"][0]["name"] for one in document["distributions"] if "axes" in one}
    total, terms = 0.0, {}
    for name, observed in zip(likelihood["distributions"], likelihood["data"]):
        factors = workspace.pdf(name).pdfList() if workspace.pdf(name).ClassName() == "RooProdPdf" else [workspace.pdf(name)]
        for factor in factors:
            if factor.ClassName() != "RooRealSumPdf":
                terms[factor.GetName()] = factor
                continue
            observable = workspace.var(axes[name])
            for bin, count in enumerate(data[observed]):
                observable.setBin(bin)
                mean = factor.getVal() * observable.getBinWidth(bin)
                total += mean - count * math.log(mean)
    return total - sum(math.log(term.getVal()) for term in terms.values())


def values_of(document, chosen):
    workspace = ROOT.RooWorkspace("workspace")
    ROOT.RooJSONFactoryWSTool(workspace).importJSONfromString(json.dumps(document))
    found = []
    for point in chosen:
        for name, value in point.items():
            variable = workspace.var(name)
            variable.removeRange()
            variable.setVal(value)
        found.append(nll(workspace, document))
    return found


def main():
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.ERROR)
    rng = random.Random(SEED)
    cases = {}
    for name, model in MODELS.items():
        document = write(name, model)
        chosen = list(points(document, rng))
        cases[name] = {"points": chosen, "root": values_of(document, chosen)}
    made = {"root": ROOT.__version__, "python": sys.version.split()[0], "date": str(date.today()), "seed": SEED}
    (HERE / "reference.json").write_text(json.dumps({"made": made, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
