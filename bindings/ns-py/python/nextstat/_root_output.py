"""Yields as histograms in a ROOT file, written with uproot."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from ._errors import install_command
from ._files import write_whole
from ._nextstat import ParameterError, RawTable
from ._sources import document_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ._results import ReportResult, YieldsResult
    from ._sources import Document

__all__ = ["write_root"]


def write_root(
    yields: YieldsResult | ReportResult | Document,
    path: str | os.PathLike[str],
    *,
    edges: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Writes yields to a ROOT file: a TH1D for each region, sample and stage.

    The histograms are `REGION/prefit/SAMPLE` and `REGION/postfit/SAMPLE`, where `total` is the sum
    of all samples; the errors of bins are the standard deviations of the yields, with all
    correlations. `REGION/data` has the event counts with errors of their square roots; bins whose
    data are hidden are NaN, and a region without any data to show has no such histogram. uproot
    does not write graphs with errors, so data are a histogram, too.

    Parameters
    ----------
    yields : YieldsResult, ReportResult, path, JSON text or dict
        Yields, a report, or the file that the command wrote for them.
    path : path
        The file, which is written whole or not at all.
    edges : dict, optional
        Edges of the bins of a region, by its name; other bins are 1 wide, from 0.

    Raises
    ------
    ImportError
        If uproot is not installed.
    NextstatError
        If the fit did not converge, or `edges` do not fit.

    Examples
    --------
    >>> import nextstat, uproot
    >>> nextstat.write_root(
    ...     nextstat.yields(nextstat.load_workspace("examples/simple.json")), "yields.root"
    ... )
    >>> with uproot.open("yields.root") as file:
    ...     file["singlechannel/postfit/total"].values().round(1).tolist()
    [58.5, 61.3]
    """
    uproot = _uproot()
    document = yields.to_dict() if hasattr(yields, "to_dict") else json.loads(document_bytes(yields))
    # Looks for damage.
    RawTable(json.dumps(document).encode(), "bins", [], None, None)
    if document.get("converged") is False:
        raise ParameterError("the fit of the yields did not converge")
    channels = document["channels"] if "channels" in document else document["yields"]["channels"]
    axes = _axes(channels, dict(edges or {}))
    histograms: dict[str, Any] = {}
    for channel, axis in zip(channels, axes):
        for name, values, errors in _histograms(channel):
            if name in histograms:
                raise ParameterError(f"two histograms would be called `{name}`")
            histograms[name] = (values, errors, axis)

    def write(part: Path) -> None:
        with uproot.recreate(part) as file:
            for name, (values, errors, axis) in histograms.items():
                file[name] = _th1(values, errors, axis)

    from pathlib import Path

    write_whole({Path(path): write})


def _histograms(channel):
    """Returns name, values and errors of every histogram of a channel."""
    import numpy

    region = _part(channel["channel"])
    counts = numpy.array([math.nan if count is None else count for count in channel["data"]])
    if not numpy.isnan(counts).all():
        yield f"{region}/data", counts, numpy.sqrt(counts)
    for stage in ("prefit", "postfit"):
        parts = [(sample["sample"], sample) for sample in channel[stage]["samples"]]
        parts += [(group["group"], group) for group in channel[stage].get("groups") or ()]
        for name, part in [*parts, ("total", channel[stage]["total"])]:
            errors = [math.nan if error is None else error for error in part["uncertainties"]]
            yield f"{region}/{stage}/{_part(name)}", numpy.array(part["yields"], dtype=float), numpy.array(errors)


def _part(name: str) -> str:
    """Returns a name as one part of a path in the file."""
    return name.replace("/", "_").replace(";", "_") or "_"


def _axes(channels, edges):
    """Returns the edges of the bins of each channel."""
    import numpy

    regions = [channel["channel"] for channel in channels]
    for region in edges:
        if region not in regions:
            raise ParameterError(f"`edges` names the region `{region}`, which the result does not have")
    found = []
    for region, channel in zip(regions, channels):
        n_bins = len(channel["data"])
        axis = numpy.asarray(edges.get(region, range(n_bins + 1)), dtype=float)
        if axis.shape != (n_bins + 1,) or not (numpy.diff(axis) > 0).all():
            raise ParameterError(f"`edges` of `{region}` must be {n_bins + 1} ascending numbers")
        found.append(axis)
    return found


def _th1(values, errors, axis):
    """Returns a TH1D with these bins."""
    import numpy
    from uproot.writing.identify import to_TAxis, to_TH1x

    def with_flow(array):
        return numpy.concatenate([[0.0], array, [0.0]])

    centers = (axis[1:] + axis[:-1]) / 2
    return to_TH1x(
        fName=None, fTitle="", data=with_flow(values), fEntries=float(len(values)),
        fTsumw=float(values.sum()), fTsumw2=float((errors**2).sum()),
        fTsumwx=float((values * centers).sum()), fTsumwx2=float((values * centers**2).sum()),
        fSumw2=with_flow(errors**2),
        fXaxis=to_TAxis(fName="xaxis", fTitle="", fNbins=len(values), fXmin=axis[0], fXmax=axis[-1], fXbins=axis),
    )  # fmt: skip


def _uproot():
    try:
        import uproot
    except ImportError as reason:
        raise ImportError(f"ROOT files need uproot: {install_command('xmlio')} ({reason})") from None
    return uproot
