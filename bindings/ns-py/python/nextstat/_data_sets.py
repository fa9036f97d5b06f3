"""Many data sets: fitted, made by the bootstrap, and compared between two analyses."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import count, flag, path_of, settings
from ._errors import shown
from ._keywords import hinted
from ._nextstat import ParameterError
from ._progress import progress_of
from ._results import FitsResult, ReplicaCovariance, warn_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray
    from numpy.typing import ArrayLike

    from ._arguments import Bounds, Start
    from ._nextstat import Model
    from ._progress import Progress

__all__ = ["bootstrap", "bootstrap_weights", "fits", "load_fits", "replica_covariance"]

#: Replicas have numbers of 32 bits.
_MOST_REPLICAS = 2**32 - 1


@hinted
def fits(
    model: Model,
    data: ArrayLike | Mapping[str, ArrayLike],
    *,
    uncertainties: bool = False,
    init: Start | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
    device: str = "auto",
) -> FitsResult:
    """Fits many data sets.

    Each row is fitted as `fit` fits one data set, from the best fit to the observed data. A result
    depends neither on the other rows nor on the number of threads.

    Parameters
    ----------
    data : array or dict
        Event counts (N, B), or event counts and auxiliary data (N, B + K), with a data set in each
        row and the channels in the order of the model; or the event counts of each channel by its
        name (N, bins of the channel). Without auxiliary data, data sets have the observed ones.
    uncertainties : bool
        Whether to compute the standard deviations of the parameters in every data set.
    init, fixed, bounds, fit_channels, mask, multi_start, seed
        As in `fit`.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    FitsResult

    Warns
    -----
    NextstatWarning
        If fits did not converge; their numbers are NaN.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> result = nextstat.fits(model, [[57, 63], [51, 48], [66, 70]])
    >>> result.bestfit.shape, result.values("mu").round(4).tolist()
    ((3, 3), [0.7236, 0.0, 1.4395])
    """
    given = settings(
        model, device, init=init, fixed=fixed, bounds=bounds,
        fit_channels=fit_channels, mask=mask, multi_start=multi_start, seed=seed, threads=threads,
    )
    if hasattr(data, "items") and type(data) is not dict:
        data = dict(data.items())
    wants = flag("uncertainties", uncertainties)
    watched = progress_of(progress, "fit")
    return warn_of(FitsResult(_nextstat.fits_model(model, given, data, wants, watched)))


def load_fits(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> FitsResult:
    """Reads fits of data sets from a NumPy file, or from the files of all shards of a run.

    `nextstat fits --output-file` and `nextstat fits merge` write such files. The result has the
    parameters that the file has, and no provenance: the document beside the file has the settings.

    Examples
    --------
    >>> import nextstat
    >>> with open("data.txt", "w") as file:
    ...     print("57 63", "51 48", "66 70", sep="\\n", file=file)
    >>> arguments = ["fits", "examples/simple.json", "--data", "data.txt", "-o", "fits.npy"]
    >>> _ = nextstat.command(arguments)
    >>> nextstat.load_fits("fits.npy").values("mu").round(4).tolist()
    [0.7236, 0.0, 1.4395]
    """
    is_single = isinstance(path, (str, os.PathLike)) or not hasattr(path, "__iter__")
    paths = [path_of("path", one) for one in ([path] if is_single else path)]
    for one in paths:
        if not os.path.exists(one):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), one)
    return FitsResult(_nextstat.load_fits(paths))


@hinted
def bootstrap(
    bins: ArrayLike,
    events: ArrayLike,
    *,
    runs: ArrayLike = 0,
    weights: ArrayLike | None = None,
    n_bins: int | None = None,
    n_replicas: int = 1000,
    first: int = 0,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = None,
) -> ndarray:
    """Returns histograms of bootstrap replicas (N, B).

    In every replica each event counts k times its weight, where k is a Poisson number of mean 1.
    The number depends on the seed, the run, the event and the replica alone, so that an event has
    the same numbers in every histogram and in every analysis that selects it.

    The generator is Philox4x32-10 (Salmon et al., SC '11) with the seed as its key and the event,
    the run and the replica as its counter.

    Parameters
    ----------
    bins : array of int
        The bin of each event (E), from 0; -1 for an event in no bin.
    events : array of int
        The number of each event in its run (E).
    runs : array of int or int
        The run, or the number of the simulated sample, of each event (E), or of all.
    weights : array, optional
        The weight of each event (E).
    n_bins : int, optional
        The number of bins B; one more than the largest of `bins` if not given.
    n_replicas, first : int
        How many, and the number of the first. Consecutive ranges give the replicas of one range.
    seed : int
        Replicas of different seeds are independent.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total) in blocks of replicas; True shows a bar.

    Examples
    --------
    >>> import nextstat
    >>> events = range(1000)
    >>> replicas = nextstat.bootstrap([i % 2 for i in events], events, runs=300_000, n_replicas=400)
    >>> replicas.shape, replicas[0].tolist(), replicas.mean(axis=0).round().tolist()
    ((400, 2), [456.0, 488.0], [499.0, 500.0])
    """
    import numpy as np

    columns = {
        "bins": _integers("bins", bins, np.int64),
        "events": _integers("events", events, np.uint64),
        "runs": np.atleast_1d(_integers("runs", runs, np.uint32)),
    }
    if n_bins is None:
        n_bins = int(columns["bins"].max(initial=-1)) + 1
    columns["n_bins"] = count("n_bins", n_bins)
    wanted = _replicas(n_replicas, first, seed)
    watched = progress_of(progress, "block")
    return _nextstat.bootstrap_histograms({**columns, "weights": weights}, wanted, threads, watched)


@hinted
def bootstrap_weights(
    events: ArrayLike,
    *,
    runs: ArrayLike = 0,
    n_replicas: int = 1000,
    first: int = 0,
    seed: int = 0,
) -> ndarray:
    """Returns how often each event counts in each bootstrap replica, as bytes (E, N).

    They are the numbers that `bootstrap` uses, for what is not a histogram.

    Parameters
    ----------
    events, runs, n_replicas, first, seed
        As in `bootstrap`.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.bootstrap_weights([1, 2, 1], runs=300_000, n_replicas=6).tolist()
    [[0, 0, 1, 0, 2, 0], [0, 1, 2, 4, 1, 0], [0, 0, 1, 0, 2, 0]]
    """
    import numpy as np

    numbers = _integers("events", events, np.uint64)
    run_numbers = np.atleast_1d(_integers("runs", runs, np.uint32))
    return _nextstat.bootstrap_weights(numbers, run_numbers, _replicas(n_replicas, first, seed))


def replica_covariance(a: FitsResult, b: FitsResult) -> ReplicaCovariance:
    """Returns the covariance between the results of two analyses of the same replicas.

    Row i of both must be of the same replica, as `bootstrap` makes them of the events that each
    analysis selects. Replicas in which one of the fits did not converge are left out.

    Parameters
    ----------
    a, b : FitsResult

    Returns
    -------
    ReplicaCovariance

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> a = nextstat.fits(model, [[57, 63], [60, 66], [66, 70], [63, 70]])
    >>> b = nextstat.fits(model, [[55, 60], [61, 66], [65, 75], [66, 70]])
    >>> found = nextstat.replica_covariance(a, b)
    >>> found.n_common, round(found.value("mu", "mu"), 3)
    (4, 0.984)
    """
    found = _nextstat.replica_covariance_of(_columns("a", a), _columns("b", b))
    return warn_of(ReplicaCovariance(found))


def _columns(name: str, result: Any) -> dict[str, Any]:
    if not isinstance(result, FitsResult):
        raise TypeError(f"`{name}` must be a FitsResult, not `{shown(result)}`")
    return {
        "par_names": list(result.par_names),
        "bestfit": result.bestfit,
        "converged": result.converged.tolist(),
    }


def _integers(name: str, values: ArrayLike, dtype: Any) -> ndarray:
    """Returns whole numbers within the range of `dtype` as an array of at most one dimension."""
    import numpy as np

    found = np.asarray(values)
    if np.ma.isMaskedArray(values) or found.ndim > 1:
        raise TypeError(f"`{name}` must be a list of whole numbers, not `{shown(values)}`")
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"`{name}` must have whole numbers, not `{shown(values)}`")
    range_ = np.iinfo(dtype)
    if found.size and (int(found.min()) < range_.min or int(found.max()) > range_.max):
        wrong = int(found.min()) if int(found.min()) < range_.min else int(found.max())
        raise ParameterError(f"`{name}` has {wrong}, and must be from {range_.min} to {range_.max}")
    return np.ascontiguousarray(found, dtype=dtype)


def _replicas(n_replicas: Any, first: Any, seed: Any) -> dict[str, int]:
    start, n = count("first", first), count("n_replicas", n_replicas, 1)
    if start + n > _MOST_REPLICAS:
        raise ParameterError(f"replicas have numbers below {_MOST_REPLICAS}, not {start + n - 1}")
    return {"first": start, "end": start + n, "seed": count("seed", seed)}
