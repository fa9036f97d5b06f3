"""Combinations of workspaces, and parameters that are split."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import card_options, text
from ._errors import shown, warn
from ._keywords import hinted
from ._results import CombinationResult
from ._sources import file_of, json_bytes

if TYPE_CHECKING:
    from ._sources import Document

__all__ = ["combine", "decorrelate"]


@hinted
def combine(
    workspaces: Sequence[Document] | Mapping[str, Document] = (),
    *,
    map: Document | None = None,
    join: str | None = None,
    merge_channels: bool = False,
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> CombinationResult:
    """Combines workspaces into one: by the names of parameters, or as a correlation map says.

    Data cards of Combine are joined as ``combineCards.py`` joins them.

    Parameters
    ----------
    workspaces : sequence or dict
        Paths, JSON texts or dictionaries; of a dictionary the keys are the labels that the map and
        the report use, and with which the names of channels of cards begin. The label of a path is
        the name of its file without extension, and that of a card ``ch1``, ``ch2``, …. If not
        given, they are those whose files the map names, relative to its own file.
    map : path or dict, optional
        The correlation map: a file (YAML, or JSON if its name ends in ``.json``) or a dictionary.
        Its keys are on the page on files. It makes one measurement.
    join : str, optional
        Without a map: ``"none"``, ``"outer"``, ``"left outer"`` or ``"right outer"``, as in pyhf.
        If not given, no channel may be in two workspaces, and measurements of one name are merged.
    merge_channels : bool, optional
        Without a map, and with an outer join: give a channel of two workspaces the samples of both.
    mass, physics_model, model_options, keywords : optional
        How Combine cards are read, as for `load_workspace`.

    Returns
    -------
    CombinationResult
        The workspace, and what was correlated and why.

    Raises
    ------
    WorkspaceError
        For a document that is invalid, workspaces that cannot be joined, and a map that does not
        fit, with its place.

    Examples
    --------
    >>> import nextstat
    >>> wanted = {"correlate": ["mu"], "settings": [{"name": "mu", "bounds": [[0, 5]]}]}
    >>> workspaces = {"A": "examples/simple.json", "B": "examples/shapes.json"}
    >>> made = nextstat.combine(workspaces, map=wanted)
    >>> [found["parameter"] for found in made.parameters if found["correlated_by"] == "map"]
    ['mu']
    >>> nextstat.model_of(made.workspace).poi
    'mu'

    Data cards of Combine:

    >>> cards = {"A": "examples/combine/counting.txt", "B": "examples/combine/templates.txt"}
    >>> nextstat.model_of(nextstat.combine(cards, mass=125).workspace).channels
    ['A_high', 'A_low', 'B_fast', 'B_logs', 'B_stat']
    """
    if map is not None and (join is not None or merge_channels):
        raise TypeError("`join` and `merge_channels` apply without a map only")
    if isinstance(workspaces, (str, bytes, os.PathLike)):
        raise TypeError(f"`workspaces` is a list or a dictionary of workspaces, not `{shown(workspaces)}`")
    is_labelled = isinstance(workspaces, Mapping)
    items = workspaces.items() if is_labelled else ((None, document) for document in workspaces)
    given = [(None if label is None else text("label", label), _given(document)) for label, document in items]
    card = card_options(mass, physics_model, model_options, keywords)
    wanted = None if join is None else text("join", join)
    rules = None if map is None else _given(map)
    return _result(*_nextstat.combine(given, rules, wanted, bool(merge_channels), card))


@hinted
def decorrelate(
    workspace: Document,
    parameters: str | Sequence[str],
    *,
    by: str = "channel",
    parts: Mapping[str, str | Sequence[str]] | None = None,
    channels: str | Sequence[str] | None = None,
    samples: str | Sequence[str] | None = None,
    poi: str | None = None,
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> CombinationResult:
    """Splits parameters of a workspace: the modifier `X` in the part `P` becomes `X_P`, with the
    settings of `X` in every measurement.

    Parameters
    ----------
    parameters : str or sequence of str
        Names and patterns (``"JES_*"``).
    by : str, optional
        What the parts differ in: ``"channel"`` (or ``"region"``, as configurations of `build` call
        it) or ``"sample"``.
    parts : dict, optional
        The suffix of each part, and names or patterns of its channels or samples. Modifiers in no
        part keep their name. If not given, each channel or sample is a part.
    channels, samples : str or sequence of str, optional
        Split the modifiers in these only, names or patterns.
    poi : str, optional
        The parameter of interest of the result; needed if that of a measurement is split.
    mass, physics_model, model_options, keywords : optional
        How a Combine card is read, as for `load_workspace`.

    Returns
    -------
    CombinationResult
        The workspace, and what was split.

    Examples
    --------
    >>> import nextstat
    >>> made = nextstat.decorrelate(
    ...     "examples/shapes.json", "jet_energy_scale", parts={"SR": "signal_*", "CR": "control_*"}
    ... )
    >>> made.rules[0]["parameters"]
    ('jet_energy_scale_SR', 'jet_energy_scale_CR')
    """
    part = "channel" if text("by", by) == "region" else by
    wanted: dict[str, Any] = {"parameters": _names("parameters", parameters), "by": part}
    for name, value in (("channels", channels), ("samples", samples)):
        if value is not None:
            wanted[name] = _names(name, value)
    if parts is not None:
        wanted["parts"] = [(text("parts", part), _names("parts", names)) for part, names in parts.items()]
    if poi is not None:
        wanted["poi"] = text("poi", poi)
    card = card_options(mass, physics_model, model_options, keywords)
    return _result(*_nextstat.decorrelate(_given(workspace), wanted, card))


def _result(made: str, fields: dict[str, Any]) -> CombinationResult:
    result = CombinationResult({**fields, "workspace": json.loads(made)})
    for message in result.warnings:
        warn(message)
    return result


def _given(document: Document) -> bytes | str:
    """Returns a document as the extension module takes it: its path, or its JSON text."""
    path = file_of(document)
    return json_bytes(document) if path is None else path


def _names(what: str, value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else [text(what, name) for name in value]
