#!/usr/bin/env python3
"""Hold the nextstat command against the reference numbers of published likelihoods, and write what was found.

    validate.py --nextstat target/release/nextstat [--data ../shared/data] [--write docs/validation.md] [--case NAME ...]

Uses only the documented interface of the command. Gradients are compared with complex steps of our own (complex_step.py), everything
else with the reference files. Standard library only (compressed workspaces need the `zstd` program or module). Exit status 1 if a gate
fails, 0 with a message if the data are absent.
"""
import argparse
import datetime
import json
import math
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import complex_step

# What is demanded, with the reason for the number.
GATES = {
    "expected data": (1e-12, "relative; sums of a few hundred products in double precision"),
    "2NLL": (1e-10, "relative to 40-digit arithmetic, at every finite point"),
    "outside": (0, "points where the reference is not finite and ours is (it has to be +∞, printed as null)"),
    "gradient": (1e-8, "relative, against complex steps, at the narrow and medium points"),
    "minimum": (1e-8, "2NLL above the reference minimum; 1e-6 where the interpolation has kinks"),
    "EDM": (1e-9, "estimated distance to the minimum in 2NLL"),
    "Hesse": (1e-6, "relative, all uncertainties, where the reference Hessian is positive definite"),
    "MINOS": (1e-5, "relative, both sides of the parameter of interest"),
}
KINKED_MINIMUM = 1e-6


class Case:
    """One published model: where its files are, and how the command is told about it."""

    def __init__(self, name, entry, data, scratch):
        self.name, self.entry, self.data, self.scratch = name, entry, data, scratch
        self.reference = json.loads((data / "reference" / f"{name}.json").read_text())

    def plain(self, stem):
        """A workspace's or patch's file, unpacked if it is compressed."""
        path = self.data / "workspaces" / f"{stem}.json"
        if path.exists():
            return path
        out = self.scratch / path.name
        if not out.exists():
            subprocess.run(["zstd", "-dq", f"{path}.zst", "-o", out], check=True)
        return out

    def arguments(self, setting):
        arguments = [self.plain(self.entry["file"]), "--quiet"]
        for kind, stem, *patch in self.entry["patches"]:
            file = self.plain(stem)
            arguments += ["--patch", file] if kind == "file" else ["--patchset", file, "--patch-name", patch[0]]
        if self.entry.get("measurement"):
            arguments += ["--measurement", self.entry["measurement"]]
        if self.entry.get("poi") is None:
            arguments += ["--poi", "none"]
        if setting == "code1_code0":
            arguments += ["--interpolation", "normsys=code1", "--interpolation", "histosys=code0"]
        return arguments

    def workspace(self):
        document = json.loads(self.plain(self.entry["file"]).read_text())
        for kind, stem, *patch in self.entry["patches"]:
            operations = json.loads(self.plain(stem).read_text())
            if kind == "patchset":
                operations = next(p["patch"] for p in operations["patches"] if p["metadata"]["name"] == patch[0])
            document = complex_step.apply_patch(document, operations)
        return document


