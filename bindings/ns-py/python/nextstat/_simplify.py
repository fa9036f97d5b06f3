"""Simplified models: the background of a few channels as a small workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import flag, names, settings_of_grid, text
from ._documents import PatchSet
from ._keywords import hinted
from ._models import choice_of, load_workspace, model_of
from ._nextstat import Model, ParameterError, simplify_model
from ._progress import progress_of
from ._results import SimplifiedModel, warn_of
from ._sources import document_bytes, file_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._arguments import Bounds
    from ._models import Interpolation, Poi
    from ._progress import Progress
    from ._sources import Document

__all__ = ["simplify"]


@hinted
def simplify(
    workspace: Model | Document,
    channels: str | Sequence[str],
    patchset: PatchSet | Document | None = None,
    *,
    form: str = "linear",
    compare: bool = False,
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
) -> SimplifiedModel:
    """Makes a small workspace of the background of a few channels.

    The background is fitted to the other channels, without signal. The yields that it predicts are
    polynomials of a few normal variables, with the moments that the covariance of the fit and the
    exact derivatives of the yields give.

    Parameters
    ----------
    workspace : Model, path, JSON text or dict
        The full model. A model has its measurement and interpolation already.
    channels : str or sequence of str
        The channels that are simplified, by name or pattern (`SR*`).
    patchset : path, JSON text or dict, optional
        Signals of the background `workspace`, which is simplified without one.
    form : ``"linear"`` or ``"third_moments"``
        Linear yields with the covariance to first order, whose workspace pyhf reads, or quadratic
        ones with means, covariance and third moments to second order.
    compare : bool
        Whether to compare CLs with those of the full model: of its signal, or of every patch.
    threads : int, optional
        As many as the machine has if not given; results do not depend on it.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    SimplifiedModel

    Examples
    --------
    >>> import nextstat
    >>> simple = nextstat.simplify("examples/shapes.json", "signal_region", fixed={"norm_ttbar": 1})
    >>> simple.n_variables
    4
    >>> round(nextstat.upper_limit(nextstat.model_of(simple.workspace)).observed, 2)
    2.75
    """
    given = settings_of_grid(
        fixed=fixed, bounds=bounds, fit_channels=fit_channels, mask=mask, multi_start=multi_start, threads=threads,
    )
    wanted = {
        "channels": names("channels", channels),
        "form": text("form", form),
        "compare": flag("compare", compare),
    }
    kind = {"measurement": measurement, "poi": poi, "interp_defaults": interp_defaults, "interpolation": interpolation}
    if patchset is not None:
        patches = patchset if isinstance(patchset, PatchSet) else PatchSet(patchset)
        raw = patches._raw.grid(document_bytes(workspace), [file_of(workspace), patches._file])
        fields, small = raw.simplify(choice_of(**kind), given, wanted, progress_of(progress, "signal"))
    else:
        model = _model(workspace, kind)
        fields, small = simplify_model(model, given, wanted)
    for key in ("$schema", "nextstat_version"):
        fields.pop(key)
    return warn_of(SimplifiedModel({**fields, "workspace": small}))


def _model(workspace: Model | Document, kind: dict) -> Model:
    if isinstance(workspace, Model):
        default = {"measurement": None, "poi": None, "interp_defaults": "smooth", "interpolation": None}
        for name, value in kind.items():
            if value != default[name]:
                raise ParameterError(f"`{name}` is that of the model already; give the workspace to choose another")
        return workspace
    path = file_of(workspace)
    return model_of(workspace, **kind) if path is None else load_workspace(path, **kind)
