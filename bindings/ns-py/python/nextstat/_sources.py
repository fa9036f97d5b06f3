"""Documents that callers give: a path, JSON text, bytes or a dictionary."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import shown
from ._nextstat import read_document

if TYPE_CHECKING:
    from typing import TypeAlias

    Document: TypeAlias = str | bytes | os.PathLike[str] | Mapping[str, Any]


def is_json(text: str) -> bool:
    """Returns whether `text` is a JSON document rather than a path."""
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def file_of(source: Document) -> str | None:
    """Returns the path that `source` is, or None if it is a document itself."""
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_json(source)):
        return os.fspath(source)
    return None


def document_bytes(source: Document) -> bytes:
    """Returns the JSON text of a file (also `.gz`, `.zst`), of text, of bytes or of a dictionary.
    """
    path = file_of(source)
    return json_bytes(source) if path is None else read_document(path)


def json_bytes(document: Any) -> bytes:
    """Returns the JSON text of a dictionary, or the text that is given."""
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    if isinstance(document, str):
        return document.encode()
    if not isinstance(document, (Mapping, list, tuple)):
        raise TypeError(f"a document is a path, JSON text or a dictionary, not `{shown(document)}`")
    return json.dumps(document, default=_of_numpy).encode()


def _of_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"`{type(value).__name__}` is not part of a JSON document")
