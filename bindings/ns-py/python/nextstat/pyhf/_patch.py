"""JSON patches (RFC 6902) applied to documents that are Python objects."""

import json
import re

from .. import _internal
from .._internal import Escaped
from ._documents import plain


class JsonPatchException(Escaped, Exception):
    """A patch that cannot be applied, with the operation and the reason."""


class InvalidJsonPatch(JsonPatchException):
    """A document that is no patch."""


class JsonPatchConflict(JsonPatchException):
    """A patch that meets a document without the place that it changes."""


class JsonPatchPathNotFound(JsonPatchConflict):
    """The same, of a place that is to be removed, replaced or copied."""


class JsonPatchTestFailed(JsonPatchException, AssertionError):
    """A patch that expects something else in the document."""


class JsonPointerException(Escaped, Exception):
    """A path that leads nowhere, or is none."""


def _text(value):
    return json.dumps(value, default=plain).encode()


def operations_of(patch):
    """Returns the operations of a patch: a list, JSON text, or an object with them in it."""
    if isinstance(patch, (str, bytes)):
        try:
            patch = json.loads(patch)
        except ValueError as error:
            raise InvalidJsonPatch(f"the patch is not JSON: {error}") from None
    patch = getattr(patch, "patch", patch)
    if not isinstance(patch, (list, tuple)):
        raise InvalidJsonPatch(f"a patch is a list of operations, not `{type(patch).__name__}`")
    return list(patch)


def apply_patch(document, patch):
    """Returns a copy of `document` with `patch` applied."""
    operations = operations_of(patch)
    try:
        return json.loads(_internal.apply_patch(_text(document), _text(operations)))
    except _internal.WorkspaceError as error:
        raise _kind(error.args[0], operations)(error.args[0]) from error


def _kind(message, operations):
    """Returns the exception for what the engine says of a patch."""
    at = re.match(r"operation (\d+) ", message)
    if not at:
        return JsonPointerException if "is not a JSON pointer" in message else InvalidJsonPatch
    operation = operations[int(at[1])]
    kind, path = operation["op"], operation["path"]
    missing = re.search(r"there is no `([^`]*)`", message)
    if kind == "test":
        return JsonPatchTestFailed
    if missing is None:
        return JsonPatchConflict
    if missing[1] == operation.get("from") or (missing[1] == path and kind in ("remove", "replace")):
        return JsonPatchPathNotFound
    return JsonPatchConflict if missing[1] == path and path.rpartition("/")[2].isdigit() else JsonPointerException
