#!/usr/bin/env python3
"""Read every kernel module with clang as Metal would, on any platform: the dialect's Metal branch
as C++ with a stand-in for Apple's header, and the text as C++ for OpenCL, where address spaces are
real and there is no double, and as OpenCL C 1.2 in both precisions. That every
pointer names its space, which neither of them asks for everywhere and Metal does, is read from the
text itself.

Says that it was skipped where no clang is found (Debian: `apt-get install clang-19`). On macOS with
Xcode's tools, Metal's own compiler reads the text too.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from kernel_modules import DEVICE, MODULES, ROOT

OPENCL_C = [
    "-x", "cl", "-cl-std=CL1.2", "-target", "spir64-unknown-unknown", "-Xclang", "-finclude-default-header",
    "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function",
]  # fmt: skip
CHECKS = {
    "as Metal, with a stand-in header": [
        "-x", "c++", "-std=c++14", "-nostdinc++", f"-I{DEVICE / 'checks'}",
        "-D__METAL_VERSION__=240", "-DATTRIBUTE_(name)=",
        "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Werror",
        "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-const-variable", "-Wno-unknown-pragmas",
        "-Wno-ignored-qualifiers", "-Wno-duplicate-decl-specifier", "-Wno-sign-conversion",
    ],
    "as C++ for OpenCL": [
        "-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64-unknown-unknown", "-cl-single-precision-constant",
        "-Xclang", "-finclude-default-header",
        "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-const-variable",
        "-Wno-unused-variable", "-Wno-ignored-qualifiers", "-Wno-duplicate-decl-specifier",
    ],
    "as OpenCL C, f64": [*OPENCL_C, "-DNS_DOUBLE"],
    "as OpenCL C, f32": [*OPENCL_C, "-cl-single-precision-constant"],
}


def newest_clang():
    for name in [*(f"clang-{version}" for version in range(25, 14, -1)), "clang"]:
        if found := shutil.which(name):
            return found
    return None


def read(command, what, module) -> bool:
    report = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    print(f"{module.name} {what}: {'ok' if report.returncode == 0 else 'refused'}")
    if report.returncode:
        print(report.stderr, file=sys.stderr)
    return report.returncode == 0


def pointers_name_their_space(module) -> bool:
    good = True
    for path in module.sources()[1:]:
        text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        types = "|".join(["real", "uint", "ushort", "int", "bool", *re.findall(r"(?:struct |STRUCT\()(\w+)", module.text())])
        for found in re.finditer(rf"((?:\w+\s+)*)\b(?:{types})\s*\*", text):
            if not {"GLOBAL", "CONSTANT", "SHARED", "PRIVATE", "SPACE"} & set(found.group(1).split()):
                line = text[: found.start()].count("\n") + 1
                print(f"{path.relative_to(ROOT)}:{line}: `{found.group(0)}` names no address space", file=sys.stderr)
                good = False
    print(f"{module.name} address spaces: {'ok' if good else 'refused'}")
    return good


def main() -> int:
    good = all([pointers_name_their_space(module) for module in MODULES])
    clang = newest_clang()
    if not clang:
        print("warning: skipped: no clang was found\nhint: apt-get install clang-19", file=sys.stderr)
        return 0 if good else 1
    with tempfile.TemporaryDirectory() as folder:
        for module in MODULES:
            text = pathlib.Path(folder) / f"{module.name}.metal"
            text.write_text(module.text(has_places=True))
            for what, flags in CHECKS.items():
                good &= read([clang, *flags, "-fsyntax-only", text], what, module)
            if shutil.which("xcrun"):
                metal = ["xcrun", "-sdk", "macosx", "metal", "-std=macos-metal2.4", "-fno-fast-math", "-c", text]
                good &= read([*metal, "-o", "/dev/null"], "as Metal", module)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
