"""The procedures of the package on many processes or machines.

Results are those of one process, to the bit. Every function takes `executor`, which does the work:
a number of processes of this machine, any object with the method `submit` of `concurrent.futures`,
or a client of `dask.distributed` (the extra `dask`: ``pip install 'nextstat-rs[dask]'``). A model
is sent to a worker once. If a worker is killed, another one does its part again.

>>> import nextstat, nextstat.distributed
>>> from concurrent.futures import ThreadPoolExecutor
>>> model = nextstat.load_workspace("examples/simple.json")
>>> with ThreadPoolExecutor(2) as executor:
...     toys = nextstat.distributed.fit_toys(model, n_toys=100, seed=1, executor=executor)
>>> toys == nextstat.fit_toys(model, n_toys=100, seed=1)
True
"""

from __future__ import annotations

import inspect
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy

from .. import _nextstat
from .._arguments import count, flag, names, parse_aux, settings, text, toy_range
from .._curves import axes_of_grid, ranking_wanted
from .._documents import PatchSet
from .._errors import listed, shown, warn
from .._progress import progress_of
from .._results import RankingResult, ScanResult, ToyHypotestResult, ToysResult, warn_of
from .._sources import document_bytes
from .._tests import toys_wanted
from . import _work
from ._pools import Call, WorkerError, pool_of, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from .._nextstat import Model
    from .._progress import Progress
    from .._results import Result
    from .._sources import Document

__all__ = ["WorkerError", "fit_toys", "hypotest_toys", "profile_scan", "ranking", "run_all", "signal_grid"]

# Toys of a part, at least: each part begins with about a hundred pilot toys.
_LEAST = 1000
# Parts for each worker of a large run.
_PARTS = 4

# Parts of a run that stops as soon as it can, at most.
_MOST_LOOKS = 10_000

# Fields of the result that have an entry for each toy.
_PER_TOY = ("toys", "bestfit", "nll", "converged", "poi_uncertainty", "outcomes", "status")


# Options that every function passes on.
_OPTIONS = ("data", "init", "fixed", "bounds", "multi_start", "seed", "threads", "device")