def run(nextstat, verb, arguments):
    """What the command prints, and the seconds it took."""
    start = time.perf_counter()
    done = subprocess.run([nextstat, verb, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise RuntimeError(f"`{verb}` left with {done.returncode}: {done.stderr.strip()[:200]}")
    return json.loads(done.stdout), seconds


def deviation(a, b):
    if a is None or b is None or math.isnan(a):
        return math.inf
    return abs(a - b) / max(1.0, abs(b))


def worst(pairs):
    return max((deviation(a, b) for a, b in pairs), default=0.0)


def hold_points(nextstat, case, setting, found):
    points = case.reference["settings"][setting]["points"]
    file = case.scratch / "points.json"
    file.write_text(json.dumps([point["pars"] for point in points.values()]))
    out, _ = run(nextstat, "evaluate", [*case.arguments(setting), "--points", file])
    if out["par_names"] != case.reference["model"]["par_names"]:
        raise RuntimeError("parameter names or their order differ")
    for key in ("expected data", "2NLL", "outside"):
        found[key] = 0.0
    for point, ours in zip(points.values(), out["points"]):
        same_length = len(ours["expected_data"]) == len(point["expected_data"])
        expected = worst(zip(ours["expected_data"], point["expected_data"])) if same_length else math.inf
        found["expected data"] = max(found["expected data"], expected)
        if not point["finite"]:
            found["outside"] += ours["twice_nll"] is not None
        elif ours["twice_nll"] is None:
            found["2NLL"] = math.inf
        else:
            found["2NLL"] = max(found["2NLL"], deviation(ours["twice_nll"], float(point["twice_nll_gold"])))
    found["gradient"] = hold_gradient(case, setting, dict(zip(points, out["points"])))


def hold_gradient(case, setting, ours):
    codes = (complex_step.code4, complex_step.code4p) if setting == "default" else (complex_step.code1, complex_step.code0)
    names = case.reference["model"]["par_names"]
    oracle = complex_step.Likelihood(case.workspace(), names, case.entry.get("measurement"), *codes)
    points = case.reference["settings"][setting]["points"]
    value = 0.0
    for label in ("narrow", "medium"):
        if label in points and points[label]["finite"]:
            # The command's gradient is that of 2NLL, as its value is.
            expected = [2 * slope for slope in oracle.gradient(points[label]["pars"])]
            value = max(value, worst(zip(ours[label]["gradient"], expected)))
    return value


def hold_fit(nextstat, case, setting, found):
    reference = case.reference["settings"][setting]
    wants_minos = setting == "default" and "minos_poi" in reference
    arguments = case.arguments(setting) + (["--minos"] if wants_minos else [])
    out, seconds = run(nextstat, "fit", arguments)
    found["ms"] = 1e3 * seconds
    mle = reference["mle"]
    gold = float(mle.get("twice_nll_gold") or mle["twice_nll"])
    found["minimum"] = out["twice_nll"] - gold if out["twice_nll"] is not None else math.inf
    found["converged"] = out["converged"]
    if setting != "default":
        return
    found["EDM"] = 2 * out["edm"] if out["edm"] is not None else math.inf
    hesse = reference.get("hesse", {})
    if hesse.get("positive_definite") and abs(found["minimum"]) < 1e-6:
        pairs = zip(out["uncertainties"], hesse["uncertainties"])
        found["Hesse"] = worst((u, v) for u, v in pairs if u is not None and v is not None)
    if wants_minos:
        found["MINOS"] = hold_minos(out, reference["minos_poi"])


def hold_minos(out, reference):
    interval = next(i for i in out["minos"] if i["parameter"] == out["poi"]["name"])
    sides = [(interval[side], reference[side]) for side in ("down", "up")]
    return max(abs(a - b) / abs(b) if a is not None else math.inf for a, b in sides if b is not None)


def failures(setting, found):
    """The gates that `found` misses."""
    missed = ["error"] if "error" in found else []
    for gate, (limit, _) in GATES.items():
        if gate == "minimum" and setting != "default":
            limit = KINKED_MINIMUM
        if gate in found and not found[gate] <= limit:
            missed.append(gate)
    if setting == "default" and not found.get("converged", True):
        missed.append("converged")
    return missed


def hold(nextstat, case, setting):
    found = {}
    try:
        hold_points(nextstat, case, setting, found)
        if "mle" in case.reference["settings"][setting]:
            hold_fit(nextstat, case, setting, found)
    except (RuntimeError, KeyError, ValueError, StopIteration, subprocess.SubprocessError, OSError) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def cell(found, gate, missed):
    if gate not in found:
        return "–"
    text = str(int(found[gate])) if gate == "outside" and math.isfinite(found[gate]) else f"{found[gate]:.1e}"
    return f"**{text}**" if gate in missed else text


def report(rows, version, reference_versions):
    n_failed = sum(bool(missed) for *_, missed in rows)
    lines = [
        "# Validation",
        "",
        "Published likelihoods against reference numbers that were not made with this program. Written by `make validate`; do not edit.",
        "",
        f"- program: {version}; {platform.machine()}, {platform.system()}; {datetime.date.today().isoformat()}",
        f"- reference: {reference_versions}; 40-digit arithmetic for 2NLL; complex steps for gradients",
        f"- result: {len(rows) - n_failed} of {len(rows)} pass",
        "",
        "| column | gate | meaning |",
        "|---|---|---|",
        *(f"| {gate} | {limit:g} | {meaning} |" for gate, (limit, meaning) in GATES.items()),
        "",
        "Each number is the worst deviation of its kind; a negative minimum is below the reference's. Bold misses its gate, `–` has no reference.",
        "",
        f"| case | setting | {' | '.join(GATES)} | verdict |",
        "|---" * (len(GATES) + 3) + "|",
    ]
    for name, setting, found, missed in rows:
        cells = " | ".join(cell(found, gate, missed) for gate in GATES)
        verdict = "pass" if not missed else "**fail**: " + ", ".join(missed)
        lines.append(f"| {name} | {setting} | {cells} | {verdict} |")
    return "\n".join(lines) + "\n"


def summary(rows):
    for gate in GATES:
        values = [found[gate] for *_, found, _ in rows if gate in found]
        n_missed = sum(gate in missed for *_, missed in rows)
        if values:
            print(f"{gate:14} {len(values) - n_missed:4d}/{len(values):<4d} worst {max(values):10.3e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nextstat", required=True)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--case", action="append")
    arguments = parser.parse_args()
    cases_file = arguments.data / "cases.json"
    if not cases_file.exists():
        print(f"skipped: no reference data in {arguments.data}")
        return 0
    version = subprocess.run([arguments.nextstat, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    rows, tools = [], "unknown"
    with tempfile.TemporaryDirectory(prefix="validate-") as scratch:
        for name, entry in json.loads(cases_file.read_text()).items():
            if arguments.case and name not in arguments.case:
                continue
            case = Case(name, entry, arguments.data, pathlib.Path(scratch))
            tools = ", ".join(f"{tool} {v}" for tool, v in case.reference.get("generated_with", {}).items()) or tools
            for setting in case.reference["settings"]:
                found = hold(arguments.nextstat, case, setting)
                missed = failures(setting, found)
                rows.append((name, setting, found, missed))
                print(f"{'FAIL' if missed else 'pass'} {name} [{setting}] {', '.join(missed)} {found.get('error', '')}", flush=True)
    summary(rows)
    if arguments.write and not arguments.case:
        arguments.write.parent.mkdir(exist_ok=True)
        arguments.write.write_text(report(rows, version, tools))
    n_failed = sum(bool(missed) for *_, missed in rows)
    print(f"{len(rows) - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
