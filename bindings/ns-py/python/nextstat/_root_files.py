"""Histograms and trees in ROOT files, read with uproot, which is imported when a file is read."""

from __future__ import annotations

import difflib
import glob
import re
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from ._errors import install_command, with_hint
from ._nextstat import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The file ends with `.root`, or at the last colon.
_PARTS = re.compile(r"(.+?\.root(?:\.\d+)?):(.+)|(.+):([^/\\].*)", re.DOTALL)


def split_path(path: str) -> tuple[str, str] | None:
    """Returns the file and the object of ``"file.root:folder/histogram"``; None without an object.

    >>> split_path("root://host:1094//data/file.root:region/ttbar")
    ('root://host:1094//data/file.root', 'region/ttbar')
    >>> split_path("file.root") is None
    True
    """
    found = _PARTS.fullmatch(path)
    if found is None:
        return None
    file, key = found.group(1) or found.group(3), found.group(2) or found.group(4)
    return None if file in ("root", "http", "https", "file") else (file, key)


def files_of(file: str) -> list[str]:
    """Returns the files that a path with wildcards names, sorted; a path without any is itself."""
    return sorted(glob.glob(file)) if glob.has_magic(file) and "://" not in file else [file]


class RootFiles:
    """Open ROOT files: each is opened once, and `close` closes all."""

    def __init__(self) -> None:
        self._files: dict[str, Any] = {}

    def close(self) -> None:
        """Closes all files."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def histogram(self, path: str, place: str = "") -> Any:
        """Returns the histogram at ``"file.root:folder/histogram"``.

        Raises
        ------
        WorkspaceError
            If there is no such file or histogram.
        """
        parts = split_path(path)
        if parts is None:
            hint = "a histogram in a file is `file.root:folder/histogram`"
            raise with_hint(_error(place, f"`{path}` names a file, and no histogram in it"), hint)
        found = self._object(*parts, "histogram", place)
        if not (hasattr(found, "axes") and hasattr(found, "values")):
            raise _error(place, f"`{parts[1]}` of `{parts[0]}` is a {getattr(found, 'classname', type(found).__name__)}, not a histogram")
        return found

    def columns(self, file: str, tree: str, expressions: Sequence[str], cut: str | None, place: str = "") -> list[NDArray[Any]]:
        """Returns values of expressions for the entries of a tree that pass a cut.

        `file` may have wildcards; expressions are those of uproot: names of branches, operators,
        and functions such as `sqrt`.

        Raises
        ------
        WorkspaceError
            If there is no such file, tree or branch, or an expression is not valid.
        """
        paths = files_of(file)
        if not paths:
            raise _error(place, f"there is no file `{file}`")
        parts: list[list[NDArray[Any]]] = [[] for _ in expressions]
        for path in paths:
            found = self._object(path, tree, "tree", place)
            # uproot ignores cuts and expressions of an RNTuple.
            if not getattr(found, "classname", "").startswith(("TTree", "TNtuple", "TChain")):
                raise _error(place, f"`{tree}` of `{path}` is a {getattr(found, 'classname', type(found).__name__)}, not a TTree")
            for part, column in zip(parts, _columns(found, expressions, cut, place), strict=True):
                part += column
        return [numpy.concatenate(part) if part else numpy.empty(0) for part in parts]

    def _object(self, file, key, what, place):
        opened = self._opened(file, place)
        try:
            return opened[key]
        except KeyError:
            raise _missing(place, file, key, what, _keys(opened)) from None
        # Whatever a damaged file makes uproot raise is about the file.
        except Exception as error:
            raise _error(place, f"cannot read `{key}` of `{file}`: {_said(error)}") from None

    def _opened(self, file, place):
        if file not in self._files:
            self._files[file] = _open(file, place)
        return self._files[file]


def _columns(tree, expressions, cut, place):
    """Returns arrays of each expression, one for each batch of entries."""
    try:
        batches = list(tree.iterate(expressions=list(dict.fromkeys(expressions)), cut=cut))
        return [[batch[expression].to_numpy() for batch in batches] for expression in expressions]
    # Expressions are the user's: whatever they make uproot raise is about them.
    except Exception as error:
        wanted = ", ".join(f"`{one}`" for one in (*expressions, *([] if cut is None else [cut])))
        found = _error(place, f"cannot evaluate {wanted}: {_said(error)}")
        raise with_hint(found, f"expressions have operators, functions such as `sqrt`, and the branches {', '.join(tree.keys()[:12])}") from None


def read_histogram(path: str, place: str = "") -> Any:
    """Returns the histogram at ``"file.root:folder/histogram"``; the file is closed afterwards."""
    with closing(RootFiles()) as files:
        return files.histogram(path, place)


def _open(file, place):
    try:
        return _uproot().open(file)
    except FileNotFoundError:
        raise _error(place, f"there is no file `{file}`") from None
    except ImportError:
        raise
    except Exception as error:
        raise _error(place, f"cannot read `{file}` as a ROOT file: {_said(error)}") from None


def _keys(opened):
    """Returns the names of the objects in a file; none if it is damaged."""
    try:
        return opened.keys(cycle=False)
    except Exception:
        return []


def _missing(place, file, key, what, names):
    error = _error(place, f"there is no {what} `{key}` in `{file}`")
    close = difflib.get_close_matches(key, names, n=1)
    if close:
        return with_hint(error, f"did you mean `{close[0]}`?")
    return with_hint(
        error, f"there are {', '.join(f'`{name}`' for name in names[:8])}{' …' if len(names) > 8 else ''}" if names else "nothing was found in the file"
    )


@lru_cache(maxsize=1)
def _uproot():
    try:
        import uproot
    except ImportError as reason:
        raise ImportError(f"ROOT files need uproot: {install_command('build')} ({reason})") from None
    return uproot


def _said(error):
    """Returns the first sentence of what uproot says."""
    text = " ".join(str(error).strip().split("\n\n")[0].split())
    return text[:200] or type(error).__name__


def _error(place, message):
    return WorkspaceError(f"{place}: {message}" if place else message)
