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
    ParameterError,
    WorkspaceError,
    apply_patch,
    command,
    escape,
    interpolate,
    xml_for_pyhf,
)

__all__ = [
    "DataError",
    "Escaped",
    "FloatingModel",
    "Model",
    "ModelError",
    "NextstatError",
    "ParameterError",
    "WorkspaceError",
    "apply_patch",
    "command",
    "escape",
    "install_command",
    "interpolate",
    "with_hint",
    "write_whole",
    "xml_for_pyhf",
]
