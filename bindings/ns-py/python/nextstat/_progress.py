"""Progress of long calls, and the wait for work on other threads or processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ._errors import install_command, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future
    from typing import TypeAlias

    Progress: TypeAlias = bool | Callable[[int, int], object] | None

_T = TypeVar("_T")


def progress_of(progress: Progress, unit: str) -> Callable[[int, int], object] | None:
    """Returns a callable (done, total), or None; True makes a `tqdm` bar."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        if callable(progress):
            return progress
        raise TypeError(
            f"`progress` is True, or a callable that takes (done, total), not `{shown(progress)}`"
        )
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(f"progress=True needs tqdm: {install_command('progress')}") from None
    bar = tqdm(unit=unit)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def first_done(futures: Collection[Future[_T]]) -> set[Future[_T]]:
    """Returns those of `futures` that are done, once there are some.

    The wait is a loop because a signal that the system delivers to another thread does not end a
    wait of this one.
    """
    from concurrent.futures import FIRST_COMPLETED, wait

    while True:
        done = wait(futures, timeout=0.1, return_when=FIRST_COMPLETED).done
        if done or not futures:
            return done
