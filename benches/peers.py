#!/usr/bin/env python3
"""Compare fits with uncertainties with other engines, in one run, on one thread, and append what was measured to benches/RECORD.md.

    peers.py --peers .peers --data ../shared/data --bin target/release [--case NAME ...] [--engine NAME ...] [--cap 600] [--dry]

What is timed is the fit call alone, uncertainties included, on a model that is already built. Each engine runs in a process (and an
environment) of its own, one after the other; a fit that takes less than a second is repeated and its fastest time counts. Where an engine
leaves out constants, its 2NLL is made comparable at the starting point, whose value is known to 40 digits.
"""
import argparse
import datetime
import itertools
import json
import math
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CASES = ["atlas_tHu_fcnc", "atlas_tttt"]
ONE_THREAD = {key: "1" for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")}


def repeat(fit):
    """The fastest call of up to five, and the last result."""
    times = []
    while len(times) < 5 and sum(times) < 5:
        start = time.perf_counter()
        result = fit()
        times.append(time.perf_counter() - start)
    return min(times), len(times), result


def fit_with_pyhf(data, case):
    import pyhf

    pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(maxiter=10_000_000))
    workspace = pyhf.Workspace(json.loads((data / "workspaces" / f"{case}.json").read_text()))
    model = workspace.model()
    observed = workspace.data(model)
    seconds, n, result = repeat(lambda: pyhf.infer.mle.fit(observed, model, return_uncertainties=True, return_fitted_val=True))
    return dict(version=f"pyhf {pyhf.__version__}, NumPy, Minuit", seconds=seconds, n=n, twice_nll=float(result[1]))


def fit_with_nextstat_0_10(data, case):
    import importlib.metadata

    import nextstat

    nextstat.set_threads(1)
    model = nextstat.from_pyhf((data / "workspaces" / f"{case}.json").read_text())
    seconds, n, result = repeat(lambda: nextstat.fit(model))
    note = "" if result.converged else "did not converge"
    version = f"PyPI nextstat {importlib.metadata.version('nextstat')}"
    return dict(version=version, seconds=seconds, n=n, twice_nll=result.twice_nll, note=note)


def histfactory_workspace(ROOT, document):
    """A pyhf document as a HistFactory workspace: first measurement, Gaussian staterrors, interpolation as HistFactory has it by default."""
    kit = ROOT.RooStats.HistFactory
    chosen = document["measurements"][0]
    settings = {p["name"]: p for p in chosen["config"]["parameters"]}
    lumi = settings.get("lumi", {})
    measurement = kit.Measurement(chosen["name"], chosen["name"])
    measurement.SetPOI(chosen["config"]["poi"])
    measurement.SetLumi(lumi.get("auxdata", [1.0])[0])
    measurement.SetLumiRelErr(lumi.get("sigmas", [0.1])[0])
    for name, setting in settings.items():
        if setting.get("fixed"):
            measurement.AddConstantParam({"lumi": "Lumi"}.get(name, name))
    observed = {o["name"]: o["data"] for o in document["observations"]}
    made_histograms = itertools.count()

    def histogram(values):
        one = ROOT.TH1D(f"h{next(made_histograms)}", "", len(values), 0, len(values))
        one.SetDirectory(0)
        ROOT.SetOwnership(one, False)  # HistFactory deletes what it is given
        for bin, value in enumerate(values):
            one.SetBinContent(bin + 1, value)
        return one

    for channel in document["channels"]:
        made = kit.Channel(channel["name"])
        made.SetStatErrorConfig(0.0, kit.Constraint.Gaussian)
        made.SetData(histogram(observed[channel["name"]]))
        for sample in channel["samples"]:
            made.AddSample(histfactory_sample(kit, sample, settings, histogram))
        measurement.AddChannel(made)
    workspace = kit.MakeModelAndMeasurementFast(measurement)
    if not workspace:
        raise RuntimeError("HistFactory made no workspace")
    return workspace


