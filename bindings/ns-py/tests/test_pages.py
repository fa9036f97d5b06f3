"""The Python of the pages runs, and prints what the pages say."""

import contextlib
import io
import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Blocks ```py need packages that tests may not have, and are run by the tests of those; the others
# run here. Of console blocks this test runs the commands, and those of the command compare output.
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _pages():
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "bindings/ns-py/README.md"]
    return [page for page in pages if any("import nextstat" in code for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == "python")]


def _matches(wanted, printed):
    """Whether `printed` is what the page says; a line `...` matches any lines."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(_matches(wanted[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and wanted[0].rstrip() == printed[0].rstrip() and _matches(wanted[1:], printed[1:])


@pytest.fixture
def command(examples_folder, search_path, monkeypatch):
    """A `nextstat` on the path: that of this package."""
    monkeypatch.setenv("PATH", search_path)
    return examples_folder


def _run_commands(block):
    for line in block.splitlines():
        if line.startswith("$ ") and os.name == "posix":
            subprocess.run(["sh", "-c", line[2:]], check=False, capture_output=True)


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page, command):
    """Blocks of Python share their names; a block of text right after one is what it prints."""
    text = page.read_text("utf-8")
    if "import nextstat.plot" in text:
        pytest.importorskip("mplhep")
        pytest.importorskip("matplotlib").use("agg")
    if "nextstat build" in text and "import uproot" in text:
        for package in ("hist", "uproot", "yaml"):
            pytest.importorskip(package)
    if "jax" in page.parts[-1]:
        pytest.importorskip("jax")
    names, printed, end = {"__name__": "__main__"}, "", 0
    with warnings.catch_warnings():
        for block in BLOCK.finditer(text):
            kind, code = block.groups()
            line = text.count("\n", 0, block.start()) + 1
            if kind == "console":
                _run_commands(code)
            elif kind == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile("\n" * line + code, str(page), "exec"), names)
                printed, end = out.getvalue(), block.end()
            elif not text[end : block.start()].strip():
                assert _matches(code.splitlines(), printed.splitlines()), f"{page}:{line} should say\n{printed}"


def test_the_first_figure_is_a_short_example():
    for page in ("README.md", "docs/how-to/figures.md"):
        codes = [code for kind, code in BLOCK.findall((ROOT / page).read_text("utf-8")) if kind == "python" and "brazil" in code]
        assert len(codes[0].splitlines()) < 15


def test_figures_on_the_pages_are_in_the_repository():
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).is_file(), f"{page} shows {target}"


def test_pages_and_messages_name_the_package_as_the_index_does():
    """On PyPI the package is `nextstat-rs`; `nextstat` is another project."""
    folders = ("README.md", "docs/**/*.md", "bindings/ns-py/README.md", "bindings/ns-py/python/**/*.py", "crates/ns-cli/src/**/*.rs")
    paths = [path for pattern in folders for path in ROOT.glob(pattern)]
    assert len(paths) > 50
    for path in paths:
        found = re.findall(r"pip install '?nextstat(?!-rs)\b", path.read_text("utf-8"))
        assert not found, path


def test_pages_are_found():
    assert {"index.md", "README.md", "histograms.md", "toys.md"} <= {page.name for page in _pages()}
    assert len(_pages()) > 15
