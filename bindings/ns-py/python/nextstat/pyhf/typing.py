"""Types of the parts of a workspace document, for code that is checked."""

import os
from collections.abc import Sequence
from typing import Literal, Protocol, TypedDict, Union

__all__ = [
    "Channel",
    "HistoSys",
    "Literal",
    "LumiSys",
    "Measurement",
    "Modifier",
    "ModifierBase",
    "NormFactor",
    "NormSys",
    "Observation",
    "Parameter",
    "ParameterBase",
    "PathOrStr",
    "Protocol",
    "Sample",
    "ShapeFactor",
    "ShapeSys",
    "StatError",
    "TypedDict",
    "Workspace",
]

PathOrStr = Union[str, "os.PathLike[str]"]


def __dir__():
    return __all__


class ParameterBase(TypedDict, total=False):
    """What a measurement may say of a parameter."""

    auxdata: Sequence[float]
    bounds: Sequence[Sequence[float]]
    inits: Sequence[float]
    sigmas: Sequence[float]
    fixed: bool


class Parameter(ParameterBase):
    """The same, with the parameter's name."""

    name: str


class Config(TypedDict):
    """What is measured, and settings of parameters."""

    poi: str
    parameters: Sequence[Parameter]


class Measurement(TypedDict):
    """A measurement."""

    name: str
    config: Config


class ModifierBase(TypedDict):
    """What every modifier has."""

    name: str


class NormSysData(TypedDict):
    """Factors at -1σ and +1σ."""

    lo: float
    hi: float


class NormSys(ModifierBase):
    """A constrained factor."""

    type: Literal["normsys"]
    data: NormSysData


class NormFactor(ModifierBase):
    """A free factor."""

    type: Literal["normfactor"]
    data: None


class HistoSysData(TypedDict):
    """Yields at -1σ and +1σ (B each)."""

    lo_data: Sequence[float]
    hi_data: Sequence[float]


class HistoSys(ModifierBase):
    """A constrained change of shape."""

    type: Literal["histosys"]
    data: HistoSysData


class StatError(ModifierBase):
    """Statistical uncertainties of a simulation (B)."""

    type: Literal["staterror"]
    data: Sequence[float]


class ShapeSys(ModifierBase):
    """Uncertainties of single bins (B)."""

    type: Literal["shapesys"]
    data: Sequence[float]


class ShapeFactor(ModifierBase):
    """A free factor for every bin."""

    type: Literal["shapefactor"]
    data: None


class LumiSys(TypedDict):
    """The luminosity."""

    name: Literal["lumi"]
    type: Literal["lumi"]
    data: None


Modifier = NormSys | NormFactor | HistoSys | StatError | ShapeSys | ShapeFactor | LumiSys


class _SampleBase(TypedDict, total=False):
    parameter_configs: Sequence[Parameter]


class Sample(_SampleBase):
    """Yields (B) and what changes them."""

    name: str
    data: Sequence[float]
    modifiers: Sequence[Modifier]


class Channel(TypedDict):
    """A channel."""

    name: str
    samples: Sequence[Sample]


class Observation(TypedDict):
    """Observed counts of a channel (B)."""

    name: str
    data: Sequence[float]


class Workspace(TypedDict):
    """A workspace."""

    measurements: Sequence[Measurement]
    channels: Sequence[Channel]
    observations: Sequence[Observation]
    version: str
