#!/usr/bin/env python3
"""Builds what users install without Rust: wheels for Linux and source distributions of the Python
packages, and a static command.

    dist.py [--out dist] [--only PART ...] [--package FOLDER ...] [--build-std] [--tools FOLDER]
    dist.py --notices-only TARGET     write only what wheels for this target say of linked crates

Writes wheels for manylinux2014 (glibc 2.17 and newer) on x86-64 and aarch64, a static x86-64 binary
of the command `nextstat` with its licences, the source distributions, and SHA256SUMS into the
output folder.
Zig links every target, so a cross compiler is not needed. The tools (scripts/dist_requirements.txt)
are installed into a virtual environment of their own. Paths are remapped and times are those of
the commit, so that two builds of one commit can agree to the byte; that has not been tested.

Each target needs Rust's standard library for it (`rustup target add`). Where that cannot be
fetched, `--build-std` compiles the standard library from the component `rust-src`. Standard library
only.
"""

import argparse
import dataclasses
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "scripts/dist_requirements.txt"
OLDEST_GLIBC = (2, 17)
STATIC = "x86_64-unknown-linux-musl"
WHEELS = {"wheel-x86_64": "x86_64-unknown-linux-gnu", "wheel-aarch64": "aarch64-unknown-linux-gnu"}
PARTS = [*WHEELS, "command", "sdist"]


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A Python package: its folder in `bindings`, which is the name of its crate, its name where
    it is installed from, and its import name."""

    crate: str
    name: str
    module: str

    @property
    def folder(self):
        return ROOT / "bindings" / self.crate

    @property
    def notices(self):
        """Where its wheel has the notices of everything that is linked into it."""
        return self.folder / "python" / self.module / "THIRD-PARTY.txt"

    @property
    def stem(self):
        """How the names of its files begin."""
        return self.name.replace("-", "_")


DISTRIBUTIONS = {
    "ns-py": Distribution("ns-py", "nextstat-rs", "nextstat"),
    "torchless-py": Distribution("torchless-py", "torchless", "torchless"),
}


class Failure(Exception):
    """A build that cannot go on; the second argument is a hint."""


def target_dir():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()


def output(*command, **options):
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(map(str, command))}` failed: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def run(command, environment):
    print("+", " ".join(map(str, command)), flush=True)
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise Failure(f"`{pathlib.Path(command[0]).name}` failed")


def version():
    """Returns the workspace's version, which is that of every part."""
    return re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE).group(1)


def install_tools(folder):
    """Installs the pinned tools into the environment `folder` where they are not there yet; returns
    its folder of programs."""
    programs, stamp = folder / "bin", folder / "installed.txt"
    wanted = REQUIREMENTS.read_text("utf-8")
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        print(f"installing {REQUIREMENTS.relative_to(ROOT)} into {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--requirement", REQUIREMENTS]
        if subprocess.run(pip, check=False).returncode != 0:
            raise Failure("the tools could not be installed", "they come from PyPI: see scripts/dist_requirements.txt")
        stamp.write_text(wanted, "utf-8")
    return programs