def _given(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a call on a worker."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"unknown option `{name}`; choose one of {listed(_OPTIONS, 'or')}")
    return settings(model, **{"threads": 1, **options})


def _shares(total: int, size: int, parts: int | None, least: int) -> list[tuple[int, int]]:
    """Returns ranges of nearly equal length that cover 0 to `total`."""
    parts = min(max(total // least, size), _PARTS * size) if parts is None else count("parts", parts, 1)
    parts = max(min(parts, total), 1)
    return [(k * total // parts, (k + 1) * total // parts) for k in range(parts)]


def fit_toys(
    model: Model,
    params: ArrayLike | None = None,
    *,
    executor: Any,
    n_toys: int = 1000,
    first: int = 0,
    seed: int = 0,
    aux: str = "fluctuated",
    poi_uncertainty: bool = False,
    parts: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> ToysResult:
    """Runs `nextstat.fit_toys` in parts: ranges of toys.

    Parameters
    ----------
    executor : int, executor or client
        What does the work: a number of processes, any object with the method `submit` of
        `concurrent.futures`, or a client of dask.
    parts : int, optional
        How many parts; a few for each worker if not given.
    retries : int
        How often a part whose worker was lost is done again, by a number of processes or a pool of
        processes. Every other executor repeats parts as it is configured.
    options
        As of `nextstat.fit_toys`: `data`, `init`, `fixed`, `bounds`, `multi_start`; each worker
        uses one thread if `threads` is not given.

    Returns
    -------
    ToysResult

    Raises
    ------
    WorkerError
        A part lost its worker more often than `retries`.
    """
    given = _given(model, {"seed": seed, **options})
    begin, stop = toy_range("n_toys", n_toys, first)
    wanted = {
        "is_aux_fixed": parse_aux(aux),
        "wants_uncertainty": flag("poi_uncertainty", poi_uncertainty),
    }
    params = _nextstat.throwing_point(model, given) if params is None else params
    pool = pool_of(executor)
    digest, packed = _work.pack(model)
    calls = []
    for start, end in _shares(stop - begin, pool.size, parts, _LEAST):
        arguments = {"settings": given, "params": params, "wanted": {**wanted, "first": begin + start, "end": begin + end}}
        calls.append(Call(digest, "fit_toys", arguments, end - start, f"toys {begin + start} to {begin + end}"))
    found = run(pool, {digest: packed}, calls, retries=retries, progress=progress_of(progress, "toy"))
    return warn_of(ToysResult(_joined_fits(found)))


def _joined_fits(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole = dict(found[0])
    for key in _PER_TOY:
        if whole.get(key) is None:
            continue
        pieces = [part[key] for part in found]
        whole[key] = numpy.concatenate(pieces) if hasattr(whole[key], "shape") else list(chain.from_iterable(pieces))
    whole["n_failed"] = sum(part["n_failed"] for part in found)
    return whole


def hypotest_toys(
    model: Model,
    mu: float | None = None,
    *,
    executor: Any,
    n_toys: int = 1000,
    n_toys_b: int | None = None,
    test_stat: str = "qtilde",
    seed: int = 0,
    aux: str = "fluctuated",
    stop_at_error: float | None = None,
    parts: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> ToyHypotestResult:
    """Runs `nextstat.hypotest_toys` in parts: ranges of the toys of both hypotheses.

    Parameters
    ----------
    executor, parts, retries, options
        As of `fit_toys`.
    stop_at_error : float, optional
        As of `nextstat.hypotest_toys`, and with its result: the toys are taken in order, and those
        that workers made beyond the last one needed are not used.

    Returns
    -------
    ToyHypotestResult
    """
    given = _given(model, {"seed": seed, **options})
    wanted = toys_wanted(mu, n_toys, n_toys_b, test_stat=test_stat, stop_at_error=stop_at_error)
    wanted["is_aux_fixed"] = parse_aux(aux)
    pool = pool_of(executor)
    digest, packed = _work.pack(model)
    calls = []
    for start, end in _shares_of_test(sum(wanted["n_toys"]), pool.size, parts, stop_at_error):
        arguments = {"settings": given, "wanted": {**wanted, "stop_at_error": None, "range": [start, end]}}
        calls.append(Call(digest, "hypotest_toys", arguments, end - start, f"toys {start} to {end} of both hypotheses"))
    whole: list[dict[str, Any]] = []

    def is_enough(found: Sequence[Any]) -> bool:
        """Returns whether one process would have stopped after the parts so far, in order."""
        document = _nextstat.hypotest_of_units(model, given, wanted, numpy.concatenate(found))
        if document is not None:
            whole.append(document)
        return document is not None

    looks = None if stop_at_error is None else is_enough
    found = run(pool, {digest: packed}, calls, retries=retries, progress=progress_of(progress, "toy"), is_enough=looks)
    if not whole:
        is_enough(found)
    return warn_of(ToyHypotestResult(whole[0]))


def _shares_of_test(total: int, size: int, parts: int | None, stop_at_error: float | None) -> list[tuple[int, int]]:
    """Returns ranges of toys; short ones if the run may stop early."""
    if stop_at_error is None or parts is not None:
        return _shares(total, size, parts, _LEAST)
    return _shares(total, size, min(max(total // _LEAST, 1), _MOST_LOOKS), _LEAST)


def ranking(
    model: Model,
    *,
    executor: Any,
    methods: str | Sequence[str] = ("classic", "global", "covariance"),
    groups: Mapping[str, str | Sequence[str]] | None = None,
    minos: bool = False,
    parts: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> RankingResult:
    """Runs `nextstat.ranking` in parts: shares of the parameters.

    Parameters
    ----------
    executor, parts, retries, options
        As of `fit_toys`.

    Returns
    -------
    RankingResult
    """
    given = _given(model, options)
    wanted = ranking_wanted(methods, groups, minos)
    pool = pool_of(executor)
    digest, packed = _work.pack(model)
    shares = _shares(model.n_params, pool.size, parts, 4)
    calls = []
    for k, (start, end) in enumerate(shares):
        arguments = {"settings": given, "wanted": wanted, "part": [k, len(shares)]}
        calls.append(Call(digest, "ranking", arguments, end - start, f"part {k + 1} of the ranking"))
    found = run(pool, {digest: packed}, calls, retries=retries, progress=progress_of(progress, "parameter"))
    return warn_of(
        RankingResult(_nextstat.ranking_model(model, given, wanted, None, found))
    )


def profile_scan(
    model: Model,
    mu_values: ArrayLike | Sequence[ArrayLike | None] | None = None,
    *,
    executor: Any,
    parameter: Sequence[str],
    points: int = 21,
    parts: int | None = None,
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> ScanResult:
    """Runs `nextstat.profile_scan` of two parameters in parts: rows of the grid.

    A scan of one parameter is a chain of fits, each of which starts from the one before: `run_all`
    does many of them side by side.

    Parameters
    ----------
    executor, parts, retries, options
        As of `fit_toys`.

    Returns
    -------
    ScanResult
    """
    given, points = _given(model, options), count("points", points, 2)
    axes = axes_of_grid(mu_values, parameter, points)
    n_rows = points if axes[0]["values"] is None else len(axes[0]["values"])
    pool = pool_of(executor)
    digest, packed = _work.pack(model)
    shares = _shares(n_rows, pool.size, parts, 2)
    calls = [
        Call(digest, "grid", {"settings": given, "axes": axes, "part": [k, len(shares)]}, end - start, f"rows {start} to {end}")
        for k, (start, end) in enumerate(shares)
    ]
    found = run(pool, {digest: packed}, calls, retries=retries, progress=progress_of(progress, "row"))
    return warn_of(ScanResult(_nextstat.scan_model(model, given, axes, None, found)))


def run_all(
    procedure: str,
    models: Mapping[Any, Model | tuple[Model, Mapping[str, Any]]],
    *,
    executor: Any,
    errors: str = "raise",
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> dict[Any, Result]:
    """Calls one function of the package on many models, or on one with many settings.

    Parameters
    ----------
    procedure : str
        Its name, such as ``"fit"``, ``"upper_limit"``, ``"hypotest"``, ``"ranking"`` or
        ``"profile_scan"``.
    models : dict
        By any name a model, or a model and the options of its call.
    executor, retries
        As of `fit_toys`.
    errors : ``"raise"`` or ``"return"``
        Whether an error ends everything, or is the result of its call.
    options
        The options of every call.

    Returns
    -------
    dict
        Results by name.

    Examples
    --------
    >>> import nextstat, nextstat.distributed
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> with ThreadPoolExecutor(2) as executor:
    ...     tests = nextstat.distributed.run_all(
    ...         "hypotest", {mu: (model, {"mu": mu}) for mu in (1.0, 2.0)}, executor=executor
    ...     )
    >>> [round(test.CLs_obs, 4) for test in tests.values()]
    [0.3457, 0.0161]
    """
    _known(text("procedure", procedure))
    if not hasattr(models, "items"):
        raise TypeError(f"`models` is a dictionary of models by name, not `{shown(models)}`")
    payloads: dict[str, bytes] = {}
    digests: dict[int, str] = {}
    calls = []
    for name, found in models.items():
        model, own = found if isinstance(found, tuple) else (found, {})
        settings(model)
        if id(model) not in digests:
            digest, packed = _work.pack(model)
            digests[id(model)], payloads[digest] = digest, packed
        arguments = {"name": procedure, "options": {**_single_thread(procedure), **options, **own}}
        calls.append(Call(digests[id(model)], "public", arguments, 1, f"`{procedure}` of `{name}`"))
    return _results(models, run(pool_of(executor), payloads, calls, **_how(errors, retries, progress)))


def signal_grid(
    workspace: Document,
    patchset: PatchSet | Document,
    *,
    executor: Any,
    procedure: str = "upper_limit",
    patches: Iterable[str] | None = None,
    measurement: str | None = None,
    poi: Any = None,
    interp_defaults: str = "smooth",
    interpolation: Mapping[str, str] | None = None,
    errors: str = "raise",
    retries: int = 3,
    progress: Progress = None,
    **options: Any,
) -> dict[str, Result]:
    """Calls one function of the package for every signal of a patch set.

    The workspace is sent to a worker once, then only patches.

    Parameters
    ----------
    workspace : path, JSON text or dict
        The background.
    patchset : PatchSet, path, JSON text or dict
        The signals; the digests in it must be those of `workspace`.
    procedure : str
        The function's name, as of `run_all`.
    patches : sequence of str, optional
        Names of patches; all if not given.
    measurement, poi, interp_defaults, interpolation
        As of `nextstat.load_workspace`.
    errors : ``"raise"`` or ``"return"``
        Whether an error ends everything, or is the result of its signal.
    executor, retries
        As of `fit_toys`.
    options
        The options of every call.

    Returns
    -------
    dict
        Results by the names of the patches, in the order of the set.
    """
    _known(text("procedure", procedure))
    background, found = document_bytes(workspace), patchset if isinstance(patchset, PatchSet) else PatchSet(patchset)
    found.require(background)
    wanted = found.names if patches is None else names("patches", patches if isinstance(patches, str) else list(patches))
    signals = {name: found.patch(name) for name in wanted}
    choice = {"measurement": measurement, "poi": poi, "interp_defaults": interp_defaults, "interpolation": interpolation}
    digest, packed = _work.pack(background)
    calls = []
    for name, patch in signals.items():
        arguments = {"patch": json.dumps(patch).encode(), "choice": choice, "name": procedure, "options": {**_single_thread(procedure), **options}}
        calls.append(Call(digest, "patched", arguments, 1, f"`{procedure}` of `{name}`"))
    return _results(signals, run(pool_of(executor), {digest: packed}, calls, **_how(errors, retries, progress)))


def _known(procedure: str) -> None:
    if procedure not in _work.PUBLIC:
        raise ValueError(f"unknown procedure `{procedure}`; choose one of {listed(sorted(_work.PUBLIC), 'or')}")


def _single_thread(procedure: str) -> dict[str, Any]:
    """Returns the option for one thread, for a worker that shares its machine with others."""
    takes_threads = "threads" in inspect.signature(_work.PUBLIC[procedure]).parameters
    return {"threads": 1} if takes_threads else {}


def _how(errors: str, retries: int, progress: Progress) -> dict[str, Any]:
    if errors not in ("raise", "return"):
        raise ValueError(f"`errors` is `raise` or `return`, not `{errors}`")
    return {"retries": retries, "progress": progress_of(progress, "model"), "returns_errors": errors == "return"}


def _results(labels: Iterable[Any], found: Sequence[Any]) -> dict[Any, Any]:
    """Returns results by label, and warns once of those that did not converge."""
    results = dict(zip(labels, found))
    failed = [str(name) for name, result in results.items() if getattr(result, "_fields", {}).get("converged", True) is False]
    if failed:
        warn(f"{len(failed)} of {len(results)} did not converge: {', '.join(failed)}")
    return results
