"""What the functions of the package share: settings checked, results looked at, progress shown, documents read."""

from __future__ import annotations

import json
import math
import os
import warnings as _warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ._escapes import Escaped
from ._nextstat import MOST_TOYS, DeviceError, Model, NextstatError, ParameterError, count_of_toys, escape, number, read_document
from ._nextstat import count as _count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from concurrent.futures import Future
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from ._results import Result

    Progress: TypeAlias = bool | Callable[[int, int], object] | None
    Start: TypeAlias = ArrayLike | Mapping[str, float]
    Bounds: TypeAlias = Mapping[str, tuple[float, float]]
    Document: TypeAlias = str | bytes | os.PathLike[str] | Mapping[str, Any]
    Interpolation: TypeAlias = Mapping[str, str]
    Poi: TypeAlias = str | Sequence[str] | None

_R = TypeVar("_R", bound="Result")
_T = TypeVar("_T")


#: What `device` can be; `emulated` runs the kernels of GPUs on the CPU, in builds for tests.
DEVICES = ("auto", "cpu", "cuda", "metal", "emulated")


class NextstatWarning(Escaped, UserWarning):
    """A result that a reader should not use without reading its warnings."""

    __module__ = "nextstat"


def model_needed(given: object) -> None:
    """Refuses what is no model, with what makes one of it."""
    if isinstance(given, Model):
        return
    if isinstance(given, os.PathLike) or (isinstance(given, str) and not is_json(given)):
        raise TypeError(f"a Model is needed, not the path of one: `nextstat.load_workspace({shown(os.fspath(given))})` reads it")
    if isinstance(given, (str, bytes, dict)):
        raise TypeError(f"a Model is needed, not a `{type(given).__name__}`: `nextstat.model_of(...)` makes one of a workspace")
    raise TypeError(f"a Model is needed, not `{shown(given)}`: see `load_workspace` and `model_of`")


def settings(model: Model, device: str = "auto", *, on_devices: bool = False, **given: Any) -> dict[str, Any]:
    """The settings that procedures share, for the extension module, which checks them against the model.

    `on_devices` is for those that compute on a device too.
    """
    model_needed(model)
    if not isinstance(device, str) or device not in DEVICES:
        raise DeviceError(f"`{device if isinstance(device, str) else shown(device)}` is no device; there are `auto`, `cpu`, `cuda` and `metal`")
    if device not in ("auto", "cpu"):
        if not on_devices:
            raise with_hint(DeviceError("this is computed on the CPU only"), 'leave `device` out, or say `device="cpu"`')
        given["device"] = device
    for name in ("fixed", "bounds", "init"):
        value = given.get(name)
        if value is not None and type(value) is not dict and hasattr(value, "items"):
            given[name] = dict(value.items())
    return given


def with_hint(error: NextstatError, hint: str) -> NextstatError:
    """`error` with advice, as the extension module's errors have it."""
    error.hint = escape(hint)
    if hasattr(error, "add_note"):
        error.add_note(f"hint: {error.hint}")
    return error


def shown(value: object) -> str:
    """What messages show of a value that is not what it should be."""
    try:
        text = repr(value)
    except ValueError:
        # A whole number with more digits than Python writes.
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"


def count(name: str, value: Any, at_least: int = 0) -> int:
    """`value` if it is a whole number of at least `at_least`."""
    return _count(name, value, at_least)


def toys(name: str, value: Any, first: Any = 0) -> tuple[int, int]:
    """The numbers of so many toys from `first` on: the first, and the end. The limits are those of the command."""
    n_toys, start = count_of_toys(name, value), count("first", first)
    if start + n_toys > MOST_TOYS:
        raise ParameterError(f"`first` is {start}, and {n_toys} toys from there on go beyond number {MOST_TOYS - 1}, the last there is")
    return start, start + n_toys


def toys_or_none(value: Any) -> int:
    """How many toys; 0 for none."""
    return 0 if count("toys", value) == 0 else toys("toys", value)[1]


def real(name: str, value: Any) -> float:
    """`value` if it is a finite number."""
    found = number(value, f"`{name}`")
    if not math.isfinite(found):
        raise ParameterError(f"`{name}` is {found}, which is no value to use")
    return found


def flag(name: str, value: Any) -> bool:
    """`value` if it is True or False, of Python or of NumPy."""
    if isinstance(value, bool):
        return value
    if getattr(getattr(value, "dtype", None), "kind", None) == "b" and not value.shape:
        return bool(value)
    raise TypeError(f"`{name}` is True or False, not `{shown(value)}`")


