"""Searches for many signals: local significances, and the global significance of the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import count, count_of_toys, flag, settings_of_grid, text
from ._documents import PatchSet
from ._keywords import hinted
from ._models import choice_of
from ._progress import progress_of
from ._results import SearchResult, warn_of
from ._results.frozen import frozen
from ._sources import document_bytes, file_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._arguments import Bounds
    from ._models import Interpolation, Poi
    from ._progress import Progress
    from ._sources import Document

__all__ = ["search"]


@hinted
def search(
    workspace: Document,
    patchset: PatchSet | Document,
    *,
    toys: int = 0,
    samples: int = 20_000,
    limits: bool = False,
    correlations: bool = False,
    along: str | None = None,
    seed: int = 0,
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
    fixed: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    fit_channels: str | Sequence[str] = (),
    mask: str | Sequence[str] = (),
    multi_start: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Searches for every signal of a patch set.

    Each signal gets its local significance. Under the background alone the local significances of
    all signals are jointly normal for large counts; their correlations follow from one fit of the
    background, and the global p-value is the probability that one of them is as large as the
    largest of the data.

    Parameters
    ----------
    workspace, patchset : path, JSON text or dict
        The background, and the signals.
    toys : int
        Toys of the background, each fitted under every signal, as a check; 0 for none.
    samples : int
        Samples of the joint distribution for each global p-value.
    limits : bool
        Whether to find upper limits on every signal, too.
    correlations : bool
        Whether to return the correlations of the local significances.
    along : str, optional
        The label along which upcrossings are counted, such as a mass; the only one with a number of
        its own for every signal if not given.
    seed : int
        Seed of samples and toys.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> import nextstat
    >>> found = nextstat.search("examples/background.json", "examples/signals.json")
    >>> found.strongest["patch"], round(found.strongest["Z_obs"], 2)
    ('signal_800', 2.03)
    >>> round(found.field["Z"], 2)  # these signals have one shape, so that there is one trial
    2.03
    """
    patches = patchset if isinstance(patchset, PatchSet) else PatchSet(patchset)
    raw = patches._raw.grid(document_bytes(workspace), [file_of(workspace), patches._file])
    given = settings_of_grid(
        fixed=fixed, bounds=bounds, fit_channels=fit_channels, mask=mask, multi_start=multi_start,
        seed=seed, threads=threads,
    )
    wanted = {
        "toys": 0 if toys == 0 else count_of_toys("toys", toys),
        "samples": count("samples", samples),
        "limits": flag("limits", limits),
        "correlations": flag("correlations", correlations),
        "along": None if along is None else text("along", along),
    }
    choice = choice_of(measurement, poi, interp_defaults, interpolation)
    fields = raw.search(choice, given, wanted, progress_of(progress, "signal"))
    for key in ("$schema", "nextstat_version"):
        fields.pop(key)
    fields["provenance"] = frozen(fields["provenance"])
    return warn_of(SearchResult(fields))
