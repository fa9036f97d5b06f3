"""Values that do not change: records, tuples and arrays, as results have them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from numpy import ndarray

_PLAIN = frozenset({bool, float, int, str, type(None)})


class Record(dict[str, Any]):
    """A dictionary that does not change; `dict(record)` is one that may be changed.

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.fit(nextstat.load_workspace("examples/simple.json"))
    >>> pull = result.pulls[0]
    >>> pull["parameter"], type(dict(pull)).__name__
    ('uncorr_bkguncrt[0]', 'dict')
    >>> pull["parameter"] = "background"
    Traceback (most recent call last):
        ...
    TypeError: results are frozen: `dict(...)` of this record may be changed
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("results are frozen: `dict(...)` of this record may be changed")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        return frozen, (dict(self),)


class Poi(Record):
    """A parameter of interest: its name, its index, and what the procedure found about it, as
    attributes and as items.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> nextstat.upper_limit(model).poi
    Poi(name='mu', index=0, bestfit=0.72361)
    >>> result = nextstat.fit(model)
    >>> round(result.poi.bestfit, 4) == round(result.poi["bestfit"], 4)
    True
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self)
            raise AttributeError(f"the parameter of interest has no `{name}`; it has {known}") from None

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._refuse()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __reduce__(self) -> Any:
        return Poi, (dict(self),)

    def __repr__(self) -> str:
        from .._views import shown_number

        def shown(value: Any) -> str:
            return shown_number(value, 5) if isinstance(value, float) else repr(value)

        known = [name for name in ("name", "index", "bestfit", "uncertainty") if name in self]
        names = [*known, *(name for name in self if name not in known)]
        return f"Poi({', '.join(f'{name}={shown(self[name])}' for name in names)})"


def frozen_field(name: str, value: Any) -> Any:
    """Returns `frozen(value)` of the field `name`; a parameter of interest is a `Poi`."""
    if name == "poi" and isinstance(value, dict):
        return Poi(value)
    if name == "pois" and isinstance(value, (list, tuple)):
        return tuple(frozen_field("poi", item) for item in value)
    return frozen(value)


def frozen(value: Any) -> Any:
    """Returns `value` with everything in it as it does not change: lists as tuples, dictionaries as
    records, arrays read-only for good.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return tuple(value) if _PLAIN.issuperset(map(type, value)) else tuple(map(frozen, value))
    if kind is dict:
        return Record((key, frozen_field(key, item)) for key, item in value.items())
    numpy = sys.modules.get("numpy")
    return _sealed(value) if numpy is not None and isinstance(value, numpy.ndarray) else value


def _sealed(array: ndarray) -> ndarray:
    """Returns `array`, or a copy of it that NumPy refuses to make writable again."""
    import numpy

    if array.dtype.hasobject or _is_sealed(array):
        return array
    return numpy.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def _is_sealed(array: Any) -> bool:
    """Returns whether neither the array nor what its numbers belong to can be written to."""
    import numpy

    while isinstance(array, numpy.ndarray):
        if array.flags.writeable or array.flags.owndata:
            return False
        array = array.base
    if array is None:
        return False
    try:
        return memoryview(array).readonly
    except TypeError:
        # Of no buffer: numbers of the extension module, which cannot be written to.
        return True
