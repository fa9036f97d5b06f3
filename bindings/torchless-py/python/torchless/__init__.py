"""Encoders of events from files: NumPy and awkward arrays in, NumPy arrays out."""

from ._encoder import Encoder, Gradients, Port
from ._histograms import Axis, AxisTraits, Histogram, Score, ScoreHistograms, Variation
from ._ragged import Ragged
from ._torchless import DeviceError, InputError, ModelError, TorchlessError, __version__

__all__ = [
    "Axis",
    "AxisTraits",
    "DeviceError",
    "Encoder",
    "Gradients",
    "Histogram",
    "InputError",
    "ModelError",
    "Port",
    "Ragged",
    "Score",
    "ScoreHistograms",
    "TorchlessError",
    "Variation",
    "__version__",
]
