"""The page of a report in a browser: what it shows, and what its controls do."""

import json
import re

import compose
import documents
import pytest
from conftest import eventually, unfold_all

SECTIONS = ["result", "provenance", "model", "parameters", "ranking", "correlations", "yields", "regions", "goodness", "scans", "limits", "minima"]
FILTER = "input[type=search]"


def show(page, section):
    """Scrolls to a section, so that its drawings are made."""
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.evaluate("id => document.getElementById(id).scrollIntoView()", section)


def labels(page, section):
    """The names at the left of the first drawing of a section."""
    return page.locator(f"#{section} .chart svg").first.locator("[data-mark='y-axis tick label'] text").all_text_contents()


def unfold(page, section, summary):
    page.locator(f"#{section} summary", has_text=summary).first.click()
    page.locator(f"#{section} details[open] tbody tr").first.wait_for()


def column(page, section, label, number):
    return page.locator(f"#{section} [aria-label='{label}'] tbody tr td:nth-child({number})").all_text_contents()


def assert_no_sideways_scroll(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_every_section_shows_its_part(open_page):
    page = open_page(documents.everything())
    assert [section.get_attribute("id") for section in page.locator("main section").all()] == SECTIONS
    assert page.locator(".absent").count() == 0
    for section in ("parameters", "ranking", "regions", "scans", "limits"):
        show(page, section)
        page.wait_for_selector(f"#{section} .chart svg")
    assert page.locator("#correlations .cells").count() == 1
    assert page.locator("#goodness tbody tr").count() == 3
    assert page.locator("#minima tbody tr").count() == 2


def test_the_verdict_and_its_warnings_are_in_the_first_screen(open_page):
    page = open_page(documents.everything())
    for selector in ("#result .verdict", "#result .measured", "#result .warnings li"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] < 900
    assert page.locator("#result .verdict").inner_text() == "The fit converged."
    assert page.locator("#result .warnings").inner_text() == "mu is close to a bound"


def test_absent_parts_say_why_in_a_line(open_page):
    given = {"report": documents.report(), "absent": {"limits": "the model has no parameter of interest"}}
    page = open_page(given)
    assert page.locator("#limits .absent").inner_text() == "Not in this report: the model has no parameter of interest."
    for section in ("model", "ranking", "correlations", "scans", "minima"):
        assert page.locator(f"#{section} .absent, #{section} .matrix").count() >= 1


def test_the_provenance_is_complete_and_its_command_is_quoted_for_a_shell(open_page):
    page = open_page(documents.everything())
    text = page.locator("#provenance").inner_text()
    assert "nextstat report 'a file.json'" in text
    for word in ("digest", "0" * 64, "seed", "device", "cpu", "settings", "observed", "nextstat_version"):
        assert word in text


def test_asimov_data_do_not_pass_for_observed_ones(open_page):
    given = documents.everything()
    given["report"]["provenance"]["data"] = {"source": "asimov", "parameters": {"mu": 1.0}}
    page = open_page(given)
    assert "Asimov data, not observed ones: mu = 1" in page.locator("#result .notice").inner_text()


def test_a_filter_is_common_to_pulls_ranking_and_correlations(open_page):
    page = open_page(documents.everything(), fragment="#parameters?rho=0")
    page.fill(FILTER, "JES_*")
    assert page.locator(".filter output").inner_text() == "4 of 23"
    for section in ("parameters", "ranking"):
        show(page, section)
        page.wait_for_selector(f"#{section} .chart svg")
        eventually(lambda section=section: sorted(labels(page, section)) == ["JES_0", "JES_10", "JES_15", "JES_5"])
    # The parameter of interest is always among the correlations.
    assert "5 of 23 parameters" in page.locator("#correlations .local").inner_text()
    eventually(lambda: "filter=JES_*" in page.evaluate("location.hash"))
    page.fill(FILTER, "")
    assert page.locator(".filter output").inner_text() == "23 of 23"


def test_a_filter_that_matches_nothing_says_so(open_page):
    page = open_page(documents.everything())
    page.fill(FILTER, "nothing_*")
    assert page.locator("#parameters figure .note").first.inner_text() == "No parameter matches the filter."
    assert page.locator("#ranking figure .note").first.inner_text() == "No parameter matches the filter."


def test_columns_sort_both_ways_and_back(open_page):
    page = open_page(documents.everything())
    unfold(page, "parameters", "Table of")
    given = column(page, "parameters", "Constrained parameters", 3)
    head = page.locator("#parameters [aria-label='Constrained parameters'] th", has_text="Pull")
    values = lambda: [float(text.replace("−", "-")) for text in column(page, "parameters", "Constrained parameters", 3)]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending" and values() == sorted(values(), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and values() == sorted(values())
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "none" and column(page, "parameters", "Constrained parameters", 3) == given


def test_all_digits_are_in_the_tooltip_of_a_cell(open_page):
    given = documents.everything()
    page = open_page(given)
    unfold(page, "parameters", "Table of")
    cell = page.locator("#parameters [aria-label='Constrained parameters'] tbody tr td:nth-child(3)").first
    assert float(cell.get_attribute("title")) == given["report"]["pulls"][0]["pull"]


def test_pulls_are_the_largest_first_and_their_order_can_be_changed(open_page):
    given = documents.everything()
    page = open_page(given)
    show(page, "parameters")
    page.wait_for_selector("#parameters .chart svg")
    by_pull = sorted(given["report"]["pulls"], key=lambda row: -abs(row["pull"]))
    eventually(lambda: labels(page, "parameters") == [row["parameter"] for row in by_pull])
    page.select_option("#parameters select >> nth=0", "model")
    eventually(lambda: labels(page, "parameters") == [row["parameter"] for row in given["report"]["pulls"]])
    page.select_option("#parameters select >> nth=1", "10")
    eventually(lambda: len(labels(page, "parameters")) == 10)


def test_the_threshold_selects_parameters_and_keeps_the_parameter_of_interest(open_page):
    page = open_page(documents.everything())
    slider = page.locator("#correlations input[type=range]")
    slider.fill("0")
    assert "23 of 23 parameters" in page.locator("#correlations .local").inner_text()
    slider.fill("0.9")
    assert "1 of 23 parameters" in page.locator("#correlations .local").inner_text()
    assert page.locator("#correlations .cells text").first.text_content() == "mu"


def test_a_pointer_on_the_correlations_reads_both_names(open_page):
    given = documents.everything(n_constrained=60)
    page = open_page(given, fragment="#correlations?rho=0")
    show(page, "correlations")
    canvas = page.locator("#correlations canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": 2, "y": box["height"] - 2})
    value = given["report"]["fit"]["correlation"][62][0]
    text = page.locator("#correlations .readout").inner_text().replace("−", "-")
    assert text == f"{given['report']['fit']['par_names'][62]} and mu: {value:.3f}"


