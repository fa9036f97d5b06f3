"""The size and speed of a page, and that it can be read without a mouse or without its pictures."""

import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path

import compose
import documents
import pytest
from conftest import unfold_all

WEB = Path(__file__).resolve().parents[1]
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
# A page of 600 parameters has to answer within this time; a loaded machine gets as much again.
SECONDS = 2.0
MEGABYTES = 3.0


@pytest.fixture(scope="module")
def large():
    return documents.everything(n_constrained=597, n_channels=30, n_bins=8)


def test_a_page_of_600_parameters_is_small(large):
    page = compose.page(compose.report_data(**large))
    assert len(page.encode()) < MEGABYTES * 1e6
    assert len((compose.ASSETS / "report.js").read_bytes()) <= 450_000


CONTROLS = {
    "filter": lambda page: page.fill("input[type=search]", "JES_*"),
    "no filter": lambda page: page.fill("input[type=search]", ""),
    "threshold": lambda page: page.locator("#correlations input[type=range]").fill("0.01"),
    "all pulls": lambda page: page.select_option("#parameters select >> nth=1", "all"),
    "all impacts": lambda page: page.select_option("#ranking select", "all"),
    "order of pulls": lambda page: page.select_option("#parameters select >> nth=0", "constraint"),
    "pre-fit": lambda page: page.locator(".controls button", has_text="Pre-fit").click(),
    "log scale": lambda page: page.locator(".controls .check input").check(),
    "table": lambda page: page.locator("#parameters summary", has_text="Table of").click(),
    "all rows": lambda page: page.locator("#parameters button.all").click(),
    "sort": lambda page: page.locator("#parameters [aria-label='Constrained parameters'] th button").first.click(),
    "pairs": lambda page: page.locator("#correlations summary").click(),
    "theme": lambda page: page.select_option(".theme select", "dark"),
}


def test_a_page_of_600_parameters_answers_every_control(open_page, large):
    page = open_page(large)
    taken = {}
    for name, act in CONTROLS.items():
        section = {"all pulls": "parameters", "order of pulls": "parameters", "all impacts": "ranking", "threshold": "correlations"}.get(name)
        if section:
            page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
        begin = time.perf_counter()
        act(page)
        # Two frames: what was asked for is drawn.
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        taken[name] = time.perf_counter() - begin
    print({name: round(seconds, 2) for name, seconds in taken.items()})
    assert {name: seconds for name, seconds in taken.items() if seconds > 2 * SECONDS} == {}


def run_axe(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in serious]


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci in web/)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious(open_page, scheme, width):
    page = open_page(documents.everything(hidden={0: [1]}), scheme=scheme, width=width)
    for section in page.locator("main section").all():
        section.evaluate("one => one.scrollIntoView()")
        page.wait_for_timeout(30)
    unfold_all(page)
    assert run_axe(page) == []


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci in web/)")
def test_axe_finds_nothing_serious_in_a_failed_fit(open_page):
    assert run_axe(open_page({"report": documents.report(converged=False)})) == []


def test_every_figure_has_a_table_and_every_drawing_a_name(open_page):
    page = open_page(documents.everything())
    for figure in page.locator("figure").all():
        assert figure.locator("details").count() >= 1
    page.emulate_media(media="print")
    page.wait_for_selector(".chart:empty", state="detached")
    assert page.locator(".chart > :not([aria-label])").count() == 0


def test_headings_are_in_order(open_page):
    page = open_page(documents.everything())
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_control_is_reached_by_the_keyboard(open_page):
    page = open_page(documents.everything())
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(one => one && one.tagName + '.' + (one.type || one.textContent.slice(0, 30)))(document.activeElement)"))
    for control in ("INPUT.search", "INPUT.checkbox", "INPUT.range", "SELECT.select-one", "BUTTON.button"):
        assert control in reached
    assert any(name.startswith("SUMMARY") for name in reached) and any(name.startswith("A.") for name in reached)


def test_the_unit_tests_pass():
    if not shutil.which("node") or not (WEB / "node_modules").is_dir():
        pytest.skip("node or the packages of web/ are not installed (npm ci in web/)")
    done = subprocess.run(["node", "tests/unit.mjs"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_bundle_names_its_libraries_and_their_licences():
    script = (compose.ASSETS / "report.js").read_text(encoding="utf-8")
    head = script[: script.index("*/")]
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    for name in ("preact", "@observablehq/plot", "d3-scale"):
        assert f"{name} {lock['packages'][f'node_modules/{name}']['version']}" in head
    assert head.count("Copyright") >= 3


def unknown_keys(made, real, place=""):
    """Places of the keys of `made` that `real` lacks; of lists, the first elements are compared."""
    if isinstance(made, list) and isinstance(real, list):
        return unknown_keys(made[0], real[0], f"{place}/0") if made and real else []
    if not (isinstance(made, dict) and isinstance(real, dict)) or place.endswith("/settings"):
        return []
    found = [f"{place}/{key}" for key in made if key not in real]
    return found + [one for key in made if key in real for one in unknown_keys(made[key], real[key], f"{place}/{key}")]


def test_the_made_documents_have_no_keys_but_those_of_the_command(nextstat):
    given, example = documents.everything(), WEB.parent / "examples" / "shapes.json"
    made = {"report": given["report"], "ranking": given["ranking"][0], "scan": given["scans"][0], "limit": given["limits"][0], "inspect": given["inspect"]}
    for verb, document in made.items():
        assert unknown_keys(document, nextstat(verb, example), verb) == []


def test_documents_of_the_command_have_a_page(open_page, nextstat):
    example = WEB.parent / "examples" / "shapes.json"
    parts = {name: nextstat(name, example) for name in ("inspect", "check", "gof")}
    several = {key: [nextstat(verb, example)] for key, verb in (("ranking", "ranking"), ("scans", "scan"), ("limits", "limit"))}
    report = nextstat("report", example)
    page = open_page({"report": report, "fit": nextstat("fit", example, "--multi-start=3"), **parts, **several})
    assert page.locator(".absent").count() == 0
    page.emulate_media(media="print")
    page.wait_for_selector(".chart:empty", state="detached")
    assert page.locator("#yields tbody tr").first.inner_text().split()[:2] == ["control_region", "723"]
