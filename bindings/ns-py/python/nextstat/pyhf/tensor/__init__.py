"""Tensor backends. There is one, NumPy: the engine computes, arrays go in and out."""

from .. import exceptions
from .numpy_backend import numpy_backend as _numpy_backend

__all__ = ["BackendRetriever"]

_OTHERS = ("jax", "pytorch", "tensorflow")


def __dir__():
    return __all__


class _BackendRetriever:
    """Backends as attributes, such as ``numpy_backend``."""

    numpy_backend = _numpy_backend
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


def __getattr__(name):
    if name.endswith("_backend"):
        return getattr(BackendRetriever, name)
    if name in ("array_types", "array_subtypes"):
        return getattr(BackendRetriever, name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
