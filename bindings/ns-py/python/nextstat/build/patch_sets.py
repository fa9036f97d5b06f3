"""Patch sets: a grid of signals as JSON patches of one background-only workspace."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .._documents import apply_patch, digest
from .._errors import with_hint
from .._nextstat import ParameterError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Value = int | float | str


def without_samples(workspace: dict[str, Any], samples: Sequence[str]) -> dict[str, Any]:
    """Returns a workspace without some samples: the background of a signal's workspace.

    Measurements are as they were, since patches bring the parameter of interest with the signal.

    Examples
    --------
    >>> import json
    >>> from nextstat.build import without_samples
    >>> with open("examples/simple.json") as file:
    ...     background = without_samples(json.load(file), ["signal"])
    >>> [sample["name"] for sample in background["channels"][0]["samples"]]
    ['background']
    """
    found = copy.deepcopy(workspace)
    for channel in found["channels"]:
        channel["samples"] = [sample for sample in channel["samples"] if sample["name"] not in samples]
        if not channel["samples"]:
            raise WorkspaceError(f"channel `{channel['name']}`: no samples are left")
    return found


def patch_set(
    background: dict[str, Any],
    signals: Mapping[str, dict[str, Any]],
    *,
    labels: Sequence[str],
    values: Mapping[str, Sequence[Value]],
    description: str = "Signals",
    hepdata: str = "ins0000000",
) -> dict[str, Any]:
    """Returns a patch set that makes the workspaces `signals` of the workspace `background`.

    Parameters
    ----------
    background : dict
        The workspace without signal.
    signals : dict
        By the names of the patches, workspaces that are the background with more samples.
    labels : sequence of str
        What the values of a point are, such as ``["m_stop", "m_lsp"]``.
    values : dict
        By the names of the patches, a value for each label.
    description, hepdata : str
        What the set is, and the HEPData record that it belongs to (``"ins"`` and seven digits;
        zeros before there is one).

    Raises
    ------
    WorkspaceError
        If a workspace differs from the background in something else than more samples.

    Examples
    --------
    >>> import json, nextstat
    >>> from nextstat.build import patch_set, without_samples
    >>> with open("examples/simple.json") as file:
    ...     workspace = json.load(file)
    >>> background = without_samples(workspace, ["signal"])
    >>> patches = patch_set(
    ...     background, {"m300": workspace}, labels=["mass"], values={"m300": [300]}
    ... )
    >>> nextstat.PatchSet(patches).apply(background, "m300") == workspace
    True
    """
    for name in signals:
        if len(values.get(name, ())) != len(labels):
            raise ParameterError(f"`values` has {len(values.get(name, ()))} values of `{name}` for {len(labels)} labels")
    return {
        "metadata": {
            "description": description,
            "digests": {"sha256": digest(background)},
            "labels": list(labels),
            "references": {"hepdata": hepdata},
        },
        "patches": [
            {"metadata": {"name": name, "values": list(values[name])}, "patch": _patch(background, workspace, name)} for name, workspace in signals.items()
        ],
        "version": "1.0.0",
    }


def _patch(background, workspace, name):
    """Returns the operations that add the samples of a signal, each at its index."""
    before = [channel["name"] for channel in background["channels"]]
    if [channel["name"] for channel in workspace["channels"]] != before:
        raise WorkspaceError(f"signal `{name}`: the channels are not those of the background")
    operations = [
        {"op": "add", "path": f"/channels/{i}/samples/{k}", "value": sample}
        for i, channel in enumerate(workspace["channels"])
        for k, sample in enumerate(channel["samples"])
        if sample["name"] not in {one["name"] for one in background["channels"][i]["samples"]}
    ]
    if digest(apply_patch(background, operations)) != digest(workspace):
        message = f"signal `{name}`: the workspace differs from the background in more than its samples"
        raise with_hint(WorkspaceError(message), "`without_samples` makes the background of it")
    return operations
