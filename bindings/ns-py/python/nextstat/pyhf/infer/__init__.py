"""Hypothesis tests, fits, intervals."""

from . import calculators, intervals, mle, test_statistics, utils
from ._hypotest import hypotest

__all__ = ["hypotest", "calculators", "intervals", "mle", "test_statistics", "utils"]


def __dir__():
    return __all__
