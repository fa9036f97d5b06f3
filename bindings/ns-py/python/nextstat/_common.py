"""What the functions of the package share: settings checked, results looked at, progress shown, documents read."""

from __future__ import annotations

import json
import math
import operator
import os
import warnings as _warnings
from typing import TYPE_CHECKING, Any, TypeVar

from ._nextstat import Model, NextstatError, ParameterError, read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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


class NextstatWarning(UserWarning):
    """A result that a reader should not use without reading its warnings."""


class DeviceError(NextstatError):
    """A device that this build or this machine does not have."""


def settings(model: Model, device: str = "auto", **given: Any) -> dict[str, Any]:
    """The settings that procedures share, for the extension module, which checks them against the model."""
    if not isinstance(model, Model):
        raise TypeError(f"a Model is needed, not `{type(model).__name__}`: see `load_workspace` and `model_of`")
    if device not in ("auto", "cpu"):
        refuse(device)
    for name in ("seed", "multi_start", "threads"):
        if given.get(name) is not None:
            given[name] = count(name, given[name], 1 if name == "threads" else 0)
    for name in ("fixed", "bounds", "init"):
        value = given.get(name)
        if value is not None and type(value) is not dict and hasattr(value, "items"):
            given[name] = dict(value)
    return given


def refuse(device: object) -> None:
    """Says why there is no such device: absent from the build, or no device at all."""
    if device in ("cuda", "metal"):
        raise with_hint(DeviceError(f"this build has no {device} backend"), 'leave `device` out, or say `device="cpu"`')
    raise DeviceError(f"`{device}` is no device; there are `auto`, `cpu`, `cuda` and `metal`")


def with_hint(error: NextstatError, hint: str) -> NextstatError:
    """`error` with advice, as the extension module's errors have it."""
    error.hint = hint
    if hasattr(error, "add_note"):
        error.add_note(f"hint: {hint}")
    return error


def count(name: str, value: Any, at_least: int = 0) -> int:
    """`value` if it is a whole number of at least `at_least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` is to be a whole number, not `{value!r}`") from None
    if number < at_least:
        raise ParameterError(f"`{name}` is {number}, and must be at least {at_least}")
    if number >= 2**64:
        raise ParameterError(f"`{name}` is {number}, and must be below 2**64")
    return number


def real(name: str, value: Any) -> float:
    """`value` if it is a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` is to be a number, not `{value!r}`") from None
    if not math.isfinite(number):
        raise ParameterError(f"`{name}` is {number}, which is no value to use")
    return number


def names(what: str, given: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    found = [given] if isinstance(given, str) else list(given)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"`{what}` has names, and `{name!r}` is none")
    return found


def checked(result: _R, stacklevel: int = 3) -> _R:
    """`result`, with a warning if it is not to be trusted."""
    if result._fields.get("converged", True) is False:
        warn("; ".join(getattr(result, "warnings", ())) or "a fit did not converge", stacklevel + 1)
    return result


def warn(message: str, stacklevel: int = 2) -> None:
    """Warns the caller's caller, or whoever is `stacklevel` frames up."""
    _warnings.warn(message, NextstatWarning, stacklevel=stacklevel)


def is_fixed(aux: str, stacklevel: int = 3) -> bool:
    """Whether auxiliary data are held, which deserves a warning."""
    if aux not in ("fluctuated", "fixed"):
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
        raise TypeError("`progress` is True, or a callable that takes (done, total)")
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install 'nextstat[progress]'") from None
    bar = tqdm(unit=unit)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def document_bytes(source: Document) -> bytes:
    """The text of a document: of a file (also `.gz`, `.zst`), or of JSON text, bytes or a dictionary that is here already."""
    if isinstance(source, os.PathLike):
        return read_document(os.fspath(source))
    if isinstance(source, str) and not source.lstrip().startswith(("{", "[")):
        return read_document(source)
    return json_bytes(source)


def json_bytes(document: Any) -> bytes:
    """JSON text of a dictionary, or the text that is given."""
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    if isinstance(document, str):
        return document.encode()
    return json.dumps(document, default=_of_numpy).encode()


def _of_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{type(value).__name__}` is not part of a JSON document")
