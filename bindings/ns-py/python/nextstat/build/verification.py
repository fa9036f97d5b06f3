"""What was built is read by the engine before it is written: what it refuses is an error of the
setting that is responsible.

The engine's errors have pointers into the workspace or the patch set; here they are followed back
to the configuration.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._documents import PatchSet
from .._models import model_of
from .._nextstat import ModelError, WorkspaceError

if TYPE_CHECKING:
    from ._places import Node
    from .settings import Config

# A place in a workspace or a patch set, and what errors say beside it.
_POINTER = re.compile(r"/(?:channels|observations|measurements|patches|metadata)(?:/\w+)*")
_BESIDE = re.compile(rf"^{_POINTER.pattern}: |,? at `{_POINTER.pattern}`(?: \(line \d+, column \d+\))?")


def require_model(config: Config, workspace: dict[str, Any], poi: str | None = None) -> None:
    """Refuses a workspace that the engine refuses, at the place in the configuration.

    `poi` is ``"none"`` for a background without a signal.
    """
    try:
        model_of(workspace, poi=poi)
    except (ModelError, WorkspaceError) as error:
        keys = _keys(error)
        if keys[2:] == ["config", "poi"]:
            error.hint = "`Samples` and `Regions` of the factor choose nothing"
        raise _placed(_of_workspace(config, workspace, keys), error) from None


def require_patch_set(config: Config, patches: dict[str, Any]) -> None:
    """Refuses a patch set that the engine refuses, at the place in the configuration."""
    try:
        PatchSet(patches)
    except WorkspaceError as error:
        raise _placed(_of_patch_set(config, _keys(error)), error) from None


def _keys(error):
    """Returns the keys of the first pointer in a message; none without one."""
    found = _POINTER.search(str(error))
    return [] if found is None else found.group().split("/")[1:]


def _placed(node: Node, error):
    return node.error(_BESIDE.sub("", str(error)), error.hint)


def _of_workspace(config, workspace, keys) -> Node:
    """Returns the place in the configuration that has made a place in the workspace."""
    root = config.document.root
    match keys:
        case ["channels", channel, "samples", sample, "modifiers", modifier, *more]:
            region = workspace["channels"][int(channel)]
            found = region["samples"][int(sample)]
            return _of_modifier(config, region["name"], found["name"], found["modifiers"][int(modifier)], more)
        case ["channels", channel, "samples", sample, *_]:
            return _named(config.samples, workspace["channels"][int(channel)]["samples"][int(sample)]["name"])
        case ["channels", channel, *_]:
            return _named(config.regions, workspace["channels"][int(channel)]["name"])
        case ["observations", *_]:
            return config.data.node
        case ["measurements", _, "config", "poi", *_]:
            return root["General"].get("POI") or root["General"]
        case ["measurements", measurement, "config", "parameters", index, *_]:
            setting = workspace["measurements"][int(measurement)]["config"]["parameters"][int(index)]
            return _of_parameter(config, setting["name"])
    return root


def _named(items, name):
    return next(item.node for item in items if item.name == name)


def _of_modifier(config, region, sample, modifier, keys):
    """Returns the place of a modifier, or of that side of it that the last keys name."""
    if modifier["type"] == "staterror":
        return _named(config.samples, sample)
    if modifier["type"] not in ("normsys", "histosys"):
        return _of_parameter(config, modifier["name"])
    # Decorrelated parameters have longer names.
    known = [one for one in config.systematics if (modifier["name"] + "_").startswith(one.modifier + "_")]
    known = [one for one in known if one.choice.has_region(region) and one.choice.has_sample(sample)]
    if not known:
        return _named(config.samples, sample)
    systematic = max(known, key=lambda one: len(one.modifier))
    side = keys[1].partition("_")[0] if keys[:1] == ["data"] and len(keys) > 1 else ""
    return {"hi": systematic.up.node, "lo": systematic.down.node}.get(side, systematic.node)


def _of_parameter(config, name):
    """Returns the place of the factor or the systematic that a parameter belongs to."""
    lumi = config.document.root["Nextstat"]["Lumi"] if config.options.lumi is not None else None
    if lumi is not None and name == config.options.lumi.name:
        return lumi
    known = [(one.name, one.node) for one in config.normfactors] + [(one.modifier, one.node) for one in config.systematics]
    known = [(own, node) for own, node in known if (name + "_").startswith(own + "_")]
    return max(known, key=lambda one: len(one[0]), default=("", config.document.root))[1]


def _of_patch_set(config, keys):
    """Returns the place in the configuration that has made a place in the patch set."""
    node = config.document.root["Nextstat"]["PatchSet"]
    match keys:
        case ["patches", index, "metadata", key, *_] if key in ("name", "values"):
            return node["Signals"].items()[int(index)][key.capitalize()]
        case ["patches", index, *_]:
            return node["Signals"].items()[int(index)]
        case ["metadata", "labels", *_]:
            return node["Labels"]
        case ["metadata", "references", *_]:
            return node.get("HEPData") or node
    return node
