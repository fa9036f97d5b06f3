#!/usr/bin/env python3
"""Try and measure an NVIDIA GPU in one command: tests, parity, toys, kernels, sanitizers, a
transformer, gradients in Python; appends to benches/RECORD.md.

    gpu.py [--toys 10000] [--print]     on a machine with an NVIDIA driver and Rust; under ten minutes, most of it compiling
    gpu.py --pack .gpu                  where there is Rust: builds, and puts programs and published data into a folder
    gpu.py --packed .gpu [--print]      where there is a GPU and neither Rust nor a network: the same with what is in the folder
    gpu.py --device emulated --print    the same steps where there is no GPU, with few toys

Published models are used where `../shared` or the folder has them, else generated ones.
`compute-sanitizer`, of CUDA's toolkit, is used where it is installed; NVIDIA's OpenCL driver where
it and a loader (`libOpenCL.so.1`) are; PyTorch where this Python has it and pytest, for gradients
with tensors on the GPU. `--log FOLDER` keeps what each step says, and `--only WORD` selects steps.
Exit status 1 if a step fails; the others are done all the same, and the section says which.
"""
import argparse
import ctypes.util
import datetime
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gpu_decoder

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# What the tests read of published and reference data.
DATA_PARTS = ("data/cases.json", "data/workspaces", "data/reference", "torchless")
# The programs by name, each with the arguments of Cargo that build it.
PROGRAMS = {
    "nextstat": ("build", "-p", "ns-cli", "--bin", "nextstat", "--features", "{feature}"),
    "ns-benches": ("build", "-p", "ns-benches", "--features", "{feature}"),
    "parity": ("test", "--no-run", "-p", "ns-compute", "--test", "ns_compute", "--features", "{feature}"),
    "torchless": ("build", "-p", "torchless", "--bin", "torchless", "--features", "{feature}"),
    "torchless-parity": ("test", "--no-run", "-p", "torchless", "--test", "torchless", "--features", "{feature}"),
    "hardware": ("test", "--no-run", "-p", "ns-device", "--test", "ns_device", "--features", "{feature}"),
}


# Seconds that a run under a sanitizer may take; the driver compiles the kernels anew for each.
SANITIZER_SECONDS = 240
# Where NVIDIA's OpenCL driver may be; containers have the second.
OPENCL_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib64")
# The loader of OpenCL's drivers.
LOADER = "libOpenCL.so.1"


class Steps:
    """What was done, how it ended, and what it said."""

    def __init__(self, log: pathlib.Path | None = None):
        self.rows = []
        self.good = True
        self.log = log
        # Steps whose name contains this are done.
        self.only = ""
        if log:
            log.mkdir(parents=True, exist_ok=True)

    def wants(self, what: str) -> bool:
        return self.only in what

    def run(self, what: str, command, limit: int = 300, **environment: str) -> str:
        if not self.wants(what):
            return ""
        print(f"{what} …", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            settings = {"cwd": ROOT, "env": {**os.environ, **environment}, "timeout": limit}
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8", **settings)
            good, out, err = done.returncode == 0, done.stdout, done.stderr
        except subprocess.TimeoutExpired as expired:
            # Bytes, although text was asked for.
            said = [part if isinstance(part, str) else (part or b"").decode(errors="replace") for part in (expired.stdout, expired.stderr)]
            good, out, err = False, said[0], f"{said[1]}\nit took more than {limit} s"
        except OSError as error:
            good, out, err = False, "", str(error)
        if not good:
            print(out[-3000:], err[-3000:], sep="\n", file=sys.stderr)
        if self.log:
            with (self.log / "steps.log").open("a", encoding="utf-8") as log:
                print(f"==== {what}", out, err, sep="\n", file=log)
        self.good &= good
        self.rows.append(f"| {what} | {'done' if good else '**failed**'} | {time.perf_counter() - start:.0f} s |")
        return out

    def skip(self, what: str, why: str):
        self.rows.append(f"| {what} | skipped: {why} | |")


def build(steps: Steps, device: str) -> dict[str, pathlib.Path]:
    """Builds the programs, optimised for a real device, and says where they are."""
    profile, feature = ([], device) if device == "emulated" else (["--release"], "gpu")
    found = {}
    for name, (verb, *arguments) in PROGRAMS.items():
        command = ["cargo", verb, *profile, "--locked", "--message-format", "json", *(argument.format(feature=feature) for argument in arguments)]
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
    (folder / "shared/data").mkdir(parents=True, exist_ok=True)
    for name, path in programs.items():
        shutil.copy2(path, folder / name)
        subprocess.run(["strip", folder / name], check=False)
    for part in DATA_PARTS:
        to = folder / "shared" / part
        if (SHARED / part).is_dir():
            shutil.copytree(SHARED / part, to, dirs_exist_ok=True)
        elif (SHARED / part).exists():
            shutil.copy2(SHARED / part, to)
    loader = next((path for path in pathlib.Path("/usr/lib").glob(f"*/{LOADER}")), None)
    for more in filter(None, (loader, *ROOT.glob("target/wheels/nextstat*.whl"))):
        shutil.copy2(more, folder)
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
                steps.run(name, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", *run], SANITIZER_SECONDS)
            else:
                steps.skip(name, "not installed")


def with_opencl(steps: Steps, programs: dict[str, pathlib.Path], **environment: str) -> str:
    """Runs the tests of the kernels through NVIDIA's OpenCL driver. Users get its GPUs by CUDA."""
    driver = next((path for folder in OPENCL_FOLDERS if (path := pathlib.Path(folder) / "libnvidia-opencl.so.1").exists()), None)
    packed = programs["nextstat"].parent / LOADER
    loader = str(packed) if packed.exists() else ctypes.util.find_library("OpenCL")
    if not driver or not loader:
        steps.skip("OpenCL", "no driver of NVIDIA for it" if not driver else f"no {LOADER}")
        return ""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "nvidia.icd").write_text(f"{driver}\n", encoding="utf-8")
        own = {"OCL_ICD_VENDORS": folder, "OPENCL_DYLIB_PATH": loader, "NEXTSTAT_OPENCL_NVIDIA": "1", "NEXTSTAT_TEST_DEVICE": "opencl"}
        own |= {"NEXTSTAT_OPENCL_CACHE": folder, **environment}
        steps.run("OpenCL: hardware tests of ns-device", [programs["hardware"], "hardware::", "--ignored", "--nocapture"], **own)
        parity = steps.run("OpenCL: parity with the CPU", parity_tests(programs, **environment), 400, **own)
        steps.run("OpenCL: transformers", [programs["torchless-parity"], "devices::", "--include-ignored"], 400, **own)
    return parity


def gradients(steps: Steps, folder: pathlib.Path, device: str):
    """The tests of gradients in Python, with PyTorch's tensors on the GPU, by a packed wheel."""
    what, wheels = "gradients with PyTorch's tensors on the device", sorted(folder.glob("nextstat*.whl"))
    if not wheels or any(importlib.util.find_spec(name) is None for name in ("torch", "pytest")):
        steps.skip(what, "no wheel was packed" if not wheels else "this Python has no PyTorch or no pytest")
        return
    with tempfile.TemporaryDirectory() as site:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheels[-1]]
        steps.run("installation of the wheel", install)
        tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "bindings/ns-py/tests/differentiable"]
        steps.run(what, tests, 400, PYTHONPATH=site, NEXTSTAT_TEST_DEVICE=device)


