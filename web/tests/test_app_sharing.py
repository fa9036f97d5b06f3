"""Links, addresses, files that are saved, embedding, and the app without a network."""

import io
import json
import re
import zipfile

import pytest
import workspaces
from app_pages import DIST, EXAMPLES
from site_server import served
from waiting import eventually

SHAPES = EXAMPLES / "shapes.json"


def fragment_of(app):
    return app.page.evaluate("location.hash")


def test_a_shared_link_leads_to_the_same_numbers(open_app):
    first = open_app(fragment="#url=examples/shapes.json")
    first.page.wait_for_selector(".strip .result")
    first.settle()
    first.page.locator(".row-label", has_text="control_region").locator("input").uncheck()
    first.view("pulls")
    eventually(lambda: "mask" in fragment_of(first) and "sha256" in fragment_of(first))
    second = open_app(fragment=fragment_of(first))
    second.page.wait_for_selector(".strip .result")
    second.settle()
    assert second.value() == first.value()
    assert second.page.title().startswith("shapes.json")
    assert second.page.locator("#tab-pulls").get_attribute("aria-selected") == "true"
    assert not second.page.locator(".row-label", has_text="control_region").locator("input").is_checked()
    assert second.page.locator(".notices .caution").count() == 0


def test_a_link_of_a_patch_opens_it(open_app):
    app = open_app(fragment="#url=examples/background.json&url=examples/signals.json&patch=signal_800")
    app.page.wait_for_selector(".strip .result")
    assert app.page.locator(".model-name select option:checked").inner_text() == "signal_800"
    app.page.select_option(".model-name select", label="none")
    eventually(lambda: "patch=&" in fragment_of(app))
    other = open_app(fragment=fragment_of(app))
    other.page.wait_for_selector(".strip .result")
    assert other.page.locator(".model-name select option:checked").inner_text() == "none"


def test_a_link_to_signals_of_a_model_without_them_shows_the_overview(open_app):
    app = open_app(fragment="#view=patches&url=examples/shapes.json")
    app.page.wait_for_selector(".strip .result")
    assert app.page.locator("#tab-overview").get_attribute("aria-selected") == "true"
    assert app.page.locator(".view .cards").count() == 1


def test_a_link_without_an_address_asks_for_its_file(open_app):
    first = open_app()
    first.open(SHAPES)
    eventually(lambda: "sha256" in fragment_of(first))
    fragment = fragment_of(first)
    assert "url=" not in fragment
    second = open_app(fragment=fragment + "&view=pulls")
    assert second.page.locator(".start h2").inner_text() == "Drop the file of this link"
    second.open(SHAPES)
    assert second.page.locator(".notices .caution").count() == 0
    second.page.goto(second.site + "/index.html#sha256=" + "0" * 64)
    second.page.reload()
    second.page.click("text=Forget the link")
    assert second.page.locator(".start h2").inner_text().startswith("Drop a workspace")
    assert fragment_of(second) == ""
    third = open_app(fragment=fragment)
    third.open(("other.json", workspaces.workspace()))
    assert "another workspace" in third.page.locator(".notices .caution").inner_text()


def test_a_link_that_is_pasted_is_for_the_open_model(open_app):
    app = open_app()
    app.open(SHAPES)
    eventually(lambda: "sha256" in fragment_of(app))
    plain, before = fragment_of(app), app.value()
    app.page.evaluate("fragment => { location.hash = fragment; }", plain + "&settings=" + json.dumps({"mask": ["control_region"]}))
    eventually(lambda: app.value() != before)
    assert not app.page.locator(".row-label", has_text="control_region").locator("input").is_checked()
    app.page.evaluate("fragment => { location.hash = fragment; }", "#sha256=" + "0" * 64)
    app.page.wait_for_selector(".notices .caution >> text=another workspace")
    eventually(lambda: app.value() == before)


