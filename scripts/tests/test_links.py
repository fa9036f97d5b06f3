"""Links from page to page lead to files and headings that exist; `make docs` checks the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("torchless/**/*.md"))]
LINK = re.compile(r"\]\(([^)\s:]+)\)")


def _text(page):
    """Returns the text of a page without its blocks of code."""
    return re.sub(r"^(```+|~~~+).*?^\1\s*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def _anchors(page):
    """Returns the anchors of a page's headings, as MkDocs makes them, and those written by hand."""
    found = set(re.findall(r'(?:\bid="|\{ ?#)([\w-]+)', _text(page)))
    for heading in re.findall(r"^#+ (.+?)(?: \{.*\})?$", _text(page), re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


def _links(page):
    """Returns the file and the anchor of every link of a page to another file."""
    for target in LINK.findall(_text(page)):
        path, _, anchor = target.partition("#")
        yield target, (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_what_exists(page):
    for target, file, anchor in _links(page):
        assert file.exists(), f"`{target}`: no such file"
        if anchor and file.suffix == ".md":
            assert anchor in _anchors(file), f"`{target}`: no such heading"


def test_links_are_found():
    assert sum(bool(anchor) for page in PAGES for _, _, anchor in _links(page)) > 20
