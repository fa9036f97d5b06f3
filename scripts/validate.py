#!/usr/bin/env python3
"""Compare the nextstat command with the reference numbers of published likelihoods, and write what
was found.

Fits, tests, limits and goodness of fit of every case; pyhf's own validation cases; a ranking;
ensembles of toys.

    validate.py --nextstat target/release/nextstat [--data ../shared/data] [--write docs/validation.md] [--case NAME ...]

Uses only the documented interface of the command. Gradients and goodness of fit are compared with a
likelihood of our own (complex_step.py), everything else with the reference files. Standard library
only (compressed workspaces need the `zstd` program or module). Exit status 1 if a gate fails, 0
with a message if the data are absent.
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
TEST_GATES = {
    "CLs": (1e-6, "observed and expected CLs of q̃ at μ = 1; relative, absolute below 1e-3"),
    "limit": (1e-6, "observed and expected 95 % limits, relative; observed only where the reference's tests used a minimum at μ = 0 above its own fit"),
    "Z": (1e-6, "significance √q₀, relative, absolute below 1"),
    "gof q": (1e-6, "goodness-of-fit statistic at the reference minimum, relative, absolute below 1"),
    "gof p": (1e-6, "its p-value, with bins - unconstrained parameters degrees of freedom, absolute"),
}
# 2NLL of default results above the lowest minimum that an exhaustive search has found; more only
# with a warning about several minima.
MINIMA_GATE = 1e-6
MINIMA = ("free", "μ = 0", "μ = 1", "Asimov")
EXHAUSTIVE = pathlib.Path(__file__).parent.parent / "testdata" / "minima" / "exhaustive.json"
CONFORMANCE_GATE = 1e-6
# Impacts are differences of two fits, each right to about 1e-7.
IMPACT_GATE = 1e-6
TOYS = ("atlas_tHu_fcnc", "atlas_tttt")
N_TOYS = 1000
RANKED = "atlas_tttt"
# Pre-fit impacts (down, up) of its leading nuisance parameter, to three digits; at both conditional
# minima complex-step gradients vanish to 4e-8.
LEADING = ("ttW_Syst_Ext_2b8j", (0.690, -0.339))
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


def compare_points(nextstat, case, setting, found):
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
    found["gradient"] = compare_gradient(case, setting, dict(zip(points, out["points"])))


def compare_gradient(case, setting, ours):
    codes = (complex_step.code4, complex_step.code4p) if setting == "default" else (complex_step.code1, complex_step.code0)
    names = case.reference["model"]["par_names"]
    oracle = complex_step.Likelihood(case.workspace(), names, case.entry.get("measurement"), *codes)
    points = case.reference["settings"][setting]["points"]
    value = 0.0
    for label in ("narrow", "medium"):
        if label in points and points[label]["finite"]:
            # The command's gradient is that of 2NLL, as its value is.
            expected = [2 * derivative for derivative in oracle.gradient(points[label]["pars"])]
            value = max(value, worst(zip(ours[label]["gradient"], expected)))
    return value


def compare_fit(nextstat, case, setting, found):
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
        found["MINOS"] = compare_minos(out, reference["minos_poi"])


def compare_minos(out, reference):
    interval = next(i for i in out["minos"] if i["parameter"] == out["poi"]["name"])
    sides = [(interval[side], reference[side]) for side in ("down", "up")]
    return max(abs(a - b) / abs(b) if a is not None else math.inf for a, b in sides if b is not None)


def q0_of(reference):
    """The reference's q0, and whether its tests used a minimum at μ = 0 above the one of its own
    fit there: then its Asimov data set, and the limits expected from that, belong to no minimum."""
    q0 = reference["discovery_q0"]["q0"]
    at_zero = [fit["t_mu"] for fit in reference.get("fixed_poi_fits", []) if fit["mu"] == 0.0]
    is_above = bool(at_zero) and q0 > at_zero[0] + 1e-3
    return (at_zero[0] if is_above else q0), is_above


def compare_tests(nextstat, case, found):
    reference, arguments = case.reference["settings"]["default"], case.arguments("default")
    if "hypotest_mu1_qtilde" in reference:
        expected = reference["hypotest_mu1_qtilde"]
        out, _ = run(nextstat, "hypotest", [*arguments, "--mu", "1"])
        pairs = zip([out["CLs_obs"], *out["CLs_exp"]], [expected["CLs_obs"], *expected["CLs_exp"]])
        found["CLs"] = max(abs(a - b) / max(1e-3, b) for a, b in pairs)
    if "upper_limit_95" in reference:
        expected = reference["upper_limit_95"]
        out, _ = run(nextstat, "limit", arguments)
        wanted = [expected["obs"], *(expected[f"exp{n}sigma"] for n in ("-2", "-1", "+0", "+1", "+2"))]
        pairs = list(zip([out["observed"], *out["expected"]], wanted))
        if "discovery_q0" in reference and q0_of(reference)[1]:
            pairs = pairs[:1]
        found["limit"] = max(abs(a - b) / abs(b) if a is not None else math.inf for a, b in pairs)
    if "discovery_q0" in reference:
        out, _ = run(nextstat, "significance", arguments)
        found["Z"] = deviation(out["Z_obs"], math.sqrt(q0_of(reference)[0]))
    compare_goodness(nextstat, case, found)


def compare_goodness(nextstat, case, found):
    """The distance to the saturated model, from the reference minimum and the likelihood of
    complex_step.py."""
    model, params = case.reference["model"], case.reference["settings"]["default"]["mle"]["pars"]
    oracle = complex_step.Likelihood(case.workspace(), model["par_names"], case.entry.get("measurement"))
    free = [not fixed for fixed in model["suggested_fixed"]]
    q, n_bins = 0.0, 0
    for observed, samples in oracle.channels:
        expected = [complex(sum(column)).real for column in zip(*(oracle.yields(sample, params) for sample in samples))]
        q += math.fsum(2 * half_deviance(n, y) for n, y in zip(observed, expected))
        n_bins += sum(n > 0 or y > 0 for n, y in zip(observed, expected))
    for p, (kind, aux, scale) in oracle.constraints.items():
        if free[p]:
            q += 2 * half_deviance(aux, scale * params[p]) if kind == "poisson" else ((params[p] - aux) / scale) ** 2
    n_dof = n_bins - sum(is_free and p not in oracle.constraints for p, is_free in enumerate(free))
    out, _ = run(nextstat, "gof", case.arguments("default"))
    found["gof q"] = deviation(out["statistic"], q)
    if n_dof > 0:
        found["gof p"] = abs(out["p_value"] - chi_squared_tail(q, n_dof)) if out["p_value"] is not None else math.inf
    elif out["p_value"] is not None:
        found["gof p"] = math.inf


def half_deviance(n, expected):
    """expected - n + n ln(n/expected), without cancellation where the two are close."""
    if n == 0:
        return expected
    x = (expected - n) / n
    if abs(x) > 1e-3:
        return expected - n - n * math.log1p(x)
    return n * x * x * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x / 6))))


def chi_squared_tail(q, n_dof):
    """P(chi^2 >= q), a finite sum for whole degrees of freedom."""
    term = math.exp(-q / 2) if n_dof % 2 == 0 else math.sqrt(2 * q / math.pi) * math.exp(-q / 2)
    total = 0.0 if n_dof % 2 == 0 else math.erfc(math.sqrt(q / 2))
    for k in range(2 if n_dof % 2 == 0 else 3, n_dof + 2, 2):
        if k - 2 < n_dof:
            total += term
        term *= q / k
    return total


def failures(setting, found):
    """The gates that `found` misses."""
    missed = ["error"] if "error" in found else []
    for gate, (limit, _) in (GATES | TEST_GATES).items():
        if gate == "minimum" and setting != "default":
            limit = KINKED_MINIMUM
        if gate in found and not found[gate] <= limit:
            missed.append(gate)
    if setting == "default" and not found.get("converged", True):
        missed.append("converged")
    return missed


def compare_case(nextstat, case, setting):
    found = {}
    try:
        compare_points(nextstat, case, setting, found)
        if "mle" in case.reference["settings"][setting]:
            compare_fit(nextstat, case, setting, found)
            if setting == "default":
                compare_tests(nextstat, case, found)
    except ERRORS as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def compare_minima(nextstat, case, lowest):
    """How far the command's default results are above the `lowest` minima, and whether it warns of
    several."""
    arguments = case.arguments("default")
    fit, _ = run(nextstat, "fit", arguments)
    above, warnings = [fit["twice_nll"] - lowest["free"]], fit["warnings"]
    if "mu_0" in lowest:
        tests = [run(nextstat, "hypotest", [*arguments, "--mu", mu, "--test-stat", "ttilde"])[0] for mu in (0, 1)]
        tests.append(run(nextstat, "hypotest", [*arguments, "--mu", "1"])[0])
        above += [fit["twice_nll"] + test["q"] - lowest[f"mu_{mu}"] for mu, test in enumerate(tests[:2])]
        above.append(tests[2]["q_asimov"] - (lowest["asimov_mu_1"] - lowest["asimov_free"]))
        warnings = warnings + [warning for test in tests for warning in test["warnings"]]
    return above, any("minima" in warning for warning in warnings)


def minima_rows(nextstat, cases):
    """Name, numbers above the stored minima, whether there is a warning, and the verdict of each
    case."""
    if not EXHAUSTIVE.exists():
        print(f"skipped: no exhaustive minima in {EXHAUSTIVE}")
        return
    stored = json.loads(EXHAUSTIVE.read_text())["cases"]
    for case in cases:
        if case.name not in stored:
            print(f"skipped: no exhaustive minima of {case.name}")
            continue
        try:
            above, is_warned = compare_minima(nextstat, case, stored[case.name])
        except ERRORS as error:
            print(f"FAIL {case.name} [minima] {type(error).__name__}: {error}")
            above, is_warned = [math.inf], False
        is_low = all(value <= MINIMA_GATE for value in above)
        yield case.name, above, is_warned, is_low or is_warned
        print(f"{'pass' if is_low or is_warned else 'FAIL'} {case.name} [minima] {', '.join(f'{value:.1e}' for value in above)}", flush=True)


def minima_table(minima):
    yield f"| case | {' | '.join(MINIMA)} | warning | verdict |"
    yield "|---" * (len(MINIMA) + 3) + "|"
    for name, above, is_warned, passes in minima:
        cells = [bold(value, MINIMA_GATE) for value in above] + ["–"] * (len(MINIMA) - len(above))
        verdict = "**fail**" if not passes else "pass" if max(above) <= MINIMA_GATE else "above, with a warning"
        yield f"| {name} | {' | '.join(cells)} | {'several minima' if is_warned else '–'} | {verdict} |"


ERRORS = (RuntimeError, KeyError, TypeError, ValueError, StopIteration, subprocess.SubprocessError, OSError)


def compare_conformance(nextstat, data, scratch):
    """pyhf's validation cases and regression points: name, statistic, exact observed CLs, our worst
    deviation, pyhf's own."""
    for file in sorted((data / "conformance").glob("*.json")):
        case = json.loads(file.read_text())
        if case["calctype"] != "asymptotics":
            continue
        workspace = scratch / "conformance.json"
        workspace.write_text(json.dumps(case["workspace"]))
        codes = [f"--interpolation={kind}={code}" for kind, code in case["interpcode"].items()]
        arguments = [workspace, "--quiet", f"--mu={case['mu']}", f"--test-stat={case['test_stat']}", *codes]
        yield conformance_row(nextstat, case["name"], case["test_stat"], arguments, case["exact"], case["expected"]["obs"])
    regression = data / "conformance" / "regression"
    if not regression.exists():
        return
    for name, values in json.loads((regression / "values.json").read_text()).items():
        region, point = name.split("/")
        background = regression / f"Region{region}.BkgOnly.json"
        if region == "A":
            background = data / "workspaces" / "atlas_sbottom_regionA.json"
        # The background of region C is not among the data.
        if background.exists():
            arguments = [background, "--quiet", "--patch", regression / f"Region{region}.patch.sbottom_{point}.json"]
            exact = {"obs": values["exact_CLs_obs"], "exp": values["exact_CLs_exp"]}
            yield conformance_row(nextstat, f"sbottom {name}", "qtilde", arguments, exact, values["pyhf_test_CLs_obs"])


