"""What the pyhf shim uses of the native package: all of it, and the only module that it imports.

Nothing of the native package imports this one.
"""

from __future__ import annotations

from ._errors import Escaped, install_command, with_hint
from ._files import write_whole
from ._nextstat import (
    DataError,
    FloatingModel,
    Model,
    ModelError,
    NextstatError,
    WorkspaceError,
    apply_patch,
    convert_document,
    escape,
    interpolate,
    read_document,
)

__all__ = [
    "DataError",
    "Escaped",
    "FloatingModel",
    "Model",
    "ModelError",
    "NextstatError",
    "WorkspaceError",
    "apply_patch",
    "convert_document",
    "escape",
    "install_command",
    "interpolate",
    "read_document",
    "with_hint",
    "write_whole",
]
