"""A configuration as it is meant: regions, samples, factors, systematics, and what is done to them.

The keys are those of cabinetry's configuration, and one section `Nextstat` of our own. Every check
of a configuration by itself is here; histograms are not opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .._errors import listed, with_hint
from .._nextstat import WorkspaceError
from ._places import Document, Node, described, did_you_mean, parse_yaml, walk
from .smoothing import ALGORITHMS

if TYPE_CHECKING:
    from ._places import Place

GENERAL = ("Measurement", "POI", "InputPath", "HistogramFolder", "Fixed", "VariationPath")
REGION = ("Name", "Variable", "Binning", "Filter", "RegionPath")
SAMPLE = ("Name", "Tree", "Filter", "Weight", "SamplePath", "Data", "DisableStaterror", "Regions", "RegionsExclude")
CHOICE = ("Regions", "Samples", "RegionsExclude", "SamplesExclude")
NORMFACTOR = ("Name", *CHOICE, "Nominal", "Bounds")
SYSTEMATIC = ("Name", "Type", "Up", "Down", *CHOICE, "Smoothing", "ModifierName")
OVERRIDES = ("Tree", "Weight", "Variable", "Filter", "RegionPath", "SamplePath", "VariationPath")
TEMPLATE = (*OVERRIDES, "Normalization", "Symmetrize")
RULE = ("Systematics", "Samples", "Regions")
OWN = ("Inputs", "NoOps", "Lumi", "Smoothing", "Symmetrize", "Pruning", "StaterrorThreshold", "Decorrelate", "PatchSet")


@dataclass(frozen=True)
class Choice:
    """The regions and samples that something is for; empty means all."""

    regions: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    not_regions: tuple[str, ...] = ()
    not_samples: tuple[str, ...] = ()

    def has_region(self, name: str) -> bool:
        """Whether the region is chosen."""
        return (not self.regions or name in self.regions) and name not in self.not_regions

    def has_sample(self, name: str) -> bool:
        """Whether the sample is chosen."""
        return (not self.samples or name in self.samples) and name not in self.not_samples


@dataclass(frozen=True)
class Rule:
    """What one entry of `Nextstat` is for: patterns (`JES_*`) of names; empty means all."""

    systematics: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()

    def applies(self, region: str, sample: str, *systematic: str) -> bool:
        """Whether the rule is for a sample of a region and a systematic with these names."""
        return _matches(self.regions, region) and _matches(self.samples, sample) and _matches(self.systematics, *systematic)


def _matches(patterns, *names):
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for name in names for pattern in patterns)


@dataclass(frozen=True)
class Smoothing:
    """How templates of a systematic are smoothed; `threshold` is the relative error of `rebin`."""

    algorithm: str
    threshold: float = 0.0


@dataclass(frozen=True)
class PruningThresholds:
    """Changes below which rate or shape of a systematic are left out; zero prunes nothing."""

    normalization: float = 0.0
    shape: float = 0.0


@dataclass(frozen=True)
class Region:
    """A channel in the making."""

    name: str
    node: Node
    overrides: Mapping[str, Any]
    binning: tuple[float, ...] | None


@dataclass(frozen=True)
class SampleConfig:
    """A process, or the observed data."""

    name: str
    node: Node
    overrides: Mapping[str, Any]
    is_data: bool
    has_staterror: bool
    choice: Choice


@dataclass(frozen=True)
class NormFactor:
    """A free factor; `nominal` and `bounds` are written as they were read."""

    name: str
    node: Node
    choice: Choice
    nominal: int | float | None
    bounds: list[int | float] | None


@dataclass(frozen=True)
class Variation:
    """One side of a systematic: where its template is, or how large it is."""

    node: Node
    overrides: Mapping[str, Any]
    normalization: int | float | None
    symmetrize: bool


@dataclass(frozen=True)
class Systematic:
    """A systematic uncertainty: `Normalization` by two numbers, or `NormPlusShape` by templates."""

    name: str
    node: Node
    kind: str
    modifier: str
    up: Variation
    down: Variation
    choice: Choice
    smoothing: Smoothing | None
    smoothed: Choice


@dataclass(frozen=True)
class Lumi:
    """The factor of the luminosity: its relative uncertainty, and the samples that it is for."""

    name: str
    uncertainty: float
    choice: Choice


@dataclass(frozen=True)
class SignalPoint:
    """A point of a signal grid: its name, its values, and where its sample is."""

    name: str
    values: tuple[int | float | str, ...]
    sample_path: str


@dataclass(frozen=True)
class SignalGrid:
    """Signals that a patch set is made of, one for each point."""

    sample: str
    labels: tuple[str, ...]
    points: tuple[SignalPoint, ...]
    description: str
    hepdata: str


@dataclass(frozen=True)
class Options:
    """The section `Nextstat`, which is not part of cabinetry's configuration."""

    drop_no_ops: bool = False
    inputs: str | None = None
    lumi: Lumi | None = None
    smoothing: tuple[tuple[Rule, Smoothing], ...] = ()
    symmetrize: tuple[tuple[Rule, str], ...] = ()
    pruning: tuple[tuple[Rule, PruningThresholds], ...] = ()
    staterror_threshold: float = 0.0
    decorrelate: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    grid: SignalGrid | None = None


