"""Workers: own processes, an executor of `concurrent.futures`, a client of `dask.distributed`.

A pool has a `size`, takes calls while it has `room`, and names the exceptions that mean a lost
worker. `run` submits the calls, submits those again whose worker was lost, and returns the results
in the order of the calls.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from .._arguments import count
from .._progress import first_done
from . import _work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


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
    """An executor of `concurrent.futures`, such as a pool of processes or MPI ranks.

    A pool of processes that breaks is replaced for the rest of the work.
    """

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor) -> None:
        self._executor, self._is_own = executor, False
        self.size = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self._running: set[Future[Any]] = set()

    def room(self) -> bool:
        # A broken pool loses all calls that run or wait in it, so few are submitted at a time.
        return len(self._running) < self.size + 1

    def submit(self, call: Call, payloads: Mapping[str, bytes], is_missing: bool) -> Future[Any]:
        # The worker of a call is not known in advance: one without the model says so.
        packed = payloads[call.digest] if is_missing else None
        arguments = (call.digest, packed, call.procedure, call.arguments)
        try:
            future = self._executor.submit(_work.call, *arguments)
        except BrokenExecutor:
            self._replace()
            future = self._executor.submit(_work.call, *arguments)
        self._running.add(future)
        return future

    def _replace(self) -> None:
        broken = self._executor
        if not isinstance(broken, ProcessPoolExecutor):
            raise WorkerError(f"the executor {broken!r} is broken")
        if self._is_own:
            broken.shutdown(wait=False, cancel_futures=True)
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


class Dask:
    """A client of `dask.distributed`, whose scheduler repeats the tasks of lost workers itself."""

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


def pool_of(on: Any) -> Processes | Borrowed | Dask:
    """Returns the pool that a caller means by `on`."""
    if isinstance(on, bool) or on is None:
        raise TypeError("`on` is a number of processes, an executor of `concurrent.futures`, or a client of `dask.distributed`")
    if isinstance(on, int) or hasattr(on, "__index__"):
        return Processes(count("on", on, 1))
    if isinstance(on, Executor):
        return Borrowed(on)
    if hasattr(on, "submit") and hasattr(on, "scheduler_info"):
        return Dask(on)
    if hasattr(on, "submit"):
        return Borrowed(on)
    raise TypeError(
        f"`on` is a number of processes, an executor, or a client of `dask.distributed`, "
        f"not `{type(on).__name__}`"
    )


def run(
    pool: Processes | Borrowed | Dask,
    payloads: Mapping[str, bytes],
    calls: Sequence[Call],
    *,
    retries: int,
    progress: Callable[[int, int], object] | None,
    returns_errors: bool = False,
    is_enough: Callable[[Sequence[Any]], bool] | None = None,
) -> list[Any]:
    """Returns the results of `calls`, in their order.

    A call whose worker was lost is made again, up to `retries` times. Any other error ends the run,
    or is the call's result if `returns_errors`. `is_enough` is called with the first results
    whenever there are more of them; if it is true, the others are not waited for.
    """
    retries = count("retries", retries)
    results: list[Any] = [None] * len(calls)
    is_done, n_first = [False] * len(calls), 0
    waiting = deque((k, 0, False) for k in range(len(calls)))
    running: dict[Any, tuple[int, int]] = {}
    done, total = 0, sum(call.weight for call in calls)
    try:
        while waiting or running:
            while waiting and pool.room():
                k, losses, is_missing = waiting.popleft()
                running[pool.submit(calls[k], payloads, is_missing)] = (k, losses)
            for future in pool.done(running):
                k, losses = running.pop(future)
                try:
                    results[k] = future.result()
                except pool.lost as reason:
                    if losses == retries:
                        raise WorkerError(f"{calls[k].name}: its worker was lost {losses + 1} times ({reason})") from reason
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
