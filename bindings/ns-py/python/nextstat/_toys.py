"""Toys: thrown, fitted, and read from files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _nextstat
from ._arguments import flag, parse_aux, path_of, settings, toy_range
from ._errors import warn
from ._keywords import hinted
from ._nextstat import FIXED_AUX
from ._progress import progress_of
from ._results import ToysResult, warn_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray
    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Params, Start
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["fit_toys", "load_toys", "throw_toys"]


@hinted
def throw_toys(
    model: Model,
    params: Params,
    *,
    n_toys: int = 1000,
    first: int = 0,
    seed: int = 0,
    aux: str = "fluctuated",
    data: ArrayLike | None = None,
) -> ndarray:
    """Returns data of toys thrown at `params` (n_toys, B + K).

    Main bins are Poisson distributed, auxiliary data as their constraint terms say. Toy number i of
    a seed is the same however many are thrown, and the same that `fit_toys` fits.

    Parameters
    ----------
    params : array or dict
        All parameters (P), or values by name, with the rest at their starting values.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> nextstat.throw_toys(model, model.init, n_toys=2, seed=1)[:, :2].tolist()
    [[68.0, 58.0], [68.0, 66.0]]
    """
    given = settings(model, data=data, seed=seed)
    start, end = toy_range("n_toys", n_toys, first)
    wanted = {"first": start, "end": end, "is_aux_fixed": parse_aux(aux)}
    if wanted["is_aux_fixed"]:
        warn(FIXED_AUX)
    return _nextstat.throw_toys(model, given, params, wanted)


@hinted
def fit_toys(
    model: Model,
    params: Params | None = None,
    *,
    n_toys: int = 1000,
    first: int = 0,
    seed: int = 0,
    aux: str = "fluctuated",
    poi_uncertainty: bool = False,
    data: ArrayLike | None = None,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ToysResult:
    """Throws toys and fits each.

    Parameters
    ----------
    params : array or dict, optional
        The parameter values at which toys are thrown: all (P), or values by name, with the rest at
        their starting values; the best fit to the data if not given.
    n_toys, first : int
        How many, and the number of the first. Consecutive ranges give the results of one long run.
    aux : ``"fluctuated"`` or ``"fixed"``
        How toys get their auxiliary data; ``"fixed"`` is for comparisons only.
    poi_uncertainty : bool
        Whether to compute the standard deviation of the parameter of interest of every toy.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ToysResult

    Examples
    --------
    >>> import nextstat
    >>> toys = nextstat.fit_toys(
    ...     nextstat.load_workspace("examples/simple.json"), n_toys=200, seed=1
    ... )
    >>> toys.bestfit.shape, toys.n_failed, round(float(toys.values("mu").mean()), 3)
    ((200, 3), 0, 0.752)
    """
    given = settings(
        model, device, data=data, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    start, end = toy_range("n_toys", n_toys, first)
    wanted = {
        "first": start,
        "end": end,
        "is_aux_fixed": parse_aux(aux),
        "wants_uncertainty": flag("poi_uncertainty", poi_uncertainty),
    }
    return warn_of(ToysResult(_nextstat.fit_toys_model(model, given, params, wanted, progress_of(progress, "toy"))))


def load_toys(path: str | os.PathLike[str]) -> ToysResult:
    """Reads fits of toys from a NumPy file.

    `ToysResult.save`, `nextstat toys --output-file` and `nextstat toys merge` write such files.

    Examples
    --------
    >>> import nextstat
    >>> toys = nextstat.fit_toys(nextstat.load_workspace("examples/simple.json"), n_toys=20)
    >>> toys.save("toys.npy")
    >>> nextstat.load_toys("toys.npy") == toys
    True
    """
    # Imports NumPy, which results do without.
    from . import _toy_files

    return ToysResult(_toy_files.load(path_of("path", path)))
