"""The Python of the pages runs, and prints what the pages say."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _pages():
    pages = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "bindings/ns-py/README.md"]
    return [page for page in pages if any("import nextstat" in code for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == "python")]


def _matches(wanted, printed):
    """Whether `printed` is what the page says; a line `...` matches any lines."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(_matches(wanted[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and wanted[0].rstrip() == printed[0].rstrip() and _matches(wanted[1:], printed[1:])


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page, examples_folder):
    """Blocks of Python share their names; a block of text right after one is what it prints."""
    text = page.read_text("utf-8")
    if "import nextstat.plot" in text:
        pytest.importorskip("mplhep")
        pytest.importorskip("matplotlib").use("agg")
    names, printed, end = {"__name__": "__main__"}, "", 0
    with warnings.catch_warnings():
        for block in BLOCK.finditer(text):
            kind, code = block.groups()
            line = text.count("\n", 0, block.start()) + 1
            if kind == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile("\n" * line + code, str(page), "exec"), names)
                printed, end = out.getvalue(), block.end()
            elif not text[end : block.start()].strip():
                assert _matches(code.splitlines(), printed.splitlines()), f"{page}:{line} should say\n{printed}"


def test_the_first_figure_is_a_short_example():
    [code] = [code for kind, code in BLOCK.findall((ROOT / "README.md").read_text("utf-8")) if kind == "python" and "brazil" in code]
    assert len(code.splitlines()) < 15


def test_no_page_and_no_message_sends_to_the_package_index():
    """The name on PyPI is another project's."""
    folders = ("README.md", "docs/*.md", "bindings/ns-py/README.md", "bindings/ns-py/python/**/*.py", "crates/ns-cli/src/**/*.rs")
    paths = [path for pattern in folders for path in ROOT.glob(pattern)]
    assert len(paths) > 50
    for path in paths:
        found = re.findall(r"pip install '?nextstat\[", path.read_text("utf-8"))
        assert not found, path


def test_pages_are_found():
    assert {"python.md", "README.md"} <= {page.name for page in _pages()}
