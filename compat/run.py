"""Runs all checks against pyhf and the packages on top of it, and writes the table of results into
docs/compatibility.md.

The peers are installed, with pip, into environments of their own; cabinetry's tests come from its
source distribution, and those of its head from a copy of its repository. What cannot be installed
or is not there is reported as skipped. `nextstat` is imported from the working tree, so its
extension module must have been built.

    python compat/run.py --work DIR [--data DIR] [--cabinetry-head DIR] [--write
    docs/compatibility.md] [--only STEP ...]
"""

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINDINGS = HERE.parent / "bindings" / "ns-py"
PEERS = ["pyhf==0.7.6", "cabinetry[contrib]==0.6.0"]
TOOLS = ["pytest", "pytest-mock", "iminuit", "requests", "jsonpatch", "matplotlib", "uproot"]
#: Packages on top of pyhf, each installed by itself into one environment: one that cannot be is
#: skipped.
DOWNSTREAM = {"smodels": ["smodels==3.2.1"], "spey": ["spey==0.2.7", "spey-pyhf==0.2.2", "jax"], "abcd": ["abcd-pyhf==0.0.7"]}
#: Root finders and finite differences of packages on top of pyhf stop within this.
DERIVED = 2e-3
#: Differences between two runs of cabinetry that Minuit's stopping leaves open: an impact is a
#: small difference of two fits.
FITTED = 5e-2


class Bench:
    """The environment of the peers, and what is run in it."""

    def __init__(self, work, data, cabinetry_head=None):
        self.work, self.data = Path(work).resolve(), data and str(Path(data).resolve())
        self.cabinetry_head = cabinetry_head and Path(cabinetry_head).resolve()
        self.python = self.work / "env" / "bin" / "python"

    def beside(self, name):
        """A bench in the same folder with another environment."""
        other = Bench(self.work, self.data)
        other.python = self.work / name / "bin" / "python"
        return other

    def pip(self, *requirements):
        """Installs packages; whether that worked."""
        if not self.python.exists():
            venv.create(self.python.parent.parent, with_pip=True)
        return self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements).returncode == 0

    def install(self):
        self.pip(*PEERS, *TOOLS)
        for package in ("pyhf==0.7.6", "cabinetry==0.6.0"):
            name = package.replace("==", "-")
            if not (self.work / name).exists():
                self.run("-m", "pip", "download", "--quiet", "--no-binary", package.split("==")[0], "--no-deps", "--dest", str(self.work), package)
                with tarfile.open(self.work / f"{name}.tar.gz") as archive:
                    archive.extractall(self.work, filter="data")

    def run(self, *arguments, cwd=HERE):
        """Python in the environment; returns the exit code."""
        path = os.pathsep.join(map(str, (BINDINGS / "python", BINDINGS / "tests" / "pyhf", HERE)))
        environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"}
        return subprocess.run([str(self.python), *arguments], cwd=cwd, env=environment, check=False)

    def pytest(self, target, *options, cwd=HERE):
        """Outcomes by test: `passed`, `skipped`, `failed`."""
        settings = self.work / "pytest.ini"
        settings.write_text("[pytest]\n")
        report = self.work / "report.xml"
        report.unlink(missing_ok=True)
        self.run("-m", "pytest", "-c", str(settings), "--rootdir", str(cwd), "-p", "no:cacheprovider", "-q", f"--junitxml={report}", "--tb=short", *options, target, cwd=cwd)
        return dict(_outcomes(report))


def _outcomes(report):
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}"
        states = {child.tag for child in case}
        yield name, "failed" if states & {"failure", "error"} else "skipped" if "skipped" in states else "passed"


def count(outcomes, state):
    return sum(found == state for found in outcomes.values())


def answers(bench):
    """The same calls to both."""
    found = bench.pytest("same")
    return [("calls of the public interface, made to both and compared", count(found, "passed"), len(found), "")]


def names(bench):
    """The names of pyhf's modules."""
    found = bench.pytest("names.py")
    excluded = count(found, "skipped")
    return [("names of pyhf's modules, with their signatures", count(found, "passed"), len(found) - excluded, f"{excluded} excluded")]


def examples(bench):
    """The examples of pyhf's documentation."""
    found = bench.pytest("doc_examples.py", "-p", "alias")
    excluded = count(found, "skipped")
    return [("examples of pyhf's documentation", count(found, "passed"), len(found) - excluded, f"{excluded} excluded")]


