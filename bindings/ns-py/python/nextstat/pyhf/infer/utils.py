"""Calculators and test statistics by name."""

from __future__ import annotations

from typing import Any

from .calculators import AsymptoticCalculator, ToyCalculator
from .test_statistics import _named

__all__ = ["create_calculator", "get_test_stat"]

_CALCULATORS = {"asymptotics": AsymptoticCalculator, "toybased": ToyCalculator}


def __dir__():
    return __all__


def all_pois_floating(pdf, fixed_params) -> Any:
    """Returns whether fits may move the parameter of interest."""
    return not fixed_params[pdf.config.poi_index]


def create_calculator(calctype, *args, **kwargs) -> Any:
    """Returns the calculator ``"asymptotics"`` or ``"toybased"``, made with the other arguments."""
    return _CALCULATORS[calctype](*args, **kwargs)


def get_test_stat(name) -> Any:
    """Returns the function of the statistic ``"q0"``, ``"q"`` or ``"qtilde"``."""
    return _named(name)