def conformance_row(nextstat, name, statistic, arguments, exact, pyhf):
    try:
        out, _ = run(nextstat, "hypotest", arguments)
        pairs = zip([out["CLs_obs"], *out["CLs_exp"]], [exact["obs"], *exact["exp"]])
        value = max(abs(a - b) / max(1e-3, b) for a, b in pairs)
    except ERRORS:
        value = math.inf
    return name, statistic, exact["obs"], value, abs(pyhf - exact["obs"]) / max(1e-3, exact["obs"])


def compare_ranking(nextstat, case):
    """What was compared, the number found, whether it passes."""
    reference = json.loads((case.data / "reference" / f"{case.name}.extra.json").read_text())["impacts"]
    out, _ = run(nextstat, "ranking", [*case.arguments("default"), "--method", "classic"])
    entries = {entry["parameter"]: entry for entry in out["ranking"]}
    value = 0.0
    for name, (up, down) in reference["impacts_up_down"].items():
        ours = entries[name]["postfit"]
        value = max(value, abs(ours["up"]["impact"] - up), abs(ours["down"]["impact"] - down))
    n = len(reference["impacts_up_down"])
    yield f"{case.name}: post-fit impacts of {n} parameters, up and down, worst difference", f"{value:.1e}", value <= IMPACT_GATE
    name, wanted = LEADING
    first = next(entry for entry in out["ranking"] if entry["prefit"])
    found = [first["prefit"][side]["impact"] for side in ("down", "up")]
    is_right = first["parameter"] == name and all(abs(a - b) <= 6e-4 for a, b in zip(found, wanted))
    yield f"{case.name}: leading nuisance parameter, its pre-fit impacts", f"`{first['parameter']}` {found[1]:+.3f} {found[0]:+.3f}", is_right


