"""Exceptions and warnings, and what their messages show of names and values.

Names come from documents: whatever is printed has its control, bidirectional and invisible
characters escaped, as in the command. Results keep names as they are; only what `print` shows of
results and exceptions is escaped.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from ._nextstat import NextstatError, escape

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ConvergenceError", "NextstatWarning"]

_E = TypeVar("_E", bound=Exception)


class Escaped:
    """A base of exceptions and warnings that escapes their messages.

    `args` has the message as it was made.
    """

    def __str__(self) -> str:
        return escape(super().__str__(), keep_lines=True)


def _str(error: Any) -> str:
    return escape(ValueError.__str__(error), keep_lines=True)


# The classes of the extension module, which cannot inherit from a Python class.
NextstatError.__str__ = _str  # type: ignore[method-assign]


class NextstatWarning(Escaped, UserWarning):
    """A result that a reader should not use without reading its warnings."""

    __module__ = "nextstat"


class ConvergenceError(NextstatError):
    """A stored result that cannot be shown because its fits did not converge."""

    __module__ = "nextstat"


def warn(message: str, category: type[Warning] = NextstatWarning) -> None:
    """Warns the first caller outside the package."""
    frame, level = sys._getframe(), 0
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _is_ours(module: str) -> bool:
    return module == "nextstat" or module.startswith("nextstat.")


def with_hint(error: _E, hint: str) -> _E:
    """Returns `error` with advice, as the extension module's errors have it."""
    text = escape(hint)
    error.hint = text  # type: ignore[attr-defined]
    if hasattr(error, "add_note"):
        error.add_note(f"hint: {text}")
    return error


def shown(value: object) -> str:
    """Returns what messages show of a value that is not valid."""
    try:
        text = repr(value)
    except ValueError:
        # A whole number with more digits than Python writes.
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"


def listed(names: Iterable[str], word: str = "and") -> str:
    """Returns names as messages list them.

    >>> listed(["cpu"]), listed(["smooth", "pyhf"]), listed("abc", "or")
    ('`cpu`', '`smooth` and `pyhf`', '`a`, `b` or `c`')
    """
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} {word} {last}" if most else last


def counted(n: int, what: str) -> str:
    """Returns a number of things.

    >>> counted(1, "bin"), counted(2, "bin")
    ('1 bin', '2 bins')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def install_command(extra: str) -> str:
    """Returns how the packages of an extra are installed.

    The name `nextstat` belongs to another project on PyPI.
    """
    return f"`pip install 'nextstat-rs[{extra}]'`"
