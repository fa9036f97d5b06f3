"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import nextstat
import pytest


def _modules():
    for found in pkgutil.walk_packages(nextstat.__path__, "nextstat."):
        if not found.name.endswith("__main__"):
            yield found.name
    yield "nextstat"


def _examples():
    seen = set()
    for name in _modules():
        try:
            module = importlib.import_module(name)
        except ImportError:
            yield pytest.param(name, None, id=name)
            continue
        for test in doctest.DocTestFinder().find(module):
            if test.examples and test.name not in seen:
                seen.add(test.name)
                yield pytest.param(name, test, id=test.name)


@pytest.mark.parametrize(("module", "test"), list(_examples()))
def test_example(module, test, examples_folder):
    if test is None:
        pytest.skip(f"{module} needs what is not installed here")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    said = []
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


def test_every_public_function_has_an_example():
    without = [name for name in nextstat.__all__ if _needs_example(getattr(nextstat, name)) and ">>>" not in (getattr(nextstat, name).__doc__ or "")]
    # They need a GPU.
    assert without == ["fit_toys_batch_gpu", "fit_toys_from_data_gpu", "hypotest_qtilde_toys_gpu"]


def _needs_example(member):
    return callable(member) and (not isinstance(member, type) or member is nextstat.PatchSet)
