"""Statistical inference for binned particle-physics analyses.

HistFactory likelihoods, as in pyhf and ROOT.

>>> import nextstat
>>> model = nextstat.load_workspace("examples/simple.json")
>>> round(nextstat.hypotest(model, 1.0).CLs_obs, 5)
0.34567
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import (
    _adaptive_toys,
    _combination,
    _command,
    _curves,
    _data_sets,
    _devices,
    _documents,
    _errors,
    _exclusion,
    _fits,
    _legacy,
    _models,
    _pois,
    _results,
    _root_output,
    _scanner,
    _search,
    _simplify,
    _tables,
    _tests,
    _toys,
)
from ._adaptive_toys import *
from ._combination import *
from ._command import *
from ._curves import *
from ._data_sets import *
from ._devices import *
from ._documents import *
from ._errors import *
from ._exclusion import *
from ._fits import *
from ._installed import warn_if_mixed as _warn_if_mixed
from ._legacy import *
from ._models import *
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
from ._pois import *
from ._results.adaptive_toys import *
from ._results.base import *
from ._results.curves import *
from ._results.data_sets import *
from ._results.documents import *
from ._results.exclusion import *
from ._results.fits import *
from ._results.pois import *
from ._results.scanner import *
from ._results.search import *
from ._results.simplify import *
from ._results.tests import *
from ._results.toys import *
from ._root_output import *
from ._scanner import *
from ._search import *
from ._simplify import *
from ._tables import *
from ._tests import *
from ._toys import *

_warn_if_mixed()

if TYPE_CHECKING:
    from . import build as build
    from . import differentiable as differentiable
    from . import distributed as distributed
    from . import hepdata as hepdata
    from . import histograms as histograms
    from . import jax as jax
    from . import plot as plot
    from . import pyhf as pyhf
    from . import torch as torch

# Each module lists what it adds.
__all__ = [
    "DataError",
    "DeviceError",
    "GradientError",
    "Model",
    "ModelError",
    "NextstatError",
    "ParameterError",
    "ToyError",
    "WorkspaceError",
    "__version__",
]
__all__ += _adaptive_toys.__all__
__all__ += _combination.__all__
__all__ += _command.__all__
__all__ += _curves.__all__
__all__ += _data_sets.__all__
__all__ += _devices.__all__
__all__ += _documents.__all__
__all__ += _errors.__all__
__all__ += _exclusion.__all__
__all__ += _fits.__all__
__all__ += _legacy.__all__
__all__ += _models.__all__
__all__ += _pois.__all__
__all__ += _results.__all__
__all__ += _root_output.__all__
__all__ += _scanner.__all__
__all__ += _search.__all__
__all__ += _simplify.__all__
__all__ += _tables.__all__
__all__ += _tests.__all__
__all__ += _toys.__all__

# Modules that are imported when they are first used, because of what they import themselves.
_LAZY = ("differentiable", "distributed", "hepdata", "histograms", "jax", "plot", "pyhf", "torch")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    return [*__all__, *_LAZY]
