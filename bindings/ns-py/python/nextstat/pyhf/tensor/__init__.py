"""Tensor backends.

Arrays are NumPy's in all of them: the engine computes. `nextstat_backend` also has gradients.
"""

import sys
from types import ModuleType

from .. import exceptions
from .numpy_backend import nextstat_backend as _nextstat_backend
from .numpy_backend import numpy_backend as _numpy_backend

__all__ = ["BackendRetriever"]

_OTHERS = ("jax", "pytorch", "tensorflow")


def __dir__():
    return __all__


class _BackendRetriever:
    """Backends as attributes, such as ``numpy_backend``."""

    numpy_backend = _numpy_backend
    nextstat_backend = _nextstat_backend
    array_types = (_numpy_backend.array_type,)
    array_subtypes = (_numpy_backend.array_subtype,)

    def __getattr__(self, name):
        kind, _, rest = name.partition("_")
        if kind in _OTHERS and rest == "backend":
            raise exceptions.ImportBackendError(f"the engine computes by itself and takes NumPy arrays: there is no {kind} backend")
        # A backend that does not exist is None, which cannot be called.
        if name.startswith("__"):
            raise AttributeError(name)
        return None


BackendRetriever = _BackendRetriever()
numpy_backend = _numpy_backend


class _Tensor(ModuleType):
    def __setattr__(self, name, value):
        # An import of the module `numpy_backend` would replace the class by it, which pyhf
        # has here.
        if not (name == "numpy_backend" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Tensor


def __getattr__(name):
    if name.endswith("_backend"):
        return getattr(BackendRetriever, name)
    if name in ("array_types", "array_subtypes"):
        return getattr(BackendRetriever, name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
