"""The side of a worker: models kept by their digests, and the procedures that calls name.

Calls name functions of this module, so that a worker needs this package and nothing else.
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
from .._curves import contours, profile_scan, ranking
from .._fits import fit, goodness_of_fit, yields
from .._models import model_of
from .._tests import hypotest, hypotest_toys, significance, upper_limit
from .._toys import fit_toys

if TYPE_CHECKING:
    from collections.abc import Mapping

# The answer of a worker that does not have the model of a call.
MISSING = "nextstat.distributed: the model is missing"

# The number of models that a process keeps; the least recently used one is dropped first.
_KEPT = 32
_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


# Seconds between two checks that the caller's process is alive.
_LOOK = 1.0


def end_with(parent: int) -> None:
    """Ends this worker soon after the process `parent` that started it.

    A process that is killed cannot tell its workers, which would go on computing.
    """

    def watch() -> None:
        # An orphan is another process's child.
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="nextstat-parent", daemon=True).start()


def pack(item: Any) -> tuple[str, bytes]:
    """Returns the digest and the bytes of a model or a document that must be sent."""
    packed = pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
    return hashlib.sha256(packed).hexdigest(), packed


def keep(packed: bytes) -> bytes:
    """Returns `packed`: a task of the cluster, from which its workers get the bytes."""
    return packed


def call(digest: str, packed: bytes | None, procedure: str, arguments: Mapping[str, Any]) -> Any:
    """Calls `procedure` with the model or document of that digest.

    Returns `MISSING` if this worker does not have it and it is not in `packed`.
    """
    item = _item(digest, packed)
    return MISSING if item is None else PROCEDURES[procedure](item, **arguments)


def _item(digest: str, packed: bytes | None) -> Any:
    with _lock:
        if digest in _kept:
            _kept.move_to_end(digest)
            return _kept[digest]
    if packed is None:
        return None
    item = pickle.loads(packed)
    with _lock:
        _kept[digest] = item
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return item


# Functions of the package that take a model, by their names.
PUBLIC = {
    function.__name__: function
    for function in (
        contours,
        fit,
        fit_toys,
        goodness_of_fit,
        hypotest,
        hypotest_toys,
        profile_scan,
        ranking,
        significance,
        upper_limit,
        yields,
    )
}


def _public(model: Any, name: str, options: Mapping[str, Any]) -> Any:
    """Calls the function of the package that is called `name`."""
    return PUBLIC[name](model, **options)


def _patched(workspace: bytes, patch: bytes, choice: Mapping[str, Any], name: str, options: Mapping[str, Any]) -> Any:
    """Calls the function on the model of a workspace with a patch."""
    return _public(model_of(_nextstat.apply_patch(workspace, patch), **choice), name, options)


def _fit_toys(model: Any, settings: Any, params: Any, wanted: Any) -> Any:
    return _nextstat.fit_toys_model(model, settings, params, wanted, None)


def _hypotest_toys(model: Any, settings: Any, wanted: Any) -> Any:
    return _nextstat.hypotest_toys_model(model, settings, wanted, None)


#: Procedures by the names that calls have; their arguments are those of `Call`.
PROCEDURES = {
    "public": _public,
    "patched": _patched,
    "fit_toys": _fit_toys,
    "hypotest_toys": _hypotest_toys,
    "ranking": _nextstat.ranking_part,
    "grid": _nextstat.grid_part_model,
}
