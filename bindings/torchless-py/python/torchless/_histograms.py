"""`ScoreHistograms`: histograms of a model's score, nominal and of every variation of the events.

A `Histogram` is what the UHI protocol calls one: `nextstat` and `mplhep` take it as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._encoder import Encoder, given_inputs, usable
from ._torchless import InputError, RawHistograms, input_error

_TRANSFORMS = ("number", "softmax", "log_ratio", "log_ratio_of_probabilities")
_NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class Score:
    """Which number of a model's outputs is the score of an event.

    With x the numbers of an event in the output and c the column, the score is

    - x_c for `"number"`,
    - exp x_c / Σₖ exp xₖ for `"softmax"`, of logits,
    - x_c - ln Σₖ fₖ exp xₖ for `"log_ratio"`, of logits: the logarithm of a ratio of probabilities,
    - ln x_c - ln Σₖ fₖ xₖ for `"log_ratio_of_probabilities"`,

    computed in double precision. The sums of ratios are over `against`, which has the fractions fₖ.

    Examples
    --------
    >>> Score(column=2, transform="log_ratio", against={0: 0.9, 1: 0.1}).column
    2
    """

    column: int = 0
    """The column, from 0."""
    output: str | None = None
    """The output; None for the only one."""
    transform: str = "number"
    """`"number"`, `"softmax"`, `"log_ratio"` or `"log_ratio_of_probabilities"`."""
    against: Mapping[int, float] = field(default_factory=dict)
    """The fractions of other columns, for ratios."""


@dataclass(frozen=True, eq=False, slots=True)
class Variation:
    """What a variation of events has of its own; the rest is nominal."""

    inputs: Mapping[str, Any] | None = None
    """The inputs that differ, by name, as `Encoder.encode` takes them."""
    weights: ArrayLike | None = None
    """Its weights. Without inputs the nominal scores are used, and none is computed."""


@dataclass(frozen=True, slots=True)
class AxisTraits:
    """What the UHI protocol asks of an axis."""

    underflow: bool
    overflow: bool
    circular: bool = False
    discrete: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Axis:
    """The bins of a histogram; bin b is the pair `axis[b]`, its lower edge included."""

    edges: NDArray[np.float64]
    """The edges (B + 1)."""
    traits: AxisTraits
    """Whether `flow=True` gives under- and overflow."""

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __getitem__(self, index: int) -> tuple[float, float]:
        lower, upper = self.edges[:-1][index], self.edges[1:][index]
        return float(lower), float(upper)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.traits == other.traits and np.array_equal(self.edges, other.edges)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, slots=True)
class Histogram:
    """A histogram with the sums of weights and of their squares in every bin."""

    axes: tuple[Axis]
    """Its axis."""
    _sums: NDArray[np.float64]
    _squares: NDArray[np.float64]

    @property
    def kind(self) -> str:
        """What it has: `"COUNT"`."""
        return "COUNT"

    @property
    def edges(self) -> NDArray[np.float64]:
        """The edges of the bins (B + 1)."""
        return self.axes[0].edges

    def values(self, flow: bool = False) -> NDArray[np.float64]:
        """Returns Σw of every bin (B); with `flow` those of the underflow before, and of the
        overflow behind (B + 2), if they did not join the first and the last bin."""
        return self._sums if flow and self.axes[0].traits.underflow else self._sums[1:-1]

    def variances(self, flow: bool = False) -> NDArray[np.float64]:
        """Returns Σw² of every bin, as `values` does Σw."""
        return self._squares if flow and self.axes[0].traits.underflow else self._squares[1:-1]

    def counts(self, flow: bool = False) -> NDArray[np.float64]:
        """Returns the effective numbers of events, (Σw)²/Σw²; 0 where there are none."""
        values, variances = self.values(flow), self.variances(flow)
        return np.divide(values**2, variances, out=np.zeros_like(values), where=variances != 0)

    def to_numpy(self, flow: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns values and edges, as `numpy.histogram` does."""
        edges = self.edges
        if flow and self.axes[0].traits.underflow:
            edges = np.concatenate([[-np.inf], edges, [np.inf]])
        return self.values(flow), edges

    def __repr__(self) -> str:
        return f"Histogram({len(self.axes[0])} bins, sum {self.values().sum():.6g})"


