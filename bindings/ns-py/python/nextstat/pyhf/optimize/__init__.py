"""Optimizers. Whatever its name, a fit is one call of the engine's second-order minimiser."""

from . import common
from ._engine import OptimizeResult, minuit_optimizer, scipy_optimizer

__all__ = ["OptimizerRetriever"]


def __dir__():
    return __all__


class _OptimizerRetriever:
    """Optimizers as attributes, such as ``scipy_optimizer``; None where there is none of that name.
    """

    scipy_optimizer = scipy_optimizer
    minuit_optimizer = minuit_optimizer

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


OptimizerRetriever = _OptimizerRetriever()