def text(name: str, value: Any) -> str:
    """`value` if it is text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"`{name}` is to be text, not `{shown(value)}`")


def path_of(name: str, value: Any) -> str:
    """`value` as a path."""
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    raise TypeError(f"`{name}` is to be a path, not `{shown(value)}`")


def names(what: str, given: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    if isinstance(given, str):
        return [given]
    try:
        found = list(given)
    except TypeError:
        raise TypeError(f"`{what}` is a name or a sequence of names, not `{shown(given)}`") from None
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"`{what}` has names, and `{shown(name)}` is none")
    return found


def pair_of_names(what: str, given: Sequence[str]) -> tuple[str, str]:
    """Two names."""
    found = [] if isinstance(given, str) else names(what, given)
    if len(found) != 2:
        raise TypeError(f"`{what}` is a pair of names, such as ('mu', 'lumi'), not `{shown(given)}`")
    return found[0], found[1]


def checked(result: _R, stacklevel: int = 3) -> _R:
    """`result`, with a warning if it is not to be trusted."""
    if result._fields.get("converged", True) is False:
        warn("; ".join(getattr(result, "warnings", ())) or "a fit did not converge", stacklevel + 1)
    return result


def believed(result: _R, stacklevel: int = 3) -> _R:
    """`result` of a test, with a warning for whatever its own warnings say: each is a reason not to use the number as it is."""
    if result._fields.get("converged", True) is False or result._fields.get("warnings"):
        warn("; ".join(getattr(result, "warnings", ())) or "a fit did not converge", stacklevel + 1)
    return result


def warn(message: str, stacklevel: int = 2) -> None:
    """Warns the caller's caller, or whoever is `stacklevel` frames up."""
    _warnings.warn(message, NextstatWarning, stacklevel=stacklevel)


def is_fixed(aux: str, stacklevel: int = 3) -> bool:
    """Whether auxiliary data are held, which deserves a warning."""
    if text("aux", aux) not in ("fluctuated", "fixed"):
        raise ParameterError(f"`aux` is `fluctuated` or `fixed`, not `{aux}`")
    if aux == "fixed":
        warn("auxiliary data held as observed: such toys fluctuate too little, and p-values made of them are wrong", stacklevel + 1)
    return aux == "fixed"


def progress_of(progress: Progress, unit: str) -> Callable[[int, int], object] | None:
    """A callable (done, total), or None; True makes a `tqdm` bar."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        if callable(progress):
            return progress
        raise TypeError(f"`progress` is True, or a callable that takes (done, total), not `{shown(progress)}`")
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(f"progress=True needs tqdm: {extra('progress')}") from None
    bar = tqdm(unit=unit)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def confidence(level: float) -> str:
    """The confidence level of a limit where CLs is `level`; what would round to 100 % is written as a difference from 1.

    >>> confidence(0.05), confidence(1e-300)
    ('95 %', '1 - 1e-300')
    """
    percent = f"{100 * (1 - level):.4g}"
    return f"1 - {level:.4g}" if percent == "100" else f"{percent} %"


def extra(name: str) -> str:
    """Returns how the packages of the extra `name` are installed: on PyPI the name `nextstat` belongs to another project."""
    return f"`pip install 'nextstat-rs[{name}]'`"


def first_done(futures: Collection[Future[_T]]) -> set[Future[_T]]:
    """Those of `futures` that are done, once there are some.

    The wait is a loop because a signal that the system hands to another thread does not end a wait of this one.
    """
    from concurrent.futures import FIRST_COMPLETED, wait

    while True:
        done = wait(futures, timeout=0.1, return_when=FIRST_COMPLETED).done
        if done or not futures:
            return done


def is_json(text: str) -> bool:
    """Whether `text` is a JSON document rather than a path."""
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def document_bytes(source: Document) -> bytes:
    """The text of a document: of a file (also `.gz`, `.zst`), or of JSON text, bytes or a dictionary that is here already."""
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_json(source)):
        return read_document(os.fspath(source))
    return json_bytes(source)


def json_bytes(document: Any) -> bytes:
    """JSON text of a dictionary, or the text that is given."""
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    if isinstance(document, str):
        return document.encode()
    if not isinstance(document, (Mapping, list, tuple)):
        raise TypeError(f"a document is a path, JSON text or a dictionary, not `{shown(document)}`")
    return json.dumps(document, default=_of_numpy).encode()


def _of_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"`{type(value).__name__}` is not part of a JSON document")
