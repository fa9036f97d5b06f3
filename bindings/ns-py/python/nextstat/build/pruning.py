"""Pruning: modifiers that change little or nothing are left out of a workspace, and every one that
was left out is recorded with its effect and the reason.

All functions take a workspace of any origin as a dictionary, leave it as it is, and return a new
one. The effect of a modifier on a sample in a channel is

- of a normsys, the larger of |hi - 1| and |lo - 1|: its change of the rate;
- of a histosys, the largest |t/n - 1| over both templates t and all bins, where n is the nominal
  content: its change of the shape, if the templates have the nominal number of events.
"""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy

from .._arguments import real
from .._nextstat import ParameterError
from .settings import PruningThresholds, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Workspace: TypeAlias = dict[str, Any]

# A relative change that rounding makes.
NO_CHANGE = 1e-12


@dataclass(frozen=True)
class Removal:
    """A modifier that was left out, or bins of one.

    Attributes
    ----------
    channel, sample, modifier, kind : str
        Which one; `sample` is empty for a staterror, which the samples share.
    effect : float
        Its relative change of the yield, or the largest relative error of a staterror's bins.
    threshold : float
        What the effect is below; zero if it changes nothing.
    bins : tuple of int
        The bins of a staterror; empty for all.
    """

    channel: str
    sample: str
    modifier: str
    kind: str
    effect: float
    threshold: float
    bins: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """Why it was left out.

        >>> from nextstat.build import Removal
        >>> Removal("SR", "ttbar", "JES", "histosys", 0.003, 0.005).reason
        'changes the shape by 0.003, below 0.005'
        """
        if self.threshold == 0.0:
            return "changes nothing"
        what = {"normsys": "changes the rate by", "histosys": "changes the shape by"}.get(self.kind, "has a relative error of")
        return f"{what} {self.effect:.2g}, below {self.threshold:g}"

    def document(self) -> dict[str, Any]:
        """Returns a dictionary for JSON."""
        return {**asdict(self), "bins": list(self.bins), "reason": self.reason}


def effect(modifier: dict[str, Any], nominal: Sequence[float]) -> float:
    """Returns the effect of a normsys or a histosys; infinity for other kinds, which are never left
    out.

    Examples
    --------
    >>> from nextstat.build import effect
    >>> effect({"type": "normsys", "data": {"hi": 1.25, "lo": 0.875}}, [10.0, 20.0])
    0.25
    """
    if modifier["type"] == "normsys":
        return max(abs(modifier["data"][side] - 1.0) for side in ("hi", "lo"))
    if modifier["type"] == "histosys":
        return max(_change(modifier["data"][side], nominal) for side in ("hi_data", "lo_data"))
    return math.inf


def _change(varied, nominal):
    """Returns the largest relative change; infinity if a bin without events gets some."""
    varied, nominal = numpy.asarray(varied, dtype=float), numpy.asarray(nominal, dtype=float)
    differs = varied != nominal
    if (differs & (nominal == 0.0)).any():
        return math.inf
    return float(numpy.abs(varied[differs] / nominal[differs] - 1.0).max(initial=0.0))


def drop_no_ops(workspace: Workspace) -> tuple[Workspace, list[Removal]]:
    """Leaves out every normsys with hi = lo = 1, and every histosys with nominal templates.

    Equal means within a relative 1e-12, which is rounding.

    Examples
    --------
    >>> from nextstat.build import drop_no_ops
    >>> from nextstat.histograms import WorkspaceBuilder
    >>> builder = WorkspaceBuilder()
    >>> sample = builder.channel("SR", data=[9]).sample("signal", [4]).normfactor("mu")
    >>> workspace = builder.workspace(poi="mu")
    >>> nothing = {"name": "JES", "type": "normsys", "data": {"hi": 1.0, "lo": 1.0}}
    >>> workspace["channels"][0]["samples"][0]["modifiers"].append(nothing)
    >>> smaller, removed = drop_no_ops(workspace)
    >>> [one.modifier for one in removed]
    ['JES']
    """

    def is_no_op(channel, sample, modifier):
        size = effect(modifier, sample["data"])
        return Removal(channel, sample["name"], modifier["name"], modifier["type"], size, 0.0) if size <= NO_CHANGE else None

    return _without(workspace, is_no_op)


