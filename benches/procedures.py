#!/usr/bin/env python3
"""Compare procedures made of many fits with other engines, in one run, and append what was measured
to benches/RECORD.md.

    procedures.py --peers .peers --data ../shared/data --bin target/release [--case NAME ...] [--procedure NAME ...] [--engine NAME ...]
        [--budget 60] [--cap 300] [--dry]

CLs with its band, upper limits with their band, a profile scan, a ranking, toys and CLs by toys, on
models that are already built; each engine and procedure in a process of its own, one after the
other. What takes less than seconds is repeated and its fastest time counts. Scans, rankings and
toys that would take too long stop after --budget seconds, so that "times ours" is per point, refit
or toy, beside our time on as many threads.
"""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import time

from comparing import ENGINES, add_arguments, duration, heading, in_own_environment, load, ratio, reference, scratch, workspace_of, write

CASES = ["pyhf_2bin_1ch", "atlas_jets0l_GGd1+sig", "atlas_tHu_fcnc", "atlas_tttt"]
TOO_LARGE_FOR = {"pyhf": {"atlas_tHu_fcnc", "atlas_tttt"}}  # where a single fit takes most of a minute
TITLES = {
    "cls": "CLs at 1, band",
    "limit": "upper limit, band",
    "scan": "scan",
    "ranking": "classic ranking",
    "toys": "toys fitted",
    "hypotest_toys": "CLs at 1 by toys",
}
UNITS = {"scan": "points", "ranking": "refits", "toys": "toys", "hypotest_toys": "toys"}
LIMITS = [f"exp{sigma:+d}sigma" for sigma in (-2, -1, 0, 1, 2)]
GRID = "atlas_1lbb"


def ours(binaries, data, case):
    """Our rows of each procedure."""
    command = [binaries / "ns-benches", "procedures", "--data", data, "--case", case]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def row(done, **more):
        seconds = done["seconds"] if "seconds" in done else done["min_us"] / 1e6
        return dict(version="this engine", seconds=seconds, threads=done["threads"], **more)

    cls, limit, scan = (measured[key] for key in ("cls", "limit", "scan"))
    curve = scan["result"]["twice_delta_nll"]
    rows = {
        "cls": [row(cls, observed=cls["result"]["CLs_obs"], band=cls["result"]["CLs_exp"])],
        "limit": [row(limit, observed=limit["result"]["observed"], band=limit["result"]["expected"])],
        "scan": [row(scan, units=len(curve), curve=curve, values=scan["result"]["values"])],
        "ranking": [row(one, units=measured["n_refits"], impacts=one["result"]["impacts"]) for one in measured["ranking"]],
        "toys": [row(one, units=one["n_toys"], n_failed=one["n_failed"]) for one in measured["toys"]["fits"]],
        "hypotest_toys": [row(one, units=one["n_toys"], **by_toys(one)) for one in measured["toys"]["hypotest"]],
    }
    return rows, measured


def by_toys(done):
    result = done["result"]
    tails = [result["CLsb"]["value"], result["CLb"]["value"]]
    return dict(observed=result["CLs_obs"], tails=tails, n_failed=done["n_failed"])


def theirs(arguments, engine, procedure, case, workspace, own):
    if case in TOO_LARGE_FOR.get(engine, ()):
        return dict(version=engine, note="not run: most of a minute for one fit")
    limits = [own["limit"][0]["observed"], *own["limit"][0]["band"]]
    highest = 1.25 * max(value for value in limits if value is not None)
    setting = dict(threads=2 if engine == "ns" else 1, values=own["scan"][0]["values"], budget=arguments.budget, highest=highest)
    row = in_own_environment(arguments.peers, engine, procedure, workspace, arguments.cap, **setting)
    print(f"{case}, {procedure}: {str(row)[:600]}", file=sys.stderr, flush=True)
    return row


def off(value, right):
    return abs(value / right - 1)


def numbers(row, observed, band):
    """An observed value, and how far it and the band are from the reference."""
    if row.get("observed") is None:
        return ""
    words = f"{row['observed']:.6g}, off by {off(row['observed'], observed):.0e}"
    if row.get("band"):
        words += f"; band by {max(map(off, row['band'], band)):.0e} at most"
    return words


def curve_result(row, own):
    difference = max(abs(a - b) for a, b in zip(row["curve"], own["curve"]))
    return f"2ΔNLL within {difference:.0e} of ours" if row is not own else ""


def ranking_result(row, own):
    """The largest difference to our impacts, over our largest impact."""
    common = [name for name in row["impacts"] if name in own["impacts"] and None not in own["impacts"][name]]
    if row["version"] == own["version"] or not common:
        return ""
    pairs = [(a, b) for name in common for a, b in zip(row["impacts"][name], own["impacts"][name])]
    difference = max(abs(a - b) for a, b in pairs) / max(abs(b) for _, b in pairs)
    return f"{len(common)} impacts within {difference:.0e} of the largest"


def toys_result(row, own):
    failed = f"{row['n_failed']} did not converge" if "n_failed" in row else ""
    if "tails" not in row:
        return failed
    names = ("CLsb", "CLb")
    parts = [f"{name} {value:.3f}{distance(row, own, i)}" for i, (name, value) in enumerate(zip(names, row["tails"]))]
    return "; ".join([*parts, failed] if failed else parts)


