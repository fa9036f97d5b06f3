"""The extension module: a model, histograms, and exceptions. `Encoder` and `ScoreHistograms`
prepare what they are given."""

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__version__: str

class TorchlessError(ValueError):
    """A problem with a model or its inputs; `hint` has advice, or None."""

    hint: str | None

class ModelError(TorchlessError):
    """A file that is not a valid model, or an operator or a shape that is not computed."""

class InputError(TorchlessError):
    """Inputs that do not fit the model or each other."""

class DeviceError(TorchlessError):
    """A device that is not there, or that fails."""

@final
class RawEncoder:
    """A model."""

    def __new__(cls, path: str, is_double: bool, weights: str, device: str, fixed: Sequence[tuple[str, NDArray[Any]]]) -> RawEncoder: ...
    def is_approximate(self) -> bool:
        """Returns whether weights and the inputs of products are rounded to bytes."""

    def device(self) -> str:
        """Returns the name of what computes."""

    def weight_bytes(self) -> int:
        """Returns the bytes of the weights as they are kept."""

    def inputs(self) -> list[tuple[str, str, list[int | str] | None]]:
        """Returns names, kinds of elements, and shapes."""

    def outputs(self) -> list[tuple[str, str, list[int | str] | None]]:
        """Returns names, kinds of elements, and shapes."""

    def encode(
        self,
        dense: Sequence[tuple[str, NDArray[Any]]],
        ragged: Sequence[tuple[str, NDArray[Any], Sequence[NDArray[Any]]]],
        mask: str | None,
        events_at_once: int,
        threads: int,
    ) -> dict[str, NDArray[Any]]:
        """Returns the outputs. Ragged inputs are a name, offsets, and arrays of columns."""

    def gradients(
        self,
        dense: Sequence[tuple[str, NDArray[Any]]],
        ragged: Sequence[tuple[str, NDArray[Any], Sequence[NDArray[Any]]]],
        target: tuple[str | None, int, Sequence[tuple[str, NDArray[np.float64]]] | None],
        options: tuple[str | None, int, int],
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.float64]]]:
        """Returns the outputs and the gradients with respect to inputs, those of ragged ones with a
        row of each particle. The target is an output and its column, or cotangents; options are the
        mask, events at once, and threads."""

_Dense: TypeAlias = tuple[str, NDArray[Any]]
_Ragged: TypeAlias = tuple[str, NDArray[Any], Sequence[NDArray[Any]]]
_Events: TypeAlias = tuple[Sequence[_Dense], Sequence[_Ragged], NDArray[Any] | None]

@final
class RawHistograms:
    """Histograms of a score."""

    def __new__(cls, edges: Sequence[float], score: tuple[str | None, int, str, Sequence[tuple[int, float]]], merge: bool) -> RawHistograms: ...
    def fill(
        self,
        model: RawEncoder,
        events: _Events,
        variations: Sequence[tuple[str, _Events]],
        options: tuple[str | None, int, int, int],
    ) -> None:
        """Adds events; those of a variation are what it has of its own. Options are the mask,
        events at once, events of a chunk, and threads."""

    def names(self) -> list[str]:
        """Returns the names of the variations."""

    def histogram(
        self, variation: str | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Sequence[float], Sequence[float]] | None:
        """Returns sums of weights and of squares in the bins, and both below and above them."""

def input_error(message: str, hint: str | None) -> InputError:
    """Returns an error with its hint."""