def test_switches_redraw_every_region(open_page):
    page = open_page(documents.everything())
    show(page, "regions")
    svg = page.locator("#regions .chart svg").nth(2)
    svg.wait_for()
    drawings = [svg.inner_html()]
    for change in (lambda: page.locator(".controls button", has_text="Pre-fit").click(), lambda: page.locator("#regions .check input").check()):
        change()
        eventually(lambda: svg.inner_html() not in drawings)
        drawings.append(svg.inner_html())
    assert page.locator(".controls button", has_text="Pre-fit").get_attribute("aria-pressed") == "true"
    eventually(lambda: page.evaluate("location.hash").endswith("?phase=prefit&log=1"))


def test_the_address_restores_the_view(open_page):
    page = open_page(documents.everything(), fragment="#regions?phase=prefit&log=1&filter=JER_*&theme=dark&rho=0.05")
    assert page.locator(".controls button", has_text="Pre-fit").get_attribute("aria-pressed") == "true"
    assert page.locator(".controls .check input").is_checked()
    assert page.input_value(FILTER) == "JER_*"
    eventually(lambda: page.evaluate("document.documentElement.dataset.theme") == "dark")
    assert page.locator("#correlations .slider output").inner_text() == "0.05"
    eventually(lambda: page.locator("#regions").bounding_box()["y"] < 200)
    page.evaluate("location.hash = '#yields?filter=BTAG_*'")
    eventually(lambda: page.input_value(FILTER) == "BTAG_*")


def fills(page, region):
    """The colours of the samples that are stacked in a region, as the browser writes them."""
    drawing = page.locator("#regions figure.region").nth(region).locator("svg").first
    rectangles = drawing.locator("[data-mark=rect] rect[fill^='#']")
    return set(rectangles.evaluate_all("all => all.map(one => getComputedStyle(one).fill)"))


def test_a_sample_has_one_colour_in_all_regions_before_and_after_the_fit(open_page):
    given = documents.everything()
    channels = given["report"]["yields"]["channels"]
    # The first region lacks the first sample.
    for phase in documents.PHASES:
        del channels[1][phase]["samples"][0]
    page = open_page(given)
    colours = page.locator("#regions .legend .key").evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    legend = dict(zip(page.locator("#regions .legend li").all_text_contents(), colours, strict=True))
    assert len({legend[sample] for sample in ("signal", "ttbar", "wjets")}) == 3
    for phase in ("Post-fit", "Pre-fit"):
        page.locator(".controls button", has_text=phase).click()
        for region, samples in ((1, ["signal", "ttbar", "wjets"]), (2, ["ttbar", "wjets"])):
            page.locator("#regions figure.region").nth(region).scroll_into_view_if_needed()
            wanted = {legend[sample] for sample in samples}
            eventually(lambda region=region, wanted=wanted: fills(page, region) == wanted)