def cabinetry(bench):
    """cabinetry's tests, with pyhf and with the shim."""
    return [cabinetry_tests(bench, bench.work / "cabinetry-0.6.0", "cabinetry's tests")]


def cabinetry_head(bench):
    """The tests of cabinetry's head, from a copy of its repository."""
    what, source = "cabinetry's tests at its head", bench.cabinetry_head
    if source is None or not source.exists():
        return [skipped(what, "no copy of its repository (`--cabinetry-head`)")]
    root, own = head_of(source, bench.work / "cabinetry-head"), bench.beside("head")
    if not own.pip(f"{root}[contrib]", "pyhf==0.7.6", *TOOLS):
        return [skipped(what, "it cannot be installed")]
    described = subprocess.run(["git", "log", "-1", "--format=%h, %cs"], cwd=source, capture_output=True, text=True, check=True).stdout.strip()
    return [cabinetry_tests(own, root, f"{what} ({described})")]


def head_of(source, target):
    """The files of the newest commit of a repository, which may have no work tree, in the folder
    `target`.
    """
    shutil.rmtree(target, ignore_errors=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=source, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(target, filter="data")
    return target


def skipped(what, why):
    print(f"skipped: {what}: {why}")
    return what, None, None, f"skipped: {why}"


def cabinetry_tests(bench, root, what):
    sys.path.insert(0, str(HERE))
    import exclusions

    with_pyhf = bench.pytest("tests", "--runslow", cwd=root)
    with_shim = bench.pytest("tests", "--runslow", "-p", "alias", cwd=root)
    able = {name for name, state in with_pyhf.items() if state == "passed"}
    reasons = {name: exclusions.of_cabinetry(name) for name in able}
    counted = [name for name in able if reasons[name] is None]
    for name in sorted(counted):
        if with_shim.get(name) != "passed":
            print(f"cabinetry: {name} is {with_shim.get(name)}")
    passed = sum(with_shim.get(name) == "passed" for name in counted)
    note = f"{len(able) - len(counted)} excluded; {len(with_pyhf) - len(able)} do not pass with pyhf either"
    return what, passed, len(counted), note


def workflow(bench):
    """cabinetry's workflow, with pyhf and with the shim."""
    documents = []
    for engine in ("pyhf", "shim"):
        target = bench.work / f"workflow-{engine}.json"
        target.unlink(missing_ok=True)
        bench.run("workflow.py", engine, "--json", str(target), "--figures", str(bench.work / f"figures-{engine}"))
        documents.append(json.loads(target.read_text()) if target.exists() else None)
    if None in documents:
        return [("cabinetry's workflow", 0, 1, "a run did not end")]
    theirs, ours = (document["results"] for document in documents)
    total = passed = 0
    for model, steps in theirs.items():
        for step, values in steps.items():
            for name, value in values.items():
                total += 1
                if _agrees(value, ours[model][step][name], name):
                    passed += 1
                else:
                    print(f"workflow: {model}, {step}, {name}: {value} and {ours[model][step][name]}")
    note = f"{documents[1]['figures']} figures; {documents[1]['seconds']:.0f} s, with pyhf {documents[0]['seconds']:.0f} s"
    return [("results of cabinetry's workflow", passed, total, note)]


def _agrees(theirs, ours, name):
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], str):
        return theirs == ours
    if name == "twice_nll":
        return ours <= theirs + 1e-6 * max(1.0, abs(theirs)) and theirs - ours < 5e-3
    pairs = list(zip(_flat(theirs), _flat(ours), strict=True))
    scale = max((abs(a) for a, _ in pairs if a is not None), default=1.0)
    return all(abs(a - b) <= FITTED * max(abs(a), 0.1 * scale) for a, b in pairs)


def _flat(value):
    return [number for item in value for number in _flat(item)] if isinstance(value, list) else [value]


def smodels(bench):
    """SModelS's limits and likelihoods of a published likelihood."""
    return downstream(bench, "smodels", "results of SModelS with a published likelihood", ["shim"])


def spey(bench):
    """spey's limits and likelihoods of the same, by spey-pyhf and by this package's plug-in; and
    the tests of the plug-in.
    """
    rows = downstream(bench, "spey", "results of spey with a published likelihood", ["shim", "plugin"])
    if rows[0][1] is not None:
        found = bench.beside("downstream").pytest(str(BINDINGS / "tests" / "pyhf" / "test_spey.py"), cwd=BINDINGS)
        n_skipped = count(found, "skipped")
        rows.append(("tests of the plug-in for spey", count(found, "passed"), len(found) - n_skipped, f"{n_skipped} skipped"))
    return rows