@dataclass(frozen=True)
class Config:
    """A configuration that was checked.

    Attributes
    ----------
    document : Document
        What was written, for the places in errors.
    measurement, poi, input_path, variation_path : str
        The section `General`.
    fixed : dict
        Values of fixed parameters by their names.
    regions, samples, normfactors, systematics : tuple
        The lists, in their order.
    options : Options
        The section `Nextstat`.
    warnings : tuple of str
        What is allowed and probably not meant.
    """

    document: Document = field(repr=False)
    measurement: str
    poi: str
    input_path: str
    variation_path: str
    fixed: Mapping[str, int | float]
    regions: tuple[Region, ...]
    samples: tuple[SampleConfig, ...]
    normfactors: tuple[NormFactor, ...]
    systematics: tuple[Systematic, ...]
    options: Options
    warnings: tuple[str, ...] = ()

    @property
    def data(self) -> SampleConfig:
        """The sample of observed data."""
        return next(sample for sample in self.samples if sample.is_data)


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> Config:
    """Reads and checks a configuration.

    Parameters
    ----------
    source : path or dict
        A YAML file, or what such a file contains. Relative paths in it start from the working
        directory, as in cabinetry.

    Raises
    ------
    WorkspaceError
        What is wrong, with its line and its JSON pointer.

    Examples
    --------
    >>> from nextstat.build import load
    >>> config = load({
    ...     "General": {"Measurement": "m", "POI": "mu", "InputPath": "in", "HistogramFolder": "h"},
    ...     "Regions": [{"Name": "SR"}],
    ...     "Samples": [{"Name": "signal"}, {"Name": "data", "Data": True}],
    ...     "NormFactors": [{"Name": "mu", "Samples": "signal"}],
    ... })
    >>> [sample.name for sample in config.samples], config.poi
    (['signal', 'data'], 'mu')
    """
    if isinstance(source, Mapping):
        return of_document(Document("", dict(source), {}))
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"a configuration is a path or a dictionary, not `{type(source).__name__}`")
    path = os.fsdecode(source)
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        message = f"`{path}` is not text: byte {error.object[error.start]:#x} at position {error.start}"
        raise with_hint(WorkspaceError(message), "a configuration is a YAML file; histograms are named in it") from None
    return of_document(parse_yaml(text, path))


def of_document(document: Document) -> Config:
    """The configuration that a document describes."""
    root = document.root.has_keys(
        ("General", "Regions", "Samples", "NormFactors", "Systematics", "Nextstat"),
        ("General", "Regions", "Samples", "NormFactors"),
    )
    general = root["General"].has_keys(GENERAL, ("Measurement", "InputPath", "HistogramFolder"))
    general["HistogramFolder"].text()
    own = root.get("Nextstat")
    config = Config(
        document=document,
        measurement=general["Measurement"].text(),
        poi=_text(general, "POI", ""),
        input_path=general["InputPath"].text(),
        variation_path=_text(general, "VariationPath", ""),
        fixed=_fixed(general.get("Fixed")),
        regions=tuple(map(_region, root["Regions"].items())),
        samples=tuple(map(_sample, root["Samples"].items())),
        normfactors=tuple(map(_normfactor, root["NormFactors"].items())),
        systematics=tuple(map(_systematic, walk(root.get("Systematics")))),
        options=Options() if own is None else _options(own),
    )
    return _checked(config)


