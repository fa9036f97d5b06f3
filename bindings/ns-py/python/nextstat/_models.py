"""Models, made of workspaces."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._arguments import card_options, is_matrix, names, path_of, require_model, text
from ._errors import listed, shown, warn
from ._keywords import hinted
from ._nextstat import Model, ParameterError, RawAsimov, WorkspaceError
from ._results import FitResult
from ._sources import is_json, json_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy import ndarray

    from ._arguments import Interpolation, Params, Poi

    StoredFit: TypeAlias = FitResult | Mapping[str, Any] | str | os.PathLike[str]
    FitText: TypeAlias = tuple[str, str | None]

__all__ = ["asimov_data", "example", "load_workspace", "model_of"]


#: The workspaces that come with the package.
EXAMPLES = ("shapes", "simple")


def example(name: str = "shapes") -> Model:
    """Returns the model of an example workspace, which comes with the package.

    Parameters
    ----------
    name : ``"shapes"`` or ``"simple"``
        ``"shapes"`` is a search with a signal region of four bins, a control region of three, and
        18 parameters; ``"simple"`` has one channel of two bins and three parameters.

    Raises
    ------
    ParameterError
        A name of no example.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.example("simple")
    >>> model
    <nextstat.Model `Measurement`: 1 channel, 2 bins, 3 parameters, parameter of interest `mu`>
    >>> round(nextstat.fit(model).value("mu"), 3)
    0.724
    """
    if text("name", name) not in EXAMPLES:
        raise ParameterError(f"unknown example `{name}`; choose one of {listed(EXAMPLES, 'or')}")
    return load_workspace(os.path.join(os.path.dirname(__file__), "examples", f"{name}.json"))


@hinted
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
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> Model:
    """Returns the model of a file: pyhf JSON, HS3, HistFactory XML, or a data card of Combine.

    The file may be compressed (`.gz`, `.zst`).

    Parameters
    ----------
    path : path
    measurement : str, optional
        The measurement, or the analysis of an HS3 document; the first one if not given.
    patches : path or sequence of paths
        JSON patches, applied in order after the patch of the set.
    patchset, patch_name : path and str, optional
        A patch set made for the workspace, and the patch of it that is applied.
    poi : str or sequence of str, optional
        Parameters of interest instead of the measurement's; ``"none"`` for none.
    interp_defaults : ``"smooth"`` or ``"pyhf"``
        ``"smooth"`` is the default of pyhf today: normsys code4 and histosys code4p. ``"pyhf"`` is
        that of pyhf before its release 0.6: code1 and code0.
    interpolation : dict, optional
        The rule of one kind of modifier, such as ``{"normsys": "code1"}``.
    mass : float, optional
        The mass that ``$MASS`` stands for in a Combine card.
    physics_model : str, optional
        The physics model of a Combine card: ``"multiSignalModel"`` or ``"floatingXSHiggs"``.
    model_options : str or sequence of str
        Options of the physics model, such as ``"map=.*/ggH:r_ggH[1,0,10]"``.
    keywords : dict, optional
        What ``$WORD`` stands for in a Combine card, by word.

    Raises
    ------
    WorkspaceError
        With the place in the document, and a hint if there is one.
    ModelError
        A workspace that is not a valid model.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.load_workspace("examples/simple.json")
    <nextstat.Model `Measurement`: 1 channel, 2 bins, 3 parameters, parameter of interest `mu`>
    """
    if (patchset is None) != (patch_name is None):
        raise TypeError("`patchset` and `patch_name` go together")
    if isinstance(path, (dict, bytes)) or (isinstance(path, str) and is_json(path)):
        kind = type(path).__name__
        raise TypeError(
            f"`path` must be that of a file: `nextstat.model_of` makes a model of a `{kind}`"
        )
    is_single = isinstance(patches, (str, os.PathLike)) or not hasattr(patches, "__iter__")
    files = {
        "workspace": path_of("path", path),
        "patches": [path_of("patches", one) for one in ((patches,) if is_single else patches)],
        "patchset": None if patchset is None else path_of("patchset", patchset),
        "patch_name": None if patch_name is None else text("patch_name", patch_name),
        "card": card_options(mass, physics_model, model_options, keywords),
    }
    return Model.load(files, choice_of(measurement, poi, interp_defaults, interpolation))


@hinted
def model_of(
    workspace: Mapping[str, Any] | str | bytes,
    *,
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
) -> Model:
    """Returns the model of a pyhf workspace: a dictionary, or JSON as text or bytes.

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
        raise WorkspaceError("`workspace` is empty text, not JSON")
    is_text = isinstance(workspace, str)
    if isinstance(workspace, os.PathLike) or (is_text and not is_json(workspace)):
        path = shown(os.fspath(workspace))
        raise TypeError(
            f"`workspace` must be JSON or a dictionary: `nextstat.load_workspace({path})` "
            "reads a file"
        )
    return Model(
        json_bytes(workspace), choice_of(measurement, poi, interp_defaults, interpolation)
    )


