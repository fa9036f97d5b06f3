"""The app by keyboard and assistive technology, on small and large screens, light and dark."""

import pytest
import workspaces
from app_pages import EXAMPLES, WEB
from test_size_and_access import AXE, run_axe

SHAPES = EXAMPLES / "shapes.json"
VIEWS = ("overview", "regions", "pulls", "correlations", "ranking", "scan", "limit", "patches", "toys", "model", "export")

pytestmark = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci in web/)")


def unfold(page):
    """Opens what is shown on demand, two levels deep."""
    for _ in range(2):
        page.evaluate("[...document.querySelectorAll('details:not([open]) > summary')].slice(0, 8).forEach(one => one.click())")
        page.wait_for_timeout(150)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious_in_any_view(open_app, scheme, width):
    app = open_app(scheme=scheme, width=width)
    assert run_axe(app.page) == []
    app.open(EXAMPLES / "background.json", EXAMPLES / "plane.json")
    for view in VIEWS:
        app.view(view)
        app.page.wait_for_timeout(400)
        unfold(app.page)
        assert (view, run_axe(app.page)) == (view, [])
        assert app.page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_headings_are_in_order(open_app):
    app = open_app()
    app.open(SHAPES)
    for view in VIEWS[:7]:
        app.view(view)
        levels = app.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
        assert levels.count(1) == 1


def test_views_are_reached_by_arrow_keys(open_app):
    app = open_app()
    app.open(SHAPES)
    app.page.focus("#tab-overview")
    app.page.keyboard.press("ArrowRight")
    app.page.wait_for_selector("#tab-regions[aria-selected=true]")
    assert app.page.evaluate("document.activeElement.id") == "tab-regions"
    app.page.keyboard.press("ArrowLeft")
    app.page.keyboard.press("ArrowLeft")
    app.page.wait_for_selector("#tab-export[aria-selected=true]")


def test_every_control_is_reached_by_the_keyboard(open_app):
    app = open_app()
    app.open(SHAPES)
    reached = set()
    for _ in range(140):
        app.page.keyboard.press("Tab")
        name = "(one => one.getAttribute('aria-label') || one.id || one.className || one.textContent.slice(0, 20))(document.activeElement)"
        reached.add(app.page.evaluate(name))
    assert {"poi", "Filter of parameters", "Channels of the fit", "Parameters of the fit", "pick", "tab-overview", "Theme"} <= reached
    assert any(name.startswith("Fix ") for name in reached)


def test_six_hundred_parameters_are_shown(open_app):
    app = open_app()
    app.open(("large.json", workspaces.workspace(n_systematics=599, n_channels=10, n_bins=10)))
    assert app.page.locator("#parameters-title small").inner_text() == "600"
    assert app.page.locator(".parameter").count() < 60
    app.page.locator(".parameters .virtual").evaluate("one => { one.scrollTop = one.scrollHeight; }")
    app.page.wait_for_selector(".parameters li[aria-posinset='600'][aria-setsize='600'] .parameter")
    app.page.fill(".parameters input[type=search]", "syst_59?")
    app.page.wait_for_selector("text=9 of 600")
    app.view("correlations")
    app.page.locator("#correlations input[type=range]").fill("0")
    app.page.wait_for_selector(".matrix")


def test_the_page_leads_to_the_licences_of_its_libraries(open_app):
    app = open_app()
    with app.page.expect_popup() as popup:
        app.page.click("footer >> text=Licences")
    text = popup.value.locator("body").inner_text()
    assert "serde" in text and "MIT" in text


def test_the_bundle_names_its_libraries_and_their_licences(site):
    head = (WEB / "dist" / "app.js").read_text(encoding="utf-8").split("*/")[0]
    for name in ("preact", "fflate", "@observablehq/plot"):
        assert name in head