def test_back_leads_to_the_view_before_and_leaves_model_and_settings(open_app):
    app = open_app()
    app.open(SHAPES)
    eventually(lambda: "sha256" in fragment_of(app))
    app.view("pulls")
    eventually(lambda: "view=pulls" in fragment_of(app))
    app.view("regions")
    eventually(lambda: "view=regions" in fragment_of(app))
    app.page.locator(".row-label", has_text="control_region").locator("input").uncheck()
    app.settle()
    app.page.go_back()
    app.page.wait_for_selector("#tab-pulls[aria-selected=true]")
    app.page.go_back()
    app.page.wait_for_selector("#tab-overview[aria-selected=true]")
    assert not app.page.locator(".row-label", has_text="control_region").locator("input").is_checked()
    app.page.go_forward()
    app.page.wait_for_selector("#tab-pulls[aria-selected=true]")


def test_back_leads_to_the_address_before(open_app):
    app = open_app(fragment="#url=examples/shapes.json")
    app.page.wait_for_selector(".strip .result")
    eventually(lambda: "sha256" in fragment_of(app))
    app.page.evaluate("location.hash = '#url=examples/simple.json'")
    app.page.wait_for_selector(".model-name >> text=simple.json")
    eventually(lambda: "sha256" in fragment_of(app))
    app.page.go_back()
    app.page.wait_for_selector(".model-name >> text=shapes.json")


def test_a_server_that_does_not_allow_it_is_explained(open_app, tmp_path):
    (tmp_path / "shapes.json").write_bytes(SHAPES.read_bytes())
    with served(tmp_path) as (address, _):
        app = open_app(others=(address,))
        app.page.fill("#address", f"{address}/shapes.json")
        app.page.click(".field button")
        problem = app.page.locator(".problem")
        problem.wait_for()
        assert "does not allow" in problem.inner_text() and "download the file and drop it here" in problem.inner_text()
        assert problem.locator("a").get_attribute("href") == f"{address}/shapes.json"
        app.open(SHAPES)
        assert problem.count() == 0


def test_a_server_that_allows_it_is_read(open_app, tmp_path):
    (tmp_path / "shapes.json").write_bytes(SHAPES.read_bytes())
    with served(tmp_path, allows_others=True) as (address, asked):
        app = open_app(others=(address,))
        app.page.fill("#address", f"{address}/shapes.json")
        app.page.click(".field button")
        app.page.wait_for_selector(".strip .result")
        eventually(lambda: "url=" in fragment_of(app))
        assert asked == ["/shapes.json"]
        other = open_app(fragment=f"#url={address}/missing.json", others=(address,))
        other.page.wait_for_selector(".problem >> text=404")


def test_what_is_not_an_address_is_refused(open_app):
    app = open_app(fragment="#url=javascript:alert(1)")
    app.page.wait_for_selector(".problem >> text=is not an address of a file")


def saved(app, selector, nth=0):
    with app.page.expect_download() as download:
        app.page.locator(selector).nth(nth).click()
    return download.value.suggested_filename, open(download.value.path(), "rb").read()


def test_figures_are_saved_as_svg_and_png(open_app):
    app = open_app()
    app.open(SHAPES)
    app.view("pulls")
    app.page.wait_for_selector("#parameters .chart svg")
    name, svg = saved(app, "#parameters .tools button")
    text = svg.decode()
    assert name.endswith(".svg") and text.count("<svg") == 2 and "jet_energy_scale" in text
    assert "var(" not in text and "class=" not in text
    name, png = saved(app, "#parameters .tools button", 1)
    assert name.endswith(".png") and png.startswith(b"\x89PNG") and len(png) > 5000
    app.view("regions")
    app.page.wait_for_selector("#regions .chart .stacked")
    _, svg = saved(app, "#regions .tools button")
    assert svg.count(b"<svg") == 3 and b'id="hatch"' in svg
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())
    samples = app.page.locator("#regions .legend li").all_inner_texts()
    assert "Data and post-fit prediction of" in texts[0]
    assert len(samples) > 3 and texts[1 : len(samples) + 1] == samples
    colours = app.page.locator("#regions .legend .key[style]").evaluate_all("keys => keys.map(key => getComputedStyle(key).backgroundColor)")
    assert re.findall(r'<rect[^>]*width="12"[^>]*fill="(rgb[^"]*)"', svg.decode()) == colours