def compare_significance(nextstat, case):
    out, _ = run(nextstat, "significance", case.arguments("default"))
    wanted = math.sqrt(q0_of(case.reference["settings"]["default"])[0])
    yield f"{case.name}: observed significance, {wanted:.3f}", f"{out['Z_obs']:.3f}", deviation(out["Z_obs"], wanted) <= TEST_GATES["Z"][0]


def compare_toys(nextstat, case):
    out, _ = run(nextstat, "toys", [*case.arguments("default"), "--n-toys", N_TOYS, "--parameter", case.reference["model"]["poi_name"]])
    text = f"{out['n_toys'] - out['n_failed']} of {out['n_toys']} converge"
    yield f"{case.name}: toys at the best fit", text, out["n_toys"] == N_TOYS and out["n_failed"] == 0


def compare_procedures(nextstat, case):
    checks = [compare_ranking, compare_significance] if case.name == RANKED else []
    for check in checks + ([compare_toys] if case.name in TOYS else []):
        try:
            yield from check(nextstat, case)
        except ERRORS as error:
            yield f"{case.name}: {check.__name__}", f"{type(error).__name__}: {error}", False


def cell(found, gate, missed):
    if gate not in found:
        return "–"
    text = str(int(found[gate])) if gate == "outside" and math.isfinite(found[gate]) else f"{found[gate]:.1e}"
    return f"**{text}**" if gate in missed else text


