"""From a configuration and its templates to a workspace: which modifiers each sample has, in which
order, and with which numbers.

Order and arithmetic are those of cabinetry, so that a configuration without the section `Nextstat`
gives the same document.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy

from .._nextstat import ParameterError, WorkspaceError
from .checks import staterror_name
from .templates import TemplatePair, averaged, mirrored_parts, smoothed, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .settings import Config, Region, SampleConfig, Smoothing, Systematic
    from .sources import Source


class Assembly:
    """The workspace of one configuration.

    Attributes
    ----------
    pairs : list of TemplatePair
        The templates of all systematics that have some, with what was done to them.
    skipped : list of tuple
        Region, sample and modifier of templates that are empty like the nominal one.
    """

    def __init__(self, config: Config, source: Source) -> None:
        self._config, self._source = config, source
        self.pairs: list[TemplatePair] = []
        self.skipped: list[tuple[str, str, str]] = []

    def workspace(self) -> dict[str, Any]:
        """Returns the workspace, before anything is pruned or decorrelated."""
        return {
            "channels": [self._channel(region) for region in self._config.regions],
            "measurements": [self._measurement()],
            "observations": [self._observation(region) for region in self._config.regions],
            "version": "1.0.0",
        }

    def _channel(self, region):
        samples = [sample for sample in self._config.samples if not sample.is_data and sample.choice.has_region(region.name)]
        if not samples:
            raise region.node.error(f"the region `{region.name}` has no samples")
        return {"name": region.name, "samples": [self._sample(region, sample) for sample in samples]}

    def _observation(self, region):
        found = self._source.template(region, self._config.data, None, None)
        return {"name": region.name, "data": found.values.tolist()}

    def _sample(self, region, sample):
        nominal = self._source.template(region, sample, None, None)
        modifiers = []
        if sample.has_staterror:
            modifiers.append({"name": staterror_name(region.name), "type": "staterror", "data": nominal.errors.tolist()})
        for factor in self._config.normfactors:
            if _is_for(factor.choice, region, sample):
                modifiers.append({"name": factor.name, "type": "normfactor", "data": None})
        lumi = self._config.options.lumi
        if lumi is not None and _is_for(lumi.choice, region, sample):
            modifiers.append({"name": lumi.name, "type": "lumi", "data": None})
        for systematic in self._config.systematics:
            if _is_for(systematic.choice, region, sample):
                modifiers += self._systematic(region, sample, systematic)
        _require_single_modifiers(region, sample, modifiers)
        return {"name": sample.name, "data": nominal.values.tolist(), "modifiers": modifiers}

    def _systematic(self, region, sample, systematic):
        name = systematic.modifier
        if systematic.kind == "Normalization":
            data = {"hi": 1 + systematic.up.normalization, "lo": 1 + systematic.down.normalization}
            return [{"name": name, "type": "normsys", "data": data}]
        try:
            factors, shapes = self._parts(region, sample, systematic)
        except ParameterError as error:
            where, place = systematic.node.where(), f"region `{region.name}`, sample `{sample.name}`, systematic `{systematic.name}`"
            found = WorkspaceError(f"{where + ': ' if where else ''}{place}: {error}")
            found.hint = "leave the region or the sample out of the systematic, or merge bins"
            raise found from None
        if factors is None:
            return []
        modifiers = [{"name": name, "type": "normsys", "data": {"hi": factors[0], "lo": factors[1]}}]
        if len(shapes[0]) > 1:
            data = {"hi_data": shapes[0].tolist(), "lo_data": shapes[1].tolist()}
            modifiers.append({"name": name, "type": "histosys", "data": data})
        return modifiers

    def _parts(self, region, sample, systematic):
        """Returns factors of the rate, and templates with the nominal number of events, up and
        down."""
        method = self._method(region, sample, systematic)
        pair = self._pair(region, sample, systematic, method)
        nominal = pair.nominal.values
        if self._config.options.drop_no_ops and not any(values.any() for values in (nominal, *pair.varied)):
            self.skipped.append((region.name, sample.name, systematic.modifier))
            return None, None
        if method == "mirror":
            factors, shapes = mirrored_parts(nominal, pair.varied[0])
            pair = pair.with_step("symmetrisation: mirror", *(factor * shape for factor, shape in zip(factors, shapes)))
        else:
            if method == "average":
                pair = pair.with_step("symmetrisation: average", *averaged(nominal, *pair.varied))
            factors, shapes = zip(*(split(nominal, side) for side in pair.varied))
        self.pairs.append(pair)
        return factors, shapes

    def _method(self, region, sample, systematic):
        """Returns how the templates are made symmetric: ``"mirror"``, ``"average"``, or None."""
        if systematic.down.symmetrize:
            return "mirror"
        rules = self._config.options.symmetrize
        return next((method for rule, method in rules if rule.applies(region.name, sample.name, systematic.name, systematic.modifier)), None)

    def _pair(self, region, sample, systematic, method):
        nominal = self._source.template(region, sample, None, None)
        up = self._source.template(region, sample, systematic, "Up")
        down = None if method == "mirror" else self._source.template(region, sample, systematic, "Down")
        varied = (up.values, (up if down is None else down).values)
        pair = TemplatePair(region.name, sample.name, systematic.name, systematic.modifier, nominal, up, down, varied)
        smoothing = self._smoothing(region, sample, systematic)
        return pair if smoothing is None else smoothed(pair, smoothing.algorithm, smoothing.threshold)

    def _smoothing(self, region: Region, sample: SampleConfig, systematic: Systematic) -> Smoothing | None:
        if systematic.smoothing is not None and _is_for(systematic.smoothed, region, sample):
            return systematic.smoothing
        rules = self._config.options.smoothing
        return next((found for rule, found in rules if rule.applies(region.name, sample.name, systematic.name, systematic.modifier)), None)

    def _measurement(self):
        config = self._config
        settings = [_factor_setting(factor, config.fixed.get(factor.name)) for factor in config.normfactors]
        for systematic in config.systematics:
            if systematic.name in config.fixed:
                settings.append({"name": systematic.name, "inits": [config.fixed[systematic.name]], "fixed": True})
        if config.options.lumi is not None:
            settings.append(_lumi_setting(config.options.lumi))
        return {"name": config.measurement, "config": {"parameters": settings, "poi": config.poi}}


def _is_for(choice, region, sample):
    return choice.has_region(region.name) and choice.has_sample(sample.name)


def _factor_setting(factor, fixed):
    setting: dict[str, Any] = {"name": factor.name}
    nominal = fixed if factor.nominal is None else factor.nominal
    if nominal is not None:
        setting["inits"] = [nominal]
    if factor.bounds is not None:
        setting["bounds"] = [factor.bounds]
    if fixed is not None:
        setting["fixed"] = True
    return setting


def _lumi_setting(lumi):
    return {"name": lumi.name, "auxdata": [1.0], "sigmas": [lumi.uncertainty], "inits": [1.0], "bounds": [[0.0, 10.0]]}


def _require_single_modifiers(region, sample, modifiers):
    seen = set()
    for modifier in modifiers:
        key = modifier["name"], modifier["type"]
        if key in seen:
            message = f"region `{region.name}`: {key[1]} `{key[0]}` acts on the sample `{sample.name}` twice"
            raise sample.node.error(message, "`ModifierName` and `Name` of two systematics are the same")
        seen.add(key)


def with_sample_path(config: Config, name: str, path: str) -> Config:
    """Returns a configuration whose sample `name` is in another place."""
    samples = tuple(replace(sample, overrides={**sample.overrides, "SamplePath": (path,)}) if sample.name == name else sample for sample in config.samples)
    return replace(config, samples=samples)


def negative_bins(workspace: dict[str, Any], pairs: Iterable[TemplatePair]) -> list[str]:
    """Returns warnings of templates with negative bins, as they are used: of nominal ones, with the
    number of varied ones that are negative there, too, and of varied ones where the nominal one is
    not.
    """
    of_sample: dict[tuple[str, str], list[TemplatePair]] = {}
    for pair in pairs:
        of_sample.setdefault((pair.region, pair.sample), []).append(pair)
    found = []
    for channel in workspace["channels"]:
        for sample in channel["samples"]:
            found += _negative_bins_of(channel["name"], sample, of_sample.get((channel["name"], sample["name"]), []))
    return found


def _negative_bins_of(region, sample, pairs):
    place, nominal = f"region `{region}`, sample `{sample['name']}`", numpy.asarray(sample["data"], dtype=float)
    varied = [(f"systematic `{pair.systematic}`, {side}", values) for pair in pairs for side, values in zip(("up", "down"), pair.varied)]
    bins = numpy.flatnonzero(nominal < 0.0)
    if len(bins):
        number = sum(bool((values[bins] < 0.0).any()) for _, values in varied)
        also = f", and so are {number} of {len(varied)} varied templates" if varied else ""
        yield f"{place}, nominal: negative in bins {bins.tolist()}{also}"
    for which, values in varied:
        bins = numpy.flatnonzero((values < 0.0) & (nominal >= 0.0))
        if len(bins):
            yield f"{place}, {which}: negative in bins {bins.tolist()}"