def test_a_saved_svg_is_a_picture_on_its_own(open_app):
    app = open_app()
    app.open(SHAPES)
    app.view("scan")
    app.page.wait_for_selector("#scan .chart svg")
    _, svg = saved(app, "#scan .tools button")
    size = app.page.evaluate(
        """async text => {
            const image = new Image();
            image.src = URL.createObjectURL(new Blob([text], {type: 'image/svg+xml'}));
            await image.decode();
            return [image.width, image.height];
        }""",
        svg.decode(),
    )
    assert size[0] > 300 and size[1] > 200


def test_documents_and_tables_are_saved(open_app, nextstat):
    app = open_app()
    app.open(SHAPES)
    app.view("export")
    limit = app.page.locator("button", has_text="limit.json")
    limit.wait_for()
    name, text = saved(app, "button:has-text('limit.json')")
    found, expected = json.loads(text), nextstat("limit", SHAPES)
    assert name == "limit.json" and found["observed"] == pytest.approx(expected["observed"], rel=1e-6)
    name, text = saved(app, "button:has-text('fit.json')")
    assert json.loads(text)["poi"]["bestfit"] == pytest.approx(nextstat("fit", SHAPES)["poi"]["bestfit"], rel=1e-6)
    name, archive = saved(app, "button:has-text('hepdata.zip')")
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        assert "submission.yaml" in files.namelist() and "upper_limits.yaml" in files.namelist()
        table = files.read("upper_limits.yaml").decode()
        named = re.findall(r'data_file: "(.*)"', files.read("submission.yaml").decode())
        assert sorted(named) == sorted(set(files.namelist()) - {"submission.yaml"})
    assert float(re.search(r'name: "Observed limit"\s+values:\s+- value: (\S+)', table)[1]) == pytest.approx(expected["observed"], rel=1e-6)


def test_what_is_saved_is_of_the_free_fit_while_the_slider_stays(open_app, nextstat):
    app = open_app()
    app.open(SHAPES)
    app.page.check(".stays input")
    app.slide(2.5)
    app.rise()
    app.view("export")
    _, text = saved(app, "button:has-text('report.json')")
    found, expected = json.loads(text), nextstat("report", SHAPES)
    assert found["fit"]["poi"]["bestfit"] == pytest.approx(expected["fit"]["poi"]["bestfit"], rel=1e-6)
    assert set(found) == set(expected) and set(found["fit"]) == set(expected["fit"])
    free = [channel["postfit"]["total"]["yields"][0] for channel in expected["yields"]["channels"]]
    _, archive = saved(app, "button:has-text('hepdata.zip')")
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        tables = [files.read(name).decode() for name in files.namelist() if name.startswith("yields_in_")]
    written = [float(re.search(r'name: "Total post-fit"\s+values:\s+- value: (\S+)', table)[1]) for table in tables]
    assert written == pytest.approx(free, rel=1e-5)


def test_a_document_that_cannot_be_computed_says_why(open_app):
    app = open_app()
    app.open(SHAPES)
    for box in app.page.locator(".row-label input").all():
        box.uncheck()
    app.view("export")
    app.page.click("button:has-text('fit.json')")
    app.page.wait_for_selector("section[aria-labelledby=documents-title] .failure")


def test_the_tables_are_yaml(open_app):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (pip install -r web/tests/requirements.txt)")
    app = open_app()
    app.open(SHAPES)
    app.view("export")
    app.page.locator("button", has_text="limit.json").wait_for()
    _, archive = saved(app, "button:has-text('hepdata.zip')")
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        head, *tables = yaml.safe_load_all(files.read("submission.yaml"))
        assert head["comment"].startswith("Made with nextstat")
        for table in tables:
            contents = yaml.safe_load(files.read(table["data_file"]))
            length = {len(column["values"]) for part in contents.values() for column in part}
            assert len(length) == 1
            assert all(isinstance(row["value"], int | float) for column in contents["dependent_variables"] for row in column["values"] if row["value"] != "-")


