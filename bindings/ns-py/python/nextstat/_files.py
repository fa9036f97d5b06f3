"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import TypeAlias

    Content: TypeAlias = bytes | Callable[[Path], object]


def write_whole(files: Mapping[Path, Content]) -> None:
    """Writes files from bytes, or by functions that are given a path.

    Everything is written beside its place and synced before the first file is moved there, so an
    error or a kill leaves the old files as they were. Links are followed, permissions are kept, and
    pipes and devices are written to as they are.
    """
    # Not needed to import the package, and slow to import.
    from pathlib import Path

    parts: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            target = Path(os.path.realpath(path))
            if target.exists() and not target.is_file():
                _write_special(target, content)
                continue
            parts[target] = part = _new_beside(target)
            content(part) if callable(content) else part.write_bytes(content)
            _sync(part)
        while parts:
            target = next(iter(parts))
            os.replace(parts[target], target)
            del parts[target]
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _new_beside(target: Path) -> Path:
    """Returns an empty file in the folder of `target`, with the permissions that `target` has or
    would have.
    """
    part = target.with_name(f".{target.name[:80]}.{os.urandom(8).hex()}.tmp")
    is_there = target.exists()
    if is_there and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        # The user knows the file by its own name.
        raise type(error)(error.errno, error.strerror, str(target)) from None
    if is_there:
        os.chmod(part, stat.S_IMODE(target.stat().st_mode))
    return part


def _sync(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _write_special(target: Path, content: Content) -> None:
    if callable(content):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    with open(target, "wb") as file:
        file.write(content)
