"""What is found in documents, grids of signals, and what the command did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import _views
from .base import About, Result, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CheckResult", "CombinationResult", "CommandResult", "GridResult", "InspectResult"]


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
    _schema = "inspect"
    _has_provenance = False
    summary: Mapping[str, int]
    channels: tuple[Any, ...]
    samples: tuple[str, ...]
    modifiers: Mapping[str, str]
    parameters: tuple[Any, ...]
    systematics: tuple[Any, ...]
    measurements: tuple[Any, ...]
    measurement: str

    def _view(self) -> _views.View:
        facts = [(what, str(n)) for what, n in self.summary.items()]
        facts.append(("measurement", self.measurement))
        rows = [(name, str(n_bins)) for name, n_bins in self.channels]
        return _views.View("InspectResult", facts, _views.tables(rows, ("channel", "bins")))


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
    _schema = "check"
    findings: tuple[Mapping[str, Any], ...]
    n_errors: int
    n_warnings: int
    n_notes: int
    measurement: str
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        facts = [
            ("errors", str(self.n_errors)),
            ("warnings", str(self.n_warnings)),
            ("notes", str(self.n_notes)),
        ]
        rows = [
            (found["severity"], found["code"], found.get("message", "")) for found in self.findings
        ]
        tables = _views.tables(rows, ("severity", "code", "what"))
        return _views.View("CheckResult", facts, tables, is_bad=self.n_errors > 0)


class GridResult(Result):
    """Answers for every patch of a set.

    Attributes
    ----------
    patches : tuple of dict
        In the set's order: `patch` (the name), `values` (by label), and `result`, or `error` with
        the reason why there is none.
    n_patches : int
    complete : bool
        Whether every patch was analysed.
    converged : bool
        Whether every patch has a result whose fits converged.
    measurement : str or None
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "every-patch"
    patches: tuple[Mapping[str, Any], ...]
    n_patches: int
    complete: bool
    measurement: str | None
    warnings: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """Whether every patch has a result whose fits converged."""
        return not any(is_bad(found) for found in self.patches)

    def _view(self) -> _views.View:
        rows = []
        for found in self.patches:
            answer = found.get("result")
            value = "-" if answer is None else _first_number(answer)
            rows.append((found["patch"], found.get("error", value)))
        facts = [("patches", str(self.n_patches))]
        return _views.View("GridResult", facts, _views.tables(rows, ("patch", "answer")))

    @property
    def _said(self) -> About:
        """What tables say of the analysis of every patch."""
        answers = (found.get("result") for found in self.patches)
        return next((one._said for one in answers if isinstance(one, Result)), About())

    def _document(self) -> dict[str, Any]:
        patches = []
        for found in self.patches:
            result = found.get("result")
            row = {key: plain(value) for key, value in found.items() if key != "result"}
            if isinstance(result, Result) and not isinstance(result, (CheckResult, CommandResult, GridResult, InspectResult)):
                row["result"] = result._document()
            elif "result" in found:
                row["value"] = plain(result)
            patches.append(row)
        others = {name: plain(value) for name, value in self._fields.items() if name not in ("patches", "measurement")}
        return {**others, "patches": patches, "converged": self.converged}


def is_bad(found: Mapping[str, Any]) -> bool:
    """Returns whether a patch has an error or a fit that did not converge."""
    return "error" in found or getattr(found["result"], "_fields", {}).get("converged") is False


def _first_number(answer: Any) -> str:
    for name in ("CLs_obs", "observed", "Z_obs", "twice_nll"):
        if name in getattr(answer, "_fields", ()):
            return f"{name} = {_views.shown_number(getattr(answer, name))}"
    return type(answer).__name__


class CombinationResult(Result):
    """A workspace made of others, and what was correlated and split.

    Attributes
    ----------
    workspace : dict
        The workspace; not part of the document.
    analyses : tuple of dict
        The workspaces that it is made of: `label`, `channels`, `measurements`.
    measurements : tuple of dict
        `name` and `poi` of each measurement.
    parameters : tuple of dict
        `parameter`, `correlated_by` (``"map"``, ``"name"`` or None), `rules`, `uses` (what it is in
        each workspace) and `differences`.
    rules : tuple of dict
        What each rule of the map did: `rule` (its place), `line`, `action`, `parameters` and
        `without_counterpart`.
    warnings : tuple of str
        What differs between workspaces that share a parameter.
    """

    __slots__ = ()
    _schema = "combination"
    workspace: Mapping[str, Any]
    analyses: tuple[Mapping[str, Any], ...]
    measurements: tuple[Mapping[str, Any], ...]
    parameters: tuple[Mapping[str, Any], ...]
    rules: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        by_name = sum(found["correlated_by"] == "name" for found in self.parameters)
        facts = [
            ("workspaces", ", ".join(analysis["label"] for analysis in self.analyses)),
            ("parameters", str(len(self.parameters))),
            ("correlated by name alone", str(by_name)),
        ]
        facts += [("measurement", f"{found['name']} ({found['poi']})") for found in self.measurements]
        rows = [
            (
                found["parameter"],
                found["correlated_by"] or "-",
                ", ".join(found["rules"]) or "-",
                ", ".join(used["analysis"] for used in found["uses"]),
            )
            for found in self.parameters
            if found["correlated_by"] or found["rules"]
        ]
        tables = _views.tables(rows, ("parameter", "correlated by", "rule", "workspaces"))
        return _views.View("CombinationResult", facts, tables)

    def _document(self) -> dict[str, Any]:
        return {name: found for name, found in super()._document().items() if name != "workspace"}


class CommandResult(Result):
    """What the command did.

    Attributes
    ----------
    exit_code : int
    output : str
        Standard output.
    messages : str
        Standard error.
    """

    __slots__ = ()
    exit_code: int
    output: str
    messages: str

    def json(self) -> Any:
        """Returns the output as Python objects."""
        return json.loads(self.output)

    def _view(self) -> _views.View:
        facts = [
            ("exit code", str(self.exit_code)),
            ("output", f"{len(self.output)} characters"),
        ]
        first, *rest = self.messages.strip().split("\n")
        facts += [("messages", first), *(("", line) for line in rest)]
        return _views.View("CommandResult", facts)