def _text(node, key, default):
    found = node.get(key)
    return default if found is None else found.text()


def _fixed(node):
    fixed = {}
    for item in () if node is None else node.items():
        item.has_keys(("Name", "Value"), ("Name", "Value"))
        # The first one counts.
        fixed.setdefault(item["Name"].text(), item["Value"].number())
    return fixed


def _names(node, key):
    found = node.get(key)
    return () if found is None else found.names()


def _choice(node):
    return Choice(*(_names(node, key) for key in CHOICE))


def _overrides(node, keys=OVERRIDES):
    """Settings of where templates are: text, and for a sample's path also a list of texts."""
    found = {}
    for key in keys:
        value = node.get(key)
        if value is not None:
            found[key] = value.names() if key == "SamplePath" else value.text()
    return found


def _region(node):
    node.has_keys(REGION, ("Name",))
    binning = node.get("Binning")
    return Region(node["Name"].text(), node, _overrides(node), None if binning is None else _binning(binning))


def _binning(node):
    edges = tuple(item.number() for item in node.items(at_least=2))
    for i, (lower, upper) in enumerate(pairwise(edges)):
        if not lower < upper:
            raise Node(node.document, (*node.place, i + 1), upper).error(f"the edges do not ascend from {lower:g} to {upper:g}")
    return edges


def _sample(node):
    node.has_keys(SAMPLE, ("Name",))
    flags = {key: node[key].flag() if key in node.value else False for key in ("Data", "DisableStaterror")}
    choice = Choice(regions=_names(node, "Regions"), not_regions=_names(node, "RegionsExclude"))
    return SampleConfig(node["Name"].text(), node, _overrides(node), flags["Data"], not flags["DisableStaterror"], choice)


def _normfactor(node):
    node.has_keys(NORMFACTOR, ("Name",))
    nominal, bounds = node.get("Nominal"), node.get("Bounds")
    ends = None if bounds is None else [item.number() for item in bounds.items()]
    if ends is not None and (len(ends) != 2 or not ends[0] < ends[1]):
        raise bounds.error("the range is two numbers, the lower one first", "for example `Bounds: [0, 10]`")
    return NormFactor(node["Name"].text(), node, _choice(node), None if nominal is None else nominal.number(), ends)


def _systematic(node):
    node.has_keys(SYSTEMATIC, ("Name", "Type", "Up", "Down"))
    kind = node["Type"].one_of(("Normalization", "NormPlusShape"))
    up, down = (_variation(node[side], kind) for side in ("Up", "Down"))
    if up.symmetrize:
        raise node["Up"]["Symmetrize"].error("only the template down can be made of the template up", "say `Down: {Symmetrize: True}`")
    smoothing = node.get("Smoothing")
    name = node["Name"].text()
    return Systematic(
        name,
        node,
        kind,
        _text(node, "ModifierName", name),
        up,
        down,
        _choice(node),
        None if smoothing is None else _cabinetry_smoothing(smoothing),
        Choice() if smoothing is None else _choice(smoothing),
    )


def _variation(node, kind):
    node.has_keys(TEMPLATE)
    normalization, symmetrize = node.get("Normalization"), node.get("Symmetrize")
    if kind == "Normalization" and normalization is None:
        hint = "the change is relative, such as `Normalization: 0.05`"
        raise node.error("a systematic of the type `Normalization` needs the key `Normalization`", hint)
    if kind == "NormPlusShape" and normalization is not None:
        hint = "say `Type: Normalization`, or name a template"
        raise node["Normalization"].error("a systematic of the type `NormPlusShape` has templates, not a number", hint)
    return Variation(
        node,
        _overrides(node),
        None if normalization is None else normalization.number(),
        False if symmetrize is None else symmetrize.flag(),
    )


def _cabinetry_smoothing(node):
    node.has_keys(("Algorithm", *CHOICE), ("Algorithm",))
    algorithm = node["Algorithm"]
    if algorithm.value == "rebin":
        raise algorithm.error("this algorithm needs a threshold", "say it in `Nextstat: Smoothing:`")
    return Smoothing(algorithm.one_of(ALGORITHMS[:1]))


