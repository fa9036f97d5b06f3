"""Arguments that callers give, checked: what is not valid is refused with the argument's name."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from ._errors import listed, shown
from ._nextstat import (
    BACKENDS,
    MOST_TOYS,
    DeviceError,
    Model,
    ParameterError,
    count_of_toys,
    number,
)
from ._nextstat import count as _count
from ._sources import is_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    Params: TypeAlias = ArrayLike | Mapping[str, float]
    Start: TypeAlias = ArrayLike | Mapping[str, float]
    Bounds: TypeAlias = Mapping[str, tuple[float, float]]
    Interpolation: TypeAlias = Mapping[str, str]
    Poi: TypeAlias = str | Sequence[str] | None

#: What `device` can be: accelerators by the names of their backends, with a number after a colon
#: for another device than the first.
DEVICES = ("auto", "cpu", *BACKENDS)


def require_model(given: object) -> None:
    """Refuses what is not a model, and says how to make one of it."""
    if isinstance(given, Model):
        return
    if isinstance(given, os.PathLike) or (isinstance(given, str) and not is_json(given)):
        path = shown(os.fspath(given))
        raise TypeError(f"expected a Model, not a path: `nextstat.load_workspace({path})` reads it")
    if isinstance(given, (str, bytes, dict)):
        kind = type(given).__name__
        raise TypeError(
            f"expected a Model, not a `{kind}`: `nextstat.model_of(...)` makes one of a workspace"
        )
    raise TypeError(f"expected a Model, not `{shown(given)}`: see `load_workspace` and `model_of`")


def settings(model: Model, device: str = "auto", **given: Any) -> dict[str, Any]:
    """Returns the settings that procedures share, which the extension module checks further."""
    require_model(model)
    # Devices of a backend have numbers.
    names_of = BACKENDS if isinstance(device, str) and ":" in device else DEVICES
    if not isinstance(device, str) or device.partition(":")[0] not in names_of:
        name = device if isinstance(device, str) else shown(device)
        raise DeviceError(f"unknown device `{name}`; choose one of {listed(DEVICES, 'or')}")
    if device not in ("auto", "cpu"):
        given["device"] = device
    return _checked(given)


def settings_of_grid(**given: Any) -> dict[str, Any]:
    """Returns the settings that all models of a patch set share."""
    return _checked(given)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings in forms that the extension module takes."""
    for name in ("fixed", "bounds", "init"):
        value = given.get(name)
        if value is not None and type(value) is not dict and hasattr(value, "items"):
            given[name] = dict(value.items())
    for name in ("fit_channels", "mask", "blind"):
        if name in given:
            given[name] = names(name, given[name])
    if given.get("groups") is not None:
        given["groups"] = group_patterns(given["groups"], "{'other': ['VV', 'fakes*']}")
    if given.get("poi") is not None:
        text("poi", given["poi"])
    if "fit_blinded" in given:
        given["fit_blinded"] = flag("fit_blinded", given["fit_blinded"])
    if given.get("blind_by") is not None:
        text("blind_by", given["blind_by"])
        if given.get("blind_above") is None:
            raise ParameterError("`blind_by` is the measure of `blind_above`, which is not given")
    return given