def prune(
    workspace: Workspace,
    *,
    normalization: float = 0.0,
    shape: float = 0.0,
    rules: Sequence[tuple[Rule, PruningThresholds]] = (),
) -> tuple[Workspace, list[Removal]]:
    """Leaves out normsys and histosys whose effect on a sample in a channel is below a threshold.

    Rate and shape are compared separately: a systematic may lose one and keep the other.

    Parameters
    ----------
    workspace : dict
    normalization, shape : float
        Thresholds for the effect of a normsys and of a histosys; zero prunes nothing.
    rules : sequence of pairs
        Thresholds for some systematics, samples and regions; the first rule that applies counts,
        and where none applies, `normalization` and `shape` do.

    Returns
    -------
    dict
        The new workspace.
    list of Removal
        What was left out.

    Examples
    --------
    >>> import json
    >>> from nextstat.build import prune
    >>> with open("examples/shapes.json") as file:
    ...     workspace = json.load(file)
    >>> smaller, removed = prune(workspace, normalization=0.04, shape=0.03)
    >>> for one in removed:
    ...     print(one.channel, one.sample, one.modifier, one.reason)
    signal_region wjets jet_energy_scale changes the rate by 0.03, below 0.04
    """
    default = PruningThresholds(_threshold("normalization", normalization), _threshold("shape", shape))

    def is_small(channel, sample, modifier):
        thresholds = next((found for rule, found in rules if rule.applies(channel, sample["name"], modifier["name"])), default)
        threshold = {"normsys": thresholds.normalization, "histosys": thresholds.shape}.get(modifier["type"], 0.0)
        size = effect(modifier, sample["data"]) if threshold > 0.0 else math.inf
        return Removal(channel, sample["name"], modifier["name"], modifier["type"], size, threshold) if size < threshold else None

    return _without(workspace, is_small)


def _threshold(name, value):
    if real(name, value) < 0.0 or value >= 1.0:
        raise ParameterError(f"`{name}` is a relative change such as 0.005, not {value:g}")
    return float(value)


def _without(workspace: Workspace, removal_of: Callable[..., Removal | None]) -> tuple[Workspace, list[Removal]]:
    """Returns the workspace without the modifiers for which `removal_of` returns a record."""
    found, removed = copy.deepcopy(workspace), []
    for channel in found["channels"]:
        for sample in channel["samples"]:
            records = [removal_of(channel["name"], sample, modifier) for modifier in sample["modifiers"]]
            sample["modifiers"] = [modifier for modifier, record in zip(sample["modifiers"], records) if record is None]
            removed += [record for record in records if record is not None]
    return _without_settings(found, {one.modifier for one in removed}), removed


def _without_settings(workspace, names):
    """Returns the workspace without settings of those parameters that no sample has any more."""
    left = {modifier["name"] for channel in workspace["channels"] for sample in channel["samples"] for modifier in sample["modifiers"]}
    for measurement in workspace["measurements"]:
        config = measurement["config"]
        config["parameters"] = [one for one in config.get("parameters", []) if one["name"] in left or one["name"] not in names]
    return workspace


def prune_staterror(workspace: Workspace, threshold: float) -> tuple[Workspace, list[Removal]]:
    """Leaves out the statistical uncertainties of bins in which they are below a threshold.

    What is compared is the width of the constraint term: sqrt(Σσ²)/Σn over the samples of the
    channel that share the staterror, with their errors σ and contents n. The errors of such bins
    are set to zero, which fixes the bin's parameter; a channel in which no bin is left has no
    staterror.

    Parameters
    ----------
    workspace : dict
    threshold : float
        Relative error, such as 0.01.

    Examples
    --------
    >>> import json
    >>> from nextstat.build import prune_staterror
    >>> with open("examples/shapes.json") as file:
    ...     workspace = json.load(file)
    >>> smaller, removed = prune_staterror(workspace, 0.03)
    >>> removed[0].channel, removed[0].bins
    ('signal_region', (0,))
    """
    limit = _threshold("threshold", threshold)
    found, removed = copy.deepcopy(workspace), []
    for channel in found["channels"]:
        names = dict.fromkeys(modifier["name"] for sample in channel["samples"] for modifier in sample["modifiers"] if modifier["type"] == "staterror")
        removed += filter(None, (_prune_staterror_of(channel, name, limit) for name in names))
    return _without_settings(found, {one.modifier for one in removed}), removed


def _prune_staterror_of(channel, name, limit):
    """Zeroes the small bins of a staterror of a channel in place; what was left out."""
    shared = [
        (sample, modifier) for sample in channel["samples"] for modifier in sample["modifiers"] if modifier["type"] == "staterror" and modifier["name"] == name
    ]
    total = numpy.sum([sample["data"] for sample, _ in shared], axis=0, dtype=float)
    error = numpy.sqrt(numpy.sum(numpy.square([modifier["data"] for _, modifier in shared], dtype=float), axis=0))
    relative = numpy.divide(error, total, out=numpy.zeros_like(error), where=total != 0.0)
    small = (relative < limit) & (total > 0.0)
    if not small.any():
        return None
    largest = float(relative[small].max())
    if small.all():
        for sample, modifier in shared:
            sample["modifiers"].remove(modifier)
        return Removal(channel["name"], "", name, "staterror", largest, limit)
    for _, modifier in shared:
        modifier["data"] = [0.0 if left_out else value for value, left_out in zip(modifier["data"], small)]
    return Removal(channel["name"], "", name, "staterror", largest, limit, tuple(map(int, numpy.flatnonzero(small))))
