"""What all figures share beside their look: colours, names of parameters that match patterns,
checks of arguments.
"""

import fnmatch
import statistics

import numpy

from .._arguments import count, names
from .._errors import shown
from .._nextstat import number
from ._colours import COLOURS

UP, DOWN = COLOURS[0], COLOURS[1]
NEUTRAL = "0.45"
# Behind pulls: one and two standard deviations, light enough for points of any colour.
ONE_SIGMA, TWO_SIGMA = "#a6dba0", "#fff3a6"


def literal(name):
    """Returns `name` as matplotlib shows it letter by letter: a dollar sign does not begin a
    formula.

    >>> print(literal("cost in $, not in $"))
    cost in \\$, not in \\$
    """
    return str(name).replace("$", r"\$")


def listed(name, results):
    """Returns a sequence of results as a list."""
    if hasattr(results, "_fields") or not hasattr(results, "__iter__"):
        raise TypeError(f"`{name}` must be a sequence of results, not a `{type(results).__name__}`")
    return list(results)


def numbers_of(name, values):
    """Returns `values` (N) as an array."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"`{name}` must be a sequence of numbers, not `{shown(values)}`")
    found = numpy.array([number(value, f"a value of `{name}`") for value in values], dtype=float)
    if not numpy.isfinite(found).all():
        raise ValueError(f"`{name}` has {found[~numpy.isfinite(found)][0]}, which has no place on an axis")
    return found


def ascending(name, values):
    """Returns `values` as an array, if each is above the one before."""
    found = numbers_of(name, values)
    if not (numpy.diff(found) > 0).all():
        raise ValueError(f"`{name}` must be increasing, not {shown(found.tolist())}")
    return found


def levels_of(name, levels):
    """Returns confidence levels, and refuses what is not between 0 and 1."""
    found = numbers_of(name, levels)
    if not ((found > 0) & (found < 1)).all():
        raise ValueError(f"`{name}` has probabilities between 0 and 1, such as 0.68 and 0.95, not {shown(found.tolist())}")
    return found.tolist()


def top_of(top):
    """Returns how many entries are drawn; None for all."""
    return None if top is None else count("top", top, 1)


def quantile(confidence_level, n_parameters=1):
    """Returns the rise of 2NLL at the edge of a region of `n_parameters` (1 or 2) by Wilks'
    theorem.

    >>> round(quantile(0.95), 4), round(quantile(0.95, 2), 4)
    (3.8415, 5.9915)
    """
    if n_parameters == 1:
        return statistics.NormalDist().inv_cdf(0.5 + 0.5 * confidence_level) ** 2
    from math import log1p

    return -2.0 * log1p(-confidence_level)


def percent(level):
    """Returns a level as it is written, such as 68 %."""
    return f"{100 * level:.3g} %" if abs(level - 0.6827) > 1e-3 else "68 %"


def deviations(level):
    """Writes a two-sided level as beside a scan: in standard deviations where these are whole.

    >>> deviations(0.6827), deviations(0.9545), deviations(0.9)
    ('1σ', '2σ', '90 %')
    """
    whole = [sigmas for sigmas in range(1, 6) if abs(quantile(level) - sigmas**2) < 1e-3 * sigmas]
    return f"{whole[0]}σ" if whole else percent(level)


def chosen(known, wanted, excluded):
    """Returns the indices of the names that match a pattern of `wanted` (in that order; all if
    None) and none of `excluded`.
    """
    patterns = ["*"] if wanted is None else names("parameters", wanted)
    excluded = names("exclude", excluded)
    found = []
    for pattern in patterns:
        more = [i for i, name in enumerate(known) if _matches(name, pattern) and i not in found]
        if wanted is not None and not any(_matches(name, pattern) for name in known):
            raise ValueError(f"no parameter is called `{pattern}`")
        found += more
    return [i for i in found if not any(_matches(known[i], pattern) for pattern in excluded)]


def _matches(name, pattern):
    """Matches shell patterns, but a name matches itself although it has brackets, and a pattern the
    elements of a vector.
    """
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))