def card_options(
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns what the reader of a Combine card is told, as the extension module takes it."""
    if not (keywords is None or hasattr(keywords, "items")):
        example = "{'CHANNEL_SET': 'tight'}"
        raise TypeError(
            f"`keywords` is a dictionary of what words stand for, such as {example}, "
            f"not `{shown(keywords)}`"
        )
    return {
        "mass": None if mass is None else real("mass", mass),
        "physics_model": None if physics_model is None else text("physics_model", physics_model),
        "model_options": names("model_options", model_options),
        "keywords": [
            (text("keywords", word), text("keywords", value))
            for word, value in (keywords or {}).items()
        ],
    }


def group_patterns(
    groups: Mapping[str, str | Sequence[str]] | None, example: str
) -> list[tuple[str, list[str]]]:
    """Returns the name and the patterns of each of `groups`."""
    if not (groups is None or hasattr(groups, "items")):
        raise TypeError(
            f"`groups` is a dictionary of name patterns by group, such as {example}, "
            f"not `{shown(groups)}`"
        )
    patterns = [(name, names("groups", found)) for name, found in (groups or {}).items()]
    names("groups", [name for name, _ in patterns])
    return patterns


def count(name: str, value: Any, at_least: int = 0) -> int:
    """Returns `value` if it is a whole number of at least `at_least`."""
    return _count(name, value, at_least)


def toy_range(name: str, value: Any, first: Any = 0) -> tuple[int, int]:
    """Returns the number of the first toy, and the number after the last.

    The limits are those of the command.
    """
    n_toys, start = count_of_toys(name, value), count("first", first)
    if start + n_toys > MOST_TOYS:
        raise ParameterError(
            f"`first` is {start}, and {n_toys} toys from there on go beyond the last number, "
            f"{MOST_TOYS - 1}"
        )
    return start, start + n_toys


def optional_toys(value: Any) -> int:
    """Returns how many toys are wanted; 0 for none."""
    return 0 if count("toys", value) == 0 else toy_range("toys", value)[1]


def real(name: str, value: Any) -> float:
    """Returns `value` if it is a finite number."""
    found = number(value, f"`{name}`")
    if not math.isfinite(found):
        raise ParameterError(f"`{name}` is {found}, which is not a finite number")
    return found


def leaves_nothing(change: float) -> bool:
    """Returns whether a relative change of a rate leaves no events, or fewer than none.

    >>> leaves_nothing(-1.05), leaves_nothing(-0.05)
    (True, False)
    """
    return not change > -1.0


def change_of_factor(value: float) -> str | None:
    """Returns the relative change that was meant where a factor such as 1.05 is given for it; None
    for what does not look like a factor above one.

    >>> change_of_factor(1.05), change_of_factor(0.05)
    ('0.05', None)
    """
    return f"{value - 1.0:.4g}" if 1.0 < value < 2.0 else None


def flag(name: str, value: Any) -> bool:
    """Returns `value` if it is True or False, of Python or of NumPy."""
    if isinstance(value, bool):
        return value
    if getattr(getattr(value, "dtype", None), "kind", None) == "b" and not value.shape:
        return bool(value)
    raise TypeError(f"`{name}` is True or False, not `{shown(value)}`")


def text(name: str, value: Any) -> str:
    """Returns `value` if it is text."""
    if isinstance(value, str):
        return value
    raise TypeError(f"`{name}` must be text, not `{shown(value)}`")


def path_of(name: str, value: Any) -> str:
    """Returns `value` as a path."""
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    raise TypeError(f"`{name}` must be a path, not `{shown(value)}`")


def names(what: str, given: str | Sequence[str]) -> list[str]:
    """Returns one name or several as a list."""
    if isinstance(given, str):
        return [given]
    if hasattr(given, "keys"):
        raise TypeError(f"`{what}` is a name or a sequence of names, not a dictionary")
    try:
        found = list(given)
    except TypeError:
        raise TypeError(
            f"`{what}` is a name or a sequence of names, not `{shown(given)}`"
        ) from None
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"`{what}` has names, and `{shown(name)}` is not a name")
    return found


def is_matrix(values: Any) -> bool:
    """Returns whether `values` are an array of two dimensions, or rows of such."""
    if hasattr(values, "ndim"):
        return values.ndim == 2
    return isinstance(values, (list, tuple)) and len(values) > 0 and hasattr(values[0], "__len__")


def levels_of(name: str, given: Any) -> list[float]:
    """Returns confidence levels, also if one is given without a sequence."""
    is_one = isinstance(given, (str, bytes)) or not hasattr(given, "__iter__") or getattr(given, "shape", None) == ()
    return [number(level, f"a level of `{name}`") for level in ([given] if is_one else given)]


def pair_of_names(what: str, given: Sequence[str]) -> tuple[str, str]:
    """Returns two names."""
    found = [] if isinstance(given, str) else names(what, given)
    if len(found) != 2:
        raise TypeError(
            f"`{what}` is a pair of names, such as ('mu', 'lumi'), not `{shown(given)}`"
        )
    return found[0], found[1]


def parse_aux(aux: str) -> bool:
    """Returns whether toys keep the observed auxiliary data."""
    if text("aux", aux) not in ("fluctuated", "fixed"):
        raise ParameterError(f"`aux` is `fluctuated` or `fixed`, not `{aux}`")
    return aux == "fixed"