# The section of our own


def _options(node):
    node.has_keys(OWN)
    parts = {key: node.get(key) for key in OWN}
    return Options(
        drop_no_ops=parts["NoOps"] is None or parts["NoOps"].one_of(("drop", "keep")) == "drop",
        inputs=None if parts["Inputs"] is None else parts["Inputs"].one_of(("histograms", "ntuples")),
        lumi=None if parts["Lumi"] is None else _lumi(parts["Lumi"]),
        smoothing=_rules(parts["Smoothing"], ("Algorithm", "Threshold"), ("Algorithm",), _own_smoothing),
        symmetrize=_rules(parts["Symmetrize"], ("Method",), ("Method",), lambda one: one["Method"].one_of(("mirror", "average"))),
        pruning=_rules(parts["Pruning"], ("Normalization", "Shape"), (), _thresholds),
        staterror_threshold=0.0 if parts["StaterrorThreshold"] is None else _positive(parts["StaterrorThreshold"]),
        decorrelate=() if parts["Decorrelate"] is None else tuple(map(_decorrelation, parts["Decorrelate"].items_or_one())),
        grid=None if parts["PatchSet"] is None else _grid(parts["PatchSet"]),
    )


def _rules(node, keys, required, read):
    """Rules with what they ask for: a list of them, or one."""
    if node is None:
        return ()
    found = []
    for item in node.items_or_one():
        item.has_keys((*RULE, *keys), required)
        found.append((Rule(*(_names(item, key) for key in RULE)), read(item)))
    return tuple(found)


def _positive(node):
    value = node.number()
    if not 0.0 < value < 1.0:
        raise node.error(f"{value} is not between 0 and 1", "it is relative: 0.01 for 1 %")
    return float(value)


def _own_smoothing(node):
    algorithm, threshold = node["Algorithm"].one_of(ALGORITHMS), node.get("Threshold")
    if (algorithm == "rebin") != (threshold is not None):
        hint = "`Threshold: 0.05` is a relative statistical error of 5 %"
        raise node.error("`Threshold` goes with the algorithm `rebin`, and only with that", hint)
    return Smoothing(algorithm, 0.0 if threshold is None else _positive(threshold))


def _thresholds(node):
    found = {key: _positive(node[key]) for key in ("Normalization", "Shape") if key in node.value}
    if not found:
        raise node.error("there is no threshold", "say `Normalization: 0.005`, `Shape: 0.005`, or both")
    return PruningThresholds(found.get("Normalization", 0.0), found.get("Shape", 0.0))


def _lumi(node):
    node.has_keys(("Name", "Uncertainty", *CHOICE), ("Uncertainty",))
    return Lumi(_text(node, "Name", "lumi"), _positive(node["Uncertainty"]), _choice(node))


def _decorrelation(node):
    node.has_keys(("Parameters", "By"), ("Parameters", "By"))
    by = tuple(item.one_of(("region", "sample")) for item in node["By"].items_or_one())
    return node["Parameters"].names(), by


def _grid(node):
    node.has_keys(("Sample", "Labels", "Signals", "Description", "HEPData"), ("Sample", "Labels", "Signals"))
    labels = node["Labels"].names()
    return SignalGrid(
        node["Sample"].text(),
        labels,
        tuple(_point(item, labels) for item in node["Signals"].items()),
        _text(node, "Description", "Signals"),
        _text(node, "HEPData", "ins0000000"),
    )


def _point(node, labels):
    node.has_keys(("Name", "Values", "SamplePath"), ("Name", "Values", "SamplePath"))
    given = node["Values"].value
    # Masses of two particles may be equal, so this is not a list of different items.
    values = tuple(given) if isinstance(given, list) else (given,)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise node["Values"].error(f"a value is a number or text, not {described(value)}")
    if len(values) != len(labels):
        raise node["Values"].error(f"{len(values)} values for {len(labels)} labels", f"the labels are {listed(labels)}")
    return SignalPoint(node["Name"].text(), values, node["SamplePath"].text())


# What has to fit together


