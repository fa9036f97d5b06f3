"""What the pyhf shim uses of the native package: all of it, and the only module that it imports.

Nothing of the native package imports this one.
"""

from __future__ import annotations

from ._errors import Escaped, install_command
from ._files import write_whole
from ._nextstat import (
    DataError,
    FloatingModel,
    Model,
    ModelError,
    WorkspaceError,
    apply_patch,
    escape,
    interpolate,
)

__all__ = [
    "DataError",
    "Escaped",
    "FloatingModel",
    "Model",
    "ModelError",
    "WorkspaceError",
    "apply_patch",
    "escape",
    "install_command",
    "interpolate",
    "write_whole",
]
