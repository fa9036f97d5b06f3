"""What the tests of the page share: a browser, and pages that watch what they do.

Where there is no Chromium or no playwright, the tests are skipped and say so. Nothing is
downloaded: the browser is that of the system (Debian: chromium), or the one that CHROMIUM names.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(WEB), str(WEB / "tests")]

import app_pages  # noqa: E402
import compose  # noqa: E402
from site_server import served  # noqa: E402
from waiting import eventually  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


def unfold_all(page):
    """Opens everything that is shown on demand, and waits for it."""
    page.evaluate("document.querySelectorAll('details:not([open]) > summary').forEach(one => one.click())")
    eventually(lambda: page.locator("details:not(:has(table))").count() == 0)


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install -r web/tests/requirements.txt)")
    if not CHROMIUM:
        pytest.skip("there is no Chromium (Debian: chromium)")
    with api.sync_playwright() as playwright:
        # In a container, Chromium's own sandbox has nothing to build on.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Watch:
    """What a page said and asked for."""

    messages: list = field(default_factory=list)
    requests: list = field(default_factory=list)


@pytest.fixture
def open_page(browser, tmp_path):
    """A function that composes a page from documents and opens it.

    Every page must be silent and ask for nothing.
    """
    opened = []

    def open_it(documents=None, *, html=None, fragment="", width=1280, scheme="light"):
        path = tmp_path / f"page-{len(opened)}.html"
        path.write_text(html or compose.page(compose.report_data(**documents)), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        watch = Watch()
        page.on("console", lambda message: watch.messages.append(message.text))
        page.on("pageerror", lambda error: watch.messages.append(str(error)))
        page.on("request", lambda request: watch.requests.append(request.url))
        opened.append((page, watch, path))
        page.goto(f"{path.as_uri()}{fragment}")
        page.wait_for_selector("main section")
        return page

    yield open_it
    for page, watch, path in opened:
        page.close()
        assert watch.messages == []
        assert [url for url in watch.requests if not url.startswith((path.as_uri(), "data:"))] == []


@pytest.fixture(scope="session")
def site():
    """The address of the app that was built into web/dist, and the list of what is asked for."""
    if not (app_pages.DIST / "app.js").is_file():
        pytest.skip("the app is not built (make web)")
    with served(app_pages.DIST) as (address, asked):
        yield address, asked


@pytest.fixture
def open_app(browser, site):
    """A function that opens the app.

    Every page must be silent, and ask no one but its own server and those that a test names.
    """
    opened = []
    address, _ = site

    def open_it(*, fragment="", width=1280, scheme="light", others=(), place=None):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
        app = app_pages.AppPage(context.new_page(), address)
        app.listen()
        opened.append((context, app, (address, "data:", "blob:", *others)))
        app.page.goto(place or f"{address}/index.html{fragment}")
        app.page.wait_for_selector("nextstat-view, .masthead")
        return app

    yield open_it
    for context, app, allowed in opened:
        context.close()
        assert app.complaints() == []
        assert [url for url in app.requests if not url.startswith(allowed)] == []


@pytest.fixture(scope="session")
def nextstat(tmp_path_factory):
    """A function that returns the document of a verb of the command, which NEXTSTAT names."""
    command = os.environ.get("NEXTSTAT") or shutil.which("nextstat")
    if not command or not Path(command).is_file():
        pytest.skip("there is no nextstat command (NEXTSTAT names one)")
    folder = tmp_path_factory.mktemp("documents")

    def run(*arguments):
        path = folder / "document.json"
        subprocess.run([command, *map(str, arguments), "--quiet", "--output-file", path], check=False, capture_output=True)
        return json.loads(path.read_text(encoding="utf-8"))

    return run
