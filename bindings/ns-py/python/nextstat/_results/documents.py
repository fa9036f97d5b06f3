"""What is found in documents, grids of signals, and what the command did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .base import Result, plain

if TYPE_CHECKING:
    from collections.abc import Mapping


class InspectResult(Result):
    """What a workspace contains.

    Attributes
    ----------
    summary : dict
        Numbers of channels, bins, samples, parameters and modifiers.
    channels, samples, parameters, systematics, measurements : tuple
        As `pyhf inspect` has them.
    modifiers : dict
        Their types, by name.
    measurement : str
        The one that is used.
    """

    __slots__ = ()
    summary: Mapping[str, int]
    channels: tuple[Any, ...]
    samples: tuple[str, ...]
    modifiers: Mapping[str, str]
    parameters: tuple[Any, ...]
    systematics: tuple[Any, ...]
    measurements: tuple[Any, ...]
    measurement: str


class CheckResult(Result):
    """What is wrong with a model.

    Attributes
    ----------
    findings : tuple of dict
        Worst first: `severity`, `code`, `message`, and the place.
    n_errors, n_warnings, n_notes : int
    measurement : str
    """

    __slots__ = ()
    findings: tuple[Mapping[str, Any], ...]
    n_errors: int
    n_warnings: int
    n_notes: int
    measurement: str


class GridResult(Result):
    """Answers for every patch of a set.

    Attributes
    ----------
    patches : tuple of dict
        In the set's order: `patch` (the name), `values` (by label), and `result`, or `error` with the reason why there is none.
    n_patches : int
    """

    __slots__ = ()
    patches: tuple[Mapping[str, Any], ...]
    n_patches: int

    def to_dict(self) -> dict[str, Any]:
        """The command's document: each patch with its answer's fields beside its name and values."""
        patches = []
        for found in self.patches:
            result = found.get("result")
            rest = {} if result is None else result.to_dict() if isinstance(result, Result) else {"result": plain(result)}
            patches.append({**rest, **{key: plain(value) for key, value in found.items() if key != "result"}})
        return {"complete": True, "n_patches": self.n_patches, "patches": patches}


class CommandResult(Result):
    """What the command did: `exit_code`, `output` (standard output) and `messages` (standard error)."""

    __slots__ = ()
    exit_code: int
    output: str
    messages: str

    def json(self) -> Any:
        """Its output as Python objects."""
        return json.loads(self.output)