def check_rust(targets, build_std):
    """Raises a failure that names what has to be installed."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        raise Failure("Rust was not found", "install it with rustup: https://rustup.rs")
    sysroot = pathlib.Path(output("rustc", "--print", "sysroot"))
    if build_std:
        if not (sysroot / "lib/rustlib/src/rust/library/Cargo.lock").is_file():
            raise Failure("the source of Rust's standard library is not installed", "rustup component add rust-src")
        return
    absent = [target for target in targets if not (sysroot / "lib/rustlib" / target / "lib").is_dir()]
    if absent:
        names = " ".join(absent)
        raise Failure(
            f"Rust's standard library is not installed for {', '.join(absent)}",
            f"rustup target add {names}; or --build-std, which compiles it from the component rust-src",
        )


def build_environment(programs, build_std):
    """Returns the environment of a reproducible build: no path of this machine, and the time of the
    commit."""
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    sysroot = output("rustc", "--print", "sysroot")
    flags = [f"--remap-path-prefix={old}={new}" for old, new in ((ROOT, "nextstat"), (home, "cargo"), (sysroot, "rust"))]
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CARGO_INCREMENTAL": "0",
        "SOURCE_DATE_EPOCH": str(commit_time()),
    }
    environment.pop("RUSTFLAGS", None)
    if build_std:
        environment |= {"RUSTC_BOOTSTRAP": "1", "CARGO_UNSTABLE_BUILD_STD": "std,panic_unwind"}
    return environment


def commit_time():
    """Returns the time of the commit in seconds, or a fixed one outside a repository. Zip files
    begin in 1980."""
    try:
        return int(output("git", "log", "-1", "--format=%ct"))
    except (Failure, OSError, ValueError):
        return 315532800


def notices(package, target, environment, features=()):
    """Returns the names, versions and licence texts of the crates that are linked into `package`
    for `target`."""
    tree = ["cargo", "tree", "--locked", "--package", package, "--target", target, *features]
    tree += ["--edges", "normal", "--prefix", "none", "--format", "{p}"]
    lines = output(*tree, env={**environment, "CARGO_UNSTABLE_BUILD_STD": ""}).splitlines()
    linked = {tuple(line.split()[:2]) for line in lines}
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1"))
    found = [crate for crate in metadata["packages"] if crate["source"] and (crate["name"], f"v{crate['version']}") in linked]
    if not found:
        raise Failure("no dependency was found", "`cargo tree` writes another format than this script reads")
    texts, sections = {}, []
    for crate in sorted(found, key=lambda crate: (crate["name"], crate["version"])):
        files = sorted(file for file in pathlib.Path(crate["manifest_path"]).parent.iterdir() if is_licence(file))
        numbers = [texts.setdefault(text(file), len(texts) + 1) for file in files]
        where = f"texts {', '.join(map(str, numbers))}" if numbers else "no text in the crate"
        sections.append(f"{crate['name']} {crate['version']}: {crate['license']} ({where})")
    rule = "\n\n" + "-" * 80 + "\n"
    return "\n".join(
        ["The crates that are linked into this program, their licences, and the texts that come with them.", "", *sections]
    ) + "".join(f"{rule}Text {number}\n\n{body}" for body, number in texts.items()) + "\n"


def is_licence(file):
    return file.is_file() and re.match(r"(?i)(licen[cs]e|copying|notice|unlicense|copyright)", file.name) is not None


def text(file):
    return file.read_text("utf-8", errors="replace").replace("\r\n", "\n").strip()


def write_notices(package, target, environment):
    package.notices.write_text(notices(package.crate, target, environment), "utf-8")


def build_wheel(package, target, out, programs, environment):
    """Builds the wheel for `target` and checks that it needs no newer C library than it says."""
    write_notices(package, target, environment)
    try:
        command = [programs / "maturin", "build", "--release", "--locked", "--zig", "--target", target]
        run([*command, "--compatibility", "manylinux2014", "--manifest-path", package.folder / "Cargo.toml", "--out", out], environment)
    finally:
        package.notices.unlink()
    machine = target.partition("-")[0]
    [wheel] = [path for path in out.glob(f"{package.stem}-{version()}-*.whl") if path.stem.endswith(machine)]
    shown = output(programs / "auditwheel", "show", wheel)
    found = re.search(r'constrains the platform tag to\s+"manylinux_(\d+)_(\d+)_', shown) or re.search(r'"manylinux_(\d+)_(\d+)_', shown)
    if found is None or tuple(map(int, found.groups())) > OLDEST_GLIBC:
        raise Failure(f"`{wheel.name}` needs a newer C library than {'.'.join(map(str, OLDEST_GLIBC))}:\n{shown}")
    print(f"{wheel.name}: symbols of glibc {'.'.join(found.groups())} or older")
    return wheel


def build_command(out, programs, environment):
    """Builds the static command and packs it with its licences.

    It has no GPU backends: a static program cannot load the driver's library.
    """
    features = ["--no-default-features"]
    # Zig brings the C library's start files.
    flags = environment["CARGO_ENCODED_RUSTFLAGS"] + "\x1f-Clink-self-contained=no"
    command = [programs / "cargo-zigbuild", "zigbuild", "--release", "--locked", "--target", STATIC, "--package", "ns-cli", *features]
    run(command, {**environment, "CARGO_ENCODED_RUSTFLAGS": flags})
    program = target_dir() / STATIC / "release/nextstat"
    name = f"nextstat-{version()}-{STATIC}"
    files = {path.name: path.read_bytes() for path in (ROOT / "LICENSE-MIT", ROOT / "LICENSE-APACHE")}
    files["THIRD-PARTY.txt"] = notices("ns-cli", STATIC, environment, features).encode()
    files["nextstat"] = program.read_bytes()
    archive = out / f"{name}.tar.gz"
    pack(archive, name, files, int(environment["SOURCE_DATE_EPOCH"]))
    return archive


def pack(archive, folder, files, time):
    """Writes `files` (name to bytes) into a compressed archive whose bytes depend on nothing
    else."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), time, 0o755 if name == "nextstat" else 0o644
            tar.addfile(entry, io.BytesIO(content))
    with open(archive, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=time) as compressed:
        compressed.write(packed.getvalue())


def build_sdist(package, out, programs, environment):
    run([programs / "maturin", "sdist", "--manifest-path", package.folder / "Cargo.toml", "--out", out], environment)


def write_sums(out):
    """Writes the checksums of everything in `out`, in the format of `sha256sum`."""
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")
    print("".join(lines), end="")


def build(arguments):
    targets = [WHEELS[part] for part in arguments.only if part in WHEELS] + [STATIC] * ("command" in arguments.only)
    check_rust(targets, arguments.build_std)
    programs = install_tools(arguments.tools or target_dir() / "dist-tools")
    environment = build_environment(programs, arguments.build_std)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for part in arguments.only:
        if part == "command":
            build_command(arguments.out, programs, environment)
            continue
        for package in arguments.packages:
            if part in WHEELS:
                build_wheel(package, WHEELS[part], arguments.out, programs, environment)
            else:
                build_sdist(package, arguments.out, programs, environment)
    write_sums(arguments.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist", help="where the files are written")
    parser.add_argument("--only", action="append", choices=PARTS, help="what is built (default: everything)")
    parser.add_argument("--package", action="append", choices=DISTRIBUTIONS, help="the Python packages that are built (default: every one)")
    parser.add_argument("--build-std", action="store_true", help="compile Rust's standard library from rust-src")
    parser.add_argument("--tools", type=pathlib.Path, help="the environment of the tools (default: dist-tools in the target folder)")
    parser.add_argument("--notices-only", metavar="TARGET", help="write THIRD-PARTY.txt into the packages, for wheels that are built by other means")
    arguments = parser.parse_args()
    arguments.only = arguments.only or PARTS
    arguments.packages = [DISTRIBUTIONS[name] for name in arguments.package or DISTRIBUTIONS]
    arguments.out = arguments.out.absolute()
    try:
        if arguments.notices_only:
            for package in arguments.packages:
                write_notices(package, arguments.notices_only, os.environ)
        else:
            build(arguments)
    except Failure as failure:
        print(f"error: {failure.args[0]}", file=sys.stderr)
        for hint in failure.args[1:]:
            print(f"hint: {hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
