"""The app with the real engine: what a reader drops, sees and changes."""

import gzip
import io
import json
import shutil
import zipfile

import pytest
import workspaces
from app_pages import DIST, EXAMPLES
from site_server import served
from waiting import eventually

SHAPES = EXAMPLES / "shapes.json"
BACKGROUND, SIGNALS, PLANE = EXAMPLES / "background.json", EXAMPLES / "signals.json", EXAMPLES / "plane.json"


def zipped(files):
    """An archive of names and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def test_a_dropped_file_shows_its_fit_and_its_pulls(open_app, nextstat):
    app = open_app()
    app.open(SHAPES)
    fit = nextstat("fit", SHAPES)
    assert app.value() == pytest.approx(fit["poi"]["bestfit"], rel=1e-5)
    report = nextstat("report", SHAPES)
    expected = {pull["parameter"]: pull["pull"] for pull in report["pulls"]}
    assert app.pulls() == pytest.approx(expected, abs=0.006)


def test_the_page_says_that_files_stay_and_keeps_its_word(open_app, site):
    app = open_app()
    assert "nothing is uploaded" in app.page.locator(".private").inner_text()
    eventually(lambda: app.page.evaluate("navigator.serviceWorker.controller !== null"))
    # The engine has been loaded when it has fitted something.
    app.open(EXAMPLES / "simple.json")
    asked = list(site[1])
    app.open(SHAPES)
    for view in ("pulls", "ranking", "limit", "export"):
        app.view(view)
    app.slide(1.5)
    app.rise()
    assert site[1] == asked


def test_all_results_come_by_themselves(open_app):
    app = open_app()
    app.open(SHAPES)
    figures = {"overview": ".cards", "regions": "#regions", "correlations": "#correlations", "ranking": "#ranking", "scan": "#scan", "limit": "#limits"}
    for view, figure in figures.items():
        app.view(view)
        app.page.wait_for_selector(f"{figure} svg[role=img], {figure} .chart [role=img]")
    metrics = app.page.locator(".metrics").inner_text()
    assert "σ" in metrics and "expected" in metrics and "–" not in metrics
    assert app.page.locator(".failure").count() == 0


def test_compressed_files_are_opened(open_app):
    app = open_app()
    app.open(("shapes.json.gz", gzip.compress(SHAPES.read_bytes())))
    first = app.result()
    app.open(("files.zip", zipped({"a/shapes.json": SHAPES.read_bytes(), "a/README.md": "# Text"})))
    app.page.wait_for_selector("text=a/shapes.json")
    assert app.result() == first


def test_a_measurement_with_its_channels_and_histograms_is_opened(open_app, nextstat):
    app = open_app()
    folder = EXAMPLES / "histfactory"
    app.open(*(folder / name for name in ("combination.xml", "SR.xml", "CR.xml", "histograms.root")))
    expected = nextstat("fit", folder / "combination.xml")["poi"]["bestfit"]
    assert app.value() == pytest.approx(expected, rel=1e-5)
    app.open(("record.zip", zipped({f"record/{one.name}": one.read_bytes() for one in folder.iterdir() if one.suffix in (".xml", ".root")})))
    app.page.wait_for_selector("text=record/combination.xml")
    assert app.value() == pytest.approx(expected, rel=1e-5)


def test_a_card_is_opened_with_the_file_that_it_names(open_app, nextstat):
    app = open_app()
    folder = EXAMPLES / "combine"
    app.open(folder / "templates.txt", folder / "templates.csv")
    assert app.value() == pytest.approx(nextstat("fit", folder / "templates.txt")["poi"]["bestfit"], rel=1e-5)


def test_a_patch_set_that_is_dropped_alone_is_for_the_open_workspace(open_app):
    app = open_app()
    app.open(BACKGROUND)
    assert "No parameter of interest" in app.page.locator(".strip").inner_text()
    assert "which no modifier uses" in app.page.locator(".view .warnings").inner_text()
    app.drop(SIGNALS)
    app.page.wait_for_selector(".model-name select")
    assert app.page.locator(".model-name select option").all_inner_texts() == ["none", "signal_300", "signal_500", "signal_800"]


def test_one_of_several_patches_is_chosen(open_app, nextstat, tmp_path):
    app = open_app()
    patches = {patch["metadata"]["name"]: patch["patch"] for patch in json.loads(SIGNALS.read_text(encoding="utf-8"))["patches"]}
    app.open(BACKGROUND, *((f"{name}.json", patch) for name, patch in patches.items()))
    first = app.value()
    app.page.select_option(".model-name select", label="signal_800.json")
    eventually(lambda: app.value() != first)
    assert app.value() == pytest.approx(nextstat("fit", BACKGROUND, "--patchset", SIGNALS, "--patch-name", "signal_800")["poi"]["bestfit"], rel=1e-5)
    app.page.select_option(".model-name select", label="none")
    app.page.wait_for_selector("text=No parameter of interest")


def test_a_patch_set_of_another_workspace_is_refused(open_app):
    app = open_app()
    app.open(SHAPES)
    app.drop(SIGNALS)
    app.page.wait_for_selector(".problem")
    assert "signals.json" in app.page.locator(".problem").inner_text()
    assert app.page.locator(".model-name select").count() == 0


def test_one_of_several_models_is_picked(open_app):
    app = open_app()
    one, other = workspaces.workspace(n_channels=1), workspaces.workspace(n_channels=3)
    app.drop(("both.zip", zipped({"one.json": json.dumps(one), "other.json": json.dumps(other)})))
    dialog = app.page.locator("dialog")
    dialog.wait_for()
    names = dialog.locator(".choices-list .name").all_inner_texts()
    assert sorted(name.split("/")[-1] for name in names) == ["one.json", "other.json"]
    dialog.locator("button", has_text="other.json").click()
    app.page.wait_for_selector(".strip .result")
    assert dialog.count() == 0
    assert app.page.locator("#channels-title small").inner_text() == "3"


def test_the_slider_fixes_the_signal_and_lets_it_go(open_app, nextstat):
    app = open_app()
    app.open(SHAPES)
    free = app.pulls()
    app.slide(2.5)
    rise = app.rise()
    at = nextstat("fit", SHAPES, "--fix", "mu=2.5")["twice_nll"] - nextstat("fit", SHAPES)["twice_nll"]
    assert rise == pytest.approx(at, abs=2e-3)
    assert app.pulls() != free
    app.page.dispatch_event("input.poi", "pointerup")
    eventually(lambda: app.pulls() == free)
    assert "Move to fix" in app.page.locator(".slider-text").inner_text()


def test_the_slider_stays_while_the_reader_wants(open_app):
    app = open_app()
    app.open(SHAPES)
    app.page.focus("input.poi")
    app.page.keyboard.press("ArrowRight")
    app.rise()
    app.page.check(".stays input")
    app.view("scan")
    assert app.rise() >= 0
    app.page.uncheck(".stays input")
    app.page.wait_for_selector("text=Move to fix")


def test_a_masked_channel_changes_the_fit_and_undo_takes_it_back(open_app):
    app = open_app()
    app.open(SHAPES)
    before = app.value()
    box = app.page.locator(".row-label", has_text="control_region").locator("input")
    box.uncheck()
    eventually(lambda: app.value() != before)
    masked = app.value()
    app.page.keyboard.press("Control+z")
    eventually(lambda: app.value() == before)
    assert box.is_checked()
    app.page.keyboard.press("Control+Shift+z")
    eventually(lambda: app.value() == masked)
    assert not box.is_checked()
    app.page.click(".reset")
    eventually(lambda: app.value() == before)


def test_a_parameter_is_fixed_and_its_bounds_are_changed(open_app):
    app = open_app()
    app.open(SHAPES)
    before = app.value()
    row = app.page.locator(".parameter", has_text="jet_energy_scale")
    row.locator(".pick").click()
    editor = app.page.locator(".editor")
    editor.locator("input[type=checkbox]").check()
    editor.get_by_label("Value").fill("1.5")
    editor.get_by_label("Value").press("Enter")
    eventually(lambda: app.value() != before)
    assert row.locator(".value").inner_text() == "1.5"
    editor.locator("input[type=checkbox]").uncheck()
    eventually(lambda: app.value() == before)
    app.page.locator(".parameter", has_text="mu").first.locator(".pick").click()
    editor.get_by_label("Upper bound").fill("0.5")
    editor.get_by_label("Upper bound").press("Enter")
    eventually(lambda: app.value() == pytest.approx(0.5))


def test_bounds_that_are_not_valid_are_refused_with_words(open_app):
    app = open_app()
    app.open(SHAPES)
    app.page.locator(".parameter", has_text="mu").first.locator(".pick").click()
    lower, upper = (app.page.get_by_label(f"{end} bound") for end in ("Lower", "Upper"))
    problem = app.page.locator(".field-problem")
    refused = {"abc": "“abc” is not a number", "1e400": "not a finite number", " ": "a number is missing", "99": "must be below the upper one"}
    for text, words in refused.items():
        lower.fill(text)
        lower.press("Enter")
        eventually(lambda words=words: words in " ".join(problem.all_inner_texts()))
        assert lower.input_value() == text and lower.get_attribute("aria-invalid") == "true"
    assert app.page.locator(".reset").count() == 0
    # Both ends are moved above the former upper one.
    upper.fill("200")
    upper.press("Enter")
    eventually(lambda: problem.count() == 0)
    assert [lower.input_value(), upper.input_value()] == ["99", "200"]
    app.settle()
    upper.fill("1")
    upper.press("Enter")
    problem.wait_for()
    upper.press("Escape")
    eventually(lambda: problem.count() == 0 and upper.input_value() == "200")


def test_asimov_data_replace_the_observed_ones(open_app):
    app = open_app()
    app.open(SHAPES)
    app.page.select_option(".data-choice select", label="Asimov data, μ = 1")
    eventually(lambda: app.value() == pytest.approx(1, abs=1e-4))
    assert app.page.locator(".strip").get_attribute("class") == "strip"


def test_a_signal_is_picked_in_the_head(open_app, nextstat):
    app = open_app()
    app.open(BACKGROUND, SIGNALS)
    first = app.value()
    app.page.select_option(".model-name select", label="signal_800")
    eventually(lambda: app.value() != first)
    expected = nextstat("fit", BACKGROUND, "--patchset", SIGNALS, "--patch-name", "signal_800")
    assert app.value() == pytest.approx(expected["poi"]["bestfit"], rel=1e-5)


def test_the_plane_fills_in_and_a_click_opens_a_signal(open_app, nextstat):
    app = open_app()
    app.open(BACKGROUND, PLANE)
    app.view("patches")
    n = len(json.loads(PLANE.read_text(encoding="utf-8"))["patches"])
    app.page.click("text=Test all signals")
    app.page.wait_for_selector(f"text={n} of {n} signals tested")
    rows = app.page.locator("[aria-label=Signals] tbody tr")
    row = rows.nth(1)
    name = row.locator("td").nth(0).inner_text()
    expected = nextstat("hypotest", BACKGROUND, "--patchset", PLANE, "--patch-name", name, "--mu", "1")
    assert float(row.locator("td").nth(3).locator("span").get_attribute("title").replace("−", "-")) == pytest.approx(expected["CLs_obs"], rel=1e-4)
    app.page.wait_for_selector(".plane svg [data-mark=line] path", state="attached")
    circles = app.page.locator(".plane svg [data-mark=dot] circle")
    box = circles.nth(n - 1).bounding_box()
    app.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    app.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    eventually(lambda: app.page.locator(".model-name select").input_value() != "0")


def test_toys_are_thrown_and_cancelled(open_app):
    app = open_app()
    app.open(EXAMPLES / "simple.json")
    app.view("toys")
    app.page.get_by_label("Toys of each hypothesis").fill("2000000")
    app.page.click("text=Throw toys")
    app.page.wait_for_selector(".view progress[max]")
    app.page.click(".view .status button")
    assert app.page.locator(".view progress").count() == 0
    app.page.get_by_label("Toys of each hypothesis").fill("200")
    app.page.click("text=Throw toys")
    app.page.wait_for_selector("[aria-label='Result of the toys']")
    assert "200 and 200 toys" in app.page.locator(".view").inner_text()


def test_a_damaged_file_says_what_is_wrong_and_the_former_model_stays(open_app):
    app = open_app()
    app.open(SHAPES)
    before = app.result()
    damaged = json.loads(SHAPES.read_text(encoding="utf-8"))
    del damaged["channels"][0]["samples"][0]["data"]
    app.drop(("damaged.json", damaged))
    problem = app.page.locator(".problem")
    problem.wait_for()
    assert "damaged.json" in problem.inner_text() and "/channels/0/samples/0" in problem.inner_text()
    assert "still open" in problem.inner_text()
    app.slide(1.2)
    assert app.rise() >= 0
    assert app.result() == before
    app.drop(("cut.json", SHAPES.read_bytes()[:500]))
    app.page.wait_for_selector(".problem >> text=cut.json")
    app.drop(("picture.png", b"\x89PNG\r\n"))
    app.page.wait_for_selector(".problem >> text=picture.png")
    app.page.wait_for_selector(".problem >> text=drop a workspace of pyhf")
    app.drop(("empty.json", ""))
    app.page.wait_for_selector(".problem >> text=the document is empty at line 1, column 1")
    app.drop(("picture.png", b"\x89PNG\r\n"), ("other.png", b"\x89PNG\r\n"))
    app.page.wait_for_selector(".problem >> text=none of these files is a model")
    problem.locator("button").click()
    assert problem.count() == 0


def test_a_card_that_names_a_mass_asks_for_it(open_app, nextstat):
    app = open_app()
    folder = EXAMPLES / "combine"
    card = (folder / "templates.txt").read_text(encoding="utf-8").replace("templates.csv", "templates$MASS.csv")
    app.drop(("card.txt", card), ("templates125.5.csv", (folder / "templates.csv").read_bytes()))
    app.page.fill("#mass", "125.5")
    app.page.click(".mass button")
    app.page.wait_for_selector(".strip .result")
    app.settle()
    assert app.page.locator(".problem").count() == 0
    assert app.value() == pytest.approx(nextstat("fit", folder / "templates.txt")["poi"]["bestfit"], rel=1e-5)
    eventually(lambda: "mass=125.5" in app.page.evaluate("location.hash"))


ENDLESS = """
const { add } = Files.prototype;
Files.prototype.add = function (name, bytes) { while (name === "slow.json"); return add.call(this, name, bytes); };
"""


def test_opening_is_cancelled(open_app, tmp_path):
    folder = shutil.copytree(DIST, tmp_path / "site")
    with (folder / "nextstat_wasm.js").open("a", encoding="utf-8") as module:
        module.write(ENDLESS)
    with served(folder) as (address, _):
        app = open_app(place=f"{address}/index.html", others=(address,))
        app.drop(("slow.json", "{}"))
        app.page.click(".busy >> text=Cancel")
        eventually(lambda: app.page.locator(".busy").count() == 0)
        assert app.page.locator(".problem").count() == 0
        app.open(SHAPES)


PLANTED = """
let isBroken = false;
const { add, free } = Files.prototype;
Files.prototype.add = function (name, bytes) {
    isBroken ||= name === "defect.json";
    if (isBroken) throw new Error("the engine failed: planted");
    return add.call(this, name, bytes);
};
Files.prototype.free = function () {
    if (isBroken) throw new Error("attempted to take ownership while it was borrowed");
    free.call(this);
};
"""


def test_a_defect_of_the_engine_is_told_and_the_next_file_is_opened(open_app, tmp_path, site):
    folder = shutil.copytree(DIST, tmp_path / "site")
    with (folder / "nextstat_wasm.js").open("a", encoding="utf-8") as module:
        module.write(PLANTED)
    with served(folder) as (address, _):
        app = open_app(place=f"{address}/index.html", others=(address,))
        app.drop(("defect.json", "{}"))
        app.page.wait_for_selector(".problem")
        assert "the engine failed: planted" in app.page.locator(".problem").inner_text()
        app.open(SHAPES)
        assert app.page.locator(".problem").count() == 0


def test_settings_without_a_fit_say_so_and_are_undone(open_app):
    app = open_app()
    app.open(SHAPES)
    before = app.value()
    for box in app.page.locator(".row-label input").all():
        box.uncheck()
    app.page.wait_for_selector(".strip .failure, .result.bad")
    app.page.keyboard.press("Control+z")
    app.page.keyboard.press("Control+z")
    app.settle()
    assert app.value() == before
    assert app.page.locator(".strip .failure").count() == 0


NAMES = ["<img src=x onerror=alert(1)>", "a\u202eb", "__proto__", "constructor", "", "'; drop table", "x" * 300, "{{title}}"]


def test_names_are_text_and_nothing_else(open_app):
    app = open_app()
    names = [name for name in NAMES if name]
    app.open(("<b>bold</b>.json", workspaces.workspace(names=names)))
    for view in ("overview", "pulls", "ranking", "scan", "limit", "model", "export"):
        app.view(view)
    app.view("pulls")
    assert app.page.locator("img").count() == 0
    shown = app.pulls()
    assert "<img src=x onerror=alert(1)>" in shown and "a\\u{202e}b" in shown
    row = app.page.locator(".parameter", has_text="__proto__")
    row.locator(".lock").click()
    app.page.wait_for_selector(".reset")
    app.settle()
    assert row.locator(".lock").get_attribute("aria-pressed") == "true"


def test_a_model_without_a_signal_has_pulls_and_no_limit(open_app):
    app = open_app()
    background = workspaces.workspace(signal=False)
    background["measurements"][0]["config"]["poi"] = ""
    app.open(("background.json", background))
    assert "No parameter of interest" in app.page.locator(".strip").inner_text()
    assert len(app.pulls()) == 4
    app.view("limit")
    assert "no limit" in app.page.locator(".absent").inner_text()
