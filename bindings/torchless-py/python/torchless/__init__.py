"""Encoders of events from ONNX files: NumPy and awkward arrays in, NumPy arrays out."""

from ._encoder import Encoder, Port
from ._ragged import Ragged
from ._torchless import InputError, ModelError, TorchlessError, __version__

__all__ = ["Encoder", "InputError", "ModelError", "Port", "Ragged", "TorchlessError", "__version__"]
