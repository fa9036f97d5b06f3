#!/usr/bin/env python3
"""Compare fits with uncertainties with other engines, in one run, on one thread, and append what
was measured to benches/RECORD.md.

    peers.py --peers .peers --data ../shared/data --bin target/release [--case NAME ...] [--engine NAME ...] [--cap 600] [--dry]

What is timed is the fit call alone, uncertainties included, on a model that is already built. Each
engine runs in a process (and an environment) of its own, one after the other; a fit that takes less
than a second is repeated and its fastest time counts. Where an engine leaves out constants, its
2NLL is made comparable at the starting point, whose value is known to 40 digits. Procedures that
are made of many fits are compared by benches/procedures.py.
"""
import argparse
import json
import math
import shutil
import subprocess
import sys
import time

from comparing import ENGINES, add_arguments, duration, heading, in_own_environment, ratio, reference, scratch, workspace_of, write

CASES = ["atlas_tHu_fcnc", "atlas_tttt"]


def ours(binaries, data, case):
    command = [binaries / "ns-benches", "cases", "--json", "--data", data, "--case", case]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[case]
    note = "" if measured["converged"] else "did not converge"
    fit = measured["fit"]
    one = lambda key: measured[key]["median_us"]
    note += f"median {fit['median_us'] / 1e3:.3f} ms; NLL {one('nll'):.1f} µs, with gradient {one('gradient'):.1f} µs"
    return dict(version="this engine", seconds=fit["min_us"] / 1e6, n=fit["n"], twice_nll=measured["twice_nll"], note=note)


def whole_process(binaries, file):
    """The whole `nextstat fit` of a file, started cold five times: the fastest, and its peak of
    memory."""
    command, best = [binaries / "nextstat", "fit", file, "--quiet"], math.inf
    for _ in range(5):
        start = time.perf_counter()
        code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        best = min(best, time.perf_counter() - start)
        if code != 0:
            return dict(version="this engine, whole process", note=f"`nextstat fit` left with {code}")
    note = ""
    # GNU time starts the command from a small process; the peak that os.wait4 reports here would
    # include this interpreter's own.
    if timer := shutil.which("time"):
        words = subprocess.run([timer, "-f", "%M", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
        peak = int(words.split()[-1]) * 1024
        note = f"peak memory {peak / 1e6:.1f} MB, {peak / file.stat().st_size:.1f} times the file"
    return dict(version="this engine, whole process", seconds=best, n=5, note=note)


def theirs(arguments, engine, case, workspace):
    row = in_own_environment(arguments.peers, engine, "fit", workspace, arguments.cap)
    if "above_start" in row:
        at_start = reference(arguments.data, case)["points"]["init"]["twice_nll_gold"]
        row["twice_nll"] = float(at_start) + row["above_start"]
    print(f"{case}: {row}", file=sys.stderr, flush=True)
    return row


def table(case, rows, minimum):
    base = rows[0].get("seconds")
    lines = [f"`{case}`, minimum {minimum:.9f}:", "", "| engine | fit | times ours | 2NLL above the minimum | calls | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        seconds, value = row.get("seconds"), row.get("twice_nll")
        above = "–" if value is None else f"{value - minimum:+.1e}"
        cells = [row["version"], duration(seconds), ratio(seconds, base), above, row.get("n", "–"), row.get("note", "")]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, cap=600)
    arguments = parser.parse_args()
    if not (arguments.data / "cases.json").exists():
        print(f"skipped: no published workspaces in {arguments.data}")
        return
    sentence = "Fits with uncertainties, models already built, fastest call; one thread for every engine; of peers elapsed or processor time, the shorter."
    lines = heading("", sentence)
    with scratch() as folder:
        for case in arguments.case or CASES:
            workspace = workspace_of(arguments.data, case, folder)
            rows = [ours(arguments.bin, arguments.data, case), whole_process(arguments.bin, workspace)]
            rows += [theirs(arguments, engine, case, workspace) for engine in arguments.engine or ENGINES]
            best = reference(arguments.data, case)["mle"]
            lines += table(case, rows, float(best.get("twice_nll_gold", best["twice_nll"])))
    write(["", *lines], arguments.dry)


if __name__ == "__main__":
    sys.exit(main())