def abcd(bench):
    """abcd-pyhf's fits, scans and limits."""
    return downstream(bench, "abcd", "results of abcd-pyhf", ["shim"])


def downstream(bench, package, what, engines):
    """What a package on top of pyhf computes, with pyhf and with each of `engines`."""
    if package != "abcd" and not (bench.data and Path(bench.data).is_dir()):
        return [skipped(what, "no published workspaces (`--data`)")]
    other = bench.beside("downstream")
    if not other.pip("pyhf==0.7.6", "pytest", *DOWNSTREAM[package]):
        return [skipped(what, f"`{' '.join(DOWNSTREAM[package])}` cannot be installed")]
    theirs, *ours = (downstream_run(other, package, engine) for engine in ("pyhf", *engines))
    if theirs is None:
        return [skipped(what, "it does not run with pyhf either")]
    return [compared(what if engine == "shim" else f"{what}, by our plug-in", theirs, found) for engine, found in zip(engines, ours)]


def downstream_run(bench, package, engine):
    target = bench.work / f"{package}-{engine}.json"
    target.unlink(missing_ok=True)
    bench.run("-W", "ignore", "downstream.py", package, engine, "--json", str(target), *(["--data", bench.data] if bench.data else []))
    return json.loads(target.read_text()) if target.exists() else None


def compared(what, theirs, ours):
    """How many results agree, and how long both took."""
    if ours is None:
        return what, 0, len(theirs["results"]), "the run did not end"
    passed = 0
    for name, value in theirs["results"].items():
        found = ours["results"].get(name)
        if found is not None and close_enough(value, found):
            passed += 1
        else:
            print(f"{what}: {name}: {value} and {found}")
    seconds = theirs["seconds"], ours["seconds"]
    return what, passed, len(theirs["results"]), f"{seconds[1]:.1f} s, with pyhf {seconds[0]:.1f} s: {seconds[0] / seconds[1]:.1f} times as long"


def close_enough(theirs, ours):
    pairs = list(zip(_flat([theirs]), _flat([ours]), strict=True))
    return all(abs(a - b) <= DERIVED * max(abs(a), 0.1) for a, b in pairs)


def repeat(bench):
    """pyhf's evaluations, repeated."""
    target = bench.work / "repeat.json"
    target.unlink(missing_ok=True)
    bench.run("repeat.py", "--json", str(target), *(["--data", bench.data] if bench.data and Path(bench.data).is_dir() else []))
    found = json.loads(target.read_text())
    rows = []
    for function in found["functions"]:
        note = f"largest difference {function['worst']:.1e}, relative above 1; {found['models']} models"
        rows.append((f"`{function['function']}` of pyhf, repeated", function["evaluations"] - function["beyond"], function["evaluations"], note))
    return rows


STEPS = {
    "answers": answers,
    "names": names,
    "examples": examples,
    "repeat": repeat,
    "cabinetry": cabinetry,
    "cabinetry-head": cabinetry_head,
    "workflow": workflow,
    "smodels": smodels,
    "spey": spey,
    "abcd": abcd,
}


def table(rows):
    lines = ["| what | agrees | of | |", "|---|---:|---:|---|"]
    shown = lambda n: "–" if n is None else n
    lines += [f"| {what} | {shown(passed)} | {shown(total)} | {note} |" for what, passed, total, note in rows]
    return "\n".join(lines)


def write(path, text):
    """Puts `text` between the page's marks."""
    page = Path(path).read_text()
    page = re.sub(r"(<!-- results -->\n).*?(<!-- end -->)", lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.DOTALL)
    Path(path).write_text(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--work", required=True, help="where the environment and the archives go")
    parser.add_argument("--data", help="a folder with published workspaces")
    parser.add_argument("--cabinetry-head", help="a copy of cabinetry's git repository, with or without a work tree")
    parser.add_argument("--write", help="the page whose table is replaced")
    parser.add_argument("--only", nargs="*", choices=STEPS, help="some of the steps; the page is then left alone")
    arguments = parser.parse_args()
    bench = Bench(arguments.work, arguments.data, arguments.cabinetry_head)
    bench.work.mkdir(parents=True, exist_ok=True)
    bench.install()
    rows = [row for name, step in STEPS.items() if name in (arguments.only or STEPS) for row in step(bench)]
    text = table(rows)
    print(text)
    if arguments.write and not arguments.only:
        write(arguments.write, text)
    # A step that was not skipped and compared nothing has failed.
    return 0 if all(passed == total and total != 0 for _, passed, total, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
