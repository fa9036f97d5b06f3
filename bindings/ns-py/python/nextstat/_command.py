"""The `nextstat` command, run in this process or in one of its own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from . import _nextstat
from ._errors import shown
from ._nextstat import NextstatError
from ._results import CommandResult

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command"]

# Exit code of bad input or usage.
_UNUSABLE = 2

def main() -> int:
    """Runs the command with the arguments of this process; returns its exit code."""
    import signal

    # The command handles Ctrl-C itself: it stops at the next unit of work and keeps what is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdout is not None:
        # There is none where standard output was closed before (`>&-`).
        sys.stdout.flush()
    return _nextstat.command(["nextstat", *sys.argv[1:]])


def command(arguments: Sequence[str | os.PathLike[str] | float], *, input: str | None = None) -> CommandResult:
    """Runs the `nextstat` command with `arguments`, in a process of its own.

    Parameters
    ----------
    arguments : sequence of str, path or number
        As on the command line, without the command's name.
    input : str, optional
        What it reads where an argument is ``-``.

    Returns
    -------
    CommandResult
        Its exit code (0 done, 1 done but a fit did not converge), its output, and `json()`.

    Raises
    ------
    NextstatError
        Bad input or usage, in the command's own words.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.command(["hypotest", "examples/simple.json"]).json()[
    ...     "CLs_obs"
    ... ] == nextstat.hypotest(nextstat.load_workspace("examples/simple.json")).CLs_obs
    True
    """
    if isinstance(arguments, (str, bytes)) or not hasattr(arguments, "__iter__"):
        raise TypeError(f"`arguments` is a sequence of words, such as ['fit', 'workspace.json'], not `{shown(arguments)}`")
    if input is not None and not isinstance(input, str):
        raise TypeError(f"`input` is text, not `{shown(input)}`")
    import subprocess

    words = [_word(argument) for argument in arguments]
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "nextstat", *words],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    if done.returncode == _UNUSABLE:
        raise NextstatError(done.stderr.strip().removeprefix("error: "))
    return CommandResult({"exit_code": done.returncode, "output": done.stdout, "messages": done.stderr})


def _word(argument: object) -> str:
    """Returns an argument as the command line has it; numbers need no quotes here."""
    if isinstance(argument, (str, os.PathLike)):
        return os.fsdecode(argument)
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return str(argument)
    raise TypeError(f"`arguments` has words, paths and numbers, not `{shown(argument)}`")
