"""The backend and the optimizer in use: read everywhere, set by `tensor.manager`."""

from __future__ import annotations

from typing import Any

#: Pairs of a backend and an optimizer, which `tensor.manager` fills when it is imported.
state: dict[str, Any] = {"default": None, "current": None}


def get_backend(default=False) -> Any:
    """Returns the backend and the optimizer in use, or the default ones."""
    return state["default" if default else "current"]
