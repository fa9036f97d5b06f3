"""Workers: own processes, an executor with the interface of `concurrent.futures`, a client of
`dask.distributed`.

A pool has a `size`, takes calls while it has `room`, names the exceptions that mean a lost worker,
and says whether such calls are to be made again here: not where the executor does that itself.
`run` submits the calls and returns the results in their order. `pool_of` alone decides what an
executor is, by its methods: none of their packages is imported here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from .._arguments import count
from .._errors import shown
from .._progress import first_done
from . import _work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# Seconds that a result is waited for while others may be ready, and between two such looks.
_WAIT = 1
_PAUSE = 0.01

# Parts for each worker that are submitted of a run that may end early.
_AHEAD = 4


class WorkerError(RuntimeError):
    """A part of the work lost its worker too often, or there are no workers left."""

    __module__ = "nextstat.distributed"


class Call(NamedTuple):
    """One part of the work."""

    # The model, or document, by its digest.
    digest: str
    procedure: str
    arguments: Mapping[str, Any]
    # Its part of the whole, for the progress.
    weight: int
    # Its name in messages.
    name: str


class Processes:
    """Processes of this machine, in an executor each: if one is killed, the others go on."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    repeats_lost = True

    def __init__(self, size: int) -> None:
        self.size = size
        self._slots: list[ProcessPoolExecutor | None] = [None] * size
        # The models that each process has.
        self._has: list[set[str]] = [set() for _ in range(size)]
        self._at: dict[Future[Any], int] = {}

    def room(self) -> bool:
        return len(self._at) < self.size

    def submit(self, call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> Future[Any]:
        slot = next(k for k in range(self.size) if k not in self._at.values())
        executor = self._slots[slot]
        if executor is None:
            # Threads and locks of this process do not survive a fork.
            context = multiprocessing.get_context("spawn")
            executor = self._slots[slot] = ProcessPoolExecutor(1, context, _work.end_with, (os.getpid(),))
        packed = None if call.digest in self._has[slot] and not is_missing else payloads[call.digest]
        self._has[slot].add(call.digest)
        future = executor.submit(_work.call, call.digest, packed, call.procedure, call.arguments)
        _leave_writing_to_workers(executor)
        self._at[future] = slot
        return future

    def done(self, futures: Iterable[Future[Any]]) -> list[Future[Any]]:
        found = list(first_done(list(futures)))
        for future in found:
            slot = self._at.pop(future)
            if isinstance(future.exception(), BrokenExecutor):
                self._close(slot)
        return found

    def _close(self, slot: int) -> None:
        executor = self._slots[slot]
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
        self._slots[slot], self._has[slot] = None, set()

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Ends the calls that still run, with their processes."""
        for slot in {self._at[future] for future in futures if future in self._at}:
            executor = self._slots[slot]
            for process in list((getattr(executor, "_processes", None) or {}).values()):
                process.terminate()
            self._close(slot)

    def close(self) -> None:
        for slot in range(self.size):
            self._close(slot)


def _leave_writing_to_workers(executor: ProcessPoolExecutor) -> None:
    """Closes this process's own end of the pipe of results, into which only the worker writes.

    A worker that is killed while it writes a result then ends the pipe. With this end open the
    thread that reads the pipe would wait for the rest of the result forever, and this program for
    that thread.
    """
    with contextlib.suppress(AttributeError, OSError):
        executor._result_queue._writer.close()


class Borrowed:
    """A pool of processes that breaks when one of them dies, of `concurrent.futures` or `loky`.

    It is replaced for the rest of the work.
    """

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    repeats_lost = True

    def __init__(self, executor: Executor) -> None:
        self._executor, self._is_own = executor, False
        self.size = _size(executor)
        self._running: set[Future[Any]] = set()

    def room(self) -> bool:
        # A broken pool loses all calls that run or wait in it, so few are submitted at a time.
        return len(self._running) < self.size + 1

    def submit(self, call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> Future[Any]:
        arguments = _arguments(call, payloads, is_missing)
        try:
            future = self._executor.submit(_work.call, *arguments)
        except BrokenExecutor:
            self._replace()
            future = self._executor.submit(_work.call, *arguments)
        self._running.add(future)
        return future

    def _replace(self) -> None:
        broken: Any = self._executor
        if self._is_own:
            broken.shutdown(wait=False, cancel_futures=True)
        if _is_reusable(broken):
            # loky's own function for a new pool that replaces a broken one, which it keeps.
            self._executor, _ = type(broken).get_reusable_executor(max_workers=self.size)
            return
        found = {key: getattr(broken, f"_{key}", None) for key in ("mp_context", "initializer", "initargs")}
        self._executor = ProcessPoolExecutor(self.size, found["mp_context"], found["initializer"], found["initargs"] or ())
        self._is_own = True

    def done(self, futures: Iterable[Future[Any]]) -> list[Future[Any]]:
        found = list(first_done(list(futures)))
        self._running.difference_update(found)
        return found

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            future.cancel()

    def close(self) -> None:
        if self._is_own:
            self._executor.shutdown(wait=False, cancel_futures=True)


class Submitter:
    """Anything with `submit(function, *arguments)` that returns a future.

    What becomes of the tasks of lost workers is its own business: it repeats them as it is
    configured, and an error that arrives here is final.
    """

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    repeats_lost = False

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self.size = _size(executor)

    def room(self) -> bool:
        return True

    def submit(self, call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> Any:
        return self._executor.submit(_work.call, *_arguments(call, payloads, is_missing))

    def done(self, futures: Iterable[Any]) -> list[Any]:
        waiting = list(futures)
        if all(isinstance(future, Future) and type(future).done is Future.done for future in waiting):
            return list(first_done(waiting))
        while waiting:
            if found := [future for future in waiting if future.done()]:
                return found
            # Some executors, such as TaskVine's, work only while a result is waited for.
            with contextlib.suppress(Exception):
                waiting[0].result(timeout=_WAIT)
            time.sleep(_PAUSE)
        return []

    def cancel(self, futures: Iterable[Any]) -> None:
        for future in futures:
            # Some futures cannot be cancelled: their results are not used.
            with contextlib.suppress(AttributeError, NotImplementedError):
                future.cancel()

    def close(self) -> None:
        pass


def _arguments(call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> tuple[Any, ...]:
    # The worker of a call is not known in advance: one without the model says so.
    return call.digest, payloads[call.digest] if is_missing else None, call.procedure, call.arguments


def _size(executor: Any) -> int:
    """Returns the number of workers, or of this machine's processors where that is not said."""
    for name in ("_max_workers", "max_workers", "num_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return os.cpu_count() or 1


def _is_reusable(executor: Any) -> bool:
    return hasattr(type(executor), "get_reusable_executor")


class Dask:
    """A client of `dask.distributed`, whose scheduler repeats the tasks of lost workers itself."""

    repeats_lost = False

    def __init__(self, client: Any) -> None:
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        self.lost: tuple[type[BaseException], ...] = (KilledWorker, CancelledError, CommClosedError)
        if getattr(client, "status", "running") in ("closed", "closing"):
            raise WorkerError(f"the client {client!r} is {client.status}; use a new `Client(...)`")
        self._client = client
        self.size = sum(client.nthreads().values()) or 1
        # Tasks rather than scattered data: the scheduler can make them again on another worker.
        self._payloads: dict[str, Any] = {}

    def room(self) -> bool:
        return True

    def submit(self, call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> Any:
        if call.digest not in self._payloads or is_missing:
            self._payloads[call.digest] = self._client.submit(_work.keep, payloads[call.digest], pure=False)
        packed = self._payloads[call.digest]
        return self._client.submit(_work.call, call.digest, packed, call.procedure, call.arguments, pure=False)

    def done(self, futures: Iterable[Any]) -> list[Any]:
        from distributed import wait as wait_for

        return list(wait_for(list(futures), return_when="FIRST_COMPLETED").done)

    def cancel(self, futures: Iterable[Any]) -> None:
        self._client.cancel(list(futures))

    def close(self) -> None:
        self._payloads.clear()


Pool = Processes | Borrowed | Submitter | Dask

_KINDS = "a number of processes, an executor with the method `submit` of `concurrent.futures`, or a client of `dask.distributed`"


def pool_of(executor: Any) -> Pool:
    """Returns the pool that a caller means by `executor`."""
    if isinstance(executor, bool) or executor is None:
        raise TypeError(f"`executor` is {_KINDS}")
    if isinstance(executor, int) or hasattr(executor, "__index__"):
        return Processes(count("executor", executor, 1))
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise TypeError(f"`executor` is {_KINDS}, not `{shown(executor)}`")
    if hasattr(executor, "scheduler_info"):
        return Dask(executor)
    if isinstance(executor, ProcessPoolExecutor) or _is_reusable(executor):
        return Borrowed(executor)
    return Submitter(executor)


def run(
    pool: Pool,
    payloads: Mapping[str, bytes],
    calls: Sequence[Call],
    *,
    retries: int,
    progress: Callable[[int, int], object] | None,
    returns_errors: bool = False,
    is_enough: Callable[[Sequence[Any]], bool] | None = None,
) -> list[Any]:
    """Returns the results of `calls`, in their order.

    A call whose worker was lost is made again, up to `retries` times, where the executor does not
    do that itself. Any other error ends the run, or is the call's result if `returns_errors`.
    `is_enough` is called with the first results whenever there are more of them; if it is true, the
    others are not waited for.
    """
    retries = count("retries", retries) if pool.repeats_lost else 0
    # What may not be needed is not submitted far ahead: some executors cannot cancel it.
    ahead = len(calls) if is_enough is None else _AHEAD * pool.size
    results: list[Any] = [None] * len(calls)
    is_done, n_first = [False] * len(calls), 0
    waiting = deque((k, 0, False) for k in range(len(calls)))
    running: dict[Any, tuple[int, int]] = {}
    done, total = 0, sum(call.weight for call in calls)
    try:
        while waiting or running:
            while waiting and pool.room() and len(running) < ahead:
                k, losses, is_missing = waiting.popleft()
                running[pool.submit(calls[k], payloads, is_missing)] = (k, losses)
            for future in pool.done(running):
                k, losses = running.pop(future)
                try:
                    results[k] = future.result()
                except pool.lost as reason:
                    if losses == retries:
                        times = f" {losses + 1} times" if pool.repeats_lost else ""
                        raise WorkerError(f"{calls[k].name}: its worker was lost{times} ({reason})") from reason
                    waiting.appendleft((k, losses + 1, False))
                    continue
                except Exception as error:
                    if not returns_errors:
                        raise
                    results[k] = error
                if isinstance(results[k], str) and results[k] == _work.MISSING:
                    waiting.appendleft((k, losses, True))
                    continue
                done, is_done[k] = done + calls[k].weight, True
                if progress is not None:
                    progress(done, total)
            if is_enough is None or n_first == len(calls) or not is_done[n_first]:
                continue
            n_first = next((k for k in range(n_first, len(calls)) if not is_done[k]), len(calls))
            if is_enough(results[:n_first]):
                return results[:n_first]
    finally:
        if running:
            pool.cancel(list(running))
        pool.close()
    return results