def histfactory_sample(kit, sample, settings, histogram):
    made = kit.Sample(sample["name"])
    made.SetHisto(histogram(sample["data"]))
    made.SetNormalizeByTheory(any(m["type"] == "lumi" for m in sample["modifiers"]))
    relative = lambda errors: histogram([e / y if y > 0 else 0.0 for e, y in zip(errors, sample["data"])])
    for modifier in sample["modifiers"]:
        name, kind, data = modifier["name"], modifier["type"], modifier["data"]
        if kind == "normfactor":
            setting = settings.get(name, {})
            made.AddNormFactor(name, setting.get("inits", [1.0])[0], *setting.get("bounds", [[0.0, 10.0]])[0])
        elif kind == "normsys":
            made.AddOverallSys(name, data["lo"], data["hi"])
        elif kind == "histosys":
            one = kit.HistoSys()
            one.SetName(name)
            one.SetHistoLow(histogram(data["lo_data"]))
            one.SetHistoHigh(histogram(data["hi_data"]))
            made.AddHistoSys(one)
        elif kind == "staterror":
            made.ActivateStatError()
            made.GetStatError().SetErrorHist(relative(data))
        elif kind == "shapesys":
            one = kit.ShapeSys()
            one.SetName(name)
            one.SetErrorHist(relative(data))
            one.SetConstraintType(kit.Constraint.Poisson)
            made.AddShapeSys(one)
        elif kind != "lumi":
            raise RuntimeError(f"a {kind} is not translated")
    return made


def fit_with_root(data, case):
    import warnings

    warnings.filterwarnings("ignore")
    import ROOT

    ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.ERROR)
    workspace = histfactory_workspace(ROOT, json.loads((data / "workspaces" / f"{case}.json").read_text()))
    config = workspace.obj("ModelConfig")
    pdf, observed = config.GetPdf(), workspace.data("obsData")
    nll = pdf.createNLL(observed, ROOT.RooFit.GlobalObservables(config.GetGlobalObservables()))
    parameters = pdf.getParameters(observed)
    start = parameters.snapshot()
    at_start = nll.getVal()
    status = []

    def fit():
        parameters.assign(start)
        minimizer = ROOT.RooMinimizer(nll)
        minimizer.setPrintLevel(-1)
        status[:] = [minimizer.minimize("Minuit2", "Migrad"), minimizer.hesse()]
        return nll.getVal()

    seconds, n, value = repeat(fit)
    reference = json.loads((data / "reference" / f"{case}.json").read_text())["settings"]["default"]["points"]["init"]
    twice_nll = float(reference["twice_nll_gold"]) + 2 * (value - at_start)
    note = "" if status == [0, 0] else f"status of Migrad and Hesse: {status}"
    return dict(version=f"ROOT {ROOT.__version__}, Minuit2 with Hesse", seconds=seconds, n=n, twice_nll=twice_nll, note=note)


ENGINES = {"ns": fit_with_nextstat_0_10, "root": fit_with_root, "pyhf": fit_with_pyhf}


def in_own_environment(peers, engine, data, case, cap):
    python = peers / engine / "bin" / "python"
    if not python.exists():
        return dict(version=engine, note="not installed")
    command = [python, __file__, "--worker", engine, "--data", data, "--case", case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=cap, env={**os.environ, **ONE_THREAD})
    except subprocess.TimeoutExpired:
        return dict(version=engine, note=f"stopped after {cap:g} s")
    if done.returncode != 0:
        return dict(version=engine, note=f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][:120]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(binaries, data, case):
    command = [binaries / "ns-benches", "cases", "--json", "--data", data, "--case", case]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[case]
    note = "" if measured["converged"] else "did not converge"
    fit = measured["fit"]
    one = lambda key: measured[key]["median_us"]
    note += f"median {fit['median_us'] / 1e3:.3f} ms; NLL {one('nll'):.1f} µs, with gradient {one('gradient'):.1f} µs"
    return dict(version="this engine", seconds=fit["min_us"] / 1e6, n=fit["n"], twice_nll=measured["twice_nll"], note=note)


