#!/usr/bin/env python3
"""Run the tests of what is compiled for several instruction sets on aarch64: under QEMU, with the
cross compiler, on another machine.

Each processor runs all tests: `max` has `dotprod`, `cortex-a53` has NEON alone. What is measured
under emulation is no speed. Says what has to be installed where it is not (exit status 2). Words
after `--` go to `cargo test`; `--package` narrows what is tested.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "aarch64-unknown-linux-gnu"
SYSTEM = "/usr/aarch64-linux-gnu"
# An emulated processor may take its time to sign addresses; the implementation's own way is faster,
# and nothing here signs any.
PROCESSORS = {"max": "max,pauth-impdef=on", "cortex-a53": "cortex-a53"}
PACKAGES = ["torchless", "ns-core", "ns-compute", "ns-inference"]


def missing(emulator):
    """What is not installed, and what installs it."""
    if emulator is None:
        yield "qemu-aarch64-static or qemu-aarch64 (Debian: qemu-user-static)"
    for compiler in ("gcc", "g++"):
        if shutil.which(f"aarch64-linux-gnu-{compiler}") is None:
            yield f"aarch64-linux-gnu-{compiler} (Debian: {compiler}-aarch64-linux-gnu)"
    if not has_target():
        yield f"Rust's target {TARGET} (`rustup target add {TARGET}`)"


def has_target():
    if shutil.which("rustc") is None:
        return False
    library = ["rustc", "--print", "target-libdir", "--target", TARGET]
    folder = subprocess.run(library, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return folder != "" and pathlib.Path(folder).is_dir()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processor", action="append", choices=PROCESSORS, help="what QEMU emulates (default: each)")
    parser.add_argument("--package", action="append", help=f"what is tested (default: {', '.join(PACKAGES)})")
    parser.add_argument("words", nargs="*", help="more words for `cargo test`")
    arguments = parser.parse_args()
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if absent := list(missing(emulator)):
        print("error: programs for aarch64 cannot be made and run here", file=sys.stderr)
        for what in absent:
            print(f"hint: install {what}", file=sys.stderr)
        return 2
    runner = f"{emulator} -L {SYSTEM}"
    cargo = TARGET.upper().replace("-", "_")
    names = {f"CARGO_TARGET_{cargo}_LINKER": "aarch64-linux-gnu-gcc", f"CARGO_TARGET_{cargo}_RUNNER": runner, "NEXTSTAT_EMULATOR": runner}
    packages = [word for package in arguments.package or PACKAGES for word in ("--package", package)]
    command = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--no-fail-fast", "--target", TARGET, *packages, *arguments.words]
    failed = []
    for processor in arguments.processor or PROCESSORS:
        print(f"== {processor}", flush=True)
        environment = {**os.environ, **names, "QEMU_CPU": PROCESSORS[processor]}
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
            failed.append(processor)
    if failed:
        print(f"error: tests failed on {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
