#!/usr/bin/env python3
"""Builds crates/nextstat-wasm for browsers.

    wasm.py [--target-dir target]

Writes nextstat_wasm.js, nextstat_wasm_bg.wasm and THIRD-PARTY.txt, the licences of the crates that
are linked into it, to TARGET/web. The compiler is rustup's, whose target wasm32-unknown-unknown is
added where it is missing, or else Debian's (packages rustc-web, rust-web-src and lld), which
compiles the standard library as well.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from dist import notices

ROOT = Path(__file__).resolve().parents[1]
TARGET = "wasm32-unknown-unknown"
# Vectors of two numbers, and a stack for the deepest recursion of the matrix library.
FLAGS = ["-C", "target-feature=+simd128", "-C", "link-arg=-zstack-size=4194304"]
DEBIAN_COMPILER = Path("/usr/bin/rustc")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target-dir", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")))
    target = parser.parse_args().target_dir.resolve()
    extra, environment = compiler()
    cargo = os.environ.get("CARGO", "cargo")
    build = [cargo, "build", "--locked", "--profile", "wasm", "--target", TARGET, "--package", "nextstat-wasm"]
    run([*build, "--target-dir", str(target), *extra], environment)
    # The tool has its own folder: it is built for this machine, with other features of its crates.
    tool = [cargo, "run", "--locked", "--quiet", "--manifest-path", str(ROOT / "web" / "bindgen" / "Cargo.toml")]
    wasm = target / TARGET / "wasm" / "nextstat_wasm.wasm"
    run([*tool, "--target-dir", str(target / "bindgen"), "--", str(wasm), str(target / "web")], {})
    licences = notices("nextstat-wasm", TARGET, {**os.environ})
    (target / "web" / "THIRD-PARTY.txt").write_text(licences, "utf-8")


def compiler():
    """Further arguments of cargo, and its environment."""
    flags = [*FLAGS]
    if has_target() or (shutil.which("rustup") and quiet(["rustup", "target", "add", TARGET]) and has_target()):
        return [], {"RUSTFLAGS": " ".join(flags)}
    source = Path("/usr/lib/rustlib/src/rust/library")
    linker = shutil.which("wasm-ld") or shutil.which("wasm-ld-19") or shutil.which("wasm-ld-14")
    missing = [name for name, found in (("rustc-web", DEBIAN_COMPILER.exists()), ("rust-web-src", source.exists()), ("lld", linker)) if not found]
    if missing:
        sys.exit(
            f"error: there is no Rust for {TARGET}\n"
            f"hint: `rustup target add {TARGET}`, or Debian's packages {', '.join(missing)} (install what is missing)"
        )
    flags += ["-C", "linker-flavor=wasm-ld", "-C", f"linker={linker}"]
    environment = {"RUSTC": str(DEBIAN_COMPILER), "RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join(flags)}
    return ["-Z", "build-std=std,panic_abort"], environment


def has_target():
    """Whether the compiler has the standard library of the target."""
    found = subprocess.run(["rustc", "--print", "target-libdir", "--target", TARGET], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.returncode == 0 and any(Path(found.stdout.strip()).glob("libstd-*.rlib"))


def quiet(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def run(command, environment):
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
