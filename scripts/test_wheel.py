"""Install the Python package's wheel into a clean environment, and run its tests there.

python scripts/test_wheel.py FOLDER [--build] [--venv .venv] [--extras test,plot]
[--package bindings/torchless-py] [--beside bindings/ns-py] [--requirements FILE] [--no-tests]
[--tests FOLDER] [-- PYTEST ARGUMENTS]

python scripts/test_wheel.py FOLDER --system-packages [--venv .venv] [--tests FOLDER]

The newest wheel in FOLDER is taken; --build makes it first, with Rust and a C++ compiler. The
environment is made from nothing but the Python that runs this and the package index; tests of
extras that are not installed skip themselves. With --system-packages it also has what is installed
for that Python, such as the PyTorch of a distribution, and of the package index only pytest and
what the wheel needs beyond that.
"""

import argparse
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bindings/ns-py"
# The names of wheels of the packages that are in `bindings`.
WHEELS = {"ns-py": "nextstat_rs", "torchless-py": "torchless"}


def newest_wheel(folder, package):
    """Returns the newest wheel of a package for this machine, or None."""
    # `dist` has wheels for other processors, too.
    wheels = folder.glob(f"{WHEELS[package.resolve().name]}-*{platform.machine().lower()}.whl")
    newest = max(wheels, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else str(newest.resolve())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheel is")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="the folder of the package (default: bindings/ns-py)")
    parser.add_argument("--beside", type=Path, help="another package, whose newest wheel in FOLDER is installed as well if there is one")
    parser.add_argument("--build", action="store_true", help="build the wheel first")
    parser.add_argument("--no-tests", action="store_true", help="only install it")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-wheel", help="the environment, made anew")
    parser.add_argument("--system-packages", action="store_true", help="use what is installed for this Python; no extras")
    parser.add_argument("--tests", type=Path, action="append", help="the tests to run; repeatable (default: the package's and the scripts')")
    parser.add_argument("--requirements", type=Path, help="a list of packages to install as well")
    parser.add_argument("--extras", default="test", help="extras of the package to install, comma-separated")
    own, for_pytest = sys.argv[1:], []
    if "--" in own:
        own, for_pytest = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments = parser.parse_args(own)
    package = arguments.package.resolve()

    venv.create(arguments.venv, clear=True, with_pip=True, system_site_packages=arguments.system_packages)
    scripts = (arguments.venv / ("Scripts" if os.name == "nt" else "bin")).absolute()
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    if arguments.build:
        # By what pyproject.toml names as its builder. For tests with the emulation of a GPU, which
        # needs POSIX, and with the profile and features of the Rust tests, which have compiled the
        # crates.
        profile = "" if arguments.no_tests else " --profile dev"
        features = "" if arguments.no_tests or os.name == "nt" else " --features tests"
        environment = {**os.environ, "MATURIN_PEP517_ARGS": os.environ.get("MATURIN_PEP517_ARGS", "--locked") + profile + features}
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", arguments.folder, package], check=True, env=environment)
    wheel = newest_wheel(arguments.folder, package)
    if wheel is None:
        sys.exit(f"error: no wheel for {platform.machine().lower()} in `{arguments.folder}`")
    extras = f"[{arguments.extras}]" if arguments.extras else ""
    wanted = [wheel, "pytest>=8"] if arguments.system_packages else [f"{wheel}{extras}"]
    beside = None if arguments.beside is None else newest_wheel(arguments.folder, arguments.beside)
    if beside is not None:
        wanted.append(beside)
    elif arguments.beside is not None:
        print(f"note: skipped: the tests of both packages, because `{arguments.folder}` has no wheel of {arguments.beside}")
    # Most of what the extras bring is never imported by the tests: Python compiles what is.
    compiled = [] if arguments.no_tests else ["--no-compile"]
    if arguments.requirements is not None:
        wanted += ["--requirement", arguments.requirements]
    subprocess.run([*pip, "install", *compiled, *wanted], check=True)
    if arguments.no_tests:
        return
    # From a folder where no package lies about, so that it is the installed one that is tested.
    scripts_too = (ROOT / "scripts/tests",) if package == PACKAGE else ()
    wanted = [path.resolve() for path in arguments.tests or (package / "tests", *scripts_too)]
    tests = [python, "-m", "pytest", "-p", "no:cacheprovider", *wanted, *for_pytest]
    environment = {**os.environ, "NEXTSTAT_COMMAND": str(scripts / "nextstat")}
    environment.pop("PYTHONPATH", None)
    sys.exit(subprocess.run(tests, cwd=arguments.venv, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
