"""Unknown keyword arguments: refused as Python does, with the argument that was likely meant."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ._errors import with_hint
from ._nextstat import similar_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    _F = TypeVar("_F", bound="Callable[..., Any]")

#: What others call an argument: other packages, the command, or the literature.
_MEANT = {
    "alpha": ("level",),
    "asimov": ("data",),
    "channels": ("fit_channels",),
    "confidence": ("cl", "minos_cl", "levels"),
    "confidence_level": ("cl", "minos_cl", "levels"),
    "cpus": ("threads",),
    "fix": ("fixed",),
    "fixed_params": ("fixed",),
    "fixed_vals": ("fixed",),
    "fit_results": ("fit",),
    "from": ("fit",),
    "init_pars": ("init",),
    "method": ("methods",),
    "mu_test": ("mu",),
    "n_jobs": ("threads",),
    "n_points": ("points",),
    "n_steps": ("points",),
    "ntoys": ("n_toys", "toys"),
    "observations": ("data",),
    "par_bounds": ("bounds",),
    "par_name": ("parameter",),
    "parameters": ("parameter", "params"),
    "poi_name": ("poi",),
    "poi_test": ("mu",),
    "poi_value": ("mu",),
    "regions": ("fit_channels",),
    "scan": ("grid",),
    "start": ("init",),
    "workers": ("threads",),
}


def hinted(function: _F) -> _F:
    """Returns `function`, whose error about an unknown keyword argument names a similar one.

    Its signature, name and documentation are those of `function`.
    """
    parameters = signature(function).parameters.values()
    known = frozenset(one.name for one in parameters if one.kind is not Parameter.POSITIONAL_ONLY)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not known.issuperset(options):
            raise _unknown(function.__name__, next(name for name in options if name not in known), known)
        return function(*args, **options)

    return cast("_F", call)


def _unknown(function: str, name: str, known: Iterable[str]) -> TypeError:
    error = TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    meant = next((one for one in _MEANT.get(name.lower(), ()) if one in known), None)
    meant = meant or similar_name(name, sorted(known))
    return error if meant is None else with_hint(error, f"did you mean `{meant}`?")
