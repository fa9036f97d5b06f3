"""Several parameters of interest: the same question for each of them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ._arguments import require_model
from ._errors import NextstatWarning, shown, warn, with_hint
from ._nextstat import Model, ParameterError
from ._results import PoiResults, Result

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["every_poi"]


def every_poi(model: Model, question: Callable[[Model], Any]) -> PoiResults:
    """Asks the same question for every parameter of interest, with the others profiled.

    Parameters
    ----------
    question : callable
        From a model with one parameter of interest to a result, such as ``nextstat.upper_limit`` or
        ``lambda model: nextstat.hypotest(model, 1.0)``.

    Returns
    -------
    PoiResults

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/shapes.json", poi=["mu", "norm_ttbar"])
    >>> limits = nextstat.every_poi(model, nextstat.upper_limit)
    >>> [(name, round(limit.observed, 3)) for name, limit in zip(limits.names, limits)]
    [('mu', 2.857), ('norm_ttbar', 1.194)]
    >>> limits["mu"] == nextstat.upper_limit(model, poi="mu")
    True
    """
    require_model(model)
    if not callable(question):
        kind = "`question` is a function of a model, such as `nextstat.upper_limit`"
        raise TypeError(f"{kind}, not `{shown(question)}`")
    names = tuple(model.pois)
    if not names:
        error = ParameterError("`every_poi` needs a parameter of interest, and the model has none")
        raise with_hint(error, "name one: `load_workspace(..., poi=...)`")
    with warnings.catch_warnings():
        # Said once for all of them below.
        warnings.simplefilter("ignore", NextstatWarning)
        results = tuple(_result(question(model.with_poi(name))) for name in names)
    found = PoiResults(_fields(names, results, model.measurement))
    if found._alarm is not None:
        warn(found._alarm)
    return found


def _result(found: Any) -> Result:
    if isinstance(found, Result):
        return found
    raise TypeError(f"`question` returns a result of this package, not `{shown(found)}`")


def _fields(names, results, measurement):
    """Returns the fields of the results, and what the warnings of each are about."""

    def attributed(name, text):
        return f"`{name}`: {text}" if len(names) > 1 else text

    pairs = list(zip(names, results))
    said = [attributed(name, text) for name, found in pairs for text in getattr(found, "warnings", ())]
    alarms = [attributed(name, found._alarm) for name, found in pairs if found._alarm is not None]
    return {
        "names": names,
        "results": results,
        "measurement": measurement,
        # Of many data sets, a result has an entry for each.
        "converged": all(found._document().get("converged", True) for found in results),
        "warnings": tuple(said),
        "alarm": "; ".join(alarms) or None,
        "about": results[0]._said,
        "provenance": _Provenance(names, results[0]),
    }


class _Provenance:
    """How the results were computed, read when it is asked for."""

    def __init__(self, names: tuple[str, ...], first: Result) -> None:
        self._names, self._first = names, first

    def read(self) -> dict[str, Any] | None:
        found = self._first.provenance
        return None if found is None else {**found, "pois": self._names}
