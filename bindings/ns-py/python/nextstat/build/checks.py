"""What has to fit together in a configuration: names, factors and rates.

Each value by itself is checked where it is read, in `config`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from .._arguments import change_of_factor, leaves_nothing
from .._errors import listed
from ._places import did_you_mean
from .settings import matches

if TYPE_CHECKING:
    from ._places import Node, Place
    from .settings import Config

# The keys that choose regions and samples.
CHOICE = ("Regions", "Samples", "RegionsExclude", "SamplesExclude")

# The range of a factor without `Bounds`.
DEFAULT_BOUNDS = (0, 10)

# What HEPData calls records of INSPIRE.
_INSPIRE = re.compile("ins[0-9]{7}")


def names_of(node: Node, key: str) -> tuple[str, ...]:
    """Returns the names in a key of a mapping; none where there is no such key."""
    found = node.get(key)
    return () if found is None else found.names()


def checked(config: Config) -> Config:
    """Returns `config` with the warnings of what is allowed and probably not meant."""
    for what in ("regions", "samples", "normfactors", "systematics"):
        _require_single_names(getattr(config, what))
    _require_one_data_sample(config)
    _require_single_kinds(config)
    _require_poi(config)
    for factor in config.normfactors:
        if factor.name not in config.fixed:
            _require_start(factor)
    for systematic in config.systematics:
        if systematic.kind == "Normalization":
            _require_rate(systematic)
    if config.options.grid is not None:
        _require_signal(config)
    return replace(config, warnings=(*_unknown_choices(config), *_unknown_fixed(config), *_large_rates(config)))


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


def _require_single_kinds(config):
    """Refuses a name that is used for parameters of two kinds."""
    known = {}
    for what, name, node in _named_parameters(config):
        first = known.setdefault(name, what)
        if first != what:
            hint = "choose another name, or with `ModifierName` another one for the parameter" if what == "systematic" else "choose another name"
            raise node.error(f"the {what} `{name}` cannot share a parameter with the {first} of this name", hint)


def _named_parameters(config):
    """Returns, of every parameter, what it is of, its name, and the place of the name."""
    for region in config.regions:
        if any(sample.has_staterror and not sample.is_data and sample.choice.has_region(region.name) for sample in config.samples):
            yield "statistical errors", staterror_name(region.name), region.node["Name"]
    if config.options.lumi is not None:
        yield "factor of the luminosity", config.options.lumi.name, config.document.root["Nextstat"]["Lumi"]
    for factor in config.normfactors:
        yield "factor", factor.name, factor.node["Name"]
    for systematic in config.systematics:
        yield "systematic", systematic.modifier, systematic.node["ModifierName" if "ModifierName" in systematic.node.value else "Name"]


def staterror_name(region: str) -> str:
    """Returns what the parameters of the statistical errors of a region are called."""
    return f"staterror_{region.replace(' ', '-')}"


def _require_start(factor):
    start, (lower, upper) = 1.0 if factor.nominal is None else factor.nominal, factor.bounds or DEFAULT_BOUNDS
    if not lower <= start <= upper:
        node = factor.node.get("Nominal") or factor.node["Bounds"]
        hint = f"without `Nominal` a factor starts at 1, and without `Bounds` its range is {list(DEFAULT_BOUNDS)}"
        raise node.error(f"the starting value {start:g} of `{factor.name}` is outside the bounds [{lower:g}, {upper:g}]", hint)


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
    _require_record(config)
    _require_single_points(config)
    signal = next(sample for sample in config.samples if sample.name == config.options.grid.sample)
    if config.options.staterror_threshold > 0.0 and signal.has_staterror:
        message = f"the statistical errors of `{signal.name}` differ between the signals, and so would the background"
        raise config.document.root["Nextstat"]["StaterrorThreshold"].error(message, "say `DisableStaterror: True` for the signal")


def _require_record(config):
    record = config.options.grid.hepdata
    if not _INSPIRE.fullmatch(record):
        message = f"`{record}` is not an INSPIRE identifier (`ins` and seven digits)"
        raise config.document.root["Nextstat"]["PatchSet"]["HEPData"].error(message, "leave it out as long as there is no record")


def _require_single_points(config):
    names: set[str] = set()
    for point, node in zip(config.options.grid.points, config.document.root["Nextstat"]["PatchSet"]["Signals"].items()):
        if point.name in names:
            raise node["Name"].error(f"the name `{point.name}` is there twice")
        names.add(point.name)


def _require_rate(systematic):
    """Refuses a change that leaves nothing of the rate, and factors in place of changes."""
    sides = {"up": systematic.up, "down": systematic.down}
    for name, side in sides.items():
        change = side.normalization
        if leaves_nothing(change):
            message = f"a change of {change:g} leaves nothing of the rate one standard deviation {name}"
            raise side.node["Normalization"].error(message, "it is relative: -0.05 for 5 % less")
    up, down = (side.normalization for side in sides.values())
    if min(up, down) > 0.0 and max(up, down) >= 1.0:
        side = systematic.up if up >= 1.0 else systematic.down
        message = f"the changes {_percent(up)} up and {_percent(down)} down look like factors of the rate"
        raise side.node["Normalization"].error(message, _rates_of_factors(up, down))


def _rates_of_factors(up, down):
    changes = listed(f"{name}: {{Normalization: {value - 1.0:.4g}}}" for name, value in (("Up", up), ("Down", down)))
    return f"it is relative: 0.05 for 5 %; the factors {up:g} and {down:g} are {changes}"


def _large_rates(config):
    """Changes by a factor above two, where a factor may be meant."""
    for systematic in config.systematics:
        for side in (systematic.up, systematic.down):
            if side.normalization is not None and side.normalization >= 1.0:
                change = change_of_factor(side.normalization)
                hint = "" if change is None else f"; a factor of {side.normalization:g} is a change of {change}"
                yield f"{side.node['Normalization'].where()}: a change of {_percent(side.normalization)}{hint}"


def _percent(change):
    return f"{100.0 * change:+.4g} %"


def _unknown_choices(config):
    """Warns of names in choices and rules that nothing has: such a choice is smaller than it
    looks."""
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
            for name in names_of(node, key):
                # Rules have patterns.
                if not matches((name,), *names):
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