def choice_of(
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
) -> dict[str, Any]:
    """Returns the choices of a reader of workspaces, as the extension module takes them."""
    rules = {
        text("interpolation", kind): text("interpolation", code)
        for kind, code in _items("interpolation", interpolation)
    }
    if poi is None or (isinstance(poi, tuple) and not poi):
        pois = None
    elif isinstance(poi, str) and poi == "none":
        pois = []
    else:
        pois = names("poi", poi)
    measurement = None if measurement is None else text("measurement", measurement)
    return {
        "measurement": measurement,
        "poi": pois,
        "interp_defaults": text("interp_defaults", interp_defaults),
        "interpolation": rules,
    }


def _items(name: str, given: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if given is None:
        return []
    if not hasattr(given, "items"):
        example = "{'normsys': 'code1'}"
        raise TypeError(
            f"`{name}` is a dictionary of rules by kind, such as {example}, not `{shown(given)}`"
        )
    return list(given.items())


def text_of_fit(fit: StoredFit | None) -> FitText | None:
    """Returns the JSON text of a fit, a result, its fields or a file of them, with the name of the
    file; None for None.
    """
    if fit is None:
        return None
    if isinstance(fit, FitResult):
        return fit.to_json(), None
    if isinstance(fit, Mapping):
        return json.dumps(dict(fit)), None
    try:
        with open(os.fspath(fit), encoding="utf-8") as file:
            return file.read(), os.fsdecode(fit)
    except TypeError:
        found = shown(fit)
        raise TypeError(f"`fit` is a result of `fit`, its `to_dict()` or a file, not `{found}`") from None


@hinted
def asimov_data(
    model: Model,
    params: Params | None = None,
    *,
    fit: StoredFit | None = None,
) -> ndarray:
    """Returns the Asimov data of a model: main bins, then auxiliary data (B + K).

    They are made at the model's starting values, or at those of `fit`, except for `params`. Results
    of procedures that are given this array as `data` say "Asimov data", and their provenance has
    the parameters; the array is a NumPy array in every other respect.

    Parameters
    ----------
    params : array or dict, optional
        All parameters (P), or values by name; a name may be a pattern (``"JES_*"``).
    fit : FitResult, dict or path, optional
        A fit that gives the other parameters: a result of `fit`, its `to_dict()`, or a file that
        `nextstat fit` wrote; matched by name.

    Examples
    --------
    >>> import nextstat
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> data = nextstat.asimov_data(model)
    >>> round(nextstat.fit(model, data=data).value("mu"), 9)
    1.0
    """
    require_model(model)
    if params is not None and not isinstance(params, Mapping):
        if fit is not None:
            raise TypeError("`fit` gives the parameters that a dictionary of `params` leaves out")
        if is_matrix(params):
            return model.expected_data(params)
    # Imports NumPy, which models do without.
    from ._asimov import of_point

    point = RawAsimov.at(model, params, text_of_fit(fit))
    for warning in point.warnings(model):
        warn(warning)
    return of_point(point.data(model), point)
