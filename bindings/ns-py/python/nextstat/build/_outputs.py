"""Where the verb `build` writes: files that replace none of its inputs, and standard output, which
gets the table if it is a terminal. The rules are those of the other verbs.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .._errors import with_hint
from .._nextstat import ParameterError, escape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence
    from typing import TextIO

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
    """Returns what all names of a file have in common; None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the output that all verbs have."""
    group = parser.add_argument_group("output")
    help = "where the workspace goes, instead of standard output"
    group.add_argument("-o", "--output-file", "--output", metavar="FILE", help=help)
    help = "write JSON to standard output even if it is a terminal, which gets a table otherwise"
    group.add_argument("--json", action="store_true", help=help)
    help = "print the table even if neither standard output nor standard error is a terminal, as in the log of a batch job"
    group.add_argument("--summary", dest="table", action="store_const", const="always", help=help)
    # The last of both counts.
    help = "print no table and no warnings; errors are still printed"
    group.add_argument("-q", "--quiet", dest="table", action="store_const", const="never", help=help)


class Output:
    """What of a result goes where, by the options and by what standard output and standard error
    are.

    Attributes
    ----------
    has_json : bool
        Whether standard output gets the workspace.
    table : text file or None
        What gets the table.
    is_quiet : bool
        Whether warnings are left out.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.is_quiet = options.table == "never"
        is_shown = not (self.is_quiet or options.json or options.output_file == STDOUT) and _is_terminal(sys.stdout)
        self.has_json = options.output_file == STDOUT or (options.output_file is None and not is_shown)
        is_log = not self.is_quiet and (options.table == "always" or _is_terminal(sys.stderr))
        self.table: TextIO | None = sys.stdout if is_shown else sys.stderr if is_log else None

    def require(self) -> None:
        """Refuses a closed standard output, where the result would be lost."""
        if self.has_json and sys.stdout is None:
            raise OSError("cannot write standard output: it is closed")


def _is_terminal(stream):
    # There is none where it was closed before (`>&-`).
    return stream is not None and stream.isatty()


def say(text: str, file: TextIO | None = None) -> None:
    """Prints text on standard error, or in another place, with names escaped."""
    print(escape(text, keep_lines=True), file=sys.stderr if file is None else file)
