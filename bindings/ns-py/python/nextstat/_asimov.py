"""Asimov data that remember the point that they were made at.

Imports NumPy, which the package does without until arrays are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from ._nextstat import RawAsimov


class AsimovData(numpy.ndarray):
    """An array of event counts and auxiliary data (B + K) that knows that it is an Asimov data set.

    Procedures take it as the command's ``--asimov``: results say "Asimov data", and their
    provenance has the parameters. It is so as long as the model expects exactly these numbers;
    what is computed from the array, its parts and its views are plain arrays.

    Attributes
    ----------
    asimov : RawAsimov or None
        The point that the data were made at.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> data = nextstat.asimov_data(model, {"mu": 0.5})
    >>> print(nextstat.fit(model, data=data).provenance["data"]["parameters"])
    {'mu': 0.5}
    >>> type(data + 1).__name__, type(data[:2]).__name__
    ('ndarray', 'ndarray')
    """

    asimov: RawAsimov | None

    def __array_finalize__(self, made_of: Any) -> None:
        self.asimov = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Applies `ufunc` to plain arrays."""
        if "out" in options:
            options["out"] = tuple(map(_plain, options["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function of NumPy, whose result is a plain array."""
        return _plain(super().__array_function__(function, types, args, kwargs))

    def __getitem__(self, key: Any) -> Any:
        return _plain(self)[key]

    def copy(self, order: Any = "C") -> AsimovData:
        """Returns a copy, which is an Asimov data set too."""
        return of_point(_plain(self).copy(order), self.asimov)

    def __copy__(self) -> AsimovData:
        return self.copy()

    def __deepcopy__(self, _: Any) -> AsimovData:
        return self.copy()

    def __reduce__(self) -> Any:
        return of_point, (numpy.array(self, subok=False), self.asimov)


def of_point(values: Any, point: RawAsimov | None) -> AsimovData:
    """Returns `values` as the Asimov data made at `point`."""
    data = values.view(AsimovData)
    data.asimov = point
    return data


def _plain(value: Any) -> Any:
    """Returns an array without its point; anything else as it is."""
    return value.view(numpy.ndarray) if isinstance(value, AsimovData) else value
