"""Smoothing: templates with fewer statistical fluctuations than the simulated events give them.

Two algorithms, both of arrays or templates alone; what is smoothed, and when, is decided elsewhere.

- *353QH, twice*: running medians of 3, 5 and 3 points, quadratic interpolation where the medians
  leave a plateau, and a running mean (Hanning window), applied to the values and then once more to
  what is left of them. J. H. Friedman, "Data analysis techniques for high energy particle physics",
  CERN School of Computing 1974 (CERN 74-23), page 271; ROOT has it as `TH1::SmoothArray`.
- *rebin*: neighbouring bins are merged until the relative statistical error is below a threshold,
  and the relative change of the merged bins is applied to the nominal template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from .._arguments import count, real
from .._nextstat import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

# The algorithms by the names that configurations have for them.
ALGORITHMS = ("353QH, twice", "rebin")

# Fewer bins have no neighbours on both sides.
_FEWEST = 3


def smooth_353qh(values: ArrayLike, times: int = 1) -> NDArray[numpy.float64]:
    """Returns `values` after "353QH, twice", `times` times.

    The results are those of `TH1::SmoothArray(n, values, times)`: if no value is negative, negative
    results are set to zero, and fewer than three values are returned as they are.

    Parameters
    ----------
    values : array
        Finite numbers (B).
    times : int
        How often the algorithm runs; each run includes the second pass over the residuals.

    Returns
    -------
    numpy.ndarray
        A new array (B).

    Examples
    --------
    >>> from nextstat.build import smooth_353qh
    >>> smooth_353qh([1.0, 2.0, 9.0, 4.0, 5.0, 6.0]).tolist()
    [1.0, 2.25, 3.75, 4.75, 5.0, 5.0]
    """
    found = numpy.array(values, dtype=float)
    if found.ndim != 1 or not numpy.isfinite(found).all():
        raise ParameterError("`values` has one dimension and finite numbers")
    for _ in range(count("times", times)):
        if len(found) < _FEWEST:
            return found
        smooth = _pass_353qh(found)
        result = smooth + _pass_353qh(found - smooth)
        found = result if found.min() < 0.0 else numpy.maximum(result, 0.0)
    return found


def _pass_353qh(values):
    """Smooths once: medians, quadratic interpolation, mean."""
    return _running_mean(_interpolated(_medians_353(values)))


def _medians_353(values):
    first = _running_median(values, 3)
    # Beyond either end a line is continued from the two smoothed points next to it.
    first[0] = _median_of(values[0], first[1], 3.0 * first[1] - 2.0 * first[2])
    first[-1] = _median_of(values[-1], first[-2], 3.0 * first[-2] - 2.0 * first[-3])
    second = _running_median(first, 5)
    second[1] = _median_of(*first[:3])
    second[-2] = _median_of(*first[-3:])
    return _running_median(second, 3)


def _running_median(values, width):
    """Returns medians of `width` (odd) neighbours; the ends, which have too few, are kept."""
    result = values.copy()
    if len(values) >= width:
        half = width // 2
        result[half:-half] = numpy.sort(sliding_window_view(values, width), axis=1)[:, half]
    return result


def _median_of(*three):
    return sorted(three)[1]


def _interpolated(values):
    """Returns `values` with plateaus of three points at a peak or in a valley replaced by a
    parabola."""
    result = values.copy()
    for middle in range(2, len(values) - 2):
        level = values[middle]
        if values[middle - 1] != level or values[middle + 1] != level:
            continue
        left, right = values[middle - 2] - level, values[middle + 2] - level
        if left * right <= 0.0:
            # The plateau is a step of a rise or of a fall.
            continue
        side = -1 if abs(right) > abs(left) else 1
        near, far = values[middle - 2 * side], values[middle + 2 * side]
        result[middle] = -0.5 * near + level / 0.75 + far / 6.0
        result[middle + side] = 0.5 * (far - near) + level
    return result


def _running_mean(values):
    result = values.copy()
    result[1:-1] = 0.25 * values[:-2] + 0.5 * values[1:-1] + 0.25 * values[2:]
    return result


def smooth_ratio(varied: ArrayLike, nominal: ArrayLike, times: int = 1) -> NDArray[numpy.float64]:
    """Returns a varied template whose ratio to the nominal one is smoothed with `smooth_353qh`.

    The number of events of the varied template is kept. A bin that is empty in both has no ratio:
    it is left out, so that its neighbours are next to each other, and stays empty.

    Parameters
    ----------
    varied, nominal : array
        Contents (B).
    times : int
        As in `smooth_353qh`.

    Examples
    --------
    >>> from nextstat.build import smooth_ratio
    >>> smooth_ratio([12.0, 9.0, 13.0, 11.0], [10.0, 10.0, 10.0, 10.0]).round(3).tolist()
    [11.739, 11.495, 11.005, 10.761]
    """
    varied, nominal = numpy.asarray(varied, dtype=float), numpy.asarray(nominal, dtype=float)
    for bin in numpy.flatnonzero((nominal == 0.0) & (varied != 0.0)):
        message = f"bin {bin}: the varied template has {varied[bin]:g} events where the nominal one has none"
        raise ParameterError(f"{message}, so there is no ratio to smooth")
    filled, smooth = nominal != 0.0, numpy.zeros_like(nominal)
    smooth[filled] = smooth_353qh(varied[filled] / nominal[filled], times) * nominal[filled]
    total = _total(smooth)
    if total == 0.0:
        return varied.copy()
    return smooth * _total(varied) / total


def _total(values):
    """Returns the sum from the first bin to the last, one after the other."""
    return values.cumsum()[-1]


def merged_bins(templates: Sequence[tuple[ArrayLike, ArrayLike]], threshold: float) -> list[tuple[int, int]]:
    """Returns ranges of bins (first, after the last) in which the relative statistical error of
    every template is at most `threshold`.

    Bins are merged from the last to the first, since spectra fall; what is left at the beginning
    joins the range after it.

    Parameters
    ----------
    templates : sequence of pairs of arrays
        Contents and their standard deviations (B) of the nominal and the varied templates.
    threshold : float
        The largest relative error, such as 0.05.

    Examples
    --------
    >>> from nextstat.build import merged_bins
    >>> merged_bins([([100.0, 50.0, 40.0, 5.0], [10.0, 7.0, 6.0, 2.2])], threshold=0.2)
    [(0, 1), (1, 2), (2, 4)]
    """
    if not real("threshold", threshold) > 0.0:
        raise ParameterError(f"`threshold` is a relative error such as 0.05, not {threshold:g}")
    arrays = [(numpy.asarray(values, dtype=float), numpy.asarray(errors, dtype=float)) for values, errors in templates]
    ranges, end = [], len(arrays[0][0])
    for start in reversed(range(end)):
        if all(_relative_error(values[start:end], errors[start:end]) <= threshold for values, errors in arrays):
            ranges.insert(0, (start, end))
            end = start
    if end > 0:
        ranges[:1] = [(0, ranges[0][1] if ranges else len(arrays[0][0]))]
    return ranges


def _relative_error(values, errors):
    total = values.sum()
    return numpy.sqrt((errors**2).sum()) / total if total > 0.0 else numpy.inf


def smooth_by_rebinning(varied: ArrayLike, nominal: ArrayLike, ranges: Sequence[tuple[int, int]]) -> NDArray[numpy.float64]:
    """Returns a varied template whose ratio to the nominal one is constant in each of `ranges`,
    which are those of `merged_bins`.

    The numbers of events of the varied template in each range are kept. A range in which the
    nominal template has none is left as it is.

    Examples
    --------
    >>> from nextstat.build import smooth_by_rebinning
    >>> smooth_by_rebinning([12.0, 9.0, 5.0], [10.0, 8.0, 2.0], [(0, 1), (1, 3)]).tolist()
    [12.0, 11.2, 2.8]
    """
    varied, nominal = numpy.asarray(varied, dtype=float), numpy.asarray(nominal, dtype=float)
    result = varied.copy()
    for start, end in ranges:
        total = nominal[start:end].sum()
        if total != 0.0:
            result[start:end] = nominal[start:end] * (varied[start:end].sum() / total)
    return result