def _checked(config):
    """`config` with the warnings of what is allowed and probably not meant."""
    for what in ("regions", "samples", "normfactors", "systematics"):
        _require_single_names(getattr(config, what))
    _require_one_data_sample(config)
    _require_poi(config)
    if config.options.grid is not None:
        _require_signal(config)
    return Config(**{**vars(config), "warnings": (*_unknown_choices(config), *_unknown_fixed(config))})


def _require_single_names(items):
    seen: dict[str, Place] = {}
    for item in items:
        if item.name in seen:
            raise item.node["Name"].error(f"the name `{item.name}` is there twice")
        seen[item.name] = item.node.place


def _require_one_data_sample(config):
    data = [sample for sample in config.samples if sample.is_data]
    node = config.document.root["Samples"]
    if not data:
        raise node.error("no sample has the observed data", "mark it with `Data: True`")
    if len(data) > 1:
        raise data[1].node["Data"].error(f"`{data[0].name}` is a sample of data already, and there is one only")
    for region in config.regions:
        if not data[0].choice.has_region(region.name):
            raise data[0].node.error(f"the region `{region.name}` has no data", "leave out `Regions` of the data")
    if len(config.samples) == 1:
        raise node.error("there is no sample beside the data")


def _parameters(config):
    lumi = [] if config.options.lumi is None else [config.options.lumi.name]
    return [*(one.name for one in config.normfactors), *(one.modifier for one in config.systematics), *lumi]


def _require_poi(config):
    known = _parameters(config)
    if config.poi and config.poi not in known:
        hint = did_you_mean(config.poi, known) or f"there are {listed(known)}"
        raise config.document.root["General"]["POI"].error(f"no factor or systematic is called `{config.poi}`", hint)


def _require_signal(config):
    known = [sample.name for sample in config.samples if not sample.is_data]
    node = config.document.root["Nextstat"]["PatchSet"]["Sample"]
    if config.options.grid.sample not in known:
        hint = did_you_mean(config.options.grid.sample, known) or f"there are {listed(known)}"
        raise node.error(f"no sample is called `{config.options.grid.sample}`", hint)
    signal = next(sample for sample in config.samples if sample.name == config.options.grid.sample)
    if config.options.staterror_threshold > 0.0 and signal.has_staterror:
        message = f"the statistical errors of `{signal.name}` differ between the signals, and so would the background"
        raise config.document.root["Nextstat"]["StaterrorThreshold"].error(message, "say `DisableStaterror: True` for the signal")


def _unknown_choices(config):
    """Names in choices and rules that nothing has: such a choice is smaller than it looks."""
    known = {
        "Regions": [one.name for one in config.regions],
        "Samples": [one.name for one in config.samples],
        "Systematics": [name for one in config.systematics for name in (one.name, one.modifier)],
    }
    nodes = [one.node for one in (*config.samples, *config.normfactors, *config.systematics)]
    nodes += [node["Smoothing"] for node in nodes if "Smoothing" in node.value]
    own = config.document.root.get("Nextstat")
    if own is not None:
        parts = [own.get(key) for key in ("Lumi", "Smoothing", "Symmetrize", "Pruning")]
        nodes += [node for part in parts if part is not None for node in part.items_or_one()]
    for node in nodes:
        for key in (*CHOICE, "Systematics"):
            names = known[key.removesuffix("Exclude")]
            for name in _names(node, key):
                # Rules have patterns.
                if not _matches((name,), *names):
                    hint = did_you_mean(name, names)
                    yield f"{node[key].where()}: nothing is called `{name}`{f'; {hint}' if hint else ''}"


def _unknown_fixed(config):
    known = [*(one.name for one in config.normfactors), *(one.name for one in config.systematics)]
    for name in config.fixed:
        if name not in known:
            hint = did_you_mean(name, known)
            where = config.document.root["General"]["Fixed"].where()
            yield f"{where}: `{name}` is neither a factor nor a systematic, and is not fixed{f'; {hint}' if hint else ''}"
    for systematic in config.systematics:
        if systematic.name in config.fixed and systematic.modifier != systematic.name:
            where = config.document.root["General"]["Fixed"].where()
            yield f"{where}: `{systematic.name}` is not fixed: its parameter is called `{systematic.modifier}`"
