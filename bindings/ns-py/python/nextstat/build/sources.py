"""Where templates come from: histograms in ROOT files, events in trees, or a function of the user.

The settings of a path or a selection are those of the region and the sample, unless the variation
has its own. This module knows configurations and files, and nothing of what is done to templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy

from .._errors import counted
from .._nextstat import WorkspaceError
from .._root_files import RootFiles, files_of, split_path
from ..histograms import read
from .templates import Template, template_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .settings import Config, Region, SampleConfig, Systematic, Variation

    Reader = Callable[[str, str, str | None, str | None], Any]


class Source(Protocol):
    """What returns the template of a sample in a region: nominal, or of a side of a systematic."""

    def template(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> Template:
        """Returns the template; `side` is ``"Up"`` or ``"Down"``."""


def _variation(systematic: Systematic | None, side: str | None) -> Variation | None:
    return None if systematic is None else systematic.up if side == "Up" else systematic.down


def _place(region, sample, systematic, side):
    place = f"region `{region.name}`, sample `{sample.name}`"
    return place if systematic is None else f"{place}, systematic `{systematic.name}`, {side}"


def _where(region, sample, systematic, side):
    """Returns the places in the configuration and in the model that errors name."""
    variation = _variation(systematic, side)
    node = sample.node if variation is None else variation.node
    where, place = node.where(), _place(region, sample, systematic, side)
    return f"{where}: {place}" if where else place


def _settings(region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> dict[str, Any]:
    """Returns all settings of a template: those of a variation win over those of the sample, which
    win over those of the region.
    """
    variation = _variation(systematic, side)
    return {**region.overrides, **sample.overrides, **({} if variation is None else variation.overrides)}


def _filled(path, settings, region, sample):
    """Returns a path with its placeholders replaced, where `SamplePath` is one text."""
    for key, owner in (("RegionPath", region), ("SamplePath", sample)):
        if f"{{{key}}}" in path:
            if key not in settings:
                raise owner.node.error(f"the path `{path}` needs `{key}`", f"say `{key}: …`")
            path = path.replace(f"{{{key}}}", settings[key])
    return path


def wanted(config: Config) -> Iterator[tuple[Region, SampleConfig, Systematic | None, str | None]]:
    """Returns the templates that a configuration may need: their region, sample, systematic and
    side."""
    for region in config.regions:
        for sample in config.samples:
            if not (sample.is_data or sample.choice.has_region(region.name)):
                continue
            yield region, sample, None, None
            for systematic in config.systematics:
                if not sample.is_data and _has_templates(systematic, region, sample):
                    yield from ((region, sample, systematic, side) for side in systematic.sides)


def _has_templates(systematic, region, sample):
    choice = systematic.choice
    return systematic.kind != "Normalization" and choice.has_region(region.name) and choice.has_sample(sample.name)


class HistogramSource:
    """Histograms in ROOT files, where `InputPath` has a colon: `file.root:folder/histogram`."""

    def __init__(self, config: Config, files: RootFiles) -> None:
        self._config, self._files = config, files

    def template(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> Template:
        """Reads a template."""
        where = _where(region, sample, systematic, side)
        found = self._files.histogram(self.path(region, sample, systematic, side), where)
        return template_of(read(found, place=where))

    def files(self) -> Iterator[str]:
        """Returns the files that templates are read from; some more than once."""
        for one in wanted(self._config):
            parts = split_path(self.path(*one))
            if parts is not None:
                yield parts[0]

    def path(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> str:
        """Returns the path of the histogram, with all placeholders replaced."""
        settings = {"VariationPath": self._config.variation_path, **_settings(region, sample, systematic, side)}
        variation = _variation(systematic, side)
        # cabinetry reads all variations from the region's own folder.
        settings.update({key: value for key, value in region.overrides.items() if key == "RegionPath"})
        if len(settings.get("SamplePath", ())) > 1:
            owner = sample if variation is None or "SamplePath" not in variation.overrides else variation
            raise owner.node["SamplePath"].error("a histogram is in one file", "add the histograms with `hadd`, or read ntuples")
        if "SamplePath" in settings:
            settings["SamplePath"] = settings["SamplePath"][0]
        return _filled(self._config.input_path, settings, region, sample).replace("{VariationPath}", settings["VariationPath"])


class TreeSource:
    """Histograms of events in trees, filled with uproot's expressions."""

    def __init__(self, config: Config, files: RootFiles) -> None:
        self._config, self._files = config, files

    def template(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> Template:
        """Fills a template."""
        settings = _settings(region, sample, systematic, side)
        self._require(settings, region, sample)
        variable, weight = settings["Variable"], settings.get("Weight")
        factor = _number(weight)
        expressions = [variable] if factor is not None else [variable, weight]
        found = self._columns(settings, expressions, region, sample, _where(region, sample, systematic, side))
        # In the type of the variable, as cabinetry has it: the digits agree.
        weights = found[1] if factor is None else numpy.ones_like(found[0]) * factor
        return filled(found[0], weights, numpy.asarray(region.binning, dtype=float))

    def files(self) -> Iterator[str]:
        """Returns the files that templates are filled from; some more than once."""
        for region, sample, systematic, side in wanted(self._config):
            for file in self._paths(_settings(region, sample, systematic, side), region, sample):
                yield from files_of(file)

    def _paths(self, settings, region, sample):
        """Returns the files of a template, which may have wildcards."""
        # Without `SamplePath` there is one file.
        for path in settings.get("SamplePath", ("",)):
            known = {**settings, "SamplePath": path} if "SamplePath" in settings else settings
            yield _filled(self._config.input_path, known, region, sample)

    def _columns(self, settings, expressions, region, sample, where):
        """Returns values of the expressions in all files, one after the other."""
        files = self._paths(settings, region, sample)
        parts = [self._files.columns(file, settings["Tree"], expressions, settings.get("Filter"), where) for file in files]
        return [numpy.concatenate(part) for part in zip(*parts)]

    def _require(self, settings, region, sample):
        if "Variable" not in settings or region.binning is None:
            hint = "for histograms `InputPath` has a colon: `file.root:folder/histogram`"
            raise region.node.error("a histogram of events needs `Variable` and `Binning`", hint)
        if "Tree" not in settings:
            raise sample.node.error("a histogram of events needs `Tree`", "say `Tree: NAME`")


def _number(weight):
    """Returns the number that a weight is; None for an expression."""
    try:
        return 1.0 if weight is None else float(weight)
    except ValueError:
        return None


def filled(observables: Any, weights: Any, edges: Any) -> Template:
    """Returns a histogram of events. A bin has its lower edge and not its upper one.

    Parameters
    ----------
    observables, weights : array
        Values and weights of the events (N).
    edges : array
        The edges of the bins (B + 1), ascending.

    Examples
    --------
    >>> from nextstat.build.sources import filled
    >>> filled([0.5, 1.0, 2.0], [1.0, 2.0, 4.0], [0.0, 1.0, 2.0]).values.tolist()
    [1.0, 2.0]
    """
    edges = numpy.asarray(edges, dtype=float)
    n_bins = len(edges) - 1
    bins = numpy.searchsorted(edges, numpy.asarray(observables, dtype=float), side="right") - 1
    inside = (bins >= 0) & (bins < n_bins)
    bins, weights = bins[inside], numpy.asarray(weights, dtype=float)[inside]
    # Of no events NumPy counts in whole numbers.
    values, variances = (numpy.bincount(bins, found, n_bins).astype(float) for found in (weights, weights**2))
    return Template(values, numpy.sqrt(variances), edges)


class FunctionSource:
    """Histograms that a function of the user returns."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def template(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> Template:
        """Asks the function, and reads what it returns as `nextstat.histograms` does."""
        found = self._reader(region.name, sample.name, None if systematic is None else systematic.name, side)
        return template_of(read(found, place=_where(region, sample, systematic, side)))


class CheckedSource:
    """A source whose templates of a region have the same bins and finite contents; each is read
    once.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[tuple[str, str, str | None, str | None], Template] = {}
        self._first: dict[str, tuple[Template, str]] = {}

    def template(self, region: Region, sample: SampleConfig, systematic: Systematic | None, side: str | None) -> Template:
        """Returns the template of the source, checked."""
        key = (region.name, sample.name, None if systematic is None else systematic.name, side)
        if key not in self._found:
            found = self._source.template(region, sample, systematic, side)
            self._check(found, region, _where(region, sample, systematic, side), _place(region, sample, systematic, side))
            self._found[key] = found
        return self._found[key]

    def _check(self, found, region, where, place):
        for bin in numpy.flatnonzero(~numpy.isfinite(found.values) | ~numpy.isfinite(found.errors)):
            raise WorkspaceError(f"{where}: bin {bin}: {found.values[bin]:g} ± {found.errors[bin]:g} is not a valid number of events")
        first, where_first = self._first.setdefault(region.name, (found, place))
        if len(found.values) != len(first.values):
            raise WorkspaceError(f"{where}: {counted(len(found.values), 'bin')}, but {len(first.values)} in {where_first}")
        if found.edges is not None and first.edges is not None:
            width = numpy.diff(first.edges).min()
            for bin in numpy.flatnonzero(~numpy.isclose(found.edges, first.edges, rtol=0.0, atol=1e-6 * width)):
                raise WorkspaceError(f"{where}: edge {bin} is {found.edges[bin]:g}, but {first.edges[bin]:g} in {where_first}")


def source_of(config: Config, files: RootFiles) -> HistogramSource | TreeSource:
    """Returns what a configuration reads: histograms if `InputPath` names an object in a file, or
    trees."""
    kind = config.options.inputs
    if kind is None:
        kind = "ntuples" if split_path(config.input_path) is None else "histograms"
    return HistogramSource(config, files) if kind == "histograms" else TreeSource(config, files)


def unused_settings(config: Config) -> list[str]:
    """Returns warnings of paths that `InputPath` has no placeholder for, or that only trees
    have."""
    found = []
    if split_path(config.input_path) is not None:
        sides = [side for one in config.systematics for side in (one.up, one.down) if "RegionPath" in side.overrides]
        found += [f"{side.node['RegionPath'].where()}: only trees of a template may be in another `RegionPath`, so this changes nothing" for side in sides]
    for key in ("RegionPath", "SamplePath", "VariationPath"):
        if f"{{{key}}}" in config.input_path:
            continue
        for owner in (*config.regions, *config.samples, *(side for one in config.systematics for side in (one.up, one.down))):
            if key in owner.overrides:
                found.append(f"{owner.node[key].where()}: `InputPath` has no `{{{key}}}`, so this changes nothing")
    return found
