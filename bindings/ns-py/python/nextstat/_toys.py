"""Toys: thrown, fitted, kept in files; and the names that other documents have for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._common import flag, is_fixed, path_of, progress_of, settings, toys, warn
from ._results import ToyHypotestResult, ToysResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray
    from numpy.typing import ArrayLike

    from ._common import Bounds, Progress, Start
    from ._nextstat import Model


def throw_toys(
    model: Model,
    params: ArrayLike,
    *,
    n_toys: int = 1000,
    first: int = 0,
    seed: int = 0,
    aux: str = "fluctuated",
    data: ArrayLike | None = None,
) -> ndarray:
    """Data of toys thrown at `params` (n_toys, B + K): main bins Poisson, auxiliary data as their constraint terms have it.

    Toy number i of a seed is the same however many are thrown, and the same that `fit_toys` fits.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> nextstat.throw_toys(model, model.init, n_toys=2, seed=1)[:, :2].tolist()
    [[68.0, 58.0], [68.0, 66.0]]
    """
    given = settings(model, data=data, seed=seed)
    return _nextstat.throw_toys(model, given, params, toys("n_toys", n_toys, first), is_fixed(aux))


def fit_toys(
    model: Model,
    params: ArrayLike | None = None,
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
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> ToysResult:
    """Throw toys at `params`, the best fit to the data if not given, and fit each.

    Parameters
    ----------
    params : array, optional
        Where to throw them (P).
    n_toys, first : int
        How many, and the number of the first: results of consecutive ranges are those of one long run.
    aux : ``"fluctuated"`` or ``"fixed"``
        What happens to auxiliary data; fixed for comparisons only.
    poi_uncertainty : bool
        The standard deviation of the parameter of interest of every toy too.
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
    >>> toys = nextstat.fit_toys(nextstat.load_workspace("examples/simple.json"), n_toys=200, seed=1)
    >>> toys.params.shape, toys.n_failed, round(float(toys.values("mu").mean()), 3)
    ((200, 3), 0, 0.752)
    """
    given = settings(model, device, on_devices=True, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    start, end = toys("n_toys", n_toys, first)
    wanted = {"first": start, "end": end, "is_aux_fixed": is_fixed(aux), "wants_uncertainty": flag("poi_uncertainty", poi_uncertainty)}
    if params is None:
        best = _nextstat.fit_model(model, given, False, [])
        if not best["converged"]:
            raise _nextstat.ToyError(f"the fit that toys would be thrown at did not converge: {'; '.join(best['later'].warnings())}")
        params = best["bestfit"]
    result = ToysResult(_nextstat.fit_toys_model(model, given, params, wanted, progress_of(progress, "toy")))
    if result.n_failed:
        warn(f"the fits of {result.n_failed} of {n_toys} toys did not converge")
    return result


def load_toys(path: str | os.PathLike[str]) -> ToysResult:
    """Fits of toys from a NumPy file that `ToysResult.save`, `nextstat toys --output-file` or `nextstat toys merge` wrote.

    Examples
    --------
    >>> import nextstat
    >>> toys = nextstat.fit_toys(nextstat.load_workspace("examples/simple.json"), n_toys=20)
    >>> toys.save("toys.npy")
    >>> nextstat.load_toys("toys.npy") == toys
    True
    """
    from . import _toy_files

    return _toy_files.load(path_of("path", path))


def fit_toys_batch_gpu(model: Model, params: ArrayLike, *, n_toys: int = 1000, seed: int = 0, device: str = "cuda", **options: Any) -> ToysResult:
    """`fit_toys` on a GPU."""
    _need_gpu(device)
    return fit_toys(model, params, n_toys=n_toys, seed=seed, device=device, **options)


def fit_toys_from_data_gpu(model: Model, *, n_toys: int = 1000, seed: int = 0, device: str = "cuda", **options: Any) -> ToysResult:
    """`fit_toys` on a GPU, with toys thrown at the best fit to the data."""
    _need_gpu(device)
    return fit_toys(model, n_toys=n_toys, seed=seed, device=device, **options)


def hypotest_qtilde_toys_gpu(model: Model, mu: float = 1.0, *, n_toys: int = 1000, seed: int = 0, device: str = "cuda", **options: Any) -> ToyHypotestResult:
    """`hypotest_toys` with q̃ on a GPU."""
    from ._tests import hypotest_toys

    _need_gpu(device)
    return hypotest_toys(model, mu, n_toys=n_toys, seed=seed, test_stat="qtilde", device=device, **options)


def _need_gpu(device: str) -> None:
    if device not in ("cuda", "metal", "emulated"):
        raise TypeError(f"this is for a GPU: `device` is `cuda` or `metal`, not `{device}`")
