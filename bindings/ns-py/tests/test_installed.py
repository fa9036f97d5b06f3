"""What the wheel brings: the version of the workspace, licences, stubs, and the command."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nextstat
import pytest
from nextstat import _installed
from nextstat.__main__ import VERBS as PYTHON_VERBS
from nextstat._installed import other_distribution
from nextstat._models import EXAMPLES


def _distribution():
    try:
        found = importlib.metadata.distribution("nextstat-rs")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, but imported from its sources")
    return found


def test_the_examples_are_those_of_the_repository(root):
    folder = Path(nextstat.__file__).with_name("examples")
    assert sorted(path.stem for path in folder.iterdir()) == list(EXAMPLES)
    for path in folder.iterdir():
        assert path.read_bytes() == (root / "examples" / path.name).read_bytes()


def test_an_unknown_example_is_refused():
    with pytest.raises(nextstat.ParameterError, match="unknown example `shape`; choose one of `shapes` or `simple`"):
        nextstat.example("shape")


def test_the_version_is_the_workspaces(root):
    written = re.search(r'^version = "(.+)"$', (root / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
    assert nextstat.__version__ == written.group(1)


def test_the_installed_version_is_the_modules():
    assert _distribution().version == nextstat.__version__


def test_licences_and_stubs_are_installed(root):
    files = {Path(str(file)).name for file in _distribution().files or ()}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "py.typed", "_nextstat.pyi"} <= files
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (root / name).read_bytes() == (root / "bindings/ns-py" / name).read_bytes()


def test_one_wheel_serves_every_python():
    tags = re.findall(r"^Tag: (.+)$", _distribution().read_text("WHEEL") or "", re.MULTILINE)
    assert tags and all(tag.startswith("cp310-abi3-") for tag in tags)


def test_numpy_is_all_that_is_needed():
    needed = [entry for entry in _distribution().requires or () if "extra ==" not in entry]
    assert [re.split(r"[<>=!~ ]", entry)[0] for entry in needed] == ["numpy"]


def test_the_command_runs(root):
    """By its script where the wheel has put one, and as a module."""
    script = os.environ.get("NEXTSTAT_COMMAND") or shutil.which("nextstat", path=str(Path(sys.executable).parent))
    commands = [[sys.executable, "-m", "nextstat"]] + ([[script]] if script else [])
    environment = {**os.environ, "PYTHONPATH": str(Path(nextstat.__file__).parents[1])}
    for command in commands:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.split()[:2] == ["nextstat", nextstat.__version__]
        bad = subprocess.run([*command, "fit", "absent.json"], capture_output=True, text=True, check=False, env=environment)
        assert bad.returncode == 2 and bad.stderr.startswith("error: ")


@pytest.mark.skipif(os.name != "posix", reason="a shell")
def test_the_command_says_that_there_is_no_output(root):
    code = f'exec "{sys.executable}" -m nextstat fit "{root}/examples/simple.json" --quiet >&-'
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_exit_codes_and_standard_input(root):
    text = (root / "examples/simple.json").read_text("utf-8")
    done = nextstat.command(["fit", "-"], input=text)
    assert done.exit_code == 0 and done.json()["converged"] is True
    assert nextstat.command(["check", "--strict", root / "testdata/check/suspicious.json"]).exit_code == 1
    with pytest.raises(nextstat.NextstatError, match="unrecognized subcommand"):
        nextstat.command(["fitt"])


VERBS = re.compile(r"^  ([a-z][a-z0-9-]*) {2,}\S", re.MULTILINE)


def _verbs(help_text):
    """The verbs of a help text, in its order."""
    return VERBS.findall(help_text.partition("\nCommands:\n")[2].partition("\nOptions:\n")[0])


def test_the_verbs_are_those_of_the_page(root):
    """docs/cli.md has the help of the command that cargo builds."""
    page = (root / "docs/cli.md").read_text("utf-8")
    verbs = _verbs(nextstat.command(["--help"]).output)
    assert len(verbs) > 20 and verbs == _verbs(page)


def _built_by_cargo(root):
    """The newest command of this version that cargo has built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    name = "nextstat.exe" if os.name == "nt" else "nextstat"
    built = [path for profile in ("debug", "release") if (path := target / profile / name).is_file()]
    for path in sorted(built, key=lambda path: path.stat().st_mtime, reverse=True):
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if done.stdout.split() == ["nextstat", nextstat.__version__]:
            return path
    pytest.skip("cargo has built no command of this version")


def test_the_verbs_are_those_of_the_command_that_cargo_builds(root):
    done = subprocess.run([_built_by_cargo(root), "--help"], capture_output=True, text=True, check=True)
    assert _verbs(nextstat.command(["--help"]).output) == _verbs(done.stdout)


def test_the_command_that_cargo_builds_passes_verbs_on_to_this_package(root):
    built = _built_by_cargo(root)
    environment = {**os.environ, "NEXTSTAT_PYTHON": sys.executable}
    for verb in PYTHON_VERBS:
        here = nextstat.command([verb, "--help"])
        there = subprocess.run([built, verb, "--help"], capture_output=True, text=True, check=False, env=environment)
        assert (there.returncode, there.stdout) == (here.exit_code, here.output) and here.exit_code == 0, verb


def test_the_command_lists_the_verbs_that_are_written_in_python():
    listed = _verbs(nextstat.command(["--help"]).output)
    assert set(PYTHON_VERBS) <= set(listed)


@pytest.mark.parametrize("entry", ["nextstat-0.10.1.dist-info", "nextstat-0.10.1-py3.11.egg-info"])
def test_the_other_distribution_is_found(tmp_path, entry):
    (tmp_path / entry).mkdir()
    assert other_distribution(str(tmp_path)) == "nextstat 0.10.1"


def test_this_distribution_is_not_taken_for_the_other(tmp_path):
    for entry in ("nextstat_rs-0.2.0.dist-info", "nextstat_tools-1.0.dist-info", "nextstat", "nextstat-notes"):
        (tmp_path / entry).mkdir()
    assert other_distribution(str(tmp_path)) is None
    assert other_distribution(str(tmp_path / "absent")) is None


def test_a_mixed_environment_is_warned_of(monkeypatch):
    monkeypatch.setattr(_installed, "_warned", False)
    monkeypatch.setattr(_installed, "other_distribution", lambda folder: "nextstat 0.10.1")
    with pytest.warns(RuntimeWarning, match=r"`nextstat 0\.10\.1` is installed in the same environment"):
        _installed.warn_if_mixed()
