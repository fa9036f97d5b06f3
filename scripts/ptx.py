#!/usr/bin/env python3
"""Compile every kernel module to PTX, without a GPU and without CUDA's toolkit: NVRTC from its
wheel.

    ptx.py                    compile what is out of date
    ptx.py --check            say what is out of date, and fail
    ptx.py --ptxas [sm_90]    assemble each PTX; print registers and spills, and fail on spills
    ptx.py --ptxas all        the same for every architecture, as a table; prints spills only

The compiler is old on purpose: NVRTC 12.0 writes PTX 8.0, which every driver since 525 reads, for
compute capability 7.0 and up. The first line of a PTX names its sources and their digest, the
compiler and the options; a test of ns-device recomputes it. Products and sums are not contracted
(--fmad=false), and FMA() says where a fused one is meant, unless a module's own options say
otherwise. The second line is the digest of what follows.
"""
import argparse
import ctypes
import hashlib
import os
import re
import subprocess
import sys

from kernel_modules import MODULES, ROOT, KernelModule
from kernel_venv import wheels

NVRTC = "nvidia-cuda-nvrtc-cu12==12.0.140"
PTXAS = ("nvidia-cuda-nvcc==13.0.88",)
# CUDA 13 assembles for compute capability 7.5 and up only.
PTXAS_OF_VOLTA = ("nvidia-cuda-nvcc-cu12==12.9.86",)
ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")
REALS = {"f64": "double", "f32": "float"}
OPTIONS = (
    "--gpu-architecture=compute_70",
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--diag-suppress=550",
)


def first_line(module: KernelModule, precision: str) -> str:
    """What a PTX must begin with to be up to date."""
    options = " ".join(options_of(module, precision))
    compiler = NVRTC.split("==")[1]
    digest = hashlib.sha256()
    for path in module.sources():
        digest.update(path.read_bytes())
    digest.update(f"{compiler}\n{options}\n".encode())
    sources = " ".join(path.relative_to(ROOT).as_posix() for path in module.sources())
    return f"// sources: {sources}; sha256: {digest.hexdigest()}; nvrtc: {compiler}; options: {options}\n"


def options_of(module: KernelModule, precision: str) -> tuple[str, ...]:
    """The module's own options replace ours of the same name."""
    own = {option.split("=")[0] for option in module.options}
    ours = [option for option in OPTIONS if option.split("=")[0] not in own]
    return (*ours, *module.options, f"-DREAL={REALS[precision]}")


def targets():
    for module in MODULES:
        for precision in module.precisions:
            yield module, precision, module.folder / f"{module.name}.{precision}.ptx"


def second_line(body: str) -> str:
    """What tells a PTX that was written by the compiler from one that was changed by hand."""
    return f"// below: sha256: {hashlib.sha256(body.encode()).hexdigest()}\n"


def is_current(module, precision, path) -> bool:
    if not path.exists():
        return False
    first, second, body = [*path.read_text(encoding="utf-8").split("\n", 2), "", ""][:3]
    return first + "\n" == first_line(module, precision) and second + "\n" == second_line(body)


class Nvrtc:
    """The library, by its C interface."""

    def __init__(self):
        folder = wheels(NVRTC)
        # It opens its builtins by name.
        for name in sorted(folder.rglob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(name), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(next(folder.rglob("libnvrtc.so.12"))))

    def text(self, program, size, get) -> str:
        n = ctypes.c_size_t()
        size(program, ctypes.byref(n))
        text = ctypes.create_string_buffer(n.value)
        get(program, text)
        return text.value.decode()

    def compile(self, name: str, source: str, options) -> str:
        nvrtc, program = self.library, ctypes.c_void_p()
        arguments = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        status = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
        log = self.text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
        if log:
            print(log, file=sys.stderr)
        if status:
            raise SystemExit(f"{name} did not compile")
        return self.text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)


def compile_all():
    compiler = None
    for module, precision, path in targets():
        if is_current(module, precision, path):
            continue
        compiler = compiler or Nvrtc()
        ptx = compiler.compile(f"{module.name}.cu", module.text(has_places=True), options_of(module, precision))
        body = ptx.replace("\0", "")
        path.write_text(first_line(module, precision) + second_line(body) + body, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


def check():
    stale = [path.relative_to(ROOT).as_posix() for module, precision, path in targets() if not is_current(module, precision, path)]
    if stale:
        raise SystemExit(f"out of date: {', '.join(stale)}\nhint: run `make ptx`")


def properties_of(path, architecture: str) -> dict[str, dict[str, int]]:
    """Registers, stack and spills of the kernels and library functions of a PTX."""
    is_volta = architecture == "sm_70"
    ptxas = wheels(*PTXAS_OF_VOLTA) / "cuda_nvcc/bin/ptxas" if is_volta else wheels(*PTXAS) / "cu13/bin/ptxas"
    command = [ptxas, "-v", f"-arch={architecture}", path, "-o", os.devnull]
    report = subprocess.run(command, capture_output=True, text=True)
    if report.returncode:
        raise SystemExit(report.stderr)
    # Properties of a kernel come on the lines after its name; those of library functions are listed
    # by themselves.
    properties = {}
    name = None
    for line in report.stderr.splitlines():
        if found := re.search(r"(?:entry function|Function properties for) '?(\w+)", line):
            name = found.group(1)
        for key, pattern in (("stack", r"(\d+) bytes stack"), ("spills", r"(\d+) bytes spill stores"), ("registers", r"Used (\d+) registers")):
            if (found := re.search(pattern, line)) and name:
                properties.setdefault(name, {})[key] = int(found.group(1))
    return properties


def table():
    """The largest number of registers and the spills of each PTX for every architecture."""
    names = [f"{module.name} {precision}" for module, precision, _ in targets()]
    print(f"| | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for architecture in ARCHITECTURES:
        cells = []
        for _, _, path in targets():
            properties = properties_of(path, architecture).values()
            registers = max(found.get("registers", 0) for found in properties)
            spills = sum(found.get("spills", 0) for found in properties)
            cells.append(f"{registers}" + (f", {spills} bytes spilled" if spills else ""))
        print(f"| `{architecture}` | {' | '.join(cells)} |")


def assemble(architecture: str):
    """Prints registers, stack and spills of every kernel; spills fail."""
    spilled = []
    for module, precision, path in targets():
        for name, found in sorted(properties_of(path, architecture).items()):
            if "registers" in found or found.get("spills"):
                print(
                    f"{module.name} {precision} {name}: {found.get('registers', '?')} registers,"
                    f" {found.get('stack', 0)} bytes of stack, {found.get('spills', 0)} bytes of spills ({architecture})"
                )
            if found.get("spills"):
                spilled.append(name)
    if spilled:
        raise SystemExit(f"registers are spilled by {', '.join(spilled)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ptxas", nargs="?", const="sm_90", metavar="ARCHITECTURE")
    arguments = parser.parse_args()
    if arguments.check:
        check()
    elif arguments.ptxas:
        check()
        table() if arguments.ptxas == "all" else assemble(arguments.ptxas)
    else:
        compile_all()
