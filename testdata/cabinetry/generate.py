#!/usr/bin/env python3
"""Uncertainties of yields by cabinetry, for our own fits of the random workspaces of testdata/pyhf.

    python testdata/cabinetry/generate.py --nextstat target/release/nextstat > testdata/cabinetry/yields.json     (needs cabinetry 0.6.0)
    python testdata/cabinetry/generate.py --nextstat … --published ../shared/data atlas_tttt …     prints how well published cases agree

cabinetry gets the best fit, uncertainties and correlations that `nextstat report` prints. It varies each parameter by ± its uncertainty, where we
take the derivative; so that formulas and not curvature are compared, `linear` has cabinetry's numbers for uncertainties 100,000 times smaller,
times 100,000. `full` is cabinetry as it is.
"""
import argparse, datetime, json, pathlib, subprocess, sys, tempfile

import cabinetry
import numpy
import pyhf
from cabinetry.model_utils import prefit_uncertainties, yield_stdev

SMALL = 1e-5
HERE = pathlib.Path(__file__).parent
SETTINGS = {
    "default": ([], {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}}),
    "code1_code0": (["--interp-defaults", "pyhf"], {"normsys": {"interpcode": "code1"}, "histosys": {"interpcode": "code0"}}),
}


def report(nextstat, workspace, arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(workspace, file)
        file.flush()
        done = subprocess.run([nextstat, "report", file.name, "--quiet", *arguments], capture_output=True, text=True)
    return json.loads(done.stdout)


def cabinetry_stdev(model, params, widths, correlation, scale):
    bins, channels = yield_stdev(model, params, scale * widths, correlation)
    return {"bins": [[[u / scale for u in s] for s in c] for c in bins], "sums": [[u / scale for u in c] for c in channels]}


def compare(nextstat, workspace, setting, case={}):
    """Our report, and cabinetry's standard deviations [channel][sample][bin] (the last sample is the total) before and after the fit."""
    arguments, modifier_settings = SETTINGS[setting]
    measurement = case.get("measurement")
    arguments = arguments + (["--measurement", measurement] if measurement else []) + ([] if case.get("poi", "auto") else ["--poi", "none"])
    ours = report(nextstat, workspace, arguments)
    model = pyhf.Workspace(workspace).model(modifier_settings=modifier_settings, measurement_name=measurement, poi_name=None if "none" in arguments else workspace["measurements"][0]["config"]["poi"])
    fit = ours["fit"]
    assert fit["par_names"] == model.config.par_names
    widths = numpy.array([u or 0.0 for u in fit["uncertainties"]])
    after = (numpy.array(fit["bestfit"]), widths, numpy.array(fit["correlation"]))
    n = model.config.npars
    before = (numpy.array(model.config.suggested_init()), prefit_uncertainties(model), numpy.eye(n))
    theirs = {"channels": model.config.channels, "samples": model.config.samples}
    for name, point in (("prefit", before), ("postfit", after)):
        theirs[name] = {"linear": cabinetry_stdev(model, *point, SMALL), "full": cabinetry_stdev(model, *point, 1.0)}
    return ours, theirs


def is_near_a_kink(fit):
    """Whether cabinetry's small variation crosses a kink at zero that the best fit is beside and not on."""
    near = (abs(x) / u for x, u in zip(fit["bestfit"], fit["uncertainties"]) if u and x != 0)
    return any(distance < 10 * SMALL for distance in near)


def differences(ours, theirs, kind, only_totals=False):
    """Largest difference of a standard deviation, relative to the larger of itself and a hundredth of its channel's largest."""
    worst = {"prefit": 0.0, "postfit": 0.0}
    for c, channel in enumerate(ours["yields"]):
        for when in worst:
            stdev = theirs[when][kind]
            floor = 0.01 * max(stdev["sums"][c])
            samples = [] if only_totals else channel[when]["samples"]
            parts = [(theirs["samples"].index(s["sample"]), s) for s in samples] + [(-1, channel[when]["total"])]
            for s, part in parts:
                pairs = [*zip(part["uncertainties"], stdev["bins"][c][s]), (part["sum_uncertainty"], stdev["sums"][c][s])]
                worst[when] = max([worst[when], *(abs(a - b) / max(abs(b), floor, 1e-300) for a, b in pairs if a is not None)])
    return worst


def published(arguments):
    data, cases = arguments.published, json.loads((arguments.published / "cases.json").read_text())
    for name in arguments.cases:
        path = data / "workspaces" / f"{cases[name]['file']}.json"
        text = path.read_bytes() if path.exists() else subprocess.run(["zstd", "-dqc", f"{path}.zst"], check=True, capture_output=True).stdout
        for setting in SETTINGS:
            ours, theirs = compare(arguments.nextstat, json.loads(text), setting, cases[name])
            for kind, only_totals in (("linear", False), ("full", False), ("full", True)):
                worst = differences(ours, theirs, kind, only_totals)
                what = f"{kind}, totals" if only_totals else kind
                print(f"{name:24} {setting:12} {what:13} before {worst['prefit']:.1e}  after {worst['postfit']:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nextstat", required=True)
    parser.add_argument("--published", type=pathlib.Path)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    if arguments.published:
        return published(arguments)
    cases = []
    for index, case in enumerate(json.loads((HERE / "../pyhf/cases.json").read_text())["cases"]):
        for setting in SETTINGS:
            ours, theirs = compare(arguments.nextstat, case["workspace"], setting)
            # Degenerate parameters have no covariance that cabinetry could be given.
            if not ours["fit"]["converged"] or ours["fit"]["flat_directions"]:
                continue
            if setting == "code1_code0" and is_near_a_kink(ours["fit"]):
                continue
            print(index, setting, *(differences(ours, theirs, kind) for kind in ("linear", "full")), file=sys.stderr)
            linear = {when: theirs[when]["linear"] for when in ("prefit", "postfit")}
            cases.append({"case": index, "setting": setting, "samples": theirs["samples"], **linear})
    certificate = {"tool": "cabinetry", "version": cabinetry.__version__, "pyhf": pyhf.__version__, "numpy": numpy.__version__,
                   "python": sys.version.split()[0], "command": "python testdata/cabinetry/generate.py --nextstat target/release/nextstat",
                   "date": datetime.date.today().isoformat()}
    json.dump({"certificate": certificate, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
