"""The extension module: a model, and exceptions. `Encoder` prepares what it is given."""

from collections.abc import Sequence
from typing import Any, final

from numpy.typing import NDArray

__version__: str

class TorchlessError(ValueError):
    """A problem with a model or its inputs; `hint` has advice, or None."""

    hint: str | None

class ModelError(TorchlessError):
    """A file that is not a valid model, or an operator or a shape that is not computed."""

class InputError(TorchlessError):
    """Inputs that do not fit the model or each other."""

@final
class RawEncoder:
    """A model."""

    def __new__(cls, path: str, is_double: bool, fixed: Sequence[tuple[str, NDArray[Any]]]) -> RawEncoder: ...
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

def input_error(message: str, hint: str | None) -> InputError:
    """Returns an error with its hint."""
