"""The page on JSON documents lists the keys that the command writes."""

import json
import re

import nextstat
import pytest

SUBCOMMANDS = {
    "fit": ["--minos", "--covariance", "--correlation", "--multi-start=2"],
    "gof": ["--toys", "20"],
    "report": [],
    "scan": ["--points", "3"],
    "ranking": ["--group", "theory=theory_*"],
    "hypotest": [],
    "limit": [],
    "significance": [],
    "hypotest-toys": ["--n-toys", "20"],
    "toys": ["--n-toys", "20"],
    "evaluate": [],
    "check": [],
    "inspect": [],
}


def test_the_page_lists_the_keys_of_verbs_without_a_model(root, examples_folder, tmp_path):
    page = (root / "docs/reference/json.md").read_text("utf-8")
    parts = {part.split("\n")[0]: part for part in page.split("\n## ")}
    for arguments in (
        ["devices"],
        ["patchset", "inspect", "examples/signals.json"],
        ["patchset", "verify", "examples/background.json", "examples/signals.json"],
    ):
        assert nextstat.command(arguments).json().keys() <= _keys(parts[arguments[0]]), arguments
    report = tmp_path / "report.json"
    combine = ["combine", "examples/simple.json", "examples/shapes.json", "-o", tmp_path / "both.json", "--report", report]
    assert nextstat.command(combine).exit_code == 0
    assert json.loads(report.read_text()).keys() <= _keys(parts["combine"]) | _keys(page.split("\n## ")[0])
    every = ["limit", "examples/background.json", "--patchset", "examples/signals.json", "--every-patch"]
    keys = _keys(page.split("\n## ")[0]) | _keys(parts["Every patch of a set"])
    assert nextstat.command(every).json().keys() <= keys


def _keys(text):
    """The keys in the first column of the tables of a part of the page."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_the_page_lists_the_keys_of_fits(root, examples_folder):
    page = (root / "docs/reference/json.md").read_text("utf-8")
    [part] = [part for part in page.split("\n## ") if part.split("\n")[0] == "fits"]
    (examples_folder / "data.txt").write_text("57 63\n51 48\n")
    done = nextstat.command(["fits", "examples/simple.json", "--data", str(examples_folder / "data.txt")])
    assert done.json().keys() <= _keys(page.split("\n## ")[0]) | _keys(part), "the page lacks keys"
    assert _keys(part) <= done.json().keys(), "the page has keys that are not written"


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_the_page_lists_the_keys_of(subcommand, root, examples_folder):
    page = (root / "docs/reference/json.md").read_text("utf-8")
    common = _keys(page.split("\n## ")[0])
    [part] = [part for part in page.split("\n## ") if part.split("\n")[0] == subcommand]
    done = nextstat.command([subcommand, "examples/shapes.json", *SUBCOMMANDS[subcommand]])
    written = {key for key in done.json() if not key.endswith(("_error", "_obs_range"))}
    assert written <= common | _keys(part), "the page lacks keys"
    if subcommand in ("hypotest", "limit", "significance", "ranking"):
        assert _keys(part) <= written, "the page has keys that are not written"
