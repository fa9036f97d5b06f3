"""Workspace documents combined, pruned and renamed."""

import copy
from collections import Counter, namedtuple

from .exceptions import InvalidWorkspaceOperation

#: Names of things in a workspace: what to remove (lists), or what to call them (dictionaries).
Names = namedtuple("Names", "modifiers modifier_types samples channels measurements")


def need(workspace, names):
    """Raises `InvalidWorkspaceOperation` for a name that `workspace` does not have."""
    known = Names(
        {name for name, _ in workspace.modifiers},
        {kind for _, kind in workspace.modifiers},
        workspace.samples,
        workspace.channels,
        workspace.measurement_names,
    )
    for field in Names._fields:
        for name in getattr(names, field):
            if name not in getattr(known, field):
                raise InvalidWorkspaceOperation(f"{name} is not one of the {field.replace('_', ' ')} in this workspace.")


def changed(workspace, removed, renamed):
    """Returns the document of `workspace` without what is `removed`, and with other names."""
    modifier_name = renamed.modifiers.get
    return {
        "channels": [
            {"name": renamed.channels.get(channel["name"], channel["name"]), "samples": _samples(channel, removed, renamed)}
            for channel in workspace["channels"]
            if channel["name"] not in removed.channels
        ],
        "measurements": [
            {
                "name": renamed.measurements.get(measurement["name"], measurement["name"]),
                "config": {
                    "parameters": [
                        {**parameter, "name": modifier_name(parameter["name"], parameter["name"])}
                        for parameter in measurement["config"]["parameters"]
                        if parameter["name"] not in removed.modifiers
                    ],
                    "poi": modifier_name(measurement["config"]["poi"], measurement["config"]["poi"]),
                },
            }
            for measurement in workspace["measurements"]
            if measurement["name"] not in removed.measurements
        ],
        "observations": [
            {**copy.deepcopy(observation), "name": renamed.channels.get(observation["name"], observation["name"])}
            for observation in workspace["observations"]
            if observation["name"] not in removed.channels
        ],
        "version": workspace["version"],
    }


def _samples(channel, removed, renamed):
    return [
        {
            "name": renamed.samples.get(sample["name"], sample["name"]),
            "data": sample["data"],
            "modifiers": [
                {**modifier, "name": renamed.modifiers.get(modifier["name"], modifier["name"])}
                for modifier in sample["modifiers"]
                if modifier["name"] not in removed.modifiers and modifier["type"] not in removed.modifier_types
            ],
        }
        for sample in channel["samples"]
        if sample["name"] not in removed.samples
    ]


def combined(left, right, join, merge_channels):
    """Returns the document of two workspaces together."""
    if left["version"] != right["version"]:
        raise InvalidWorkspaceOperation(f"Workspaces of different versions cannot be combined: {left['version']} != {right['version']}")
    channels = _joined("channels", join, left, right, "samples" if merge_channels else None)
    observations = _joined("observations", join, left, right)
    measurements = _joined_measurements(join, left, right)
    return {"channels": channels, "measurements": measurements, "observations": observations, "version": left["version"]}


def _items(join, left, right, inner=None):
    """Returns two lists of named things as one; things of one name that differ occur twice after an
    outer join.
    """
    first, second = (right, left) if join == "right outer" else (left, right)
    joined = copy.deepcopy(first)
    places = {item["name"]: place for place, item in reversed(list(enumerate(joined)))}
    for item in second:
        place = places.get(item["name"])
        if place is not None and inner is not None:
            joined[place][inner] = _items("left outer", joined[place][inner], item[inner])
        elif place is None or join == "none" or (join == "outer" and item not in first):
            joined.append(copy.deepcopy(item))
    return joined


def _twice(items):
    return [name for name, count in Counter(item["name"] for item in items).items() if count > 1]


def _joined(what, join, left, right, inner=None):
    joined = _items(join, left[what], right[what], inner)
    repeated = _twice(joined)
    if join in ("none", "outer") and repeated:
        problem = "any {} in common with the same name" if join == "none" else "{} in common with incompatible structure"
        raise InvalidWorkspaceOperation(f"Workspaces cannot have {problem.format(what)}: {repeated}. You can also try a different join operation.")
    return joined


def _joined_measurements(join, left, right):
    if join != "outer":
        return _joined("measurements", join, left, right)
    by_name = {}
    for measurement in _items(join, left["measurements"], right["measurements"]):
        by_name.setdefault(measurement["name"], []).append(measurement)
    contradicting = [name for name, found in by_name.items() if len({measurement["config"]["poi"] for measurement in found}) > 1]
    if contradicting:
        raise InvalidWorkspaceOperation(f"Workspaces cannot have the same measurements with incompatible POI: {contradicting}.")
    return [_one_measurement(name, found) for name, found in by_name.items()]


def _one_measurement(name, found):
    if len(found) == 1:
        return found[0]
    parameters = found[0]["config"]["parameters"]
    for other in found[1:]:
        parameters = _items("outer", parameters, other["config"]["parameters"])
    repeated = _twice(parameters)
    if repeated:
        raise InvalidWorkspaceOperation(f"Workspaces cannot have a measurement ({name}) with incompatible parameter configs: {repeated}. You can also try a different join operation.")
    return {"name": name, "config": {"poi": found[0]["config"]["poi"], "parameters": parameters}}
