"""The procedures under one roof, for the package's other parts."""

from __future__ import annotations

from ._common import DeviceError, NextstatWarning
from ._common import checked as _checked
from ._common import is_fixed as _is_fixed
from ._common import progress_of as _progress
from ._common import settings as _settings
from ._curves import contours, profile_scan, ranking
from ._devices import devices, has_cuda, has_metal
from ._fits import fit, goodness_of_fit, report, yields
from ._models import asimov_data, load_workspace, model_of
from ._tests import hypotest, hypotest_toys, significance, upper_limit
from ._toys import fit_toys, load_toys, throw_toys

__all__ = [
    "DeviceError",
    "NextstatWarning",
    "_checked",
    "_is_fixed",
    "_progress",
    "_settings",
    "asimov_data",
    "contours",
    "devices",
    "fit",
    "fit_toys",
    "goodness_of_fit",
    "has_cuda",
    "has_metal",
    "hypotest",
    "hypotest_toys",
    "load_toys",
    "load_workspace",
    "model_of",
    "profile_scan",
    "ranking",
    "report",
    "significance",
    "throw_toys",
    "upper_limit",
    "yields",
]
