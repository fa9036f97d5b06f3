"""Adds to `reference.json` what pyhs3 makes of the documents that `evaluate.py` wrote.

    python testdata/hs3/evaluate_pyhs3.py    # needs pyhs3==0.4.2 from PyPI

A document that pyhs3 refuses has its message instead of the values.
"""

import json
import logging
import warnings
from pathlib import Path

import numpy as np
import pyhs3
import pytensor
from pytensor.graph.traversal import explicit_graph_inputs

HERE = Path(__file__).parent


def values_of(document, points):
    """-ln L of the first analysis. Parameters that are constant are made free, but auxiliary data."""
    for point in document["parameter_points"]:
        for entry in point["parameters"]:
            if not entry["name"].startswith("nom_"):
                entry.pop("const", None)
    workspace = pyhs3.Workspace(**document)
    model = workspace.model(workspace.analyses[0])
    inputs = list(explicit_graph_inputs([model.log_prob]))
    evaluate = pytensor.function(inputs, model.log_prob, on_unused_input="ignore", mode="FAST_COMPILE")
    found = []
    for point in points:
        values = {**model.nominal_params, **point}
        arguments = [np.full((1,) * one.ndim, values[one.name]) for one in inputs]
        value = -float(np.sum(evaluate(*arguments)))
        found.append(value if np.isfinite(value) else None)
    return found


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    path = HERE / "reference.json"
    reference = json.loads(path.read_text())
    for name, case in reference["cases"].items():
        document = json.loads((HERE / "written" / f"{name}.json").read_text())
        try:
            case["pyhs3"] = values_of(document, case["points"])
        except Exception as error:
            case["pyhs3"] = str(error).splitlines()[0]
            print(name, case["pyhs3"])
    reference["made"]["pyhs3"] = pyhs3.__version__
    path.write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()
