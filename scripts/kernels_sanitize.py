#!/usr/bin/env python3
"""Run every kernel module under sanitizers: tests record their launches on the emulated device,
which are then replayed by kernels compiled with AddressSanitizer and UndefinedBehaviorSanitizer
(lanes as fibers, in three orders) and with ThreadSanitizer (lanes as threads), and must write the
same bits.

Launches of kernels called `broken_…` must be caught: they show that the sanitizers see what they
are there for. Needs g++ with its sanitizers' libraries. To sanitize a client's launches, name the
tests that make them in kernel_modules.py, or record them by hand: NEXTSTAT_RECORD_LAUNCHES=folder,
then --recordings folder.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from kernel_modules import DEVICE, MODULES, ROOT

EMULATION = DEVICE / "emulation"
SANITIZERS = {
    "fibers": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "threads": ["-fsanitize=thread"],
}
ENVIRONMENT = {
    # Stacks of fibers come and go without AddressSanitizer's own book-keeping of frames.
    "ASAN_OPTIONS": "detect_stack_use_after_return=0",
    "TSAN_OPTIONS": "halt_on_error=1",
}


def record(module, folder: pathlib.Path) -> list[pathlib.Path]:
    environment = {**os.environ, "NEXTSTAT_RECORD_LAUNCHES": str(folder)}
    subprocess.run(["cargo", "test", "--quiet", "--locked", *module.record], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*.replay"))


def build(module, sanitizer: list[str], folder: pathlib.Path) -> pathlib.Path:
    common = ["g++", "-std=c++17", "-O1", "-g", "-ffp-contract=off", "-pthread", f"-I{EMULATION}", f"-I{DEVICE / 'kernels'}", *sanitizer]
    objects = []
    for real, precision in (("double", "f64"), ("float", "f32")):
        objects.append(folder / f"{precision}.o")
        define = [f"-DREAL={real}", f"-DPRECISION={precision}", "-DNS_EMULATION_LIST"]
        subprocess.run([*common, *define, f"-I{module.folder}", "-c", module.folder / module.emulated, "-o", objects[-1]], check=True)
    program = folder / "replay"
    subprocess.run([*common, EMULATION / "replay.cpp", EMULATION / "runtime.cpp", *objects, "-o", program], check=True)
    return program


def kernel_of(path: pathlib.Path) -> str:
    return re.fullmatch(r"\d+-\d+-(\w+)\.replay", path.name).group(1)


def choose(module, files, most: int):
    """The first `most` launches of each of the module's kernels; a test launches those of other
    modules too."""
    seen = collections.Counter()
    text = (module.folder / module.emulated).read_text(encoding="utf-8")
    own = {f"{kernel}_{precision}" for kernel in re.findall(r"^EXPORT\((\w+)\)", text, re.MULTILINE) for precision in ("f64", "f32")}
    for file in files:
        if kernel_of(file) not in own:
            continue
        seen[kernel_of(file)] += 1
        if seen[kernel_of(file)] <= most:
            yield file


def run(program: str, lanes: str, files) -> subprocess.CompletedProcess:
    """Replays `files`, with the sanitizers' settings."""
    return subprocess.run([program, lanes, *files], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)


def replay(module, files, most: int) -> bool:
    good = True
    files = list(choose(module, files, most))
    broken = [file for file in files if kernel_of(file).startswith("broken_")]
    sound = [file for file in files if file not in broken]
    caught = set()
    for lanes, sanitizer in SANITIZERS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = build(module, sanitizer, pathlib.Path(folder))
            report = run(program, lanes, sound)
            print(f"{module.name} {lanes} {sanitizer[0]}: {report.stdout.strip() or 'failed'}")
            if report.returncode:
                print(report.stderr, file=sys.stderr)
                good = False
            for file in broken:
                found = re.search(r"(\w+Sanitizer: [\w-]+(?: race)?)", run(program, lanes, [file]).stderr)
                if found:
                    print(f"{module.name} {lanes} {kernel_of(file)}: caught, {found.group(1)}")
                    caught.add(file)
    for file in broken:
        if file not in caught:
            print(f"{module.name}: no sanitizer caught {kernel_of(file)}", file=sys.stderr)
            good = False
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", help="this one only")
    parser.add_argument("--most", type=int, default=20, help="launches of each kernel that are replayed (default 20)")
    parser.add_argument("--recordings", type=pathlib.Path, help="replay this folder's launches instead of recording some")
    arguments = parser.parse_args()
    good = True
    for module in MODULES:
        if arguments.module not in (None, module.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            files = sorted(arguments.recordings.glob("*.replay")) if arguments.recordings else record(module, pathlib.Path(folder))
            if not files:
                raise SystemExit(f"no launches of `{module.name}` were recorded")
            good &= replay(module, files, arguments.most)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