def distance(row, own, i):
    """How many standard deviations a p-value is from ours."""
    if row["version"] == own["version"]:
        return ""
    variance = lambda one: (p := (one["tails"][i] * one["units"] / 2 + 0.5) / (one["units"] / 2 + 1)) * (1 - p) * 2 / one["units"]
    return f" ({(row['tails'][i] - own['tails'][i]) / math.sqrt(variance(row) + variance(own)):+.1f} σ)"


def result(procedure, row, own, right):
    if "seconds" not in row:
        return ""
    if procedure == "cls":
        return numbers(row, right["hypotest_mu1_qtilde"]["CLs_obs"], right["hypotest_mu1_qtilde"]["CLs_exp"])
    if procedure == "limit":
        return numbers(row, right["upper_limit_95"]["obs"], [right["upper_limit_95"][key] for key in LIMITS])
    if procedure == "scan":
        return curve_result(row, own[0])
    return ranking_result(row, own[0]) if procedure == "ranking" else toys_result(row, own[0])


def line(procedure, row, own, right):
    per_unit = lambda row: row["seconds"] / row.get("units", 1) if "seconds" in row else None
    beside = next((one for one in own if one["threads"] == row.get("threads")), own[0])
    many = f" for {row['units']:,} {UNITS[procedure]}" if "units" in row else ""
    cells = [
        TITLES[procedure],
        row["version"],
        row.get("threads", "–"),
        duration(row.get("seconds")) + many,
        "1" if row is beside else ratio(per_unit(row), per_unit(beside)),
        result(procedure, row, own, right),
        row.get("note", ""),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def table(arguments, case, folder):
    right = reference(arguments.data, case)
    before = load()
    own, measured = ours(arguments.bin, arguments.data, case)
    workspace = workspace_of(arguments.data, case, folder)
    head = ["| what | engine | threads | took | times ours | result | note |", "|---|---|---|---|---|---|---|"]
    lines = [f"`{case}` (load before our rows {before}):", "", *head]
    for procedure in arguments.procedure or TITLES:
        rows = own[procedure] + [theirs(arguments, engine, procedure, case, workspace, own) for engine in arguments.engine or ENGINES]
        lines += [line(procedure, row, own[procedure], right) for row in rows]
    return [*lines, "", *alone(measured), ""]


def alone(measured):
    """What we measure of a case without a peer."""
    batch = " and ".join(f"{times['min_us'] / 1e3:.2f} ms on {word}" for times, word in zip(measured["batch"], ("one thread", "two")))
    gof = " and ".join(f"{duration(done['seconds'])} on {done['threads']}" for done in measured["toys"]["goodness"])
    return [f"Without a peer: 1,000 evaluations with gradient in a batch {batch}; goodness of fit by 1,000 toys {gof} threads."]


def yields(binaries):
    measured = json.loads(subprocess.run([binaries / "ns-benches", "yields", "--json"], capture_output=True, text=True, check=True).stdout)
    rows = "; ".join(f"{what} {times['min_us'] / 1e3:.1f} ms" for what, times in measured["rows"])
    return f"A generated model of {measured['model']}: {rows}."


def signal_grid(binaries, data):
    """CLs for each signal of a patch set by one whole process, the faster of two."""
    files = [data / "workspaces" / f"{GRID}.json.zst", "--patchset", data / "workspaces" / f"{GRID}.patchset.json.zst"]
    command = [binaries / "nextstat", "hypotest", *files, "--every-patch", "--quiet"]
    timer, took = shutil.which("time"), []
    for _ in range(2):
        start = time.perf_counter()
        done = subprocess.run([timer, "-f", "%U %M", *command] if timer else command, capture_output=True, text=True)
        took.append((time.perf_counter() - start, done.stderr.split()[-2:] if timer else None))
    seconds, counted = min(took)
    patches = json.loads(done.stdout)["patches"]
    memory = f"; {counted[0]} s of processor time, peak memory {int(counted[1]) * 1024 / 1e6:.0f} MB" if counted else ""
    n_failed = sum(not patch["converged"] for patch in patches)
    rate = f"{seconds:.2f} s, {len(patches) / seconds:.0f} a second, {n_failed} did not converge{memory}"
    return f"CLs with band for each of the {len(patches)} signals of `{GRID}` by `nextstat hypotest --every-patch`, whole process: {rate}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, cap=300)
    parser.add_argument("--procedure", action="append", choices=list(TITLES))
    parser.add_argument("--budget", type=float, default=60, help="seconds that an engine may spend on the units of one procedure")
    arguments = parser.parse_args()
    if not (arguments.data / "cases.json").exists():
        print(f"skipped: no published workspaces in {arguments.data}")
        return
    sentences = [
        "Models already built; fastest of repeated calls where they are short. Of peers the shorter of elapsed and processor time counts, of us elapsed time.",
        "Deviations are relative, against the reference of each case.",
    ]
    write(["", *heading(", procedures", *sentences)], arguments.dry)
    with scratch() as folder:
        for case in arguments.case or CASES:
            write(table(arguments, case, pathlib.Path(folder)), arguments.dry)
    if not arguments.procedure:
        write([yields(arguments.bin), "", signal_grid(arguments.bin, arguments.data), ""], arguments.dry)


if __name__ == "__main__":
    sys.exit(main())
