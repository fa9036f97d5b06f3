"""From a configuration to a workspace: templates are read, smoothed and made symmetric, modifiers
that change nothing or little are left out, and parameters are decorrelated, in this order.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._errors import counted
from .._models import model_of
from .._root_files import RootFiles
from .assembly import Assembly, negative_bins, with_sample_path
from .config import load
from .decorrelation import decorrelate
from .patch_sets import patch_set, without_samples
from .pruning import NO_CHANGE, Removal, drop_no_ops, effect, prune, prune_staterror
from .settings import Config
from .sources import CheckedSource, FunctionSource, Source, source_of, unused_settings
from .templates import split
from .verification import require_model, require_patch_set

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from .._nextstat import Model
    from .sources import Reader
    from .templates import TemplatePair


@dataclass(frozen=True)
class BuildResult:
    """A workspace, and how it came about.

    Attributes
    ----------
    workspace : dict
        The workspace, as pyhf and `nextstat.model_of` read it.
    before : dict
        The workspace before modifiers were left out and parameters decorrelated.
    pairs : tuple of TemplatePair
        The templates of systematics, as they were read and as they are used.
    removed : tuple of Removal
        The modifiers that were left out, with their effects and reasons.
    warnings : tuple of str
        What is allowed and probably not meant.
    """

    workspace: dict[str, Any] = field(repr=False)
    before: dict[str, Any] = field(repr=False)
    pairs: tuple[TemplatePair, ...] = field(repr=False)
    removed: tuple[Removal, ...] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def model(self) -> Model:
        """Returns the model of the workspace."""
        return model_of(self.workspace)

    def text(self) -> str:
        """Returns the workspace as JSON, with sorted keys."""
        return json.dumps(self.workspace, indent=4, sort_keys=True) + "\n"

    def summary(self) -> str:
        """Returns what was built, in a few lines."""
        channels = self.workspace["channels"]
        samples = {sample["name"] for channel in channels for sample in channel["samples"]}
        bins = sum(len(channel["samples"][0]["data"]) for channel in channels)
        counts = ((len(channels), "channel"), (bins, "bin"), (len(samples), "sample"))
        pairs = f"{counted(len(self.pairs), 'pair')} of templates"
        lines = [", ".join([*(counted(n, what) for n, what in counts), pairs])]
        steps = Counter(step.partition(":")[0] for pair in self.pairs for step in pair.steps if "left out" not in step)
        lines += [f"{step}: {number} of {len(self.pairs)} pairs" for step, number in steps.items()]
        counts = Counter((one.kind, one.reason == "changes nothing") for one in self.removed)
        lines += [f"{kind}: {number} left out, {_why(nothing)}" for (kind, nothing), number in sorted(counts.items())]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """Returns what was done to every pair of templates, and what was left out and why, for
        JSON."""
        return {
            "pairs": [_pair_record(pair) for pair in self.pairs],
            "removed": [one.document() for one in self.removed],
            "warnings": list(self.warnings),
        }


def _why(nothing):
    return "since they change nothing" if nothing else "below the threshold"


def _pair_record(pair: TemplatePair) -> dict[str, Any]:
    return {
        "region": pair.region,
        "sample": pair.sample,
        "systematic": pair.systematic,
        "steps": list(pair.steps),
        "nominal": pair.nominal.values.tolist(),
        "as_read": {"up": pair.up.values.tolist(), "down": None if pair.down is None else pair.down.values.tolist()},
        "as_used": {"up": pair.varied[0].tolist(), "down": pair.varied[1].tolist()},
    }


def build(config: Config | str | os.PathLike[str] | Mapping[str, Any], histograms: Reader | None = None) -> BuildResult:
    """Builds the workspace that a configuration describes.

    Parameters
    ----------
    config : Config, path or dict
        A configuration of cabinetry, or one with the section `Nextstat`.
    histograms : callable, optional
        Returns a histogram (UHI, or a pair of values and edges) for the names of a region, a sample
        and a systematic and for a side (``"Up"``, ``"Down"``); the last two are None for nominal
        templates. Without it the files are read that the configuration names.

    Returns
    -------
    BuildResult

    Raises
    ------
    WorkspaceError
        What is wrong, with its line and its JSON pointer.

    Examples
    --------
    >>> from nextstat.build import build
    >>> config = {
    ...     "General": {"Measurement": "m", "POI": "mu", "InputPath": "in", "HistogramFolder": "h"},
    ...     "Regions": [{"Name": "SR"}],
    ...     "Samples": [{"Name": "signal"}, {"Name": "data", "Data": True}],
    ...     "NormFactors": [{"Name": "mu", "Samples": "signal"}],
    ... }
    >>> histograms = {"signal": [4.0, 9.0], "data": [5.0, 8.0]}
    >>> built = build(config, lambda region, sample, systematic, side: histograms[sample])
    >>> built.model()
    <nextstat.Model `m`: 1 channel, 2 bins, 3 parameters, parameter of interest `mu`>
    """
    found = config if isinstance(config, Config) else load(config)
    with closing(RootFiles()) if histograms is None else nullcontext() as files:
        source = CheckedSource(source_of(found, files) if files is not None else FunctionSource(histograms))
        return _built(found, source, () if files is None else unused_settings(found))


def build_patch_set(
    config: Config | str | os.PathLike[str] | Mapping[str, Any],
) -> tuple[BuildResult, dict[str, Any]]:
    """Builds the background-only workspace and the patch set of the signals that `Nextstat:
    PatchSet:` of a configuration lists.

    Returns
    -------
    BuildResult
        Of the background.
    dict
        The patch set.
    """
    found = config if isinstance(config, Config) else load(config)
    grid = found.options.grid
    if grid is None:
        raise found.document.root.error("there is no patch set to build", "list the signals in `Nextstat: PatchSet:`")
    with closing(RootFiles()) as files:
        built = {}
        for point in grid.points:
            shifted = with_sample_path(found, grid.sample, point.sample_path)
            built[point.name] = _built(shifted, CheckedSource(source_of(shifted, files)), ())
    first = next(iter(built.values()))
    with found.document.root["Nextstat"]["PatchSet"].place_of_errors():
        background = without_samples(first.workspace, [grid.sample])
        patches = patch_set(
            background,
            {name: one.workspace for name, one in built.items()},
            labels=grid.labels,
            values={point.name: point.values for point in grid.points},
            description=grid.description,
            hepdata=grid.hepdata,
        )
    require_model(found, background, poi="none")
    require_patch_set(found, patches)
    return replace(first, workspace=background), patches


def _built(config: Config, source: Source, warnings: tuple[str, ...] | list[str]) -> BuildResult:
    options, assembly = config.options, Assembly(config, source)
    before = workspace = assembly.workspace()
    removed = [Removal(*place, kind, 0.0, 0.0) for place in assembly.skipped for kind in ("normsys", "histosys")]
    steps = [
        (options.drop_no_ops, drop_no_ops),
        (options.pruning, lambda one: prune(one, rules=options.pruning)),
        (options.staterror_threshold, lambda one: prune_staterror(one, options.staterror_threshold)),
    ]
    for wanted, step in steps:
        if wanted:
            workspace, more = step(workspace)
            removed += more
    for (parameters, by), node in zip(options.decorrelate, _entries(config, "Decorrelate")):
        with node.place_of_errors():
            workspace = decorrelate(workspace, parameters, by)
    require_model(config, workspace)
    pairs = tuple(_pruned(assembly.pairs, removed))
    said = [*config.warnings, *warnings, *negative_bins(workspace, pairs), *_no_ops(workspace)]
    return BuildResult(workspace, before, pairs, tuple(removed), tuple(said))


def _entries(config, key):
    """Returns the places of the entries of a key of `Nextstat`."""
    own = config.document.root.get("Nextstat")
    found = None if own is None else own.get(key)
    return [] if found is None else found.items_or_one()


def _pruned(pairs, removed):
    """Returns the pairs of templates without the rates and shapes that were left out."""
    by_place: dict[tuple[str, str, str], list[Removal]] = {}
    for one in removed:
        by_place.setdefault((one.channel, one.sample, one.modifier), []).append(one)
    for pair in pairs:
        for one in by_place.get((pair.region, pair.sample, pair.modifier), ()):
            parts = [split(pair.nominal.values, side) for side in pair.varied]
            if one.kind == "histosys":
                pair = pair.with_step(f"shape left out: {one.reason}", *(factor * pair.nominal.values for factor, _ in parts))
            else:
                pair = pair.with_step(f"rate left out: {one.reason}", *(shape for _, shape in parts))
        yield pair


def _no_ops(workspace):
    """Returns a warning of modifiers that change nothing and were kept."""
    kept = sum(
        effect(modifier, sample["data"]) <= NO_CHANGE for channel in workspace["channels"] for sample in channel["samples"] for modifier in sample["modifiers"]
    )
    if kept:
        yield f"{kept} modifiers change nothing; `Nextstat: {{NoOps: drop}}` leaves them out"
