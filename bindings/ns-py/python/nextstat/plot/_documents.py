"""What figures are drawn from: documents, of results or stored ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _results
from .._arguments import names as names_of
from .._errors import ConvergenceError, listed, with_hint
from .._nextstat import WorkspaceError, require_sound_fit
from .._results import Result
from .._sources import document_bytes
from ._validity import require_valid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from .._sources import Document as Stored

    #: A result, or a document of one: a path, JSON text or a dictionary.
    Source: TypeAlias = Result | Stored

_URN = "urn:nextstat:schema:"

#: Labels of what the data give, by their source in the provenance.
OBSERVED, ASIMOV, GIVEN = "Observed", "Asimov data", "Given data"

_LABELS = {"asimov": ASIMOV, "given": GIVEN}


class Document(NamedTuple):
    """A document as figures read it: lists and dictionaries, None for what is not a number."""

    kind: str
    fields: Mapping[str, Any]
    #: The label of what the data give.
    data_label: str

    def __getitem__(self, key: Any) -> Any:
        return self.fields[key]

    @property
    def is_asimov(self) -> bool:
        """Whether the data are Asimov data."""
        return self.data_label == ASIMOV


def is_document(source: object) -> bool:
    """Returns whether `source` is a result or a document, and not a sequence of them."""
    return isinstance(source, (Result, str, bytes, dict)) or hasattr(source, "__fspath__")


def document_of(source: Source, kinds: str | Sequence[str], name: str = "result") -> Document:
    """Returns the document of a result, or a stored one, if it is of one of the `kinds`.

    Parameters
    ----------
    source : Result, path, JSON text or dict
    kinds : str or sequence of str
        Names of schemas, such as ``"yields"``.
    name : str
        The name of the argument.

    Raises
    ------
    TypeError
        A result of another kind, or what is not a document.
    WorkspaceError
        A document of another kind, or one that is damaged.
    """
    wanted = names_of("kinds", kinds)
    if isinstance(source, Result):
        return _of_result(source, wanted, name)
    if not is_document(source):
        raise TypeError(f"`{name}` must be {_classes(wanted)} or its document, not a `{type(source).__name__}`")
    return _stored(source, wanted)


def require_fit(document: Document) -> Document:
    """Returns a document of one fit, or of what refers to one.

    Raises
    ------
    ConvergenceError
        If that fit did not converge: there is nothing to draw.
    """
    fit = document.fields.get("fit")
    verdict = fit if isinstance(fit, dict) and document.kind not in ("fit", "report") else document.fields
    if verdict.get("converged") is False:
        raise nothing_to_draw(document.fields)
    return document


def nothing_to_draw(fields: Mapping[str, Any]) -> ConvergenceError:
    """Returns the error of a document without numbers, with the warning that says why."""
    fit = fields.get("fit")
    said = [*(fields.get("warnings") or ()), *((fit.get("warnings") if isinstance(fit, dict) else None) or ())]
    reason = next((text for text in said if "not converge" in text), None) or (said[0] if said else "a fit did not converge")
    return ConvergenceError(f"there is nothing to draw: {reason}")


def _of_result(result: Result, wanted: Sequence[str], name: str) -> Document:
    kind = (result._head().get("$schema") if "unmatched" in result._fields else None) or f"{_URN}{result._schema}:"
    kind = kind.removeprefix(_URN).split(":")[0]
    if kind not in wanted:
        raise TypeError(f"`{name}` must be {_classes(wanted)}, not a `{type(result).__name__}`")
    fields = result._document()
    said = result._said.data
    return Document(kind, fields, said[:1].upper() + said[1:])


def _classes(kinds: Sequence[str]) -> str:
    """Returns the classes of documents of these kinds, as messages list them."""
    known = {getattr(found, "_schema", None): name for name, found in vars(_results).items() if isinstance(found, type)}
    return f"a {listed(dict.fromkeys(known[kind] for kind in kinds if kind in known), 'or')}"


def _stored(source: Stored, wanted: Sequence[str]) -> Document:
    text = document_bytes(source)
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise WorkspaceError(f"the document is not JSON: {error}") from None
    kind = kind_of(fields)
    if kind not in wanted:
        raise WorkspaceError(f"the document is one of {listed([kind])}, and this figure is drawn from {listed(wanted, 'or')}")
    require_valid(fields, kind)
    if kind == "fit":
        require_sound_fit(text)
    source_of_data = ((fields.get("provenance") or {}).get("data") or {}).get("source")
    return Document(kind, fields, _LABELS.get(str(source_of_data), OBSERVED))


def kind_of(fields: Any) -> str:
    """Returns the name of the schema of a document.

    Raises
    ------
    WorkspaceError
        If it is not the document of a result.
    """
    urn = fields.get("$schema") if isinstance(fields, dict) else None
    if not isinstance(urn, str) or not urn.startswith(_URN):
        error = WorkspaceError("the document is not a result of nextstat: it has no `$schema`")
        raise with_hint(error, "commands write results with `-o FILE`, and results have `to_json`")
    return urn.removeprefix(_URN).split(":")[0]
