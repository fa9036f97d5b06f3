"""Decorrelation: one nuisance parameter becomes several, one for each region, sample or both.

Modifiers of one name share a parameter, so decorrelating is renaming.
"""

from __future__ import annotations

import copy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .._arguments import names
from .._errors import listed, with_hint
from .._nextstat import ParameterError, WorkspaceError
from ._places import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

BY = ("region", "sample")
# A staterror is one parameter per bin of a channel already, and a shapesys of a sample.
_KINDS = ("normsys", "histosys", "normfactor", "shapefactor", "lumi")


def decorrelate(workspace: dict[str, Any], parameters: str | Sequence[str], by: str | Sequence[str]) -> dict[str, Any]:
    """A new workspace in which parameters are separate in each region, sample, or both.

    The parameter `JES` becomes `JES_SR`, `JES_ttbar`, or `JES_SR_ttbar`; its settings in
    measurements (initial value, range, fixed) are those of each of them.

    Parameters
    ----------
    workspace : dict
    parameters : str or sequence of str
        Names or patterns such as ``"JES_*"``.
    by : str or sequence of str
        ``"region"``, ``"sample"``, or both.

    Raises
    ------
    WorkspaceError
        If no parameter matches, if a new name is there already, or if the parameter of interest
        matches.

    Examples
    --------
    >>> import json, nextstat
    >>> from nextstat.build import decorrelate
    >>> with open("examples/shapes.json") as file:
    ...     workspace = decorrelate(json.load(file), "jet_energy_*", by="region")
    >>> [name for name in nextstat.model_of(workspace).par_names if name.startswith("jet")]
    ['jet_energy_scale_control_region', 'jet_energy_scale_signal_region']
    """
    parts = names("by", by)
    for part in parts:
        if part not in BY:
            raise ParameterError(f"`by` has {listed(BY)}, not `{part}`")
    found, known = copy.deepcopy(workspace), _parameters(workspace)
    wanted = _matching(known, names("parameters", parameters))
    _require_no_poi(found, wanted)
    renamed: dict[str, list[str]] = {name: [] for name in wanted}
    for channel in found["channels"]:
        for sample in channel["samples"]:
            for modifier in sample["modifiers"]:
                if modifier["type"] in _KINDS and modifier["name"] in renamed:
                    new = "_".join([modifier["name"], *(channel["name"] if part == "region" else sample["name"] for part in BY if part in parts)])
                    renamed[modifier["name"]].append(new)
                    modifier["name"] = new
    _require_new_names(renamed, known)
    for measurement in found["measurements"]:
        _rename_settings(measurement["config"], renamed)
    return found


def _parameters(workspace):
    return list(
        dict.fromkeys(
            modifier["name"]
            for channel in workspace["channels"]
            for sample in channel["samples"]
            for modifier in sample["modifiers"]
            if modifier["type"] in _KINDS
        )
    )


def _matching(known, patterns):
    wanted = []
    for pattern in patterns:
        matching = [name for name in known if name == pattern or fnmatchcase(name, pattern)]
        if not matching:
            error = WorkspaceError(f"no parameter that can be decorrelated is called `{pattern}`")
            raise with_hint(error, did_you_mean(pattern, known) or f"there are {listed(known)}")
        wanted += matching
    return dict.fromkeys(wanted)


def _require_no_poi(workspace, wanted):
    for measurement in workspace["measurements"]:
        poi = measurement["config"].get("poi")
        if poi in wanted:
            raise with_hint(WorkspaceError(f"`{poi}` is the parameter of interest and cannot be decorrelated"), "choose a narrower pattern")


def _require_new_names(renamed, known):
    """That names which were different before have not become one."""
    taken = set(known) - set(renamed)
    for old, new_names in renamed.items():
        for new in dict.fromkeys(new_names):
            if new in taken:
                raise WorkspaceError(f"`{old}` cannot become `{new}`: there is another parameter of this name")
            taken.add(new)


def _rename_settings(config, renamed):
    settings = []
    for setting in config.get("parameters", []):
        if setting["name"] in renamed:
            settings += [{**setting, "name": new} for new in dict.fromkeys(renamed[setting["name"]])]
        else:
            settings.append(setting)
    config["parameters"] = settings
