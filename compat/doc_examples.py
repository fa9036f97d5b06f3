"""The examples of pyhf's documentation, run on `nextstat.pyhf`.

pyhf's source distribution carries no tests; its docstrings are the calls and results that it
publishes. They are read from the installed package as text, without importing it. Numbers are
compared as numbers, to `TOLERANCE`: the printed ones are where SciPy's SLSQP stopped, not at the
minimum.
"""

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import exclusions  # noqa: E402

#: Relative, and absolute below 1. pyhf's printed fits are this far from their minima.
TOLERANCE = 2e-4

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WRAPPED = re.compile(r"np\.(?:float64|float32|int64|bool_?|True_|False_)\(([^()]*)\)")


class Checker(doctest.OutputChecker):
    """Text by text and numbers by value; addresses, module names and white space do not count."""

    def check_output(self, want, got, optionflags):
        want, got = self._plain(want), self._plain(got)
        if super().check_output(want, got, optionflags | doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
            return True
        numbers = [[float(found) for found in _NUMBER.findall(text)] for text in (want, got)]
        skeletons = [re.sub(r"\s+", "", _NUMBER.sub("#", text)) for text in (want, got)]
        if len(numbers[0]) != len(numbers[1]) or not doctest.OutputChecker.check_output(self, *skeletons, optionflags | doctest.ELLIPSIS):
            return False
        return np.allclose(*numbers, rtol=TOLERANCE, atol=TOLERANCE)

    @staticmethod
    def _plain(text):
        text = _WRAPPED.sub(r"\1", text.replace("nextstat.pyhf", "pyhf"))
        text = re.sub(r"at 0x[0-9a-f.]+", "at 0x0", text)
        return text.replace("0x...", "0x0")


def _sources():
    # Without importing it, and past the alias.
    finder = importlib.machinery.PathFinder
    return Path(finder.find_spec("pyhf").origin).parent


def examples():
    """(name, examples) of every docstring that has any."""
    root = _sources()
    parser = doctest.DocTestParser()
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for node, name in _documented(ast.parse(path.read_text()), module):
            text = ast.get_docstring(node)
            if text and ">>>" in text:
                yield name, parser.get_doctest(text, {}, name, str(path), 0)


def _documented(node, name):
    yield node, name
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            yield from _documented(child, f"{name}.{child.name}")


@pytest.fixture(autouse=True)
def as_it_was():
    """Examples change the backend and the place of schemas for good."""
    import pyhf

    place = pyhf.schema.path
    yield
    pyhf.schema(place)
    pyhf.set_backend("numpy")


@pytest.mark.parametrize("name, example", [pytest.param(*found, id=found[0]) for found in examples()])
def test_example(name, example):
    reason = exclusions.of_example(name)
    if reason:
        pytest.skip(reason)
    report = []
    runner = doctest.DocTestRunner(checker=Checker(), verbose=False)
    runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
