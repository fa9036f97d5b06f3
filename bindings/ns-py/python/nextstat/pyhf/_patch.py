"""JSON patches (RFC 6902) applied to documents that are Python objects."""

import json

from .. import _nextstat
from ._documents import plain


class JsonPatchException(Exception):
    """A patch that cannot be applied, with the operation and the reason."""


class JsonPatchConflict(JsonPatchException):
    """A patch that meets a document without the place that it changes."""


def _text(value):
    return json.dumps(value, default=plain).encode()


def operations_of(patch):
    """The operations of a patch: a list, JSON text, or an object with them in it."""
    if isinstance(patch, (str, bytes)):
        return json.loads(patch)
    return list(getattr(patch, "patch", patch))


def apply_patch(document, patch):
    """A copy of `document` with `patch` applied."""
    try:
        return json.loads(_nextstat.apply_patch(_text(document), _text(operations_of(patch))))
    except _nextstat.WorkspaceError as error:
        raise JsonPatchConflict(str(error)) from error
