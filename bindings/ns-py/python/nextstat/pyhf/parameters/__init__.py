"""Sets of parameters, and views of them in a parameter vector."""

from .paramsets import constrained_by_normal, constrained_by_poisson, paramset, unconstrained
from .paramview import ParamViewer
from .utils import reduce_paramsets_requirements

__all__ = ["paramset", "unconstrained", "constrained_by_normal", "constrained_by_poisson", "reduce_paramsets_requirements", "ParamViewer"]


def __dir__():
    return __all__