class ScoreHistograms(Mapping[str, Histogram]):
    """Histograms of the score of events: `"nominal"`, and one of each variation by its name.

    A bin has its lower edge and not its upper one. Sums of weights and of their squares are exact
    until they are rounded, once, so that no bit depends on threads, on `chunk_size`, on the order
    of events, or on how they are divided into calls of `fill`.

    Parameters
    ----------
    model
        The model.
    edges
        The edges of the bins, ascending (B + 1); the outer ones may be
        infinite, and are then in their bins.
    score
        The score of an event.
    flow
        What happens to events outside of all bins: `"drop"` keeps them apart, in under- and
        overflow, and with `"merge"` they join the first and the last bin.
    mask
        The input that is 1 for particles and 0 for padding, as for `Encoder.encode`.
    events_at_once
        Events that are computed together, at most.
    chunk_size
        Events whose scores are in memory at once, of each variation with inputs.
    threads
        1 is the caller's thread, 0 as many as the machine has.

    Raises
    ------
    InputError
        Edges that do not ascend, and options that do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> histograms = ScoreHistograms(Encoder("mlp.onnx"), [-10, 0, 10], Score(column=1))
    >>> x = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -3.0]])
    >>> up = Variation(inputs={"x": 1.1 * x})
    >>> histograms.fill({"x": x}, weights=[1.0, 2.0], variations={"scale_up": up})
    >>> list(histograms)
    ['nominal', 'scale_up']
    >>> histograms["nominal"].values().sum(), histograms["scale_up"].variances().sum()
    (np.float64(3.0), np.float64(5.0))
    """

    __slots__ = ("_axis", "_model", "_options", "_raw")

    def __init__(
        self,
        model: Encoder,
        edges: ArrayLike,
        score: Score | None = None,
        *,
        flow: str = "drop",
        mask: str | None = None,
        events_at_once: int = 16,
        chunk_size: int = 8192,
        threads: int = 1,
    ) -> None:
        score = Score() if score is None else score
        if score.transform not in _TRANSFORMS:
            raise input_error(f"score: `transform` is {score.transform!r}", f"it is one of {', '.join(_TRANSFORMS)}")
        if bool(score.against) and not score.transform.startswith("log_ratio"):
            raise input_error(f"score: `against` goes with ratios, and `transform` is {score.transform!r}", None)
        if flow not in ("drop", "merge"):
            raise input_error(f"`flow` is {flow!r}", 'it is "drop" or "merge"')
        own = np.array(edges, np.float64)
        if own.ndim != 1:
            raise input_error(f"the edges have the shape {list(own.shape)}, and one axis is needed", None)
        given = (score.output, score.column, score.transform, list(score.against.items()))
        self._model, self._raw = model, RawHistograms(own.tolist(), given, flow == "merge")
        own.setflags(write=False)
        self._axis = Axis(own, AxisTraits(flow == "drop", flow == "drop"))
        self._options = (mask, events_at_once, chunk_size, threads)

    def fill(
        self,
        inputs: Mapping[str, Any],
        *,
        weights: ArrayLike | None = None,
        variations: Mapping[str, Variation] | None = None,
    ) -> None:
        """Adds events to the histograms. All calls have the same variations.

        Parameters
        ----------
        inputs
            The nominal inputs, as `Encoder.encode` takes them.
        weights
            The nominal weights; 1 if not given. An event whose weight is 0 counts nowhere, and its
            score is not computed if no variation needs it.
        variations
            The variations, by name.

        Raises
        ------
        InputError
            Inputs that do not fit the model, weights that are not finite or not as many as events,
            and scores that are NaN. The error of a variation has its name. Nothing was added.
        """
        nominal = (*given_inputs(self._model, inputs), _weights(weights))
        varied = []
        for name, variation in (variations or {}).items():
            try:
                own = variation.inputs or {}
                varied.append((name, (*given_inputs(self._model, own), _weights(variation.weights))))
            except InputError as error:
                raise input_error(f"variation `{name}`: {error}", error.hint) from None
        self._raw.fill(self._model._raw, nominal, varied, self._options)

    @property
    def nominal(self) -> Histogram:
        """The histogram of the nominal inputs and weights."""
        return self[_NOMINAL]

    def __getitem__(self, name: str) -> Histogram:
        found = self._raw.histogram(None if name == _NOMINAL else name)
        if found is None:
            raise KeyError(name)
        values, variances, underflow, overflow = found
        sums, squares = (np.concatenate([[under], inner, [over]]) for under, inner, over in zip(underflow, (values, variances), overflow))
        for array in (sums, squares):
            array.setflags(write=False)
        return Histogram((self._axis,), sums, squares)

    def __iter__(self) -> Iterator[str]:
        yield _NOMINAL
        yield from self._raw.names()

    def __len__(self) -> int:
        return 1 + len(self._raw.names())

    def __repr__(self) -> str:
        return f"ScoreHistograms({len(self._axis)} bins: {', '.join(self)})"


def _weights(weights: ArrayLike | None) -> NDArray[Any] | None:
    """Returns weights as they are read: a copy only of other types and of steps."""
    if weights is None:
        return None
    array = np.asanyarray(weights)
    if array.ndim != 1:
        raise input_error(f"weights: they have the shape {list(array.shape)}, and one axis is needed", None)
    try:
        return usable("", array, (np.float64, np.float32))
    except InputError:
        raise input_error("weights: they have masked values", "`filled` replaces them") from None
