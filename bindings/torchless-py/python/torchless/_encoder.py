"""`Encoder`: a model, and what it is given and answers with."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._ragged import Ragged, gradient_like, is_awkward, of_awkward
from ._torchless import RawEncoder, input_error

# What each kind of elements is given as; the first is for numbers of other types.
_TYPES: dict[str, tuple[Any, ...]] = {
    "numbers": (np.float64, np.float32),
    "integers": (np.int64,),
    "truth values": (np.bool_,),
}


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output of a model."""

    name: str
    """Its name."""
    elements: str
    """`numbers`, `integers` or `truth values`."""
    shape: tuple[int | str, ...] | None
    """Its sizes, and names of those that the caller chooses; None if the model declares none."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Outputs of many events, and gradients with respect to their inputs."""

    outputs: dict[str, NDArray[Any]]
    """A NumPy array of each output: what `Encoder.encode` returns, bit by bit."""
    inputs: dict[str, Any]
    """The gradient with respect to each input that is made of numbers and is not the mask, in
    double precision and in the form of the input: a NumPy array with 0 for padding, an awkward
    array, or `Ragged` with a row of each particle."""

    def __repr__(self) -> str:
        return f"Gradients({', '.join(self.outputs)}; with respect to {', '.join(self.inputs)})"


class Encoder:
    """A model that turns events into numbers. It is immutable; threads may share it.

    Parameters
    ----------
    path
        An ONNX file (opsets 13 to 21), or a folder with `model.safetensors` and `config.json`.
    precision
        `"single"`, or `"double"`: a reference, and slow.
    weights
        How matrices are stored: `"f32"`; `"f16"` or `"bf16"`, which take half the memory and lose
        nothing of a file that has such numbers; or `"int8"`, which is approximate: weights and the
        inputs of products are rounded to bytes.
    device
        What computes: `"cpu"`, `"cuda"`, `"opencl"` or `"metal"`; `"auto"` is the CPU. Outputs on a
        device are near those of the CPU, and not their bits. It has single precision, weights of
        `"f32"` and no gradients. Never tried with a GPU.
    fixed
        Inputs that are always the same, by name; they may decide on shapes. The model has one input
        less for each.

    Raises
    ------
    OSError
        A file that cannot be read.
    ModelError
        A file that is not ONNX, or an operator that is not computed, or not by the device: the
        message names the node.
        A weight that cannot be stored as asked for: the message names the tensor.
    InputError
        A fixed input that the model does not have; a device that does not have what is asked for.
    DeviceError
        A device that is not there, or that computes something else than the CPU.

    Examples
    --------
    >>> model = Encoder("mlp.onnx")
    >>> model.inputs
    (Port(name='x', elements='numbers', shape=('batch', 3)),)
    >>> model.encode({"x": [[0.5, -1.0, 2.0]]})["logits"].shape
    (1, 2)
    >>> Encoder("mlp.onnx", weights="int8")
    Encoder('mlp.onnx', weights='int8' (approximate): x -> logits)
    """

    __slots__ = ("_device", "_fixed", "_inputs", "_outputs", "_path", "_precision", "_raw", "_weights")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        precision: str = "single",
        weights: str = "f32",
        device: str = "auto",
        fixed: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        if precision not in ("single", "double"):
            raise input_error(f"`precision` is {precision!r}", 'it is "single" or "double"')
        self._path, self._precision, self._weights, self._device = os.fspath(path), precision, weights, device
        self._fixed = {name: _fixed_input(name, array) for name, array in (fixed or {}).items()}
        self._raw = RawEncoder(self._path, precision == "double", weights, device, list(self._fixed.items()))
        self._inputs = tuple(_port(port) for port in self._raw.inputs())
        self._outputs = tuple(_port(port) for port in self._raw.outputs())

    @property
    def inputs(self) -> tuple[Port, ...]:
        """What the model wants."""
        return self._inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """What the model answers with."""
        return self._outputs

    @property
    def precision(self) -> str:
        """The numbers in which it computes."""
        return self._precision

    @property
    def weights(self) -> str:
        """How its matrices are stored: `"f32"`, `"f16"`, `"bf16"` or `"int8"`."""
        return self._weights

    @property
    def device(self) -> str:
        """What computes: `"cpu"`, or the name of a device."""
        return self._raw.device()

    @property
    def is_approximate(self) -> bool:
        """Whether weights and the inputs of products are rounded to bytes; only if asked for."""
        return self._raw.is_approximate()

    @property
    def weight_bytes(self) -> int:
        """The bytes of its weights as they are kept."""
        return self._raw.weight_bytes()

    def encode(
        self,
        inputs: Mapping[str, Any],
        *,
        mask: str | None = None,
        events_at_once: int = 16,
        threads: int = 1,
    ) -> dict[str, NDArray[Any]]:
        """Computes the outputs of many events.

        Parameters
        ----------
        inputs
            An array of each input, by name: NumPy's, whose first axis is that of events; awkward
            arrays of lists of numbers, of lists of one length, or of records, whose fields are the
            columns in order; or `Ragged`. Other sequences become NumPy arrays.
        mask
            The input that is 1 for particles and 0 for padding. Padded events are cut to their
            lengths, and ragged ones of different lengths are computed together. It need not be
            among the inputs if others are ragged.
        events_at_once
            Events that are computed together, at most. No number changes a result.
        threads
            1 is the caller's thread, 0 as many as the machine has. No number changes a result.

        Returns
        -------
        dict
            A NumPy array of each output. One with an axis of particles is as long as the longest
            event, or as the padded inputs, with zeros behind shorter events.

        Raises
        ------
        InputError
            Inputs that are missing, unknown, or not of the type and the shape that the model
            declares, and offsets that do not fit. A mask that is inverted: 1 only where all other
            inputs of several events are 0. An index that is out of range, with its input and event.
        ModelError
            Shapes that the model's operators do not take together.

        Examples
        --------
        Three sentences of 2, 1 and 3 tokens:

        >>> model = Encoder("text17.onnx")
        >>> ids = Ragged([[7, 3, 1, 9, 9, 2]], offsets=[0, 2, 3, 6])
        >>> model.encode({"ids": ids}, mask="mask")["logits"].shape
        (3, 2)
        """
        dense, ragged = given_inputs(self, inputs)
        return self._raw.encode(dense, ragged, mask, events_at_once, threads)

    def gradients(
        self,
        inputs: Mapping[str, Any],
        *,
        output: str | None = None,
        column: int = 0,
        cotangents: Mapping[str, ArrayLike] | None = None,
        mask: str | None = None,
        events_at_once: int = 16,
        threads: int = 1,
    ) -> Gradients:
        """Computes the outputs of many events, and how they change with their inputs.

        An event's gradient is that of one number of its outputs: of the one at `column`, or of the
        sum of all outputs times `cotangents`. Integers, truth values and the mask have none.

        Parameters
        ----------
        inputs
            Those of `encode`.
        output
            The output whose `column` is differentiated; None for the only one.
        column
            The column, from 0: of an event's numbers of that output, all in order.
        cotangents
            Instead of a column: a factor of every number of some outputs, by their names, in arrays
            of the shapes that `encode` returns.
        mask, events_at_once, threads
            As for `encode`. Neither of the last two changes a bit.

        Returns
        -------
        Gradients
            The outputs, and a gradient of the form of each input.

        Raises
        ------
        InputError
            As `encode`, and outputs, columns and cotangents that the model does not have.
        ModelError
            As `encode`, and an operator whose derivative is not computed, by its node.

        Examples
        --------
        >>> import numpy as np
        >>> model = Encoder("mlp.onnx")
        >>> x = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, 1.0]])
        >>> found = model.gradients({"x": x}, column=1)
        >>> found
        Gradients(logits; with respect to x)
        >>> derivative = found.inputs["x"][:, 2]
        >>> more = model.encode({"x": x + [0, 0, 0.001]})["logits"][:, 1]
        >>> bool(np.allclose(more - found.outputs["logits"][:, 1], 0.001 * derivative, atol=1e-6))
        True
        """
        if cotangents is not None and (output is not None or column != 0):
            raise input_error("gradients: both a column and cotangents are given", "give one of them")
        if column < 0:
            raise input_error(f"gradients: there is no column {column}", "columns count from 0")
        dense, ragged = given_inputs(self, inputs)
        factors = None
        if cotangents is not None:
            factors = [(name, usable(name, np.asarray(array, np.float64), ())) for name, array in cotangents.items()]
        options = mask, events_at_once, threads
        outputs, gradients = self._raw.gradients(dense, ragged, (output, column, factors), options)
        forms: dict[str, Any] = dict(gradients)
        for name, offsets, _ in ragged:
            if name in forms:
                forms[name] = gradient_like(inputs[name], offsets, gradients[name])
        return Gradients(outputs, forms)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self._path, self._precision, self._weights, self._device, self._fixed)

    def __repr__(self) -> str:
        names = ", ".join(port.name for port in self._inputs), ", ".join(port.name for port in self._outputs)
        stored = "" if self._weights == "f32" else f", weights={self._weights!r}"
        where = "" if self.device == "cpu" else f", device={self.device!r}"
        mode = " (approximate)" if self.is_approximate else ""
        return f"Encoder({self._path!r}{stored}{where}{mode}: {names[0]} -> {names[1]})"