def parity_tests(programs: dict[str, pathlib.Path], **environment: str) -> list:
    """The device's own tests: values, gradients, steps, fits and ensembles of random, odd and
    published models, within testdata/parity.json."""
    has_data = pathlib.Path(environment.get("NEXTSTAT_DATA", SHARED / "data")).is_dir()
    return [programs["parity"], "devices::", "--nocapture", *(["--include-ignored"] if has_data else [])]


def measure(steps: Steps, programs: dict[str, pathlib.Path], device: str, toys: int, **environment: str) -> tuple[list[str], str]:
    """All steps on a device: the lines that say how far it is off the CPU, and the tables of
    times."""
    print(steps.run("`nextstat devices`", [programs["nextstat"], "devices"]), file=sys.stderr)
    if device == "emulated":
        steps.skip("hardware tests of ns-device", "no hardware")
    else:
        steps.run("hardware tests of ns-device", [programs["hardware"], "hardware::", "--ignored", "--nocapture"])
    parity = steps.run("parity with the CPU", parity_tests(programs, **environment), 400, NEXTSTAT_TEST_DEVICE=device, **environment)
    tables = steps.run(f"{toys} toys, batches, kernels", [programs["ns-benches"], "devices", "--device", device, "--toys", toys], 600, **environment)
    command = [programs["torchless-parity"], "devices::", "kernel_vectors::", "--include-ignored"]
    steps.run("transformers: parity with the CPU", command, 600, NEXTSTAT_TEST_DEVICE=device, **environment)
    decoded = gpu_decoder.decode(steps, programs["torchless"], device)
    gradients(steps, programs["nextstat"].parent, device)
    if device != "emulated":
        parity += with_opencl(steps, programs, **environment)
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
    parser.add_argument("--log", type=pathlib.Path, metavar="FOLDER", help="keep what each step says")
    parser.add_argument("--only", default="", metavar="WORD", help="only steps whose name contains this")
    parser.add_argument("--print", action="store_true", help="print the section instead of appending it")
    arguments = parser.parse_args()
    device, is_real = arguments.device, arguments.device != "emulated"
    if arguments.pack:
        return pack(arguments.pack, device)
    steps, environment, built = Steps(arguments.log), {}, commit()
    if arguments.packed:
        folder = arguments.packed.resolve()
        programs = {name: folder / name for name in PROGRAMS}
        environment = {"NEXTSTAT_DATA": str(folder / "shared/data"), "TORCHLESS_DATA": str(folder / "shared/torchless")}
        built = (folder / "commit").read_text(encoding="utf-8").strip()
    else:
        programs = build(steps, device)
    # Building is no step to choose.
    steps.only = arguments.only
    compared, tables = measure(steps, programs, device, arguments.toys or (10_000 if is_real else 40), **environment)
    text = section(steps, is_real, built, compared, tables)
    # A part of the steps is no record.
    if arguments.print or arguments.only:
        print(text)
    else:
        with (ROOT / "benches/RECORD.md").open("a", encoding="utf-8") as record:
            record.write(text)
    return 0 if steps.good else 1


if __name__ == "__main__":
    sys.exit(main())
