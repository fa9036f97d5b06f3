"""Names come from documents: whatever is printed has its control, bidirectional and invisible characters escaped, as in the command.

Results keep names as they are; only what `print` shows of results and exceptions is escaped.
"""

from __future__ import annotations

from typing import Any

from ._nextstat import NextstatError, escape


class Escaped:
    """What exceptions and warnings are made of whose messages quote names; `args` has the message as it was made."""

    def __str__(self) -> str:
        return escape(super().__str__(), keep_lines=True)


def _str(error: Any) -> str:
    return escape(ValueError.__str__(error), keep_lines=True)


# The classes of the extension module, which cannot inherit from a Python class.
NextstatError.__str__ = _str  # type: ignore[method-assign]