def given_inputs(model: Encoder, inputs: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Returns inputs as the extension module reads them: names with arrays, and ragged ones with
    offsets and columns."""
    dense, ragged = [], []
    kinds = {port.name: port.elements for port in model.inputs}
    for name, array in inputs.items():
        types = _TYPES.get(kinds.get(name, ""), ())
        given = of_awkward(name, array) if is_awkward(array) else array
        if isinstance(given, Ragged):
            columns = [usable(name, column, types) for column in given.columns()]
            ragged.append((name, _offsets(name, given.offsets), columns))
        else:
            dense.append((name, usable(name, np.asanyarray(given), types)))
    return dense, ragged


def _open(path: str, precision: str, weights: str, device: str, fixed: Mapping[str, ArrayLike]) -> Encoder:
    return Encoder(path, precision=precision, weights=weights, device=device, fixed=fixed)


def _port(port: tuple[str, str, list[int | str] | None]) -> Port:
    name, elements, shape = port
    return Port(name, elements, None if shape is None else tuple(shape))


def _fixed_input(name: str, array: ArrayLike) -> NDArray[Any]:
    """Returns a copy in double precision, which has every number of a fixed input as it is."""
    given = np.asanyarray(array)
    copy = given.astype(np.float64) if np.can_cast(given.dtype, np.float64, "safe") else None
    # Integers from 2^53 on are not all numbers of double precision, although the cast is "safe".
    if copy is None or (given.dtype.kind in "iu" and (np.abs(copy) >= 2.0**53).any()):
        raise input_error(f"input `{name}`: numbers of {given.dtype} are not all numbers of double precision", None)
    return usable(name, copy, ())


def usable(name: str, array: NDArray[Any], types: tuple[Any, ...]) -> NDArray[Any]:
    """Returns the array itself if it can be read as it is, else a copy with the same numbers."""
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise input_error(f"input `{name}`: it has masked values", "`filled` replaces them; the mask of particles is an input")
        array = array.data
    if types and array.dtype not in types and np.can_cast(array.dtype, types[0], "safe"):
        array = array.astype(types[0])
    # The order of bytes of this machine, contiguous, and at addresses of its type.
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def _offsets(name: str, offsets: ArrayLike) -> NDArray[Any]:
    array = np.asanyarray(offsets)
    if array.ndim != 1 or not np.can_cast(array.dtype, np.int64, "safe"):
        raise input_error(f"input `{name}`: its offsets are an array {list(array.shape)} of {array.dtype}", "offsets are integers that int64 has, in one axis")
    types = (np.int64, np.int32, np.uint32)
    return usable(name, array, types)
