#!/usr/bin/env python3
"""Try and measure an NVIDIA GPU in one command: tests, parity, toys, kernels, sanitizers, a
transformer; appends to benches/RECORD.md.

    gpu.py [--toys 10000] [--print]     on a machine with an NVIDIA driver and Rust; under ten minutes, most of it compiling
    gpu.py --pack .gpu                  where there is Rust: builds, and puts programs and published data into a folder
    gpu.py --packed .gpu [--print]      where there is a GPU and neither Rust nor a network: the same with what is in the folder
    gpu.py --device emulated --print    the same steps where there is no GPU, with few toys

It was written where there is no GPU and has not been run on one; its steps have been run with the
emulation. Published models are used where `../shared` or the folder has them, else generated ones.
`compute-sanitizer`, of CUDA's toolkit, is used where it is installed. Exit status 1 if a step
fails; the others are done all the same, and the section says which.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import gpu_decoder

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# What the tests read of published and reference data.
DATA_PARTS = ("data/cases.json", "data/workspaces", "data/reference", "torchless")
# The programs by name, each with the arguments of Cargo that build it.
PROGRAMS = {
    "nextstat": ("build", "-p", "ns-cli", "--bin", "nextstat", "--features", "{device}"),
    "ns-benches": ("build", "-p", "ns-benches", "--features", "{device}"),
    "parity": ("test", "--no-run", "-p", "ns-compute", "--test", "ns_compute", "--features", "{device}"),
    "torchless": ("build", "-p", "torchless", "--bin", "torchless", "--features", "{device}"),
    "torchless-parity": ("test", "--no-run", "-p", "torchless", "--test", "torchless", "--features", "{device}"),
    "hardware": ("test", "--no-run", "-p", "ns-device", "--test", "ns_device", "--features", "{device}"),
}


class Steps:
    """What was done, how it ended, and what it said."""

    def __init__(self):
        self.rows = []
        self.good = True

    def run(self, what: str, command, limit: int = 300, **environment: str) -> str:
        print(f"{what} …", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            settings = {"cwd": ROOT, "env": {**os.environ, **environment}, "timeout": limit}
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8", **settings)
            good, out, err = done.returncode == 0, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            good, out, err = False, "", f"it took more than {limit} s"
        except OSError as error:
            good, out, err = False, "", str(error)
        if not good:
            print(out[-3000:], err[-3000:], sep="\n", file=sys.stderr)
        self.good &= good
        self.rows.append(f"| {what} | {'done' if good else '**failed**'} | {time.perf_counter() - start:.0f} s |")
        return out

    def skip(self, what: str, why: str):
        self.rows.append(f"| {what} | skipped: {why} | |")


def build(steps: Steps, device: str) -> dict[str, pathlib.Path]:
    """Builds the programs, optimised for a real device, and says where they are."""
    profile = [] if device == "emulated" else ["--release"]
    found = {}
    for name, (verb, *arguments) in PROGRAMS.items():
        command = ["cargo", verb, *profile, "--locked", "--message-format", "json", *(argument.format(device=device) for argument in arguments)]
        messages = steps.run(f"build of `{name}`", command, 900)
        programs = [message["executable"] for message in map(json.loads, messages.splitlines()) if message.get("executable")]
        found[name] = pathlib.Path(programs[-1] if programs else name)
    return found


def pack(folder: pathlib.Path, device: str) -> int:
    """Puts the programs and the published data into `folder`."""
    steps = Steps()
    programs = build(steps, device)
    if not steps.good:
        return 1
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, path in programs.items():
        shutil.copy2(path, folder / name)
        subprocess.run(["strip", folder / name], check=False)
    for part in DATA_PARTS:
        if (SHARED / part).is_dir():
            shutil.copytree(SHARED / part, folder / part, dirs_exist_ok=True)
        elif (SHARED / part).exists():
            shutil.copy2(SHARED / part, folder / part)
    (folder / "commit").write_text(commit(), encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB; take it to the GPU and run `benches/gpu.py --packed {folder}` there")
    return 0


def line(command) -> str:
    """The first line that a command prints, or nothing where it is not."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return ""


def commit() -> str:
    return line(["git", "rev-parse", "--short", "HEAD"]) or "no repository"