def test_hidden_data_are_neither_drawn_nor_in_the_file(open_page):
    given = documents.everything(hidden={0: [1, 2]})
    full = documents.everything()["report"]["yields"]["channels"][0]["data"]
    html = compose.page(compose.report_data(**given))
    stored = json.loads(re.search(r'id="report-data">(.*?)</script>', html, re.S)[1])
    assert stored["report"]["yields"]["channels"][0]["data"] == [full[0], None, None, full[3]]
    page = open_page(html=html)
    assert "Hidden data: region_0 (bins 1, 2)" in page.locator("#result").inner_text()
    show(page, "regions")
    region = page.locator("#regions figure.region").nth(1)
    region.locator("svg").first.wait_for()
    assert region.locator("figcaption").inner_text() == "Data hidden: bins 1–2."
    assert region.locator("svg").first.locator("[data-mark=dot] circle").count() == 2
    assert page.locator("#yields tbody tr").first.inner_text().split()[1] == "hidden"
    # The sum of a region with hidden bins would tell about them.
    summary = page.locator("#regions figure.region").first
    assert summary.locator("svg").first.locator("[data-mark=dot] circle").count() == 2
    unfold_all(page)
    assert summary.locator("tbody tr").first.locator("td").nth(1).inner_text() == "hidden"
    assert region.locator("tbody tr td:nth-child(2)").all_text_contents() == [f"{full[0]:.0f}", "hidden", "hidden", f"{full[3]:.0f}"]


def test_a_fit_that_did_not_converge_gives_no_values(open_page):
    page = open_page({"report": documents.report(converged=False)})
    assert page.locator("#result .verdict").inner_text() == "The fit did not converge: it stopped without progress. Its numbers are not results."
    assert page.locator("#result .measured").count() == 0
    assert page.locator("#parameters .chart").count() == 0
    assert "Post-fit" not in page.locator("#yields").inner_text()
    assert page.locator(".controls button", has_text="Post-fit").is_disabled()


def test_a_model_without_parameter_of_interest_has_a_page(open_page):
    given = {"report": documents.report()}
    given["report"]["fit"] |= {"poi": None, "pois": []}
    page = open_page(given)
    assert "no parameter of interest" in page.locator("#result").inner_text()
    page.locator("#correlations input[type=range]").fill("1")
    assert page.locator("#correlations .note").inner_text() == "No correlation is as large."


def test_crossings_and_limits_are_written_beside_their_figures(open_page):
    page = open_page(documents.everything())
    text = page.locator("#scans").inner_text()
    assert "68.27 % CL: 1.00 −0.50 +0.50" in text and "1 of 21 points did not converge" in text
    assert page.locator("#limits table").first.locator("td").all_text_contents() == ["2.1", "0.8", "1.1", "1.6", "2.3", "3.2"]
    show(page, "scans")
    page.wait_for_selector("#scans .chart svg")
    assert page.locator("#scans svg [data-mark=dot]").nth(1).locator("circle").count() == 4


def test_minima_name_what_differs(open_page):
    page = open_page(documents.everything())
    rows = page.locator("#minima tbody tr")
    assert rows.nth(0).locator("td").last.inner_text() == "–"
    assert rows.nth(1).locator("td").first.inner_text() == "2.4"
    assert rows.nth(1).locator("td").last.inner_text().count("=") == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(open_page, scheme, width):
    page = open_page(documents.everything(), width=width, scheme=scheme)
    for section in SECTIONS:
        show(page, section)
        page.wait_for_timeout(30)
    unfold_all(page)
    assert_no_sideways_scroll(page)


def luminance(page, expression):
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate(expression))[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


BACKGROUND, INK = ("getComputedStyle(document.body).backgroundColor", "getComputedStyle(document.body).color")


def test_the_theme_follows_the_system_and_the_switch(open_page):
    page = open_page(documents.everything(), scheme="dark")
    assert luminance(page, BACKGROUND) < 40 and luminance(page, INK) > 200
    page.select_option(".theme select", "light")
    eventually(lambda: luminance(page, BACKGROUND) > 240 and luminance(page, INK) < 40)
    page.select_option(".theme select", "auto")
    eventually(lambda: luminance(page, BACKGROUND) < 40)
    page.emulate_media(color_scheme="light")
    eventually(lambda: luminance(page, BACKGROUND) > 240)


def ticks(page, figure):
    """The numbers below the first drawing of a figure."""
    texts = page.locator(f"{figure} .chart svg").first.locator("[data-mark='x-axis tick label'] text").all_text_contents()
    return [float(text.replace("−", "-")) for text in texts]


def drag(page, figure, begin, end):
    """Drags over a figure, between shares of its width."""
    box = page.locator(f"{figure} .chart").first.bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + begin * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], height, steps=4)
    page.mouse.up()


