"""Tests of many signals, given as numbers of events, with one background."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._arguments import flag, settings_of_grid, text
from ._errors import shown
from ._keywords import hinted
from ._models import choice_of
from ._nextstat import ParameterError, RawScanner, read_named_tables
from ._progress import progress_of
from ._results import SignalScanResult, warn_of
from ._sources import document_bytes, file_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._arguments import Bounds
    from ._models import Interpolation, Poi
    from ._progress import Progress
    from ._sources import Document

__all__ = ["Scanner"]

# What is appended to the name of a channel to name its uncertainties.
_UNCERTAINTY = ".uncertainty"


class Scanner:
    """A background that signals are tested with.

    The background is compiled and fitted once. A signal is a number of expected events in each bin,
    with a statistical uncertainty if it has one.

    Parameters
    ----------
    workspace : path, JSON text or dict
        The background, without signal: pyhf JSON, and as a file whatever `load_workspace` reads.
    strength : str, optional
        The parameter that scales the signals; the parameter of interest of the measurement if not
        given.
    sample : str
        The name that signals have as a sample.
    lumi : str, optional
        The name of the luminosity that scales the signals, too.
    normsys : dict, optional
        Normalisation uncertainties of all signals, such as ``{"theory": (0.9, 1.1)}``: the factors
        at -1 and +1 standard deviation. A name that the background has is the same parameter.
    measurement, poi, interp_defaults, interpolation
        As for `load_workspace`.
    fixed, bounds, fit_channels, mask, multi_start, seed
        As for `fit`.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.

    Raises
    ------
    WorkspaceError, ModelError
        A background that cannot be read or is not a valid model.
    ParameterError
        Names that the background has already; settings that do not fit it.

    Examples
    --------
    >>> import nextstat
    >>> scanner = nextstat.Scanner("examples/background.json")
    >>> scanner.channels
    {'control_region': 3, 'signal_region': 4}
    >>> found = scanner.scan({"signal_region": [[1.0, 4.0, 9.0, 12.0], [0.5, 2.0, 4.5, 6.0]]})
    >>> [round(float(cls), 3) for cls in found.CLs_obs]
    [0.096, 0.533]
    """

    __module__ = "nextstat"

    @hinted
    def __init__(
        self,
        workspace: Document,
        *,
        strength: str | None = None,
        sample: str = "signal",
        lumi: str | None = None,
        normsys: Mapping[str, tuple[float, float]] | None = None,
        measurement: str | None = None,
        poi: Poi = None,
        interp_defaults: str = "smooth",
        interpolation: Interpolation | None = None,
        fixed: Mapping[str, float] | None = None,
        bounds: Bounds | None = None,
        fit_channels: str | Sequence[str] = (),
        mask: str | Sequence[str] = (),
        multi_start: int | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        given = settings_of_grid(
            fixed=fixed, bounds=bounds, fit_channels=fit_channels, mask=mask, multi_start=multi_start,
            seed=seed, threads=threads,
        )
        slot = {
            "sample": text("sample", sample),
            "strength": None if strength is None else text("strength", strength),
            "lumi": None if lumi is None else text("lumi", lumi),
            "normsys": [_normsys(name, factors) for name, factors in (normsys or {}).items()],
        }
        choice = choice_of(measurement, poi, interp_defaults, interpolation)
        source = file_of(workspace) or document_bytes(workspace)
        self._raw = RawScanner(source, choice, given, slot)

    def __repr__(self) -> str:
        n_channels, n_bins = len(self.channels), sum(self.channels.values())
        return f"<nextstat.Scanner: {n_channels} channels, {n_bins} bins>"

    @property
    def channels(self) -> dict[str, int]:
        """The numbers of bins of the background's channels."""
        return dict(self._raw.channels())

    @hinted
    def scan(
        self,
        signals: Mapping[str, ArrayLike] | str | os.PathLike[str],
        *,
        mu: float = 1.0,
        test_stat: str = "qtilde",
        limits: bool = False,
        level: float = 0.05,
        explore: bool = True,
        progress: Progress = None,
    ) -> SignalScanResult:
        """Tests every signal.

        Parameters
        ----------
        signals : dict of arrays, or path
            Expected events by channel, N × bins: a row for each signal; a channel that is left out
            has none. Absolute statistical uncertainties, of the same shape, are under the name of
            the channel with ``.uncertainty`` appended. A path is that of a NumPy archive (`.npz`)
            or of a JSON object of such arrays, or of a Parquet file with a column of lists for each
            (which needs `pyarrow`).
        mu : float
            The strength that is tested.
        test_stat : ``"qtilde"`` or ``"q"``
            The test statistic.
        limits : bool
            Whether to find upper limits on the strengths, too.
        level : float
            CLs at the limits.
        explore : bool
            Whether to search for the lowest minima with every signal. Otherwise fits start at the
            minima of the background, and are searched only where the model or the signal gives
            reason to, which is much faster in large models; some fits end in higher minima then.
            One signal in 64, but no more than 16, are tested with the full search all the same, and
            a warning says how many of them have lower minima.
        progress : callable or True, optional
            Called with (done, total); True shows a bar.

        Returns
        -------
        SignalScanResult
        """
        yields, uncertainties = _split(signals if hasattr(signals, "items") else _read(signals))
        wanted = {
            "mu": mu,
            "test_stat": text("test_stat", test_stat),
            "level": level if flag("limits", limits) else None,
            "explore": flag("explore", explore),
        }
        return warn_of(SignalScanResult(self._raw.scan(yields, uncertainties, wanted, progress_of(progress, "signal"))))


def _normsys(name: str, factors: tuple[float, float]) -> tuple[str, list[float]]:
    try:
        lo, hi = factors
    except (TypeError, ValueError):
        raise ParameterError(f"`normsys` of `{name}` must be two factors, not `{shown(factors)}`") from None
    return name, [lo, hi]


def _read(path: Any) -> Mapping[str, ArrayLike]:
    """Returns the arrays in a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"`signals` must be arrays by channel or a path, not `{shown(path)}`")
    name = os.fspath(path)
    if name.endswith(".parquet"):
        import pyarrow.parquet

        columns = pyarrow.parquet.read_table(name)
        return {column: columns.column(column).to_pylist() for column in columns.column_names}
    return dict(read_named_tables(name))


def _split(signals: Mapping[str, ArrayLike]) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Returns the arrays of events, and those of uncertainties, by channel."""
    import numpy

    yields, uncertainties = [], []
    for name, values in signals.items():
        channel = text("signals", name)
        try:
            array = numpy.atleast_2d(numpy.asarray(values, dtype=float))
        except (TypeError, ValueError):
            raise ParameterError(f"`signals`: the rows of `{channel}` are not numbers, or differ in length") from None
        if array.size == 0:
            array = array.reshape(0, 0)
        if array.ndim != 2:
            raise ParameterError(f"`signals`: `{channel}` has {array.ndim} dimensions instead of 2")
        if channel.endswith(_UNCERTAINTY):
            uncertainties.append((channel[: -len(_UNCERTAINTY)], array))
        else:
            yields.append((channel, array))
    return yields, uncertainties