def n_failures(rows, conformance, procedures, minima):
    bad = sum(not value <= CONFORMANCE_GATE for *_, value, _ in conformance)
    bad += sum(not passes for *_, passes in minima)
    return sum(bool(missed) for *_, missed in rows) + bad + sum(not is_right for *_, is_right in procedures)


def table(rows, gates):
    yield f"| case | setting | {' | '.join(gates)} | verdict |"
    yield "|---" * (len(gates) + 3) + "|"
    for name, setting, found, missed in rows:
        if not any(gate in found for gate in gates) and "error" not in found:
            continue
        cells = " | ".join(cell(found, gate, missed) for gate in gates)
        own = [gate for gate in missed if gate in gates or gate in ("error", "converged")]
        verdict = "pass" if not own else "**fail**: " + ", ".join(own)
        yield f"| {name} | {setting} | {cells} | {verdict} |"


def gate_table(gates):
    yield "| column | gate | meaning |"
    yield "|---|---|---|"
    yield from (f"| {gate} | {limit:g} | {meaning} |" for gate, (limit, meaning) in gates.items())


def worst_line(rows, gates):
    values = {gate: max((found[gate] for *_, found, _ in rows if gate in found), default=0.0) for gate in gates}
    return "Worst: " + ", ".join(f"{gate} {value:.1e}" for gate, value in values.items()) + "."


