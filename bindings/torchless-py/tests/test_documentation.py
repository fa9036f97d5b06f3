"""The examples of the pages and of docstrings run and print what they say, and the stub is
right."""

import ast
import contextlib
import doctest
import io
import re
import shutil
from pathlib import Path

import pytest
import torchless
from conftest import ROOT
from torchless import _encoder, _histograms, _ragged, _torchless

PAGES = (ROOT / "torchless/docs/python.md", ROOT / "bindings/torchless-py/README.md")
EVENTS_TO_LIMIT = ROOT / "torchless/docs/histograms.md"
TAGGER = ROOT / "examples/tagger"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, examples_folder):
    """Its blocks run."""
    pytest.importorskip("awkward")
    run_page(page)


def test_page_from_events_to_a_limit(examples_folder, monkeypatch):
    """With the tagger of the examples; what the page quotes of its script is what is there."""
    pytest.importorskip("nextstat")
    for path in TAGGER.iterdir():
        if path.is_file():
            shutil.copy(path, examples_folder)
    monkeypatch.syspath_prepend(str(examples_folder))
    run_page(EVENTS_TO_LIMIT)
    quoted = re.findall(r"^```py\n(.*?)^```$", EVENTS_TO_LIMIT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert quoted and all(block in (TAGGER / "limit.py").read_text("utf-8") for block in quoted)


def run_page(page):
    """Blocks of Python share their names; a block of text right after one is what it prints."""
    names, printed, n_compared = {"__name__": "__main__"}, "", 0
    for kind, block in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, str(page), "exec"), names)
            printed = out.getvalue()
        else:
            assert printed == block
            n_compared += 1
    assert n_compared > 0


@pytest.mark.parametrize("module", [_encoder, _histograms, _ragged], ids=lambda module: module.__name__)
def test_docstrings(module, examples_folder):
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


def test_the_stub_names_what_the_module_has():
    stub = ast.parse(Path(torchless.__file__).with_name("_torchless.pyi").read_text("utf-8"))
    written = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert written | {"__version__"} == {name for name in vars(_torchless) if not name.startswith("__") or name == "__version__"}
    for raw in (node for node in stub.body if getattr(node, "name", "").startswith("Raw")):
        methods = {node.name for node in raw.body if isinstance(node, ast.FunctionDef)} - {"__new__"}
        assert methods == {name for name in vars(getattr(_torchless, raw.name)) if not name.startswith("_")}


def test_everything_public_has_documentation():
    for name in torchless.__all__:
        assert name == "__version__" or getattr(torchless, name).__doc__
