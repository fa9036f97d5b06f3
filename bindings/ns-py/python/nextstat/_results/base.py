"""What all results share: fields that do not change, by name; how they are compared, pickled and written."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from .frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def plain(value: Any) -> Any:
    """`value` as JSON has it: arrays and tuples as lists, numbers that are not finite as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Result):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value


class Result:
    """Named fields that do not change.

    Every field is an attribute; arrays are read-only for good, lists are tuples, and dictionaries are records that cannot be changed either. `to_dict()`
    and `to_json()` have all fields as JSON has them, by the names that the command's JSON has, with None for numbers that are not finite.

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest(nextstat.load_workspace("examples/simple.json"))
    >>> result.mu
    1.0
    >>> sorted(result.to_dict())[:4]
    ['CLb_exp', 'CLb_obs', 'CLs_exp', 'CLs_obs']
    """

    __slots__ = ("_fields",)
    _fields: dict[str, Any]

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("nextstat."):
            # Where users find it, and pickles look for it.
            cls.__module__ = "nextstat"

    def __init__(self, fields: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_fields", {name: frozen(value) for name, value in fields.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            known = ", ".join(self._fields)
            raise AttributeError(f"`{type(self).__name__}` has no field `{name}`; it has {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"`{type(self).__name__}` is frozen")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __reduce__(self) -> tuple[type[Result], tuple[dict[str, Any]]]:
        return type(self), (self._fields,)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python objects, such as `json` takes."""
        return {name: plain(value) for name, value in self._fields.items()}

    def to_json(self, indent: int | None = None) -> str:
        """The fields as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        from .. import _show

        return _show.text(self)

    def _repr_html_(self) -> str:
        from .. import _show

        return _show.html(self)


Result.__module__ = "nextstat"


def index_of(par_names: Sequence[str], name: str) -> int:
    try:
        return par_names.index(name)
    except ValueError:
        from .._common import shown, with_hint
        from .._nextstat import ParameterError

        error = ParameterError(f"there is no parameter `{name if isinstance(name, str) else shown(name)}`")
        near = [known for known in par_names if known.lower() == str(name).lower() or known.startswith(f"{name}[")]
        if near:
            with_hint(error, f"there is `{near[0]}`")
        raise error from None
