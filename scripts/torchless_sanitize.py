#!/usr/bin/env python3
"""Run the tests in which sixteen threads share a model of torchless under ThreadSanitizer, and show
that it would see a race.

    torchless_sanitize.py           run the tests and the example of C++, then plant races
    torchless_sanitize.py --check   build nothing; check that every race still has its place

Rust's standard library is compiled with the sanitizer, too, from the component rust-src; so the
first run downloads its dependencies. The example of the C interface is compiled by g++ with
`-fsanitize=thread` and linked with the library and with the sanitizer's runtime of Rust: a process
has one runtime, or it would not see all threads. Tests run with the best instructions of the
machine and with none: the sanitizer does not see what AVX-512 loads and stores under a mask.

Races are planted in a copy of the working tree, each a count that no lock protects, and chosen by
an environment variable. Exit status 1 if a test fails, if something races, or if a planted race is
not seen. Where the sanitizer is not installed, everything is skipped and nothing has passed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from kernel_modules import ROOT
from torchless_mutate import SOURCES, SWITCH, VARIABLE, Mistake, Tree, planted

EXAMPLE = "bindings/torchless-c/examples/jets.cpp"
MODEL = ROOT / "torchless/tests/encoders/part.onnx"
TESTS = "sharing::"
RACE = "WARNING: ThreadSanitizer: data race"
COUNT = """
/// Counts in memory that no lock protects.
#[allow(unsafe_code, reason = "a race that is planted")]
pub(crate) fn race() {
    static mut COUNT: u64 = 0;
    let count = &raw mut COUNT;
    // SAFETY: there is none.
    unsafe { *count = (*count).wrapping_add(1) };
}
"""


def race(what: str, file: str, before: str) -> Mistake:
    """Returns a race that is planted before the text `before`."""
    return Mistake(what, file, before, f"if MADE {{ crate::race(); }}\n        {before}")


OF_RUNS = race("runs of an encoder", "encoder/run.rs", "scratch.prepare(plan);\n        for (input, &slot)")
RACES = (
    OF_RUNS,
    race("scratches that are taken", "encoder/batch.rs", "self.lock().pop()"),
    race("uses of transposed weights", "encoder/kernels/backward/products.rs", "let mut known = self.0.lock()"),
    race("chunks of histograms", "encoder/histograms/pass.rs", "let found: Mutex<Vec<ScoredGroup>>"),
    race("products of decoders", "cpu/products.rs", "let &mut LinearScratch { activations,"),
)
# In the example itself: threads write one result.
RACE_OF_CALLERS = ("logits = score(model, scratch, jets);", "found[0] = score(model, scratch, jets);")


class Skipped(Exception):
    """What cannot run here, and why."""


def rustc(*words: str) -> str:
    return subprocess.run(["rustc", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def host() -> str:
    return re.search(r"^host: (.+)$", rustc("--version", "--verbose"), re.MULTILINE).group(1)


def runtime() -> pathlib.Path:
    """Returns the sanitizer's runtime that comes with Rust; raises `Skipped` where something is not
    there."""
    if shutil.which("rustc") is None:
        raise Skipped("Rust is not installed")
    sysroot = pathlib.Path(rustc("--print", "sysroot").strip())
    libraries = sysroot / "lib/rustlib" / host() / "lib"
    found = list(libraries.glob("librustc-*_rt.tsan.a"))
    if not found:
        raise Skipped(f"Rust has no ThreadSanitizer for {host()}")
    if not (sysroot / "lib/rustlib/src/rust/library/Cargo.lock").is_file():
        raise Skipped("the source of Rust's standard library is not installed (`rustup component add rust-src`)")
    return found[0]


def build(folder: pathlib.Path, environment: dict[str, str]) -> pathlib.Path:
    """Builds the tests and the C library of the tree in `folder`; returns the program of the
    tests, which has the libraries beside it."""
    command = ["cargo", "test", "--no-run", "--quiet", "-Zbuild-std", "--target", host()]
    command += ["--package", "torchless", "--test", "torchless", "--package", "torchless-c", "--test", "c_interface"]
    environment = {**environment, "RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=thread", "CARGO_INCREMENTAL": "0"}
    command.append("--message-format=json-render-diagnostics")
    # A copy has a version of its own, which the lock file does not.
    command += ["--locked"] if folder == ROOT else []
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("error: torchless could not be built with the sanitizer")
    built = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    is_test = lambda one: one.get("executable") and one["target"]["kind"] == ["test"] and one["target"]["name"] == "torchless"
    return next(pathlib.Path(one["executable"]) for one in built if is_test(one))


def link(program: pathlib.Path, source: str, name: str, library: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Compiles `source` with the sanitizer, and links it with the C library beside `program` and
    the runtime `library`."""
    to.mkdir(parents=True, exist_ok=True)
    (to / f"{name}.cpp").write_text(source, encoding="utf-8")
    compiler = ["g++", "-std=c++17", "-O1", "-g", "-pthread"]
    include = f"-I{ROOT / 'bindings/torchless-c/include'}"
    subprocess.run([*compiler, "-fsanitize=thread", include, "-c", to / f"{name}.cpp", "-o", to / f"{name}.o"], check=True)
    whole = ["-Wl,--whole-archive", library, "-Wl,--no-whole-archive"]
    parts = [to / f"{name}.o", program.parent / "libtorchless_c.a", *whole, "-ldl", "-lm", "-lrt"]
    subprocess.run([*compiler, *parts, "-o", to / name], check=True)
    return to / name


