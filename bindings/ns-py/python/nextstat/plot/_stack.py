"""What a figure of yields shows, as numbers: data, samples from the bottom of the stack, their sum
with its uncertainty.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy

from .._arguments import names as names_of
from .._nextstat import WorkspaceError, poisson_intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray

#: The sum of samples that are too small to be seen by themselves.
OTHERS = "others, summed"


@dataclass(frozen=True)
class Stack:
    """Yields by bin (B), in events or in events per width."""

    #: NaN where they are hidden.
    data: ndarray
    #: The errors of the data, downwards and upwards (2, B).
    errors: ndarray
    #: From the bottom of the stack.
    samples: Mapping[str, ndarray]
    total: ndarray
    #: The uncertainty of the total; NaN where it is unknown.
    width: ndarray
    #: Yields before the fit of the samples that are drawn as lines, too, times their factor.
    lines: Mapping[str, ndarray] = field(default_factory=dict)

    def divided(self, widths: ndarray) -> Stack:
        """Returns the yields per width of a bin (B)."""
        parts = {"data": self.data, "errors": self.errors, "total": self.total, "width": self.width}
        scaled = {name: value / widths for name, value in parts.items()}
        samples = {name: value / widths for name, value in self.samples.items()}
        return replace(self, **scaled, samples=samples, lines={name: value / widths for name, value in self.lines.items()})


@dataclass(frozen=True)
class StackOptions:
    """What is stacked, and in which order."""

    fit: str
    signal: Sequence[str] = ()
    #: From the top of the stack.
    order: Sequence[str] | None = None
    groups: Mapping[str, Sequence[str]] | None = None
    top: int | None = 8
    overlay: float | None = None


def garwood(counts: Any) -> ndarray:
    """Returns the central 68.27 % intervals of Poisson means that counts allow (N × 2: lower,
    upper), by quantiles of χ² (F. Garwood, Biometrika 28 (1936) 437).

    >>> garwood([0, 9]).round(3).tolist()
    [[0.0, 1.841], [6.057, 13.11]]
    """
    return numpy.array(poisson_intervals(numpy.asarray(counts, dtype=float).tolist())).reshape(-1, 2)


def numbers(values: Any) -> ndarray:
    """Returns numbers of a document as an array, NaN for None."""
    return numpy.array(values, dtype=float)


def require_lengths(channel: Mapping[str, Any]) -> None:
    """Refuses a channel whose lists have different lengths."""
    n_bins = len(channel["data"])
    for fit in ("prefit", "postfit"):
        parts = [("the total", channel[fit]["total"]), *((f"sample `{part['sample']}`", part) for part in channel[fit]["samples"])]
        for name, part in parts:
            for key in ("yields", "uncertainties"):
                if len(part[key]) != n_bins:
                    raise WorkspaceError(
                        f"the document is damaged: channel `{channel['channel']}` has {n_bins} data and {len(part[key])} {key} of {name}"
                    )


def stack_of(channels: Sequence[Mapping[str, Any]], shown: Mapping[str, Any], data: ndarray, options: StackOptions) -> Stack:
    """Returns what is stacked of the channel `shown`, which is one of all `channels`.

    Order and choice of samples are those of all channels together, so that figures of several
    regions agree.
    """
    known = list(dict.fromkeys(sample["sample"] for channel in channels for sample in channel["prefit"]["samples"]))
    parts = _groups(options.groups, known)
    order = None if options.order is None else _named(options.order, parts)
    options = replace(options, signal=_named(options.signal, parts), order=order)
    parts = _summed(parts, _importance(channels, parts), options)
    order = _order(channels, parts, options)
    own = {sample["sample"]: numbers(sample["yields"]) for sample in shown[options.fit]["samples"]}
    samples = {name: _sum(own, parts[name]) for name in order if any(member in own for member in parts[name])}
    before = {sample["sample"]: numbers(sample["yields"]) for sample in shown["prefit"]["samples"]}
    lines = {name: options.overlay * _sum(before, parts[name]) for name in options.signal if name in samples} if options.overlay else {}
    total = shown[options.fit]["total"]
    errors = numpy.abs(garwood(data).T - data)
    return Stack(data, errors, samples, numbers(total["yields"]), numbers(total["uncertainties"]), lines)


def _sum(yields, members):
    return numpy.sum([yields[name] for name in members if name in yields], axis=0)


def _groups(groups: Mapping[str, Sequence[str]] | None, known: Sequence[str]) -> dict[str, list[str]]:
    """Returns the members of everything that is stacked: of a group, or of a sample alone."""
    members: dict[str, list[str]] = {}
    for group, patterns in (groups or {}).items():
        found = [name for pattern in names_of("groups", patterns) for name in known if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(f"group `{group}` has no sample of the model; it has {', '.join(known)}")
        members[group] = list(dict.fromkeys(found))
    grouped = [name for names in members.values() for name in names]
    for name in grouped:
        if grouped.count(name) > 1:
            raise ValueError(f"sample `{name}` is in two groups")
    return {**{name: [name] for name in known if name not in grouped}, **members}


def _named(patterns: Sequence[str], parts: Mapping[str, Any]) -> list[str]:
    """Returns what names and patterns mean of everything that is stacked."""
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in parts if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not matching:
            raise ValueError(f"there is no sample `{pattern}`; choose one of {', '.join(parts)}")
        found.update(dict.fromkeys(matching))
    return list(found)


def _sums(channel: Mapping[str, Any], members: Sequence[str]) -> float:
    """Returns the events of `members` in a channel before the fit."""
    return sum(part["sum"] or 0.0 for part in channel["prefit"]["samples"] if part["sample"] in members)


def _importance(channels, parts) -> dict[str, float]:
    """Returns the largest fraction of a channel that each part gives before the fit."""
    known = [channel for channel in channels if channel["prefit"]["total"]["sum"]]
    fraction = lambda channel, members: _sums(channel, members) / channel["prefit"]["total"]["sum"]
    return {name: max((fraction(channel, members) for channel in known), default=0.0) for name, members in parts.items()}


def _summed(parts, importance, options) -> dict[str, list[str]]:
    """Sums the samples that are small in every channel, but neither signals nor what is named."""
    kept = {*options.signal, *(options.order or ()), *(options.groups or ())} & parts.keys()
    small = sorted((name for name in parts if name not in kept), key=lambda name: (-importance[name], name))
    small = [] if options.top is None else small[max(options.top - len(kept), 0) :]
    if len(small) < 2:
        return parts
    rest = [member for name in small for member in parts[name]]
    return {**{name: members for name, members in parts.items() if name not in small}, OTHERS: rest}


def _order(channels, parts, options) -> list[str]:
    """Returns names from the bottom of the stack: the smallest first, where it is seen on a
    logarithmic axis, too; signals at the top.
    """
    named = list(options.order or ())
    named = [name for name in options.signal if name not in named] + named
    sums = {name: sum(_sums(channel, members) for channel in channels) for name, members in parts.items()}
    rest = sorted((name for name in parts if name not in named), key=lambda name: (name != OTHERS, sums[name], name))
    return rest + named[::-1]
