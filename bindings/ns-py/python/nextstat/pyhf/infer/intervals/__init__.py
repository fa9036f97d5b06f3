"""Intervals of the parameter of interest."""

from __future__ import annotations

from typing import Any

from . import upper_limits

__all__ = ["upper_limits.upper_limit"]


def __dir__():
    return __all__


def upperlimit(data, model, scan=None, level=0.05, return_results=False, **hypotest_kwargs) -> Any:
    """Calls `upper_limits.upper_limit` by its old name."""
    from ...exceptions import _deprecated_api_warning

    _deprecated_api_warning("pyhf.infer.intervals.upperlimit", "pyhf.infer.intervals.upper_limits.upper_limit", "0.7.0", "0.9.0")
    return upper_limits.upper_limit(data, model, scan, level, return_results, **hypotest_kwargs)
