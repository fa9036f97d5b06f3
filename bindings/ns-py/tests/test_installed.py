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


def _distribution():
    try:
        found = importlib.metadata.distribution("nextstat")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, but imported from its sources")
    return found


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