def test_a_range_of_a_scan_is_zoomed_by_dragging_over_it(open_page):
    page = open_page(documents.everything())
    show(page, "scans")
    page.wait_for_selector("#scans .chart svg")
    whole = ticks(page, "#scans")
    drag(page, "#scans", 0.5, 0.7)
    eventually(lambda: ticks(page, "#scans") != whole)
    zoomed = ticks(page, "#scans")
    # The scan is from -1 to 3, in nine tenths of the width.
    assert min(zoomed) > 0.6 and max(zoomed) < 2.2, zoomed
    page.locator("#scans .chart").first.dblclick()
    eventually(lambda: ticks(page, "#scans") == whole)


def test_buttons_zoom_without_a_mouse(open_page):
    page = open_page(documents.everything())
    show(page, "limits")
    page.wait_for_selector("#limits .zoom .chart svg")
    figure = "#limits .zoom"
    whole = ticks(page, figure)
    zoom_in = page.locator(f"{figure} button[aria-label='Zoom in']")
    zoom_in.focus()
    page.keyboard.press("Enter")
    eventually(lambda: max(ticks(page, figure)) < max(whole) and min(ticks(page, figure)) > min(whole))
    middle = ticks(page, figure)
    page.locator(f"{figure} button[aria-label='Move right']").click()
    eventually(lambda: max(ticks(page, figure)) > max(middle))
    page.locator(f"{figure} button", has_text="Reset").click()
    eventually(lambda: ticks(page, figure) == whole)


def test_a_region_is_zoomed_to_whole_bins(open_page):
    page = open_page({"report": documents.report(n_channels=1, n_bins=40)})
    show(page, "regions")
    page.wait_for_selector("#regions .region .chart svg")
    drag(page, "#regions .region", 0.5, 0.6)
    eventually(lambda: page.locator("#regions .region .chart svg").first.locator("[data-mark='rect'] rect").count() < 60)
    bins = page.locator("#regions .region .chart svg").nth(1).locator("[data-mark='x-axis tick label'] text").all_text_contents()
    assert bins == [str(bin) for bin in range(int(bins[0]), int(bins[0]) + len(bins))] and 3 <= len(bins) <= 7, bins


def test_print_has_everything_on_white_without_controls(open_page):
    page = open_page(documents.everything(n_constrained=80), scheme="dark", fragment="#?theme=dark")
    page.emulate_media(media="print")
    page.wait_for_selector(".chart:empty", state="detached")
    eventually(lambda: luminance(page, BACKGROUND) == pytest.approx(255) and luminance(page, INK) < 40)
    for selector in (".controls", "nav", ".local", ".all"):
        assert not page.locator(selector).first.is_visible()
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("#parameters [aria-label='Constrained parameters'] tbody tr").count() == 80
    page.emulate_media(media="screen")
    page.wait_for_selector("details[open]", state="detached")


def test_everything_is_there_when_the_event_before_a_print_returns(open_page):
    page = open_page(documents.everything(n_constrained=80))
    rows = "document.querySelectorAll(\"[aria-label='Constrained parameters'] tbody tr\").length"
    assert page.evaluate(f"(dispatchEvent(new Event('beforeprint')), {rows})") == 80
    assert page.locator(".chart:empty").count() == 0


def test_a_page_is_printed_with_every_row(open_page, tmp_path):
    page = open_page(documents.everything(n_constrained=80))
    page.pdf(path=tmp_path / "short.pdf")
    page.close()
    page = open_page(documents.everything(n_constrained=400))
    page.pdf(path=tmp_path / "long.pdf")
    n_pages = [len(re.findall(rb"/Type */Page\b", (tmp_path / name).read_bytes())) for name in ("short.pdf", "long.pdf")]
    assert n_pages[1] >= n_pages[0] + 5


def test_curves_of_the_limit_leave_the_frame_where_they_are_below_it(open_page):
    given = documents.limit()
    given["tested"] = [{"mu": mu, "CLs_obs": cls, "CLs_exp": [cls] * 5} for mu, cls in ((0.0, 1.0), (1.0, 0.1), (2.0, 1e-5), (3.0, 1e-9))]
    page = open_page({"report": documents.report(), "limits": [given]})
    show(page, "limits")
    page.wait_for_selector("#limits .zoom svg [data-mark=line] path")
    drawn = page.locator("#limits .zoom svg").first
    heights = [float(y) for y in re.findall(r",(-?[0-9.]+)", drawn.locator("[data-mark=line] path").first.get_attribute("d"))]
    frame = float(drawn.get_attribute("height"))
    assert heights[-1] > heights[-2] > frame
