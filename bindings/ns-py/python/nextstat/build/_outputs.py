"""Where the verb `build` writes: files that replace none of its inputs. The rules are those of the
other verbs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._errors import with_hint
from .._nextstat import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Name = str | os.PathLike[str]

# What means standard output.
STDOUT = "-"


def require_other_output(read: Iterable[Name], written: Sequence[Name]) -> None:
    """Refuses a result that would replace an input, and two results in one place.

    Files are the same if the system says so, whatever their names.

    Raises
    ------
    ParameterError
        With the name of the file, as it was given for the result.
    """
    hint = "write the result to another file"
    for i, path in enumerate(written):
        if any(_is_same(path, other) for other in written[:i]):
            name = "standard output" if os.fspath(path) == STDOUT else f"`{os.fspath(path)}`"
            raise with_hint(ParameterError(f"two results would go to {name}"), hint)
    inputs = {_identity(path) for path in read}
    for path in written:
        if os.path.isfile(path) and _identity(path) in inputs:
            message = f"`{os.fspath(path)}` is an input of this command, and the result would replace it"
            raise with_hint(ParameterError(message), hint)


def _is_same(one, other):
    if os.path.exists(one) and os.path.exists(other):
        return _identity(one) == _identity(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _identity(path):
    """What all names of a file have in common; None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
