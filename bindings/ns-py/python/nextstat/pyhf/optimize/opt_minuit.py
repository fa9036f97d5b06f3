"""The module that pyhf has `minuit_optimizer` in."""

from ._engine import minuit_optimizer

__all__ = ["minuit_optimizer"]


def __dir__():
    return __all__
