#!/usr/bin/env python3
"""From events to a fit: score events with torchless, histogram the ratios, make a pyhf workspace,
fit it with nextstat.

    python3 examples/events_to_fit.py --model MODEL --events EVENTS.json [--write workspace.json]

EVENTS has named lists of events: signal, background, both again with `_jes_up` and `_jes_dn`, and
data. Standard library only.
"""
import argparse
import json
import math
import subprocess
import tempfile

EDGES = [-math.inf, -6, -4, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, math.inf]
# Events that are expected, over events that were simulated.
EXPECTED = {"signal": 40.0, "background": 400.0}


def histograms(arguments):
    command = [arguments.torchless, "score", "--model", arguments.model, "--events", arguments.events, "--json"]
    command += ["--prefix", arguments.signal, "--against", arguments.background]
    command += ["--edges=" + ",".join(map(str, EDGES))]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["hist"]


def sample(name, hist, modifiers):
    scale = EXPECTED[name] / sum(hist[name])
    scaled = {key: [scale * count for count in hist[name + key]] for key in ("", "_jes_up", "_jes_dn")}
    jes = {"hi_data": scaled["_jes_up"], "lo_data": scaled["_jes_dn"]}
    shared = [{"name": "jes", "type": "histosys", "data": jes}]
    return {"name": name, "data": scaled[""], "modifiers": modifiers(scale) + shared}


def workspace(hist):
    signal = sample("signal", hist, lambda scale: [{"name": "mu", "type": "normfactor", "data": None}])
    background = sample("background", hist, lambda scale: [
        {"name": "bnorm", "type": "normsys", "data": {"hi": 1.05, "lo": 0.95}},
        {"name": "mcstat", "type": "staterror", "data": [scale * math.sqrt(count) for count in hist["background"]]},
    ])
    measurement = {"name": "meas", "config": {"poi": "mu", "parameters": []}}
    return {"version": "1.0.0", "channels": [{"name": "SR", "samples": [signal, background]}],
            "observations": [{"name": "SR", "data": hist["data"]}], "measurements": [measurement]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--events", required=True)
    parser.add_argument("--signal", default="65", help="prefix of the class above the line")
    parser.add_argument("--background", default="64", help="prefix of the class below the line")
    parser.add_argument("--torchless", default="torchless")
    parser.add_argument("--nextstat", default="nextstat")
    parser.add_argument("--write", help="where the workspace goes")
    arguments = parser.parse_args()
    document = workspace(histograms(arguments))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        text = json.dumps(document, indent=1)
        file.write(text)
        file.flush()
        if arguments.write:
            with open(arguments.write, "w") as out:
                out.write(text)
        fit = subprocess.run([arguments.nextstat, "fit", file.name, "--quiet"], check=True, stdout=subprocess.PIPE).stdout
        test = subprocess.run([arguments.nextstat, "hypotest", file.name, "--mu", "1.5", "--quiet"], check=True,
                              stdout=subprocess.PIPE).stdout
    print(json.dumps({"fit": json.loads(fit), "hypotest": json.loads(test)}))


if __name__ == "__main__":
    main()