def report(rows, conformance, procedures, minima, version, reference_versions):
    n_rows = len(rows) + len(conformance) + len(procedures) + len(minima)
    n_failed = n_failures(rows, conformance, procedures, minima)
    lines = [
        "# Validation",
        "",
        "Published likelihoods against reference numbers that were not made with this program. Written by `make validate`; do not edit.",
        "",
        f"- program: {version}; {platform.machine()}, {platform.system()}; {datetime.date.today().isoformat()}",
        f"- reference: {reference_versions}; 40-digit arithmetic for 2NLL; complex steps for gradients",
        f"- result: {n_rows - n_failed} of {n_rows} pass",
        "",
        "Each number is the worst deviation of its kind; a negative minimum is below the reference's. Bold misses its gate, `–` has no reference.",
        "",
        "## Likelihoods and fits",
        "",
        *gate_table(GATES),
        "",
        *table(rows, GATES),
        "",
        "## Tests, limits, goodness of fit",
        "",
        *gate_table(TEST_GATES),
        "",
        worst_line(rows, TEST_GATES),
        "",
        *table(rows, TEST_GATES),
        "",
        "## pyhf's validation cases",
        "",
        f"CLs at the exact minima, observed and expected; relative, absolute below 1e-3, gate {CONFORMANCE_GATE:g}. "
        "Beside it, how far the constant in pyhf's own tests is off:",
        "its minimiser stops early, and in one case in a local minimum.",
        "",
        "| case | statistic | exact CLs | ours | pyhf's constant |",
        "|---|---|---|---|---|",
        *(f"| {name} | {statistic} | {exact:.9g} | {bold(value, CONFORMANCE_GATE)} | {pyhf:.1e} |" for name, statistic, exact, value, pyhf in conformance),
        "",
        "## A ranking, a discovery, toys",
        "",
        f"Impacts are those of an independent implementation, gate {IMPACT_GATE:g}; every toy has to converge.",
        "",
        "| compared | found | verdict |",
        "|---|---|---|",
        *(f"| {what} | {found} | {'pass' if is_right else '**fail**'} |" for what, found, is_right in procedures),
        "",
        "## The lowest minima",
        "",
        f"2NLL of default results above the lowest minimum that an exhaustive search of this program has found ({effort()}), gate {MINIMA_GATE:g}:",
        "free; with the parameter of interest at 0 and at 1; and q̃ at 1 of the Asimov data set. A result may be above with a warning about several",
        "minima. One below the exhaustive value is a lower minimum than that search has found, or, where the minimum at 0 is above, another",
        "Asimov data set.",
        "",
        *minima_table(minima),
    ]
    return "\n".join(lines) + "\n"


def effort():
    """How thorough the stored search was, in words."""
    if not EXHAUSTIVE.exists():
        return "not stored"
    stored = json.loads(EXHAUSTIVE.read_text())
    n_starts = min(case["n_starts"] for case in stored["cases"].values())
    return f"`{stored['program']}`, {stored['date']}, {n_starts} random starts or more of each fit"


def bold(value, gate):
    return f"{value:.1e}" if value <= gate else f"**{value:.1e}**"


def summary(rows):
    for gate in GATES | TEST_GATES:
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
    rows, conformance, procedures, cases, tools = [], [], [], [], "unknown"
    with tempfile.TemporaryDirectory(prefix="validate-") as scratch:
        for name, entry in json.loads(cases_file.read_text()).items():
            if arguments.case and name not in arguments.case:
                continue
            case = Case(name, entry, arguments.data, pathlib.Path(scratch))
            tools = ", ".join(f"{tool} {v}" for tool, v in case.reference.get("generated_with", {}).items()) or tools
            for setting in case.reference["settings"]:
                found = compare_case(arguments.nextstat, case, setting)
                missed = failures(setting, found)
                rows.append((name, setting, found, missed))
                print(f"{'FAIL' if missed else 'pass'} {name} [{setting}] {', '.join(missed)} {found.get('error', '')}", flush=True)
            procedures += compare_procedures(arguments.nextstat, case)
            cases.append(case)
        minima = list(minima_rows(arguments.nextstat, cases))
        if not arguments.case:
            conformance += compare_conformance(arguments.nextstat, arguments.data, pathlib.Path(scratch))
    summary(rows)
    for what, found, is_right in procedures:
        print(f"{'pass' if is_right else 'FAIL'} {what}: {found}")
    for name, statistic, _, value, _ in conformance:
        print(f"{'pass' if value <= CONFORMANCE_GATE else 'FAIL'} {name} [{statistic}] {value:.1e}")
    if arguments.write and not arguments.case:
        arguments.write.parent.mkdir(exist_ok=True)
        arguments.write.write_text(report(rows, conformance, procedures, minima, version, tools))
    n_failed = n_failures(rows, conformance, procedures, minima)
    n_compared = len(rows) + len(conformance) + len(procedures) + len(minima)
    print(f"{n_compared - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
