#!/usr/bin/env python3
"""Run the tests of the kernels on every OpenCL driver of this machine, through the backend that
users have; under Oclgrind, the self-tests with a whole fit, which it checks for data races, and
recorded launches and planted mistakes, also for reads of unwritten memory (kernels_oclgrind.py).

    kernels_opencl.py [--venv FOLDER] [--no-install] [--self-tests] [--only NAME]

Drivers: those of the system (Debian: `apt-get install ocl-icd-libopencl1 pocl-opencl-icd`), one at
a time, and Intel's for processors from PyPI, which is installed into FOLDER (1 GB). What is absent
is reported as skipped. Exit status 1 if a test fails on a driver that is there.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kernels_oclgrind
from kernel_modules import ROOT

INTEL = ("intel-opencl-rt==2026.2.*", "intel-cmplr-lib-rt")
VENDORS = pathlib.Path("/etc/OpenCL/vendors")


def with_data(variable: str, name: str) -> tuple[str, ...]:
    """The option for the tests that need published data, where these are."""
    return ("--include-ignored",) if (pathlib.Path(os.environ.get(variable, "")) / name).is_file() else ()


# The crate, its test, what is run there.
SUITES = (
    ("ns-device", "ns_device", ("hardware::", "--ignored", "--test-threads=1")),
    ("ns-compute", "ns_compute", ("devices::", *with_data("NEXTSTAT_DATA", "cases.json"))),
    ("torchless", "torchless", ("devices::", *with_data("TORCHLESS_DATA", "kernels.safetensors"))),
)
SELF_TESTS = (
    ("ns-device", "ns_device", ("hardware::every_device", "--ignored")),
    # A session begins with the self-test of the likelihood, which fits.
    ("ns-compute", "ns_compute", ("devices::fits::a_fit_that_cannot_start",)),
)


def intel(folder: pathlib.Path, may_install: bool) -> pathlib.Path | None:
    """The folder of Intel's libraries; none where they are not and cannot be installed."""
    if not (library := folder / "lib/libintelocl.so").exists() and may_install:
        make = [[sys.executable, "-m", "venv", folder], [folder / "bin/python", "-m", "pip", "install", "--quiet", *INTEL]]
        for command in make:
            if subprocess.run(command, check=False).returncode:
                return None
    return folder / "lib" if library.exists() else None


def alone(name: str, library: str, folder: pathlib.Path) -> dict[str, str]:
    """The environment in which a driver is the only one. Every loader takes a folder, not a
    file."""
    own = folder / name
    own.mkdir(exist_ok=True)
    (own / f"{name}.icd").write_text(f"{library}\n", encoding="utf-8")
    return {"OCL_ICD_VENDORS": str(own)}


def drivers(arguments, folder: pathlib.Path) -> dict[str, dict[str, str]]:
    """The environment of each driver."""
    found = {path.stem: alone(path.stem, path.read_text(encoding="utf-8").strip(), folder) for path in sorted(VENDORS.glob("*.icd"))}
    if libraries := intel(arguments.venv, not arguments.no_install):
        path = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        found["intel"] = {**alone("intel", str(libraries / "libintelocl.so"), folder), "LD_LIBRARY_PATH": path}
    else:
        print("warning: skipped: Intel's driver for processors, which is not installed")
    if not any(name.startswith("pocl") for name in found):
        print("warning: skipped: POCL, which is not installed\nhint: apt-get install ocl-icd-libopencl1 pocl-opencl-icd")
    return found


def has_no_races(launches: int) -> bool:
    """Whether the self-tests and some launches of each kernel pass under Oclgrind, without a
    report."""
    if not kernels_oclgrind.LIBRARY.exists():
        print("warning: skipped: Oclgrind, which is not installed\nhint: apt-get install oclgrind")
        return True
    with tempfile.TemporaryDirectory() as name:
        good = passes("oclgrind", kernels_oclgrind.environment(pathlib.Path(name)), SELF_TESTS)
    return kernels_oclgrind.is_good(launches) and good


def runs(command: list[str], environment: dict[str, str]) -> bool:
    """Whether the command passes at least one test, fails none, and Oclgrind reports nothing. What
    it says is shown as it comes."""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        said = []
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    said = "".join(said)
    n_passed = sum(map(int, re.findall(r"(\d+) passed", said)))
    if not n_passed:
        print("error: no test passed", file=sys.stderr)
    return not process.returncode and n_passed > 0 and not kernels_oclgrind.reports(said)


def passes(name: str, environment: dict[str, str], suites) -> bool:
    """Whether every test passes; programs are compiled anew."""
    good = True
    with tempfile.TemporaryDirectory() as cache:
        own = {"NEXTSTAT_TEST_DEVICE": "opencl", "NEXTSTAT_OPENCL_CACHE": cache, "POCL_CACHE_DIR": cache}
        for crate, test, arguments in suites:
            print(f"{crate} on {name}:", flush=True)
            command = ["cargo", "test", "--locked", "--quiet", "-p", crate, "--features", "gpu", "--test", test]
            built = subprocess.run([*command, "--no-run"], cwd=ROOT, check=False)
            good &= not built.returncode and runs([*command, "--", *arguments], {**os.environ, **own, **environment})
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / ".venv-kernels/opencl")
    parser.add_argument("--no-install", action="store_true", help="use Intel's driver only if it is installed already")
    parser.add_argument("--self-tests", action="store_true", help="run the self-tests only: of the device and of the likelihood, with its fits")
    parser.add_argument("--only", metavar="NAME", help="this driver only: `pocl`, `intel`, `oclgrind`")
    arguments = parser.parse_args()
    arguments.venv = arguments.venv.absolute()
    suites = SELF_TESTS if arguments.self_tests else SUITES
    with tempfile.TemporaryDirectory() as folder:
        found = drivers(arguments, pathlib.Path(folder))
        if arguments.only not in (None, "oclgrind", *found):
            parser.error(f"no driver here is called `{arguments.only}`; there are {', '.join(found)}")
        asked = {name: own for name, own in found.items() if arguments.only in (None, name)}
        failed = [name for name, environment in asked.items() if not passes(name, environment, suites)]
    if arguments.only in (None, "oclgrind") and not has_no_races(1 if arguments.self_tests else 4):
        failed.append("oclgrind")
    if failed:
        print(f"tests failed on {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
