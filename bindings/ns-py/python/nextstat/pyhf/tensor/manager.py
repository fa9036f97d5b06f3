"""Chooses the backend and the optimizer that are in use."""

from __future__ import annotations

import warnings
from typing import Any

from .. import events, exceptions
from .._current import get_backend, state
from ..optimize import OptimizerRetriever
from . import _OTHERS, BackendRetriever

_PRECISIONS = ("32b", "64b")

def _text(value):
    return (value.decode() if isinstance(value, bytes) else value).lower()


def _backend(backend, precision):
    if not isinstance(backend, (str, bytes)):
        kind = getattr(BackendRetriever, f"{backend.name}_backend")
        if kind and not isinstance(backend, kind):
            raise AttributeError(f"`{backend.name}` is the name of another backend than `{type(backend).__name__}`; a backend of one's own has a name of its own")
        if precision is not None and backend.precision != precision:
            return type(backend)(precision=precision)
        return backend
    name = _text(backend)
    if name in _OTHERS:
        warnings.warn(
            f"the engine computes by itself and takes NumPy arrays: `{name}` is ignored, `nextstat` is used", UserWarning, stacklevel=4
        )
        # These backends exist for their gradients.
        name = "nextstat"
    if name not in ("numpy", "nextstat"):
        raise exceptions.InvalidBackend(f"The backend provided is not supported: {name}. There are: numpy, nextstat")
    kind = getattr(BackendRetriever, f"{name}_backend")
    return kind(**({} if precision is None else {"precision": precision}))


def _optimizer(optimizer):
    if optimizer is None:
        return OptimizerRetriever.scipy_optimizer()
    if isinstance(optimizer, (str, bytes)):
        kind = getattr(OptimizerRetriever, f"{_text(optimizer)}_optimizer")
        if kind is None:
            raise exceptions.InvalidOptimizer(f"The optimizer provided is not supported: {_text(optimizer)}. Select from one of the supported optimizers: scipy, minuit")
        return kind()
    kind = getattr(OptimizerRetriever, f"{optimizer.name}_optimizer")
    if kind and not isinstance(optimizer, kind):
        raise AttributeError(f"`{optimizer.name}` is the name of another optimizer than `{type(optimizer).__name__}`; an optimizer of one's own has a name of its own")
    return optimizer


@events.register("change_backend")
def set_backend(backend, custom_optimizer=None, precision=None, default=False) -> None:
    """Chooses the backend, ``"numpy"`` or ``"nextstat"``, and the optimizer.

    Arrays are NumPy's in both; ``"nextstat"`` also has gradients, for programs that minimise by
    themselves. The backends of other libraries, which have gradients, are accepted with a warning
    and mean ``"nextstat"``. ``"scipy"`` and ``"minuit"`` are two names of the engine's minimiser;
    an object with a method ``minimize`` is used as it is.

    Raises
    ------
    InvalidBackend, InvalidOptimizer, Unsupported
        Names and precisions that do not exist.
    """
    if precision is not None:
        precision = _text(precision)
        if precision not in _PRECISIONS:
            raise exceptions.Unsupported(f"The backend precision provided is not supported: {precision}. Select from one of the supported precisions: {', '.join(_PRECISIONS)}")
    chosen = (_backend(backend, precision), _optimizer(custom_optimizer))
    old, old_default = get_backend(), get_backend(default=True)
    state["current"] = chosen
    if default:
        state["default"] = chosen
        _announce("default_", old_default, chosen)
    _announce("", old, chosen)
    chosen[0]._setup()


def _announce(prefix, old, new):
    if (old[0].name, old[0].precision) != (new[0].name, new[0].precision):
        events.trigger(f"{prefix}tensorlib_changed")()
    if old[1] != new[1]:
        events.trigger(f"{prefix}optimizer_changed")()


state["default"] = state["current"] = (BackendRetriever.numpy_backend(), OptimizerRetriever.scipy_optimizer())
