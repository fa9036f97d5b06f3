#!/usr/bin/env python3
"""Execute the PTX that is shipped, without a GPU: tests record their launches on the emulated
device, and `ns-ptx` repeats them instruction by instruction, checks every access, and compares what
they write with the recordings. Prints how many basic blocks were executed.

With --fuse, products and sums without a rounding mode are fused at random, as a driver may fuse
them; differences are then those of one rounding, amplified by the fit.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from kernel_modules import MODULES, ROOT
from kernels_sanitize import record

# Per module: the largest difference of a real, relative to the larger of 1 and its magnitude, of
# kernels beyond the default of 1e-12. The functions of CUDA differ from the host's in the last
# bits, and those of hosts from each other (4e-7 at most on one processor, 1.2e-7 on another);
# minima are as far apart as the fit's tolerance allows.
TOLERANCES = {
    "self_test.f32": {"self_test_functions": 3e-7},
    "likelihood.f64": {"newton": 1e-9, "fit": 1e-9},
    "transformer.f32": dict.fromkeys(("attention", "attention_sum", "attention_tiles", "silu", "silu_mul", "softmax"), 1e-6),
    "encoder.f32": dict.fromkeys(("combine_reals", "map_reals", "map_wide", "softmax_rows"), 1e-6),
}
# Launches that may differ: those of a model whose matrix is singular to rounding, where the last
# bits decide whether it is positive definite. With more fused products there are more of them.
MAY_DIFFER = {"likelihood.f64": {"newton": 1, "fit": 1}}
MAY_DIFFER_FUSED = {"likelihood.f64": {"newton": 2, "fit": 1}}
# Percent of the basic blocks that the launches have to reach, as measured, rounded down.
LEAST_COVERAGE = {"self_test.f64": 71, "self_test.f32": 71, "likelihood.f64": 94, "transformer.f32": 49, "encoder.f32": 70}


def scratch(module) -> list[tuple[str, int]]:
    """The outputs called `work`, which kernels use for themselves."""
    text = module.text()
    found = []
    for kernel, arguments in re.findall(r"KERNEL\((\w+)\)\((.*?) LANES\)", text, re.DOTALL):
        found += [(kernel, int(index)) for index in re.findall(r"OUT\(real, work, (\d+)\)", arguments)]
    return found


def replay(program, module, precision, files, fuse) -> bool:
    name = f"{module.name}.{precision}"
    command = [program, module.folder / f"{name}.ptx"]
    for kernel, index in scratch(module):
        command += ["--scratch", f"{kernel}={index}"]
    factor = 100 if fuse is not None else 1
    for kernel, tolerance in TOLERANCES.get(name, {}).items():
        command += ["--tolerance", f"{kernel}={factor * tolerance}"]
    may_differ = MAY_DIFFER if fuse is None else MAY_DIFFER_FUSED
    for kernel, count in may_differ.get(name, {}).items():
        command += ["--may-differ", f"{kernel}={count}"]
    if fuse is not None:
        command += ["--fuse", str(fuse)]
    command += ["--least-coverage", str(LEAST_COVERAGE[name])]
    print(f"{name}:", flush=True)
    return subprocess.run([*command, *files], check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", help="this one only")
    parser.add_argument("--fuse", type=int, metavar="SEED", help="fuse products and sums at random")
    arguments = parser.parse_args()
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--package", "ns-ptx"], cwd=ROOT, check=True)
    target = subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True, text=True)
    program = pathlib.Path(re.search(r'"target_directory":"([^"]*)"', target.stdout).group(1)) / "debug/ns-ptx"
    good = True
    for module in MODULES:
        if arguments.module not in (None, module.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            files = record(module, pathlib.Path(folder))
            for precision in module.precisions:
                own = [file for file in files if file.stem.endswith(precision)]
                if not own:
                    raise SystemExit(f"no launches of `{module.name}` in {precision} were recorded")
                good &= replay(program, module, precision, own, arguments.fuse)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
