"""The base of all results: named fields that do not change, compared, pickled and written."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from .. import _tables, _views
from .._errors import shown, warn
from .._nextstat import __version__, refuse_parameter, schema_urn
from .frozen import frozen, frozen_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Result"]

_R = TypeVar("_R", bound="Result")

# Fields that are not attributes: `provenance` is a property, the others are written only.
_ELSEWHERE = ("about", "alarm", "provenance", "$schema", "nextstat_version")


class About(NamedTuple):
    """What tables say of the analysis that a result belongs to."""

    #: The data, and what is fixed, masked or blinded, one line each.
    conditions: Sequence[str] = ()
    #: The label of numbers that the data give.
    data: str = "observed"
    #: The label of event counts.
    counts: str = "data"


def plain(value: Any) -> Any:
    """Returns `value` as JSON has it.

    Arrays and tuples are lists, and numbers that are not finite are None.
    """
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

    Every field is an attribute. Arrays are read-only for good, lists are tuples, and dictionaries
    are records that cannot be changed either. `to_dict()` and `to_json()` return all fields as JSON
    has them, by the names of the command's JSON, with None for numbers that are not finite.

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest(nextstat.load_workspace("examples/simple.json"))
    >>> result.mu
    1.0
    >>> sorted(result.to_dict())[:4]
    ['$schema', 'CLb_exp', 'CLb_obs', 'CLs_exp']
    """

    __slots__ = ("_about", "_alarm", "_fields", "_provenance")
    #: The name of the schema of its document; None for a result without one.
    _schema: ClassVar[str | None] = None
    _has_provenance: ClassVar[bool] = True
    # An `About`, or what makes one when it is asked for.
    _about: Any
    _alarm: str | None
    _fields: dict[str, Any]
    _provenance: Any

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("nextstat."):
            # Where users find it, and pickles look for it.
            cls.__module__ = "nextstat"

    def __init__(self, fields: Mapping[str, Any]) -> None:
        found = {name: frozen_field(name, value) for name, value in fields.items() if name not in _ELSEWHERE}
        object.__setattr__(self, "_about", fields.get("about", fields.get("provenance")))
        object.__setattr__(self, "_alarm", fields.get("alarm"))
        object.__setattr__(self, "_fields", found)
        object.__setattr__(self, "_provenance", frozen(fields.get("provenance")))

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
        return type(self), ({**self._fields, "provenance": self.provenance, "about": self._said},)

    def __eq__(self, other: object) -> bool:
        """Compares fields, but not provenance."""
        if type(self) is not type(other):
            return NotImplemented
        return _compared(self) == _compared(other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    @property
    def _said(self) -> About:
        """What tables say of the analysis."""
        if not isinstance(self._about, About):
            found = About(*self._about.about()) if hasattr(self._about, "about") else About()
            object.__setattr__(self, "_about", found)
        return self._about

    @property
    def provenance(self) -> Mapping[str, Any] | None:
        """How the result was computed, by the names of the command's JSON: version, digest of the
        workspace, measurement, data, changed settings, device and seed; None for a result made by
        hand.

        Examples
        --------
        >>> import nextstat
        >>> model = nextstat.load_workspace("examples/simple.json")
        >>> nextstat.fit(model, fixed={"mu": 0.0}).provenance["settings"]
        {'fixed': {'mu': 0.0}}
        """
        if hasattr(self._provenance, "read"):
            object.__setattr__(self, "_provenance", frozen(self._provenance.read()))
        return self._provenance

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain Python objects, such as `json` takes: the document that the
        command writes, valid by `json_schema` of the name in its ``$schema``.
        """
        return {**self._head(), **self._document()}

    def _head(self) -> dict[str, Any]:
        """Returns the keys that a document has and one inside another document has not."""
        found = {key: plain(self._fields[key]) for key in ("measurement",) if key in self._fields}
        if self._schema is None:
            return found
        source = plain(self.provenance) if self._has_provenance else None
        version = (source or {}).get("nextstat_version", __version__)
        found = {"$schema": schema_urn(self._schema), "nextstat_version": version, **found}
        return {**found, "provenance": source} if self._has_provenance else found

    def _document(self) -> dict[str, Any]:
        """Returns the command's document without its head: the provenance takes longer than a fit.
        """
        return {name: plain(value) for name, value in self._fields.items() if name != "measurement"}

    def to_json(self, indent: int | None = None) -> str:
        """Returns the fields as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_latex(
        self,
        table: str | None = None,
        *,
        rows: str | Sequence[str] = (),
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        """Returns a table of the result for papers, as `table` makes it.

        Examples
        --------
        >>> import nextstat
        >>> limits = nextstat.upper_limit(nextstat.load_workspace("examples/simple.json"))
        >>> print(limits.to_latex().splitlines()[-4].replace(" & ", " &\n"))
            mu &
        \\num{0.95} &
        \\num{1.705} &
        \\num{0.533} &
        \\num{0.7227} &
        \\num{1.02} &
        \\num{1.451} &
        \\num{2.017} \\\\
        """
        return _tables.table(self.to_dict(), table, format="latex", rows=rows, caption=caption, label=label)

    def to_csv(self, table: str | None = None, *, rows: str | Sequence[str] = ()) -> str:
        """Returns a table of the result as comma-separated values, with all digits.

        `table` and `rows` are those of the function `table`.
        """
        return _tables.table(self.to_dict(), table, format="csv", rows=rows)

    def to_markdown(
        self, table: str | None = None, *, rows: str | Sequence[str] = (), caption: str | None = None
    ) -> str:
        """Returns a table of the result in Markdown, as the function `table` makes it."""
        return _tables.table(self.to_dict(), table, format="md", rows=rows, caption=caption)

    def to_pandas(self, table: str | None = None, *, rows: str | Sequence[str] = ()) -> Any:
        """Returns a table of the result as a `pandas.DataFrame`, with the columns of `to_csv`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return _tables.data_frame(self.to_dict(), table, rows)

    def __repr__(self) -> str:
        return _views.text(self._whole_view())

    def _repr_html_(self) -> str:
        return _views.html(self._whole_view())

    def _view(self) -> _views.View:
        """Returns what is shown of the result; every kind of result has its own."""
        facts = [
            (name, _shown(value)) for name, value in self._fields.items() if name != "warnings"
        ]
        return _views.View(type(self).__name__, facts)

    def _whole_view(self) -> _views.View:
        """Returns the view with its warnings."""
        try:
            view = self._view()
        except (AttributeError, KeyError, IndexError, TypeError):
            # The result was made by hand and lacks fields.
            view = Result._view(self)
        view.conditions = self._said.conditions
        has_converged = self._fields.get("converged", True)
        view.warnings = getattr(self, "warnings", ())
        view.is_bad = view.is_bad or has_converged is False
        is_said = any(name == "converged" for name, _ in view.facts)
        if view.is_bad and "converged" in self._fields and not is_said:
            view.facts.insert(0, ("converged", "NO; do not use these numbers"))
        return view


Result.__module__ = "nextstat"


def _compared(result: Result) -> Any:
    """Returns the fields of `result`, and of results in it, without their provenance."""
    def stripped(value):
        if isinstance(value, dict):
            return {key: stripped(item) for key, item in value.items() if key != "provenance"}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    return result._fields.get("measurement"), stripped(result._document())


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return _views.shown_number(value)
    if hasattr(value, "shape"):
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple, dict)):
        return f"{len(value)} entries"
    return str(value)


def warn_of(result: _R) -> _R:
    """Returns `result`, and warns if its numbers must not be used without its warnings."""
    if result._alarm is not None:
        warn(result._alarm or "a fit did not converge")
    return result


def index_of(par_names: Sequence[str], name: str) -> int:
    """Returns the index of the parameter `name`.

    Raises
    ------
    ParameterError
        A name that is not there, with one that is similar.
    """
    try:
        return par_names.index(name)
    except ValueError:
        pass
    refuse_parameter(name if isinstance(name, str) else shown(name), list(par_names))
