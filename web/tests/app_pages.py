"""Opens the app in a browser, and does in it what a reader does."""

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

from waiting import eventually

WEB = Path(__file__).resolve().parents[1]
DIST = WEB / "dist"
EXAMPLES = WEB.parent / "examples"
# What a browser itself says of a request that was refused, which the page explains.
BROWSERS_WORDS = ("Failed to load resource", "has been blocked by CORS policy")


@dataclass
class AppPage:
    """A page of the app with what it said and asked for."""

    page: object
    site: str
    messages: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    def listen(self):
        """Notes messages and requests from here on."""
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def complaints(self):
        """What the page said, without what the browser says by itself."""
        return [text for text in self.messages if not any(words in text for words in BROWSERS_WORDS)]

    def drop(self, *files):
        """Drops files on the page: paths, or pairs of a name and contents."""
        given = [self.contents(one) for one in files]
        transfer = self.page.evaluate_handle(
            """files => {
                const transfer = new DataTransfer();
                for (const [name, text] of files) transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
                return transfer;
            }""",
            given,
        )
        for event in ("dragenter", "dragover", "drop"):
            self.page.dispatch_event(".drop", event, {"dataTransfer": transfer})

    @staticmethod
    def contents(one):
        """A name, and contents as base64."""
        name, data = (one.name, one.read_bytes()) if isinstance(one, Path) else one
        if not isinstance(data, bytes | str):
            data = json.dumps(data)
        data = data.encode() if isinstance(data, str) else data
        return [name, base64.b64encode(data).decode()]

    def open(self, *files):
        """Drops files and waits until their model is open and fitted."""
        self.drop(*files)
        self.page.wait_for_selector(".strip .result")
        self.settle()

    def settle(self):
        """Waits until nothing is fitted, and no result that comes by itself is missing."""
        self.page.wait_for_selector(".strip[aria-busy=false]")
        eventually(lambda: self.page.evaluate("!document.querySelector('.busy') && !document.querySelector('.stale')"))

    def view(self, name):
        """Goes to a view."""
        self.page.click(f"#tab-{name}")
        self.page.wait_for_selector(f"#tab-{name}[aria-selected=true]")

    def result(self):
        """The fitted value with its uncertainty, as it is written."""
        return self.page.locator(".result strong").inner_text()

    def value(self):
        """The fitted value with all digits."""
        return float(self.page.locator(".result strong").get_attribute("title").split(" ")[0].replace("−", "-"))

    def slide(self, value):
        """Moves the slider to a value without letting it go."""
        self.page.locator("input.poi").evaluate("(one, value) => { one.value = value; one.dispatchEvent(new Event('input', { bubbles: true })); }", str(value))

    def rise(self):
        """−2 Δ ln L that the slider reads, once it is there."""
        self.page.wait_for_selector("text=/ln L = [0-9]/")
        return float(self.page.locator(".slider-text b").last.inner_text())

    def pulls(self):
        """Names and pulls of the table in the view of pulls."""
        self.view("pulls")
        table = self.page.locator("#parameters [aria-label='Constrained parameters']")
        if table.count() == 0:
            self.page.locator("#parameters summary", has_text="Table of").click()
        rows = table.locator("tbody tr")
        rows.first.wait_for()
        return {row.locator("td").nth(0).inner_text(): float(row.locator("td").nth(2).inner_text().replace("−", "-")) for row in rows.all()}