def whole_process(binaries, data, case):
    """The whole `nextstat fit` of a file, started cold five times: the fastest, and its peak of memory."""
    nextstat = binaries / "nextstat"
    file = data / "workspaces" / f"{case}.json"
    command, best = [nextstat, "fit", file, "--quiet"], math.inf
    for _ in range(5):
        start = time.perf_counter()
        code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        best = min(best, time.perf_counter() - start)
        if code != 0:
            return dict(version="this engine, whole process", note=f"`nextstat fit` left with {code}")
    note = ""
    # GNU time starts the command from a small process; the peak that os.wait4 reports here would include this interpreter's own.
    if timer := shutil.which("time"):
        words = subprocess.run([timer, "-f", "%M", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
        peak = int(words.split()[-1]) * 1024
        note = f"peak memory {peak / 1e6:.1f} MB, {peak / file.stat().st_size:.1f} times the file"
    return dict(version="this engine, whole process", seconds=best, n=5, note=note)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True).stdout.strip()


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split("\t: ", 1) if "\t: " in line else line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    return f"{fields.get('model name', platform.machine())} (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')})"


def table(case, rows, minimum):
    base = rows[0].get("seconds")
    lines = [f"`{case}`, minimum {minimum:.9f}:", "", "| engine | fit | times ours | 2NLL above the minimum | calls | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        seconds, value = row.get("seconds"), row.get("twice_nll")
        took = "–" if seconds is None else f"{seconds * 1e3:.3f} ms" if seconds < 1 else f"{seconds:.2f} s"
        ratio = "–" if seconds is None or base is None else f"{seconds / base:,.0f}" if seconds > 10 * base else f"{seconds / base:.1f}"
        above = "–" if value is None else f"{value - minimum:+.1e}"
        lines.append(f"| {row['version']} | {took} | {ratio} | {above} | {row.get('n', '–')} | {row.get('note', '')} |")
    return lines + [""]


def heading():
    changed = ", with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    load = f"; load before the run {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return [
        f"## {datetime.date.today().isoformat()}, {git('rev-parse', '--short', 'HEAD')}{changed}",
        "",
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}; one thread for every engine{load}.",
        "Fits with uncertainties, models already built, fastest call.",
        "",
    ]


def worker(engine, data, case):
    print(json.dumps(ENGINES[engine](data, case)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=pathlib.Path, default=pathlib.Path(os.environ.get("PEERS_DIR", ".peers")))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("target/release"))
    parser.add_argument("--case", action="append")
    parser.add_argument("--engine", action="append", choices=list(ENGINES))
    parser.add_argument("--cap", type=float, default=600, help="seconds that one engine may take for one case")
    parser.add_argument("--dry", action="store_true", help="print the tables, but do not append them to RECORD.md")
    parser.add_argument("--worker", choices=list(ENGINES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments.worker, arguments.data, arguments.case[0])
    if not (arguments.data / "cases.json").exists():
        print(f"skipped: no published workspaces in {arguments.data}")
        return None
    lines = heading()
    for case in arguments.case or CASES:
        rows = [ours(arguments.bin, arguments.data, case), whole_process(arguments.bin, arguments.data, case)]
        for engine in arguments.engine or ENGINES:
            rows.append(in_own_environment(arguments.peers, engine, arguments.data, case, arguments.cap))
            print(f"{case}: {rows[-1]}", file=sys.stderr, flush=True)
        reference = json.loads((arguments.data / "reference" / f"{case}.json").read_text())["settings"]["default"]["mle"]
        lines += table(case, rows, float(reference["twice_nll_gold"] if "twice_nll_gold" in reference else reference["twice_nll"]))
    print("\n".join(lines))
    if not arguments.dry:
        record = HERE / "RECORD.md"
        with open(record, "a", encoding="utf-8") as file:
            file.write("\n" + "\n".join(lines))
    return None


if __name__ == "__main__":
    sys.exit(main())
