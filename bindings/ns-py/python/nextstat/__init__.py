"""Statistical inference for binned particle-physics analyses.

HistFactory likelihoods, as in pyhf and ROOT.

>>> import nextstat
>>> model = nextstat.load_workspace("examples/simple.json")
>>> round(nextstat.hypotest(model, 1.0).CLs_obs, 5)
0.34567
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._combination import combine, decorrelate
from ._command import command
from ._curves import contours, profile_scan, ranking
from ._data_sets import bootstrap, bootstrap_weights, fits, replica_covariance
from ._devices import devices
from ._documents import PatchSet, apply_patch, check, digest, every_patch, inspect
from ._errors import NextstatWarning
from ._fits import fit, goodness_of_fit, report, yields
from ._installed import warn_if_mixed as _warn_if_mixed
from ._legacy import (
    fit_toys_batch_gpu,
    fit_toys_from_data_gpu,
    has_cuda,
    has_metal,
    hypotest_qtilde_toys_gpu,
)
from ._models import asimov_data, example, load_workspace, model_of
from ._nextstat import (
    DataError,
    DeviceError,
    GradientError,
    Model,
    ModelError,
    NextstatError,
    ParameterError,
    ToyError,
    WorkspaceError,
    __version__,
)
from ._results import (
    CheckResult,
    CombinationResult,
    CommandResult,
    ContourResult,
    FitResult,
    FitsResult,
    GoodnessOfFit,
    GridResult,
    HypotestResult,
    InspectResult,
    LimitResult,
    RankingResult,
    ReplicaCovariance,
    ReportResult,
    Result,
    ScanResult,
    SignificanceResult,
    ToyHypotestResult,
    ToysResult,
    YieldsResult,
)
from ._tests import hypotest, hypotest_toys, significance, upper_limit
from ._toys import fit_toys, load_toys, throw_toys

_warn_if_mixed()

if TYPE_CHECKING:
    from . import build as build
    from . import differentiable as differentiable
    from . import distributed as distributed
    from . import histograms as histograms
    from . import jax as jax
    from . import plot as plot
    from . import pyhf as pyhf
    from . import torch as torch

__all__ = [
    "CheckResult",
    "CombinationResult",
    "CommandResult",
    "ContourResult",
    "DataError",
    "DeviceError",
    "FitResult",
    "FitsResult",
    "GoodnessOfFit",
    "GradientError",
    "GridResult",
    "HypotestResult",
    "InspectResult",
    "LimitResult",
    "Model",
    "ModelError",
    "NextstatError",
    "NextstatWarning",
    "ParameterError",
    "PatchSet",
    "RankingResult",
    "ReplicaCovariance",
    "ReportResult",
    "Result",
    "ScanResult",
    "SignificanceResult",
    "ToyError",
    "ToyHypotestResult",
    "ToysResult",
    "WorkspaceError",
    "YieldsResult",
    "__version__",
    "apply_patch",
    "asimov_data",
    "bootstrap",
    "bootstrap_weights",
    "check",
    "combine",
    "command",
    "contours",
    "decorrelate",
    "devices",
    "digest",
    "every_patch",
    "example",
    "fit",
    "fit_toys",
    "fit_toys_batch_gpu",
    "fit_toys_from_data_gpu",
    "fits",
    "goodness_of_fit",
    "has_cuda",
    "has_metal",
    "hypotest",
    "hypotest_qtilde_toys_gpu",
    "hypotest_toys",
    "inspect",
    "load_toys",
    "load_workspace",
    "model_of",
    "profile_scan",
    "ranking",
    "replica_covariance",
    "report",
    "significance",
    "throw_toys",
    "upper_limit",
    "yields",
]

# Modules that are imported when they are first used, because of what they import themselves.
_LAZY = ("differentiable", "distributed", "histograms", "jax", "plot", "pyhf", "torch")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    return [*__all__, *_LAZY]
