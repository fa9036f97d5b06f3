#!/usr/bin/env python3
"""Repeat recorded launches under Oclgrind, which interprets OpenCL kernels and looks for data
races, reads of memory that was not written, and accesses outside of memory; then plant mistakes in
the text, each of which must be reported.

Launches are recorded on the emulated device, and repeated through the OpenCL backend by the example
`replay` of ns-device, which compares what they write with the recordings. `make kernels-opencl`
runs this; alone it needs Oclgrind and nothing else.
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from kernel_modules import MODULES, ROOT
from kernels_mutate import LIKELIHOOD, Mutant
from kernels_ptx import scratch
from kernels_sanitize import kernel_of

LIBRARY = pathlib.Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
SELF_TEST = (
    Mutant("missing barrier in the sum", "self_test.h", "partial[LANE / WARP] = value;\n    BARRIER();", "partial[LANE / WARP] = value;"),
    Mutant("sums of other warps are not written", "self_test.h", "if (LANE % WARP == 0) partial[", "if (LANE == 0) partial["),
)
# The module, its mistakes, and the kernel whose recorded launch has to show each.
PLANTED = (
    *(("self_test", mutant, "self_test_sum_f64") for mutant in SELF_TEST),
    *(
        ("likelihood", next(mutant for mutant in LIKELIHOOD if mutant.what == what), kernel)
        for what, kernel in (
            ("missing barrier after the cells", "nll_f64"),
            ("missing barrier in the sum", "nll_f64"),
            ("missing barrier between columns of the panel", "newton_f64"),
            ("uninitialised read of work", "newton_f64"),
            ("overrun of the shared panel", "newton_f64"),
        )
    ),
)


def environment(folder: pathlib.Path) -> dict[str, str]:
    """The environment in which Oclgrind is the only driver, and looks for data races. It reports to
    standard error: a log would be emptied by every new context."""
    vendors = folder / "oclgrind"
    vendors.mkdir(exist_ok=True)
    (vendors / "oclgrind.icd").write_text(f"{LIBRARY}\n", encoding="utf-8")
    return {"OCL_ICD_VENDORS": str(vendors), "OCLGRIND_DATA_RACES": "1"}


def reports(said: str) -> str:
    """What a program said to standard error, if Oclgrind reported something there; each report
    names its kernel."""
    return said if "\tKernel: " in said else ""


@dataclasses.dataclass(frozen=True)
class Launch:
    """What became of a launch: whether it wrote what was recorded, and what Oclgrind reports."""

    agrees: bool
    says: str
    report: str


class Oclgrind:
    """The interpreter as the only driver of a process, and the program that repeats launches."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        build = ["cargo", "build", "--quiet", "--locked", "-p", "ns-device", "--features", "gpu", "--example", "replay"]
        subprocess.run(build, cwd=ROOT, check=True)
        metadata = subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True, text=True)
        self.program = pathlib.Path(re.search(r'"target_directory":"([^"]*)"', metadata.stdout).group(1)) / "debug/examples/replay"

    def repeat(self, module, text: str, recording: pathlib.Path) -> Launch:
        """One launch, in a process of its own: in a later one of a process Oclgrind 21.10 takes
        values that were written for values that were not."""
        source = self.folder / "text.cl"
        source.write_text(text, encoding="utf-8")
        own = {
            **environment(self.folder),
            "OCLGRIND_UNINITIALIZED": "1",
            "OCLGRIND_MAX_ERRORS": "10",
            "NEXTSTAT_OPENCL_CACHE": "off",
        }
        options = [word for kernel, index in scratch(module) for word in ("--scratch", f"{kernel}={index}")]
        done = subprocess.run([self.program, source, *options, recording], env={**os.environ, **own}, capture_output=True, text=True, check=False)
        return Launch(not done.returncode, done.stdout + done.stderr, reports(done.stderr))


def record(module, folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Recorded launches of the module's kernels, by name and precision, those with the least memory
    first."""
    folder.mkdir()
    environment = {**os.environ, "NEXTSTAT_RECORD_LAUNCHES": str(folder)}
    # Use the features of `kernels_opencl.py`, so that nothing is built twice.
    command = ["cargo", "test", "--quiet", "--locked", "--features", "gpu", *module.record]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    own = set(re.findall(r"KERNEL\((\w+)\)", (module.folder / module.header.replace("all.h", "kernels.h")).read_text(encoding="utf-8")))
    found = collections.defaultdict(list)
    for path in sorted(folder.glob("*.replay"), key=lambda path: (path.stat().st_size, path.name)):
        if kernel_of(path).rsplit("_", 1)[0] in own:
            found[kernel_of(path)].append(path)
    return found


def spread(paths: list[pathlib.Path], most: int) -> list[pathlib.Path]:
    """Returns `most` of the paths, or all of them, spread from small to large."""
    count = min(most, len(paths))
    return [paths[(2 * i + 1) * len(paths) // (2 * count)] for i in range(count)]


def is_clean(oclgrind: Oclgrind, module, launches: dict[str, list[pathlib.Path]], most: int) -> bool:
    """Whether launches agree with their recordings, and Oclgrind has nothing to say of them."""
    good, n_launches = bool(launches), 0
    for paths in launches.values():
        for path in spread(paths, most):
            launch = oclgrind.repeat(module, module.text(), path)
            n_launches += 1
            if not launch.agrees or launch.report:
                print(f"{path.name}: {launch.says}", file=sys.stderr)
                good = False
    print(f"{module.name} under Oclgrind: {n_launches} launches of {len(launches)} kernels, {'no report' if good else 'FAILED'}", flush=True)
    return good


def is_reported(oclgrind: Oclgrind, module, mutant: Mutant, paths: list[pathlib.Path]) -> bool:
    """Whether Oclgrind reports the mistake in one of these launches."""
    text = module.text()
    if text.count(mutant.old) != 1:
        raise SystemExit(f"`{mutant.what}`: its text is in {module.name} {text.count(mutant.old)} times")
    text = text.replace(mutant.old, mutant.new)
    report = next(filter(None, (oclgrind.repeat(module, text, path).report for path in paths)), "")
    first = next((line for line in report.splitlines() if line.strip()), "NOT CAUGHT")
    print(f"{module.name} under Oclgrind, {mutant.what}: {first}", flush=True)
    return bool(report)


def is_good(most: int) -> bool:
    """Whether the launches of each kernel are right, and every planted mistake is reported."""
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        oclgrind = Oclgrind(folder)
        for module in MODULES:
            launches = record(module, folder / module.name)
            good &= is_clean(oclgrind, module, launches, most)
            for of_module, mutant, kernel in PLANTED:
                if of_module == module.name:
                    good &= is_reported(oclgrind, module, mutant, spread(launches[kernel], 4))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=4, help="launches of each kernel in each precision (default 4)")
    arguments = parser.parse_args()
    if not LIBRARY.exists():
        print("warning: skipped: Oclgrind, which is not installed\nhint: apt-get install oclgrind")
        return 0
    return 0 if is_good(arguments.most) else 1


if __name__ == "__main__":
    sys.exit(main())
