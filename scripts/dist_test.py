#!/usr/bin/env python3
"""Tests what scripts/dist.py built where there is no Rust: bare Debian roots with another Python,
and an empty root.

    dist_test.py [--dist dist] [--only x86_64|aarch64|static ...] [--package FOLDER ...]
                 [--suite trixie] [--work FOLDER]

Each wheel is installed with pip into a root made of Debian's packages, without a network: NumPy is
downloaded beforehand. There nextstat fits examples/simple.json, by the command and from Python, and
torchless computes a Particle Transformer of the tests; both must agree with the wheels for this
machine, installed into virtual environments, to 1e-9. A wheel must have its licences. A root of
another processor runs under QEMU's user emulation. The static command runs in a root that has
nothing but the command and the workspace. Prints the time from `pip install` to the first answer.

Needs root (for chroot) and debootstrap; what cannot run is skipped with its reason. Standard
library only.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

from dist import DISTRIBUTIONS, Distribution

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/simple.json"
ENCODERS = ROOT / "torchless/tests/encoders"
TOLERANCE = 1e-9
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# Older than what NumPy's newest wheels ask for is not offered for recent Pythons.
NUMPY_PLATFORMS = ["manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28"]
FIT = """
import json, sys, nextstat
print(json.dumps(nextstat.fit(nextstat.load_workspace(sys.argv[1] + "/simple.json")).to_dict()))
"""
# Outputs of twelve jets, and their gradients.
ENCODE = """
import json, sys, numpy, torchless
model = torchless.Encoder(sys.argv[1] + "/part.onnx")
jets = dict(numpy.load(sys.argv[1] + "/part.npz"))
reference = jets.pop("logits")
found = model.gradients(jets, column=1, mask="mask")
assert abs(found.outputs["logits"] - reference).max() < 5e-6
print(json.dumps({name: values.tolist() for name, values in {**found.outputs, **found.inputs}.items()}))
"""
# How the minimiser got there, and with what; not what it found.
ABOUT_THE_RUN = {"edm", "projected_gradient", "n_iterations", "n_evaluations", "nextstat_version", "provenance"}


# Programs for the administrator are not on every user's path.
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclasses.dataclass(frozen=True)
class Trial:
    """What an installed wheel has to compute: from `files`, which are in the folder that is the
    argument of `program`, and by a command, the last word of which is a file."""

    package: Distribution
    files: tuple[pathlib.Path, ...]
    program: str
    command: tuple[str, ...] = ()

    def commands(self, programs, folder):
        """Returns the command, if there is one, and the program, for an environment's folder of
        programs."""
        if self.command:
            name, *options, file = self.command
            yield "the command", [f"{programs}/python3", f"{programs}/{name}", *options, f"{folder}/{file}"]
        yield "Python", [f"{programs}/python3", "-c", self.program, folder]


TRIALS = {
    "ns-py": Trial(DISTRIBUTIONS["ns-py"], (EXAMPLE,), FIT, ("nextstat", "fit", "--quiet", EXAMPLE.name)),
    "torchless-py": Trial(DISTRIBUTIONS["torchless-py"], (ENCODERS / "part.onnx", ENCODERS / "part.npz"), ENCODE),
}


class Skipped(Exception):
    """A test that cannot run here; its argument is the reason."""


class Failed(Exception):
    """A test that ran and failed; its argument says what was found."""


def run(command, **options):
    """Runs `command` and returns its output; raises `Failed` with what it wrote where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"`{' '.join(words)}` gives exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def differences(found, wanted, place=""):
    """Yields the places where two documents differ by more than the tolerance."""
    if isinstance(wanted, dict):
        for key in wanted.keys() - ABOUT_THE_RUN:
            yield from differences(found[key], wanted[key], f"{place}/{key}") if key in found else [f"{place}/{key} is missing"]
    elif isinstance(wanted, list):
        if len(found) != len(wanted):
            yield f"{place} has {len(found)} entries, not {len(wanted)}"
        for index, (entry, other) in enumerate(zip(found, wanted)):
            yield from differences(entry, other, f"{place}/{index}")
    elif isinstance(wanted, float) and not isinstance(found, str):
        if not math.isclose(found, wanted, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{place} is {found!r}, not {wanted!r}"
    elif found != wanted:
        yield f"{place} is {found!r}, not {wanted!r}"


def compare(found, wanted, who):
    if different := list(differences(found, wanted)):
        raise Failed(f"{who}: {'; '.join(different[:5])}")


def newest(dist, pattern, what):
    found = sorted(dist.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise Skipped(f"no {what} in `{dist}` (`make dist` builds it)")
    return found[-1]


def check_licences(wheel, package):
    """Fails where a wheel lacks its own licences, or the notices of what is linked into it."""
    wanted = {package.notices.name, "LICENSE-MIT", "LICENSE-APACHE"}
    absent = wanted - {pathlib.PurePosixPath(name).name for name in zipfile.ZipFile(wheel).namelist()}
    if absent:
        raise Failed(f"{wheel.name} has no {', '.join(sorted(absent))}")


def wheel_of(package, dist, machine):
    return newest(dist, f"{package.stem}-*_{machine}.whl", f"wheel of {package.name} for {machine}")


def reference(trial, dist, work):
    """Returns what the wheel for this machine computes first, in an environment of this Python."""
    wheel_of(trial.package, dist, platform.machine())
    environment = work / f"reference-{trial.package.crate}"
    install = [sys.executable, ROOT / "scripts/test_wheel.py", dist, "--venv", environment, "--extras", "", "--no-tests"]
    run([*install, "--package", trial.package.folder])
    folder = work / f"trial-{trial.package.crate}"
    copy_files(trial, folder)
    _, command = next(trial.commands(environment / "bin", folder))
    return json.loads(run(command))


def copy_files(trial, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in trial.files:
        shutil.copy(file, folder)


def emulator(machine):
    """Returns the static emulator of `machine`, or nothing where this processor runs its
    programs."""
    if machine == platform.machine():
        return None
    found = shutil.which(f"qemu-{machine}-static")
    if found is None:
        raise Skipped(f"qemu-{machine}-static is not installed (Debian: qemu-user-static)")
    return found


def chroot():
    """Returns the program that runs another in a root of its own."""
    if os.geteuid() != 0:
        raise Skipped("chroot needs root")
    found = shutil.which("chroot", path=SEARCHED)
    if found is None:
        raise Skipped("chroot is not installed (Debian: coreutils)")
    return found


def make_root(folder, machine, suite):
    """Unpacks a minimal Debian with its Python into `folder`, without running anything of it."""
    if (folder / "complete").is_file():
        return
    program = shutil.which("debootstrap", path=SEARCHED)
    if program is None:
        raise Skipped("debootstrap is not installed (Debian: debootstrap)")
    shutil.rmtree(folder, ignore_errors=True)
    mirror = [os.environ["DEBIAN_MIRROR"]] if "DEBIAN_MIRROR" in os.environ else []
    debootstrap = [program, "--variant=minbase", "--foreign", f"--arch={DEBIAN[machine]}", "--include=python3-venv"]
    try:
        run([*debootstrap, suite, folder, *mirror])
    except Failed as failure:
        raise Skipped(f"the root could not be made: {failure}") from failure
    # The second stage would run programs of the root by themselves; to unpack is enough for Python.
    for package in sorted((folder / "var/cache/apt/archives").glob("*.deb")):
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "--extract", "--keep-directory-symlink", "--directory", folder], input=unpacked, check=True)
        package.unlink()
    # pip reads the certificates even where it asks for nothing; a script of their package would
    # join them.
    certificates = sorted((folder / "usr/share/ca-certificates").rglob("*.crt"))
    joined = folder / "etc/ssl/certs/ca-certificates.crt"
    joined.parent.mkdir(parents=True, exist_ok=True)
    joined.write_bytes(b"".join(path.read_bytes() for path in certificates))
    (folder / "complete").touch()


class BareRoot:
    """A Debian root without Rust, and how programs are run in it."""

    def __init__(self, folder, machine, suite):
        self.folder, self.machine = folder, machine
        self.chroot = chroot()
        interpreter = emulator(machine)
        make_root(folder, machine, suite)
        self.prefix = []
        if interpreter:
            shutil.copy(interpreter, folder / "emulator")
            self.prefix = ["/emulator"]

    def run(self, *command):
        """Runs a program of the root; its path must be whole, because an emulator looks for
        none."""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/trial"}
        return run([self.chroot, self.folder, *self.prefix, *command], env=environment)

    def python_version(self):
        return self.run("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()


def download_numpy(folder, python, machine):
    folder.mkdir(parents=True, exist_ok=True)
    platforms = [word for name in NUMPY_PLATFORMS for word in ("--platform", f"{name}_{machine}")]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--only-binary=:all:", "--no-deps"]
    if not any(folder.glob("numpy-*.whl")):
        try:
            run([*command, "--python-version", python, *platforms, "--dest", folder, "numpy"])
        except Failed as failure:
            raise Skipped(f"NumPy could not be downloaded: {failure}") from failure


def test_wheel(machine, trial, arguments, wanted):
    """Installs the wheel for `machine` in a bare root, and computes there what it has to."""
    wheel = wheel_of(trial.package, arguments.dist, machine)
    check_licences(wheel, trial.package)
    root = BareRoot(arguments.work / f"root-{arguments.suite}-{machine}", machine, arguments.suite)
    python = root.python_version()
    wheels = arguments.work / f"wheels-{python}-{machine}"
    download_numpy(wheels, python, machine)
    for name in ("venv", "wheels"):
        shutil.rmtree(root.folder / name, ignore_errors=True)
    shutil.copytree(wheels, root.folder / "wheels")
    shutil.copy(wheel, root.folder / "wheels")
    copy_files(trial, root.folder / "trial")
    # The environment's own pip would be a second installation by emulated programs; the wheel of
    # pip runs as it is.
    root.run("/usr/bin/python3", "-m", "venv", "--without-pip", "/venv")
    [pip] = (root.folder / "usr/share/python-wheels").glob("pip-*.whl")
    install = [f"/usr/share/python-wheels/{pip.name}/pip", "install", "--no-index", "--find-links", "/wheels", "--no-compile"]
    start, seconds = time.monotonic(), None
    root.run("/venv/bin/python3", *install, trial.package.name)
    for who, command in trial.commands("/venv/bin", "/trial"):
        found = json.loads(root.run(*command))
        seconds = seconds or time.monotonic() - start
        is_part = trial.command and who == "Python"  # of what the command says
        compare(found, {key: wanted[key] for key in wanted.keys() & found.keys()} if is_part else wanted, who)
    how = "emulated by QEMU" if root.prefix else "on this processor"
    return f"Debian {arguments.suite}, Python {python}, {how}: {seconds:.1f} s from `pip install` to the first answer"


def test_static(arguments, wanted):
    """Runs the static command in a root that has nothing else."""
    archive = newest(arguments.dist, f"nextstat-*-{platform.machine()}-unknown-linux-musl.tar.gz", "static command")
    program = chroot()
    scratch = arguments.work / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        [packed] = [entry for entry in tar.getmembers() if entry.name.endswith("/nextstat")]
        (scratch / "nextstat").write_bytes(tar.extractfile(packed).read())
    (scratch / "nextstat").chmod(0o755)
    shutil.copy(EXAMPLE, scratch)
    start = time.monotonic()
    fitted = run([program, scratch, "/nextstat", "fit", "/simple.json", "--quiet"], env={})
    seconds = time.monotonic() - start
    compare(json.loads(fitted), wanted, "the static command")
    return f"{packed.size / 1e6:.1f} MB in an empty root: {seconds:.3f} s for the fit"


def tests(arguments):
    """Yields what is tested, and the package that it belongs to."""
    for name in arguments.only or [*DEBIAN, "static"]:
        for package in arguments.package or TRIALS:
            if name != "static" or package == "ns-py":
                yield name, package


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="what scripts/dist.py wrote")
    parser.add_argument("--only", action="append", choices=[*DEBIAN, "static"], help="what is tested (default: everything)")
    parser.add_argument("--package", action="append", choices=TRIALS, help="the wheels that are tested (default: every one)")
    parser.add_argument("--suite", default="trixie", help="the Debian release of the bare roots")
    parser.add_argument("--work", type=pathlib.Path, help="where roots are kept (default: dist-test in the target folder)")
    arguments = parser.parse_args()
    arguments.dist = arguments.dist.absolute()
    arguments.work = (arguments.work or pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "dist-test").absolute()
    arguments.work.mkdir(parents=True, exist_ok=True)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    wanted = {}
    for name, of in tests(arguments):
        trial = TRIALS[of]
        try:
            wanted[of] = wanted.get(of) or reference(trial, arguments.dist, arguments.work)
            said = test_static(arguments, wanted[of]) if name == "static" else test_wheel(name, trial, arguments, wanted[of])
            state = "passed"
        except Skipped as skipped:
            said, state = skipped, "skipped"
        except Failed as failed:
            said, state = failed, "failed"
        counts[state] += 1
        print(f"{name}, {trial.package.name}: {state}: {said}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
