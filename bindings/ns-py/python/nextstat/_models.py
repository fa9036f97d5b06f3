"""From workspaces to models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._common import is_json, json_bytes, model_needed, names, path_of, shown, text
from ._nextstat import Model, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import ndarray
    from numpy.typing import ArrayLike

    from ._common import Interpolation, Poi


def load_workspace(
    path: str | os.PathLike[str],
    *,
    measurement: str | None = None,
    patches: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    patchset: str | os.PathLike[str] | None = None,
    patch_name: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
) -> Model:
    """The model of a pyhf workspace file (`.json`, `.json.gz` or `.json.zst`).

    Parameters
    ----------
    path : path
    measurement : str, optional
        The measurement; the first one if not given.
    patches : path or sequence of paths
        JSON patches, applied in order after the patch of the set.
    patchset, patch_name : path and str, optional
        A patch set made for the workspace, and the patch of it that is applied.
    poi : str or sequence of str, optional
        Parameters of interest instead of the measurement's; ``"none"`` for none.
    interp_defaults : ``"smooth"`` or ``"pyhf"``
        ``"smooth"`` is what pyhf does today: normsys code4 and histosys code4p. ``"pyhf"`` is pyhf before its release 0.6: code1 and code0.
    interpolation : dict, optional
        The rule of one kind of modifier, such as ``{"normsys": "code1"}``.

    Raises
    ------
    WorkspaceError
        With the place in the document, and a hint where there is one.
    ModelError
        A workspace that makes no model.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.load_workspace("examples/simple.json")
    <nextstat.Model `Measurement`: 1 channel, 2 bins, 3 parameters, parameter of interest `mu`>
    """
    if (patchset is None) != (patch_name is None):
        raise TypeError("`patchset` and `patch_name` go together")
    if isinstance(path, (dict, bytes)) or (isinstance(path, str) and is_json(path)):
        raise TypeError(f"`path` is to be that of a file: `nextstat.model_of` makes a model of a `{type(path).__name__}`")
    of_set = None if patchset is None else (path_of("patchset", patchset), text("patch_name", patch_name))
    several = patches if hasattr(patches, "__iter__") and not isinstance(patches, (str, os.PathLike)) else (patches,)
    paths = [path_of("patches", patch) for patch in several]
    return Model.load(path_of("path", path), paths, of_set, choice_of(measurement, poi, interp_defaults, interpolation))


def model_of(
    workspace: Mapping[str, Any] | str | bytes,
    *,
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
) -> Model:
    """The model of a pyhf workspace that is here already: a dictionary, or JSON as text or bytes.

    The arguments are those of `load_workspace`.

    Examples
    --------
    >>> import json, nextstat
    >>> with open("examples/simple.json") as file:
    ...     workspace = json.load(file)
    >>> workspace["observations"][0]["data"] = [60.0, 65.0]
    >>> model = nextstat.model_of(workspace)
    >>> round(nextstat.fit(model).value("mu"), 4)
    0.9524
    """
    if isinstance(workspace, str) and not workspace.strip():
        raise WorkspaceError("`workspace` is empty text, and no JSON")
    if isinstance(workspace, os.PathLike) or (isinstance(workspace, str) and not is_json(workspace)):
        raise TypeError(f"`workspace` is to be one that is here already: `nextstat.load_workspace({shown(os.fspath(workspace))})` reads a file")
    return Model(json_bytes(workspace), *choice_of(measurement, poi, interp_defaults, interpolation))


def choice_of(
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
) -> tuple[str | None, list[str] | None, tuple[str, list[tuple[str, str]]]]:
    """How a workspace is to be read, as the extension module takes it."""
    rules = [(text("interpolation", kind), text("interpolation", code)) for kind, code in _items("interpolation", interpolation)]
    if poi is None or (isinstance(poi, tuple) and not poi):
        pois = None
    elif isinstance(poi, str) and poi == "none":
        pois = []
    else:
        pois = names("poi", poi)
    measurement = None if measurement is None else text("measurement", measurement)
    return measurement, pois, (text("interp_defaults", interp_defaults), rules)


def _items(name: str, given: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if given is None:
        return []
    if not hasattr(given, "items"):
        raise TypeError(f"`{name}` is a dictionary of rules by kind, such as {{'normsys': 'code1'}}, not `{shown(given)}`")
    return list(given.items())


def asimov_data(model: Model, params: ArrayLike | None = None) -> ndarray:
    """What the model expects at `params` (P): main bins, then auxiliary data (B + K); at its starting values if not given.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> data = nextstat.asimov_data(model)
    >>> round(nextstat.fit(model, data=data).value("mu"), 9)
    1.0
    """
    model_needed(model)
    return model.expected_data(model.init if params is None else params)
