"""The crates depend on each other as the table of docs/architecture.md says: downwards only."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `([\w/-]+)` \| .* \| (.*) \|$", re.MULTILINE)
#: Folders that are no packages of Rust.
NOT_CRATES = {"web"}


def _name(folder):
    """Returns the name of the package in a folder."""
    return re.search(r'^name = "(.+)"$', (folder / "Cargo.toml").read_text("utf-8"), re.MULTILINE)[1]


def _dependencies(folder, names):
    """Returns those of `names` that the shipped code of a package depends on; build scripts and
    tests may use others."""
    text = (folder / "Cargo.toml").read_text("utf-8")
    section = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^([\w-]+)(?:\.workspace| =)", section[1], re.MULTILINE) if section else []
    return {name for name in found if name in names}


@pytest.fixture(scope="module")
def crates():
    """Returns the packages of the workspace by the name that the table has for them."""
    found = {path.parent.name: path.parent for path in ROOT.glob("crates/*/Cargo.toml")}
    found |= {f"bindings/{path.parent.name}": path.parent for path in ROOT.glob("bindings/*/Cargo.toml")}
    found |= {"torchless": ROOT / "torchless", "benches/": ROOT / "benches"}
    return found


@pytest.fixture(scope="module")
def rows():
    """Returns the rows of the first table: the name, and what it depends on."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8").split("## The crates")[1].split("\n## ")[0]
    return {name: depends for name, depends in ROW.findall(text) if name.strip("/") not in NOT_CRATES}


def test_every_crate_has_a_row(crates, rows):
    assert set(crates) == set(rows)


def test_crates_depend_on_those_above_them_only(crates, rows):
    names = {_name(folder): row for row, folder in crates.items()}
    order = list(rows)
    for row, folder in crates.items():
        used = _dependencies(folder, names)
        upwards = {name for name in used if order.index(names[name]) >= order.index(row)}
        assert not upwards, f"`{row}` depends on {sorted(upwards)}"


def test_rows_list_the_dependencies(crates, rows):
    names = {_name(folder): row for row, folder in crates.items()}
    checked = 0
    for row, depends in rows.items():
        listed = re.fullmatch(r"(?:`[\w-]+`(?:, )?)+|nothing", depends)
        # Rows of the crates at the top say in words what they use of those below.
        if listed:
            checked += 1
            assert _dependencies(crates[row], names) == set(re.findall(r"`([\w-]+)`", depends)), row
    assert checked >= 10


def test_the_wheel_for_tests_shares_the_crates_of_the_rust_tests():
    """With other features of one dependency, every crate above it would be compiled twice."""
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")

    def crates(*arguments):
        form = ["--locked", "--offline", "--prefix", "none", "--format", "{p} [{f}]"]
        done = subprocess.run(["cargo", "tree", *form, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cargo has not downloaded every crate: {done.stderr.strip().splitlines()[-1]}")
        return {line.removesuffix(" (*)") for line in done.stdout.splitlines() if line}

    of_wheel = crates("--package", "ns-py", "--features", "ns-py/tests,pyo3/abi3-py310", "--edges", "normal,build")
    own = of_wheel - crates("--workspace", "--edges", "normal,build,dev")
    assert [line.split()[0] for line in sorted(own)] == ["ns-py"]