def sanitize(steps: Steps, nextstat: pathlib.Path, device: str):
    """A fit and a few toys under the tools that look for wrong accesses and races."""
    runs = {
        "a fit": [nextstat, "fit", "examples/shapes.json", "--device", device, "--quiet"],
        "toys": [nextstat, "toys", "examples/shapes.json", "--n-toys", "8", "--device", device, "--quiet"],
    }
    for tool in ("memcheck", "racecheck"):
        for what, run in runs.items():
            name = f"compute-sanitizer, {tool}, {what}"
            if device == "emulated":
                steps.skip(name, "no hardware")
            elif shutil.which("compute-sanitizer"):
                steps.run(name, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", *run])
            else:
                steps.skip(name, "not installed")


def measure(steps: Steps, programs: dict[str, pathlib.Path], device: str, toys: int, **environment: str) -> tuple[list[str], str]:
    """All steps on a device: the lines that say how far it is off the CPU, and the tables of
    times."""
    print(steps.run("`nextstat devices`", [programs["nextstat"], "devices"]), file=sys.stderr)
    if device == "emulated":
        steps.skip("hardware tests of ns-device", "no hardware")
    else:
        steps.run("hardware tests of ns-device", [programs["hardware"], "hardware::", "--ignored", "--nocapture"])
    # The device's own tests: values, gradients, steps, fits and ensembles of random, odd and
    # published models, within testdata/parity.json.
    ignored = ["--include-ignored"] if (SHARED / "data").is_dir() else []
    command = [programs["parity"], "devices::", "--nocapture", *ignored]
    parity = steps.run("parity with the CPU", command, 900, NEXTSTAT_TEST_DEVICE=device, **environment)
    tables = steps.run(f"{toys} toys, batches, kernels", [programs["ns-benches"], "devices", "--device", device, "--toys", toys], 600, **environment)
    command = [programs["torchless-parity"], "devices", "kernel_vectors", "--include-ignored"]
    steps.run("transformers: parity with the CPU", command, 600, NEXTSTAT_TEST_DEVICE=device, **environment)
    decoded = gpu_decoder.decode(steps, programs["torchless"], device)
    sanitize(steps, programs["nextstat"], device)
    compared = [text for text in parity.splitlines() if " f64: " in text or " f32: " in text or text.startswith(("f64", "f32"))]
    return compared, f"{tables.strip()}\n\n{decoded}"


def section(steps: Steps, is_real: bool, built: str, compared: list[str], tables: str) -> str:
    """What benches/RECORD.md says of a run."""
    driver = line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    title = f"## {datetime.date.today()}, {built}: {'a GPU' if is_real else 'the emulation'}"
    where = driver or ("" if is_real else "No GPU: the steps of benches/gpu.py, tried.")
    steps_done = ["| step | | time |\n|---|---|---|", *steps.rows]
    parity = [f"Compared with the CPU, {len(compared)} lines, as parts of what testdata/parity.json allows:", "", "```", *compared, "```"]
    return "\n".join(["", title, "", where, "", *steps_done, "", *parity, "", tables, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda")
    parser.add_argument("--toys", type=int, help="toys of each ensemble")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER", help="build and pack, measure nothing")
    parser.add_argument("--packed", type=pathlib.Path, metavar="FOLDER", help="build nothing, use what was packed")
    parser.add_argument("--print", action="store_true", help="print the section instead of appending it")
    arguments = parser.parse_args()
    device, is_real = arguments.device, arguments.device != "emulated"
    if arguments.pack:
        return pack(arguments.pack, device)
    steps, environment, built = Steps(), {}, commit()
    if arguments.packed:
        folder = arguments.packed.resolve()
        programs = {name: folder / name for name in PROGRAMS}
        environment = {"NEXTSTAT_DATA": str(folder / "data"), "TORCHLESS_DATA": str(folder / "torchless")}
        built = (folder / "commit").read_text(encoding="utf-8")
    else:
        programs = build(steps, device)
    compared, tables = measure(steps, programs, device, arguments.toys or (10_000 if is_real else 40), **environment)
    text = section(steps, is_real, built, compared, tables)
    if arguments.print:
        print(text)
    else:
        with (ROOT / "benches/RECORD.md").open("a", encoding="utf-8") as record:
            record.write(text)
    return 0 if steps.good else 1


if __name__ == "__main__":
    sys.exit(main())