def test_the_command_and_the_python_lines_are_copied(open_app):
    app = open_app()
    app.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    app.open(SHAPES)
    app.page.locator(".row-label", has_text="control_region").locator("input").uncheck()
    app.settle()
    app.view("export")
    app.page.select_option("section[aria-labelledby=reproduce-title] select", label="Limit")
    app.page.wait_for_selector("pre:has-text('nextstat limit')")
    app.page.click("[aria-label='Copy command line']")
    command = app.page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("nextstat limit shapes.json") and "--mask" in command and "control_region" in command
    app.page.click("[aria-label='Copy python']")
    assert "upper_limit" in app.page.evaluate("navigator.clipboard.readText()")


def test_the_scan_and_the_toys_that_are_shown_are_reproduced(open_app):
    app = open_app()
    app.open(SHAPES)
    app.view("scan")
    app.page.locator("label:has-text('Parameter') select").select_option(label="norm_ttbar")
    app.page.wait_for_selector("section h3:has-text('norm_ttbar')")
    app.view("toys")
    app.page.get_by_label("Toys of each hypothesis").fill("20")
    app.page.get_by_label("Seed").fill("7")
    app.page.click("text=Throw toys")
    app.page.wait_for_selector("section table")
    app.view("export")
    chooser = "section[aria-labelledby=reproduce-title] select"
    app.page.select_option(chooser, label="Scan")
    app.page.wait_for_selector("pre:has-text('--parameter=norm_ttbar')")
    app.page.select_option(chooser, label="Test by toys")
    app.page.wait_for_selector("pre:has-text('--n-toys=20 --seed=7')")


def test_the_element_shows_a_model_in_another_page_and_has_its_height(open_app, site, tmp_path):
    address, _ = site
    (tmp_path / "page.html").write_text(
        f'<!DOCTYPE html><title>A record</title><script src="{address}/embed.js"></script>'
        f'<nextstat-view src="{address}/examples/shapes.json" view="pulls"></nextstat-view>',
        encoding="utf-8",
    )
    with served(tmp_path) as (other, _):
        app = open_app(place=f"{other}/page.html", others=(other,))
        inside = app.page.frame_locator("nextstat-view iframe")
        inside.locator(".strip .result").wait_for()
        inside.locator("#parameters .chart svg").wait_for()
        assert not inside.locator(".sidebar").is_visible()
        height = lambda: app.page.locator("nextstat-view").bounding_box()["height"]
        eventually(lambda: height() == pytest.approx(inside.locator("html").bounding_box()["height"], abs=2))
        before = height()
        inside.locator("#tab-toys").click()
        eventually(lambda: height() < before)


def test_the_app_works_without_a_network(open_app, site):
    app = open_app()
    app.page.evaluate("navigator.serviceWorker.ready.then(ready => ready.active.state)")
    eventually(lambda: app.page.evaluate("navigator.serviceWorker.controller !== null"))
    # What the browser keeps by itself is not for ever.
    app.page.context.new_cdp_session(app.page).send("Network.clearBrowserCache")
    app.page.context.set_offline(True)
    app.page.reload()
    app.page.wait_for_selector(".start")
    asked = len(site[1])
    app.page.click("text=Shapes")
    app.page.wait_for_selector(".strip .result")
    app.settle()
    assert app.page.locator(".failure").count() == 0
    assert len(site[1]) == asked


def test_a_server_that_redirects_the_index_serves_every_visit(open_app, site):
    with served(DIST, hides_index=True) as (address, _):
        app = open_app(others=(address,))
        app.page.goto(f"{address}/")
        app.page.evaluate("navigator.serviceWorker.ready.then(ready => ready.active.state)")
        eventually(lambda: app.page.evaluate("navigator.serviceWorker.controller !== null"))
        for place in ("/", "/index.html"):
            app.page.goto(f"{address}{place}")
            app.page.wait_for_selector(".start")


def test_the_manifest_and_its_icons_are_there(site, open_app):
    app = open_app()
    found = app.page.evaluate("""async () => {
        const manifest = await (await fetch('manifest.webmanifest')).json();
        const icons = await Promise.all(manifest.icons.map(async icon => (await fetch(icon.src)).status));
        return [manifest.display, manifest.start_url, icons];
    }""")
    assert found == ["standalone", "./index.html", [200, 200]]
