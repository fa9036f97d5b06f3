"""Ragged inputs: what an awkward array has in memory, as offsets and columns.

Nothing is padded. Numbers stay where they are if they are contiguous and of a type that the model
takes; otherwise they are copied once, by NumPy or awkward.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._torchless import input_error


@dataclass(frozen=True, eq=False, slots=True)
class Ragged:
    """Events of different lengths: their particles one after another, and where each event begins.

    Parameters
    ----------
    content
        An array `[particles, ...]` with a row of each particle, or one array `[particles]` of each
        column.
    offsets
        One more than there are events: event e has the particles `offsets[e]` to
        `offsets[e + 1] - 1`.

    Examples
    --------
    >>> import numpy as np
    >>> Ragged(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    Ragged(2 events, 3 particles)
    """

    content: ArrayLike | Sequence[ArrayLike] | Mapping[str, ArrayLike]
    offsets: ArrayLike

    def columns(self) -> list[NDArray[Any]]:
        """Returns the arrays whose columns are those of the input, in order."""
        content = self.content.values() if isinstance(self.content, Mapping) else self.content
        if isinstance(content, np.ndarray):
            return [content]
        return [np.asanyarray(column) for column in content]

    def __repr__(self) -> str:
        columns = self.columns()
        # What is not checked before it is used: a single number has no length.
        n_particles = columns[0].shape[0] if columns and columns[0].ndim else 0
        return f"Ragged({np.size(self.offsets) - 1} events, {n_particles} particles)"


def is_awkward(array: object) -> TypeGuard[Any]:
    """Returns whether it is an array of awkward, which is not imported for that."""
    awkward = sys.modules.get("awkward")
    return awkward is not None and isinstance(array, awkward.Array)


def of_awkward(name: str, array: Any) -> Ragged | NDArray[Any]:
    """Returns what an awkward array has: a NumPy array if every event has the same shape."""
    import awkward as ak

    layout = ak.to_layout(array)
    layout = _without_indices(name, layout)
    if isinstance(layout, ak.contents.NumpyArray):
        return np.asarray(layout.data)
    if isinstance(layout, ak.contents.RegularArray):
        inner = _without_indices(name, layout.content)
        if isinstance(inner, (ak.contents.NumpyArray, ak.contents.RegularArray)):
            return _regular(name, array, layout)
        layout = layout.to_ListOffsetArray64(True)
    if isinstance(layout, ak.contents.ListArray):
        # Events that were selected: their particles do not lie together.
        layout = layout.to_ListOffsetArray64(True)
    if not isinstance(layout, ak.contents.ListOffsetArray):
        raise _unusable(name, array, "events must be lists of particles")
    if layout.parameter("__array__") is not None:
        # Text is lists of bytes, which are not the numbers that anybody means.
        raise _unusable(name, array, "events must be lists of particles")
    content = _without_indices(name, layout.content)
    if isinstance(content, ak.contents.RecordArray):
        columns = [_column(name, array, content.content(field)) for field in content.fields]
    else:
        columns = [_column(name, array, content)]
    return Ragged(columns, np.asarray(layout.offsets.data))


def _column(name: str, array: Any, layout: Any) -> NDArray[Any]:
    """Returns the numbers of every particle."""
    import awkward as ak

    layout = _without_indices(name, layout)
    if isinstance(layout, ak.contents.NumpyArray):
        return np.asarray(layout.data)
    if isinstance(layout, ak.contents.RegularArray):
        return _regular(name, array, layout)
    if isinstance(layout, (ak.contents.ListOffsetArray, ak.contents.ListArray)):
        # Lists that are of one length, although their type does not say so.
        regular = ak.to_regular(ak.Array(layout), axis=1) if _has_one_length(layout) else None
        if regular is not None:
            return _regular(name, array, regular)
    raise _unusable(name, array, "particles must have numbers, lists of one length, or records of numbers")


def _regular(name: str, array: Any, layout: Any) -> NDArray[Any]:
    """Returns lists of one length as an array, if what is in them has a shape, too."""
    import awkward as ak

    try:
        return ak.to_numpy(layout, allow_missing=False)
    except ValueError:
        raise _unusable(name, array, "lists within lists must have one length, and no missing values") from None


def _has_one_length(layout: Any) -> bool:
    lengths = np.asarray(layout.stops.data) - np.asarray(layout.starts.data)
    return bool(lengths.size) and bool((lengths == lengths[0]).all())


def _without_indices(name: str, layout: Any) -> Any:
    """Returns the layout with indices applied, and options taken away that miss nothing."""
    import awkward as ak

    while True:
        if layout.is_option:
            if ak.any(ak.is_none(ak.Array(layout))):
                raise input_error(f"input `{name}`: it has missing values", "`awkward.fill_none` or `awkward.drop_none` replaces or drops them")
            layout = layout.project()
        elif layout.is_indexed:
            layout = layout.project()
        else:
            return layout


def _unusable(name: str, array: Any, expected: str) -> Exception:
    return input_error(f"input `{name}`: its type is `{array.type}`", expected)


def gradient_like(given: Any, offsets: NDArray[Any], rows: NDArray[np.float64]) -> Any:
    """Returns rows of all particles in the form of a ragged input that was given: an awkward array
    of lists or records, or `Ragged` with a row of each particle; its events begin at `offsets`."""
    starts = (offsets - offsets[0]).astype(np.int64)
    if not is_awkward(given):
        return Ragged(rows, starts)
    import awkward as ak

    fields = ak.fields(given)
    content: Any = ak.contents.NumpyArray(rows)
    if fields:
        columns = [ak.contents.NumpyArray(np.ascontiguousarray(column)) for column in rows.T]
        content = ak.contents.RecordArray(columns, fields)
    return ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(starts), content))
