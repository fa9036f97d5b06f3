"""Reads configurations: from YAML to `settings`, with an error for each value that cannot be.

The keys are those of cabinetry's configuration, and one section `Nextstat` of our own. Each value
is checked by itself here, and what has to fit together in `checks`; histograms are not opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from .._errors import listed, with_hint
from .._nextstat import WorkspaceError
from ._places import Document, Node, described, parse_yaml, walk
from .checks import CHOICE, checked, names_of
from .decorrelation import BY
from .settings import (
    Choice,
    Config,
    Lumi,
    NormFactor,
    Options,
    PruningThresholds,
    Region,
    Rule,
    SampleConfig,
    SignalGrid,
    SignalPoint,
    Smoothing,
    Systematic,
    Variation,
)
from .smoothing import ALGORITHMS

GENERAL = ("Measurement", "POI", "InputPath", "HistogramFolder", "Fixed", "VariationPath")
REGION = ("Name", "Variable", "Binning", "Filter", "RegionPath")
SAMPLE = ("Name", "Tree", "Filter", "Weight", "SamplePath", "Data", "DisableStaterror", "Regions", "RegionsExclude")
NORMFACTOR = ("Name", *CHOICE, "Nominal", "Bounds")
SYSTEMATIC = ("Name", "Type", "Up", "Down", *CHOICE, "Smoothing", "ModifierName")
OVERRIDES = ("Tree", "Weight", "Variable", "Filter", "RegionPath", "SamplePath", "VariationPath")
TEMPLATE = (*OVERRIDES, "Normalization", "Symmetrize")
RULE = ("Systematics", "Samples", "Regions")
OWN = ("Inputs", "NoOps", "Lumi", "Smoothing", "Symmetrize", "Pruning", "StaterrorThreshold", "Decorrelate", "PatchSet")


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
    """Returns the configuration that a document describes."""
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
    return checked(config)


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


def _choice(node):
    return Choice(*(names_of(node, key) for key in CHOICE))


def _overrides(node, keys=OVERRIDES):
    """Returns settings of where templates are: text, and for a sample's path also a list of
    texts."""
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
    choice = Choice(regions=names_of(node, "Regions"), not_regions=names_of(node, "RegionsExclude"))
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
    """Returns rules with what they ask for: a list of them, or one."""
    if node is None:
        return ()
    found = []
    for item in node.items_or_one():
        item.has_keys((*RULE, *keys), required)
        found.append((Rule(*(names_of(item, key) for key in RULE)), read(item)))
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
    name = _text(node, "Name", "lumi")
    if name != "lumi":
        raise node["Name"].error(f"a factor of the luminosity is called `lumi`, not `{name}`", "leave out `Name`")
    return Lumi(name, _positive(node["Uncertainty"]), _choice(node))


def _decorrelation(node):
    node.has_keys(("Parameters", "By"), ("Parameters", "By"))
    by = tuple(item.one_of(tuple(BY)) for item in node["By"].items_or_one())
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
