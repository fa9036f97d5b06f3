"""Exclusion contours of grids of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _nextstat
from ._arguments import flag, text
from ._errors import shown
from ._keywords import hinted
from ._nextstat import number
from ._results import ExclusionResult, GridResult, warn_of
from ._results.frozen import frozen
from ._sources import document_bytes, file_of, json_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._sources import Document

__all__ = ["exclusion"]


@hinted
def exclusion(
    grid: GridResult | Document,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    cl: float | None = None,
    mass_splitting: bool = False,
) -> ExclusionResult:
    """Finds the exclusion contours of a grid of signals in the plane of two labels.

    Each signal has a value v: Φ⁻¹(1 - CLs), the normal quantile, for tests, and -ln μ_up for
    limits. v is interpolated linearly on the Delaunay triangulation of the signals, with both axes
    scaled to unit ranges. The contour is where v is Φ⁻¹(cl), or where the limit is 1.

    Parameters
    ----------
    grid : GridResult, path, JSON text or dict
        What `every_patch` returns with `hypotest` or `upper_limit`, or what the command writes for
        ``--every-patch``.
    x, y : str, optional
        Labels of the patches; if not given, the first in alphabetical order whose values are
        numbers and differ.
    at : dict, optional
        Values of other labels, for patches with these values alone.
    cl : float, optional
        Confidence level, 0.95 if not given; limits have their own.
    mass_splitting : bool
        Whether to triangulate in x and x - y instead of x and y, for compressed spectra.

    Returns
    -------
    ExclusionResult

    Examples
    --------
    >>> import nextstat
    >>> grid = nextstat.every_patch(
    ...     "examples/background.json", "examples/plane.json", nextstat.hypotest
    ... )
    >>> result = nextstat.exclusion(grid, "m_gluino", "m_lsp")
    >>> [contour] = result.expected[2]["contours"]
    >>> contour["vertices"][-1].round(1).tolist(), contour["ends_at_edge"]
    ([566.7, 466.7], True)
    """
    axes = [None if label is None else text(name, label) for name, label in (("x", x), ("y", y))]
    if at is not None and not hasattr(at, "items"):
        raise TypeError(f"`at` is a dictionary of labels and values, not `{shown(at)}`")
    chosen = [(text("a label of `at`", label), str(value)) for label, value in (at or {}).items()]
    level = None if cl is None else number(cl, "`cl`")
    if isinstance(grid, GridResult):
        source, file = json_bytes(grid.to_dict()), None
    else:
        source, file = document_bytes(grid), file_of(grid)
    fields = _nextstat.exclusion_of(source, axes, chosen, level, flag("mass_splitting", mass_splitting), file)
    for key in ("$schema", "nextstat_version"):
        fields.pop(key)
    fields["provenance"] = frozen(fields["provenance"])
    fields["observed"] = _with_arrays(fields["observed"])
    fields["expected"] = [_with_arrays(curve) for curve in fields["expected"]]
    return warn_of(ExclusionResult(fields))


def _with_arrays(curve: dict[str, Any]) -> dict[str, Any]:
    """Returns a curve with its vertices as arrays (N x 2)."""
    import numpy

    contours = [{**contour, "vertices": numpy.array(contour["vertices"])} for contour in curve["contours"]]
    return {"contours": contours, "region": [numpy.array(ring) for ring in curve["region"]]}
