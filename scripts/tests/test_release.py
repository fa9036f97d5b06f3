"""What a release publishes has one version and one name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE).group(1)


def _found(pattern, name):
    return re.findall(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)


def test_the_version_of_the_workspace_is_the_one_source():
    assert _found(r"^version: (.+)$", "CITATION.cff") == [VERSION]
    assert _found(r'^  version: "(.+)"$', "recipe/recipe.yaml") == [VERSION]
    for package in ("bindings/ns-py", "bindings/torchless-py"):
        assert _found(r'^dynamic = \["version"\]$', f"{package}/pyproject.toml")
        assert not _found(r"^version\b", f"{package}/pyproject.toml")
    for manifest in [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("bindings/*/Cargo.toml"), ROOT / "torchless/Cargo.toml"]:
        assert _found(r"^version\.workspace = true$", manifest.relative_to(ROOT)), manifest
    folders = [path.parent.name for kind in ("crates", "bindings") for path in ROOT.glob(f"{kind}/*/Cargo.toml")]
    own = {*folders, "ns-benches", "torchless"}
    locked = dict(_found(r'^name = "(.+)"\nversion = "(.+)"$', "Cargo.lock"))
    assert {locked[name] for name in own} == {VERSION}


def test_the_page_names_the_files_of_this_version():
    assert set(_found(r"nextstat-([0-9.]+)-x86_64-unknown-linux-musl", "docs/install.md")) == {VERSION}


def test_a_package_of_conda_starts_the_command_of_the_wheel():
    assert _found(r"^      - (nextstat = .+)$", "recipe/recipe.yaml") == ["nextstat = nextstat.__main__:main"]
    assert "nextstat.__main__:main" in _found(r'^nextstat = "(.+)"$', "bindings/ns-py/pyproject.toml")


def test_every_page_says_the_same_of_what_is_read():
    reads = (
        "nextstat reads pyhf workspaces, HS3 documents, HistFactory XML with its ROOT files, and data cards of CMS Combine, "
        "and computes fits, uncertainties, limits, significances, rankings and toys"
    )
    for name in ("README.md", "docs/index.md", "bindings/ns-py/README.md", "CITATION.cff", "recipe/recipe.yaml"):
        assert reads in " ".join((ROOT / name).read_text("utf-8").split()), name


def test_no_workflow_publishes_another_name():
    assert _found(r'^name = "(.+)"$', "bindings/ns-py/pyproject.toml") == ["nextstat-rs"]
    workflow = (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
    assert "dist/nextstat_rs-*" in workflow and "pypi.org/p/nextstat" not in workflow
