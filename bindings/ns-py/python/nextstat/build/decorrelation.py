"""Decorrelation by region, by sample, or by both: what `nextstat.decorrelate` does, once or twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import _nextstat
from .._arguments import card_options, names
from .._errors import listed, with_hint
from .._nextstat import ParameterError, WorkspaceError
from .._sources import json_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

# Words for what the parts differ in, and those of the engine.
BY = {"region": "channel", "channel": "channel", "sample": "sample"}


def decorrelate(workspace: dict[str, Any], parameters: str | Sequence[str], by: str | Sequence[str]) -> dict[str, Any]:
    """Returns a new workspace in which parameters are separate in each region, sample, or both.

    The parameter `JES` becomes `JES_SR`, `JES_ttbar`, or `JES_SR_ttbar`; its settings in
    measurements (initial value, range, fixed) are those of each of them. `nextstat.decorrelate` has
    more options: parts by patterns, and a new parameter of interest.

    Parameters
    ----------
    workspace : dict
    parameters : str or sequence of str
        Names or patterns such as ``"JES_*"``.
    by : str or sequence of str
        ``"region"`` or ``"channel"``, ``"sample"``, or both.

    Raises
    ------
    WorkspaceError
        If no parameter matches, if a new name is there already, or if a parameter that matches
        cannot be decorrelated: that of interest, a `lumi`, and by sample a `staterror`.

    Examples
    --------
    >>> import json, nextstat
    >>> from nextstat.build import decorrelate
    >>> with open("examples/shapes.json") as file:
    ...     workspace = decorrelate(json.load(file), "jet_energy_*", by="region")
    >>> [name for name in nextstat.model_of(workspace).par_names if name.startswith("jet")]
    ['jet_energy_scale_control_region', 'jet_energy_scale_signal_region']
    """
    given = names("by", by)
    for part in given:
        if part not in BY:
            raise ParameterError(f"`by` has {listed(BY)}, not `{part}`")
    found, wanted = workspace, names("parameters", parameters)
    # The region comes first in the names.
    for part in sorted({BY[part] for part in given}):
        found, wanted = _split(found, wanted, part)
    return found


def _split(workspace, parameters, by):
    """Returns the workspace with parameters split by channel or by sample, and their new names."""
    try:
        options = {"parameters": parameters, "by": by}
        text, report = _nextstat.decorrelate(json_bytes(workspace), options, card_options())
    except WorkspaceError as error:
        pois = [measurement["config"].get("poi") for measurement in workspace["measurements"]]
        if any(poi and f"parameter of interest `{poi}`" in str(error) for poi in pois):
            # The engine asks which part is of interest, which cannot be said here.
            raise with_hint(WorkspaceError(str(error)), "choose a narrower pattern") from None
        raise
    return json.loads(text), list(report["rules"][0]["parameters"])
