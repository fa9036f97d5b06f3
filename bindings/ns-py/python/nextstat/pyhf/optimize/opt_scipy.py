"""The module that pyhf has `scipy_optimizer` in."""

from ._engine import scipy_optimizer

__all__ = ["scipy_optimizer"]


def __dir__():
    return __all__
