"""Templates of a sample in a region, and what is done to those of a systematic: smoothing and
symmetrisation.

n are the contents of the nominal template, u and d those of the templates one standard deviation up
and down; a sum is over the bins.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy

from .._nextstat import ParameterError
from .smoothing import merged_bins, smooth_by_rebinning, smooth_ratio

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[numpy.float64]


@dataclass(frozen=True)
class Template:
    """A histogram with one axis.

    Attributes
    ----------
    values : numpy.ndarray
        Contents (B).
    errors : numpy.ndarray
        Their standard deviations (B); zero where they are not known.
    edges : numpy.ndarray or None
        The edges (B + 1), if the axis has numbers.
    """

    values: Array
    errors: Array
    edges: Array | None = None


@dataclass(frozen=True)
class TemplatePair:
    """The templates of a systematic for one sample in one region.

    Attributes
    ----------
    region, sample, systematic, modifier : str
        What they are of; `modifier` is the systematic's name in the workspace.
    nominal, up : Template
        As they were read.
    down : Template or None
        None if it is made of the template up.
    varied : tuple of numpy.ndarray
        The contents up and down after all steps (2, B).
    steps : tuple of str
        What was done, in order.
    """

    region: str
    sample: str
    systematic: str
    modifier: str
    nominal: Template
    up: Template
    down: Template | None
    varied: tuple[Array, Array] = field(repr=False)
    steps: tuple[str, ...] = ()

    def with_step(self, step: str, up: Array, down: Array) -> TemplatePair:
        """Returns the same templates after one more step."""
        return replace(self, varied=(up, down), steps=(*self.steps, step))


def mirrored(nominal: ArrayLike, up: ArrayLike) -> tuple[Array, Array]:
    """Returns the templates up and down where only `up` is known: rate and shape are mirrored
    separately.

    With r = Σu/Σn the factor up is r and the factor down 2 - r; the template u/r has the nominal
    number of events, and its mirror image is 2n - u/r. For r = 1 that is d = 2n - u.

    Parameters
    ----------
    nominal, up : array
        Contents (B).

    Returns
    -------
    tuple of numpy.ndarray
        Contents up and down (B), rates included.

    Examples
    --------
    >>> from nextstat.build import mirrored
    >>> up, down = mirrored([10.0, 10.0], [12.0, 10.0])
    >>> down.round(6).tolist()
    [8.181818, 9.818182]
    """
    (factor_up, factor_down), (shape_up, shape_down) = mirrored_parts(nominal, up)
    return factor_up * shape_up, factor_down * shape_down


def mirrored_parts(nominal: ArrayLike, up: ArrayLike) -> tuple[tuple[float, float], tuple[Array, Array]]:
    """Returns the factors, and the templates with the nominal number of events, of `mirrored`."""
    nominal, up = numpy.asarray(nominal, dtype=float), numpy.asarray(up, dtype=float)
    factor = rate_factor(nominal, up)
    shape = up / factor
    return (factor, 2.0 - factor), (shape, 2.0 * nominal - shape)


def averaged(nominal: ArrayLike, up: ArrayLike, down: ArrayLike) -> tuple[Array, Array]:
    """Returns templates with the same change up and down: n ± (u - d)/2.

    Parameters
    ----------
    nominal, up, down : array
        Contents (B).

    Returns
    -------
    tuple of numpy.ndarray
        Contents up and down (B).

    Examples
    --------
    >>> from nextstat.build import averaged
    >>> [side.tolist() for side in averaged([10.0, 10.0], [12.0, 10.0], [9.0, 11.0])]
    [[11.5, 9.5], [8.5, 10.5]]
    """
    nominal, up, down = (numpy.asarray(values, dtype=float) for values in (nominal, up, down))
    half = 0.5 * (up - down)
    return nominal + half, nominal - half


def split(nominal: ArrayLike, varied: ArrayLike) -> tuple[float, Array]:
    """Returns the factor of the rate of a varied template, and the template with the nominal number
    of events: r = Σu/Σn and u/r.

    Raises
    ------
    ParameterError
        If either has no events.

    Examples
    --------
    >>> from nextstat.build import split
    >>> factor, shape = split([10.0, 10.0], [12.0, 13.0])
    >>> factor, shape.tolist()
    (1.25, [9.6, 10.4])
    """
    varied = numpy.asarray(varied, dtype=float)
    factor = rate_factor(nominal, varied)
    return factor, varied / factor


def rate_factor(nominal: ArrayLike, varied: ArrayLike) -> float:
    """Returns Σu/Σn, with sums from the first bin to the last."""
    before, after = (float(numpy.cumsum(numpy.asarray(values, dtype=float))[-1]) for values in (nominal, varied))
    if before == 0.0 or after == 0.0:
        raise ParameterError(f"{after:g} events against {before:g} nominal ones make no factor of the rate")
    return after / before


def smoothed(pair: TemplatePair, algorithm: str, threshold: float) -> TemplatePair:
    """Returns `pair` with smoothed templates; `threshold` is the relative error of ``"rebin"``."""
    sides = [side for side in (pair.up, pair.down) if side is not None]
    if algorithm == "rebin":
        ranges = merged_bins([(side.values, side.errors) for side in (pair.nominal, *sides)], threshold)
        step = f"smoothing: {len(ranges)} of {len(pair.nominal.values)} bins at a relative error of {threshold:g}"
        found = [smooth_by_rebinning(side.values, pair.nominal.values, ranges) for side in sides]
    else:
        step = f"smoothing: {algorithm}"
        found = [smooth_ratio(side.values, pair.nominal.values) for side in sides]
    return pair.with_step(step, found[0], found[-1])


def template_of(binned: Any) -> Template:
    """Returns a template from the values, variances and bins of a histogram.

    Without variances the errors are those of counts, the square root of the contents.
    """
    values = numpy.array(binned.values, dtype=float)
    variances = values if binned.variances is None else numpy.array(binned.variances, dtype=float)
    with numpy.errstate(invalid="ignore"):
        errors = numpy.nan_to_num(numpy.sqrt(variances), nan=0.0)
    edges = binned.edges
    return Template(values, errors, None if edges is None else numpy.array(edges))
