"""A configuration as it is meant: regions, samples, factors, systematics, and what is done to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._places import Document, Node


def matches(patterns: Sequence[str], *names: str) -> bool:
    """Returns whether one of the names has a pattern (`JES_*`); without patterns all have."""
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for name in names for pattern in patterns)


@dataclass(frozen=True)
class Choice:
    """The regions and samples that something is for; empty means all."""

    regions: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    not_regions: tuple[str, ...] = ()
    not_samples: tuple[str, ...] = ()

    def has_region(self, name: str) -> bool:
        """Returns whether the region is chosen."""
        return (not self.regions or name in self.regions) and name not in self.not_regions

    def has_sample(self, name: str) -> bool:
        """Returns whether the sample is chosen."""
        return (not self.samples or name in self.samples) and name not in self.not_samples


@dataclass(frozen=True)
class Rule:
    """What one entry of `Nextstat` is for: patterns (`JES_*`) of names; empty means all."""

    systematics: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()

    def applies(self, region: str, sample: str, *systematic: str) -> bool:
        """Returns whether the rule is for a sample of a region and a systematic with these
        names."""
        return matches(self.regions, region) and matches(self.samples, sample) and matches(self.systematics, *systematic)


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

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that have a template of their own."""
        return ("Up",) if self.down.symmetrize else ("Up", "Down")


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
