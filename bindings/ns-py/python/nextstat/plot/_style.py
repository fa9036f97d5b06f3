"""What all figures share: matplotlib, if it is there; axes of a size; colours; names of parameters that match patterns."""

import fnmatch
import statistics

try:
    import matplotlib.pyplot as pyplot
except ImportError as reason:
    raise ImportError(f"nextstat.plot needs matplotlib and mplhep: pip install nextstat[plot] ({reason})") from None

# M. Petroff, arXiv:2107.02270: ten colours that stay distinct with any colour vision deficiency, and in print.
COLOURS = ("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd")

UP, DOWN = COLOURS[0], COLOURS[1]
# One and two standard deviations of an expectation, instead of green and yellow.
INNER, OUTER = "#607641", "#f5bb54"
NEUTRAL = "0.45"


def new_axes(ax, width, height):
    """`ax`, or the axes of a new figure of so many inches."""
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def quantile(confidence_level, n_parameters=1):
    """Rise of 2NLL at the edge of a region of `n_parameters` (1 or 2) by Wilks' theorem.

    >>> round(quantile(0.95), 4), round(quantile(0.95, 2), 4)
    (3.8415, 5.9915)
    """
    if n_parameters == 1:
        return statistics.NormalDist().inv_cdf(0.5 + 0.5 * confidence_level) ** 2
    from math import log1p

    return -2.0 * log1p(-confidence_level)


def percent(level):
    """A level as it is written, such as 68 %."""
    return f"{100 * level:.3g} %" if abs(level - 0.6827) > 1e-3 else "68 %"


def chosen(names, wanted, excluded):
    """Indices of the names that match a pattern of `wanted` (in that order; all if None) and none of `excluded`."""
    patterns = ["*"] if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    excluded = [excluded] if isinstance(excluded, str) else list(excluded)
    found = []
    for pattern in patterns:
        more = [i for i, name in enumerate(names) if _matches(name, pattern) and i not in found]
        if not more and not any(_matches(name, pattern) for name in names):
            raise ValueError(f"no parameter is called `{pattern}`")
        found += more
    return [i for i in found if not any(_matches(names[i], pattern) for pattern in excluded)]


def _matches(name, pattern):
    """Shell patterns, but a name matches itself although it has brackets, and a pattern the elements of a vector."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))
