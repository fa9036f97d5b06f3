"""What happens on a worker: models kept by their digests, and the procedures that are called with them.

Functions here are found by name when a call arrives, so that a worker needs this package and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import _nextstat

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a worker answers that does not have the model of a call.
MISSING = "nextstat.distributed: the model has not arrived"

# Models that a process keeps; the least recently used one goes first.
_KEPT = 32
_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


# Seconds between two looks at whether the caller's process is still there.
_LOOK = 1.0


def end_with(parent: int) -> None:
    """Ends this worker soon after the process `parent` that started it: one that is killed cannot tell its workers, which would compute on for nobody."""

    def watch() -> None:
        # An orphan is another process's child.
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="nextstat-parent", daemon=True).start()


def pack(thing: Any) -> tuple[str, bytes]:
    """A model, or a document, as it travels: its digest and its bytes."""
    packed = pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    return hashlib.sha256(packed).hexdigest(), packed


def keep(packed: bytes) -> bytes:
    """`packed`, once on the cluster, for every worker to ask for."""
    return packed


def call(digest: str, packed: bytes | None, procedure: str, arguments: Mapping[str, Any]) -> Any:
    """What `procedure` makes of the thing of that digest; `MISSING` if it is neither here nor in `packed`."""
    thing = _thing(digest, packed)
    return MISSING if thing is None else PROCEDURES[procedure](thing, **arguments)


def _thing(digest: str, packed: bytes | None) -> Any:
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    if packed is None:
        return None
    thing = pickle.loads(packed)
    with _lock:
        _kept[digest] = thing
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return thing


def _public(model: Any, name: str, options: Mapping[str, Any]) -> Any:
    """The function of the package that is called `name`."""
    import nextstat

    return getattr(nextstat, name)(model, **options)


def _patched(workspace: bytes, patch: bytes, choice: Mapping[str, Any], name: str, options: Mapping[str, Any]) -> Any:
    """The same on a workspace with a patch applied."""
    import nextstat

    return _public(nextstat.model_of(_nextstat.apply_patch(workspace, patch), **choice), name, options)


PROCEDURES = {
    "public": _public,
    "patched": _patched,
    "fit_toys": lambda model, settings, params, wanted: _nextstat.fit_toys_model(model, settings, params, wanted, None),
    "hypotest_toys": lambda model, settings, wanted: _nextstat.hypotest_toys_model(model, settings, wanted, None),
    "ranking": lambda model, settings, methods, minos, part: _nextstat.ranking_part(model, settings, methods, [], minos, part),
    "grid": lambda model, settings, axes, part: _nextstat.grid_part_model(model, settings, axes, part),
}
