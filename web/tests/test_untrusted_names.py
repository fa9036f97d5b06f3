"""Names of any text: shown as text, never run, and never in the way of the page."""

import compose
import documents
from conftest import unfold_all

HOSTILE = [
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "</script><script>window.ran = 1</script>",
    "<!-- <script>",
    "right\u202eleft",
    "n" * 300,
    "wide " * 60,
    "__proto__",
    "constructor",
    "toString",
    "",
    "line\nfeed\u0007",
    "{{script}} {{data}}",
    "$& $1 \\u003cb\\u003e",
    "`code`",
    "信号 إشارة 👍",
]


def hostile_documents():
    """Every name is hostile: of parameters, channels, samples, findings, the measurement."""
    given = documents.everything(par_names=["mu", *HOSTILE, "plain"], samples=HOSTILE[:12], n_channels=len(HOSTILE), n_bins=2)
    for channel, name in zip(given["report"]["yields"]["channels"], HOSTILE, strict=True):
        channel["channel"] = name
    goodness = [{"channel": name, "n_bins": 1, "deviance": 1.0, "n_dof": 1.0, "p_value": 0.3} for name in HOSTILE]
    given["report"]["goodness_of_fit"]["channels"] = given["gof"]["channels"] = goodness
    given["report"]["warnings"] = [f"`{name}` is at a bound" for name in HOSTILE]
    settings = {"fixed": dict.fromkeys(HOSTILE, 1.0), "blinded": dict.fromkeys(HOSTILE, "all")}
    given["report"]["provenance"] |= {"command": ["nextstat", *HOSTILE], "settings": settings}
    given["check"]["findings"] = [{"severity": "warning", "code": "x", "message": name, "channel": name, "sample": name, "modifier": name} for name in HOSTILE]
    given["inspect"] = documents.inspect(given["report"])
    given["scans"] = [documents.scan(name) for name in HOSTILE]
    given["limits"] = [documents.limit(name) for name in HOSTILE]
    for ranking in given["ranking"]:
        ranking["poi"]["name"] = HOSTILE[0]
    return given | {"title": HOSTILE[2], "absent": {"minima": HOSTILE[0]}}


def unfold_everything(page):
    page.evaluate("document.querySelectorAll('section').forEach(one => one.scrollIntoView())")
    page.emulate_media(media="print")
    page.wait_for_selector(".chart:empty", state="detached")
    page.emulate_media(media="screen")
    page.wait_for_selector("details[open]", state="detached")
    unfold_all(page)


def test_names_stay_text(open_page):
    page = open_page(hostile_documents())
    unfold_everything(page)
    assert page.evaluate("window.ran") is None
    assert page.locator("#report img, #report script").count() == 0
    for section in ("parameters", "regions", "goodness", "model"):
        text = page.locator(f"#{section}").text_content()
        for name in ("<script>window.ran = 1</script>", '"><img src=x onerror="window.ran = 1">', "__proto__", "{{script}} {{data}}", "$& $1 \\u003cb\\u003e"):
            assert name in text
    assert page.title() == HOSTILE[2]
    assert page.locator("h1").inner_text() == HOSTILE[2]


def test_invisible_characters_are_escaped_everywhere(open_page):
    page = open_page(hostile_documents())
    unfold_everything(page)
    labels = page.locator("[title], [aria-label]").evaluate_all("all => all.map(one => [one.title, one.getAttribute('aria-label')].join(' '))")
    text = page.locator("#report").text_content() + "".join(labels)
    assert "\u202e" not in text and "\u0007" not in text
    assert "right\\u{202e}left" in text and "line\\nfeed\\u{7}" in text


def test_every_parameter_has_its_own_row(open_page):
    page = open_page(hostile_documents())
    unfold_all(page)
    assert page.locator("#parameters [aria-label='Constrained parameters'] tbody tr").count() == len(HOSTILE) + 1 - 2
    page.evaluate("document.getElementById('parameters').scrollIntoView()")
    page.wait_for_selector("#parameters .chart svg")
    assert page.locator("#parameters .chart svg [data-mark='y-axis tick label'] text").count() == len(HOSTILE) + 1 - 2


def test_long_names_do_not_break_the_layout(open_page):
    for width in (390, 1280):
        page = open_page(hostile_documents(), width=width)
        unfold_everything(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_data_of_a_page_cannot_end_their_element():
    html = compose.page(compose.report_data(**hostile_documents()))
    data = html.split('id="report-data">')[1].split("</script>")[0]
    assert "<" not in data and ">" not in data and "&" not in data
    assert html.count("</script>") == 2