def run(command: list, **environment: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1", "RUST_BACKTRACE": "0", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)


def is_clean(what: str, done: subprocess.CompletedProcess, wanted: str) -> bool:
    """Says whether a run has raced or failed; `wanted` is in its output if it has done its work."""
    found = re.search(wanted, done.stdout)
    good = done.returncode == 0 and found is not None and "ThreadSanitizer" not in done.stderr
    print(f"{what}: {f'no race ({found.group(0)})' if good else 'FAILED'}", flush=True)
    if not good:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return good


def is_seen(what: str, done: subprocess.CompletedProcess) -> bool:
    """Says whether a planted race was reported."""
    good = RACE in done.stderr and done.returncode != 0
    print(f"planted, {what}: {'seen' if good else 'NOT SEEN'}", flush=True)
    return good


def sanitize() -> bool:
    library = runtime()
    source = (ROOT / EXAMPLE).read_text(encoding="utf-8")
    has_compiler = shutil.which("g++") is not None
    if not has_compiler:
        print("warning: skipped: the C interface, because g++ is not installed")
    # Where callers set flags, they are not those of this build.
    environment = {key: value for key, value in os.environ.items() if key not in ("CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET")}
    program = build(ROOT, environment)
    good = True
    for isa in ("", "baseline"):
        done = run([program, TESTS], NEXTSTAT_ISA=isa)
        good &= is_clean(f"sixteen threads in Rust, {isa or 'best'} instructions", done, r"[1-9]\d* passed; 0 failed; 0 ignored")
    tree = Tree("races", RACES, SWITCH + COUNT)
    folder = tree.folder.parent / "torchless-sanitize"
    if has_compiler:
        example = link(program, source, "jets", library, folder)
        good &= is_clean("sixteen threads in C++", run([example, MODEL]), "16 threads on cpu: the same bits")
        broken = link(program, source.replace(*RACE_OF_CALLERS), "broken", library, folder)
        good &= is_seen("results of the example in C++", run([broken, MODEL]))
    program = build(tree.folder, {**environment, **tree.environment})
    for mistake in RACES:
        good &= is_seen(mistake.what, run([program, TESTS], **{VARIABLE: mistake.what}))
    if has_compiler:
        example = link(program, source, "jets-races", library, folder)
        good &= is_seen(f"{OF_RUNS.what}, in C++", run([example, MODEL], **{VARIABLE: OF_RUNS.what}))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        for file in {mistake.file for mistake in RACES}:
            planted((ROOT / SOURCES / file).read_text(encoding="utf-8"), file, RACES)
        if RACE_OF_CALLERS[0] not in (ROOT / EXAMPLE).read_text(encoding="utf-8"):
            raise SystemExit(f"`{RACE_OF_CALLERS[0]}` is not in {EXAMPLE}")
        return 0
    try:
        return 0 if sanitize() else 1
    except Skipped as skipped:
        print(f"warning: skipped: torchless under ThreadSanitizer: {skipped}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
