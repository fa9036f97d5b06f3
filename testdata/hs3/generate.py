"""Writes the models of `testdata/histfactory` as HS3, as ROOT exports them.

    python testdata/hs3/generate.py    # needs root==0.1a12 (ROOT 6.40) from PyPI

What ROOT's likelihoods are is in `testdata/histfactory/reference.json`.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import ROOT

HERE = Path(__file__).parent
HISTFACTORY = HERE.parent / "histfactory"
sys.path.insert(0, str(HISTFACTORY))

import generate as histfactory  # noqa: E402
from cases import CASES  # noqa: E402


def export(name, case):
    """Writes a case."""
    top = ET.parse(HISTFACTORY / f"{name}.xml").getroot()
    elements = {element.get("Name"): element for element in top.findall("Measurement")}
    chosen = case.get("measurement", next(iter(elements)))
    measurement = histfactory.measurement_of(top, elements[chosen])
    workspace = histfactory.kit.HistoToWorkspaceFactoryFast.MakeCombinedModel(measurement)
    ROOT.SetOwnership(workspace, False)
    text = str(ROOT.RooJSONFactoryWSTool(workspace).exportJSONtoString())
    (HERE / "root" / f"{name}.json").write_text(json.dumps(json.loads(text), indent=1) + "\n")


def main():
    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.ERROR)
    for name, case in CASES.items():
        try:
            export(name, case)
        except Exception as error:  # ROOT cannot export every model
            print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
