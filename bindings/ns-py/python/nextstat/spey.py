"""Statistical models of spey on this engine: pyhf's full likelihoods with exact gradients and
Hessians.

spey finds the classes by the entry points of this package, under the names ``"nextstat"`` and
``"nextstat.uncorrelated_background"``. They take the
arguments of spey-pyhf's ``"pyhf"`` and ``"pyhf.uncorrelated_background"``, and need neither pyhf
nor spey-pyhf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from spey import BackendBase, ExpectationType
from spey.base.model_config import ModelConfig

from . import __version__
from .pyhf import Model, Workspace, simplemodels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

__all__ = ["FullStatisticalModel", "UncorrelatedBackground"]

#: Signal strengths below this are not looked at, as in spey-pyhf.
_LEAST_POI = -10.0


class _Backend(BackendBase):
    """A model of `nextstat.pyhf`, its data, and the yields of signal and background (B each)."""

    version = __version__
    author = "nextstat"
    spey_requires = ">=0.2.0,<0.3.0"
    doi: ClassVar[list[str]] = ["10.21105/joss.02823"]

    def __init__(self, model: Model, observed: ArrayLike, signal: ArrayLike, background: ArrayLike) -> None:
        self._model = model
        self._observed, self._signal, self._background = (np.asarray(values, dtype=float) for values in (observed, signal, background))

    @property
    def is_alive(self) -> bool:
        """Whether a bin expects signal."""
        return bool((self._signal > 0.0).any())

    def config(self, allow_negative_signal: bool = True, poi_upper_bound: float = 10.0) -> ModelConfig:
        """Returns the parameters, where they start and between which bounds they move."""
        config, has_signal = self._model.config, self._signal != 0.0
        least = -float((self._background[has_signal] / self._signal[has_signal]).min(initial=np.inf))
        bounds = config.suggested_bounds()
        highest = poi_upper_bound or bounds[config.poi_index][1]
        bounds[config.poi_index] = (max(least, _LEAST_POI) if allow_negative_signal else 0.0, highest)
        return ModelConfig(config.poi_index, least, config.suggested_init(), bounds, config.par_names, config.suggested_fixed())

    def _data(self, expected: ExpectationType, data: ArrayLike | None) -> Any:
        """Returns counts and auxiliary data: those given, what the background alone expects, or
        those observed.
        """
        if data is not None:
            return np.asarray(data, dtype=float)
        counts = self._background if expected == ExpectationType.apriori else self._observed
        return np.concatenate([counts, self._model.config.auxdata])

    def expected_data(self, pars: ArrayLike) -> list[float]:
        """Returns expected counts and auxiliary data at `pars` (P)."""
        return self._model.expected_data(pars).tolist()

    def get_logpdf_func(self, expected: ExpectationType = ExpectationType.observed, data: ArrayLike | None = None) -> Callable[[ArrayLike], float]:
        """Returns ln L as a function of the parameters (P)."""
        data = self._data(expected, data)
        return lambda pars: float(self._model.logpdf(pars, data)[0])

    def get_objective_function(
        self, expected: ExpectationType = ExpectationType.observed, data: ArrayLike | None = None, do_grad: bool = True
    ) -> Callable[[ArrayLike], Any]:
        """Returns -2 ln L as a function of the parameters (P), as in spey-pyhf; with its gradient
        (P) if `do_grad`.
        """
        data = self._data(expected, data)
        if not do_grad:
            return lambda pars: -2.0 * float(self._model.logpdf(pars, data)[0])

        def objective(pars: ArrayLike) -> tuple[float, Any]:
            nll, gradient = self._model._nll_and_grad(pars, data)
            return 2.0 * nll, 2.0 * gradient

        return objective

    def get_hessian_logpdf_func(self, expected: ExpectationType = ExpectationType.observed, data: ArrayLike | None = None) -> Callable[[ArrayLike], Any]:
        """Returns the Hessian (P × P) of ln L as a function of the parameters (P)."""
        data = self._data(expected, data)
        return lambda pars: -self._model._hessian(pars, data)

    def get_sampler(self, pars: ArrayLike) -> Callable[..., Any]:
        """Returns a function that draws data at `pars` (P), with or without auxiliary data."""
        with_aux, without = self._model.make_pdf(pars), self._model.main_model.make_pdf(pars)

        def sampler(number_of_samples: int, include_auxiliary: bool = True) -> Any:
            return np.asarray((with_aux if include_auxiliary else without).sample((number_of_samples,)))

        return sampler


class FullStatisticalModel(_Backend):
    """A background-only workspace with a signal.

    Parameters
    ----------
    signal_patch : list of dict
        The JSON patch that adds the signal.
    background_only_model : dict
        The workspace.

    Examples
    --------
    >>> import json, spey
    >>> with open("examples/background.json") as workspace, open("examples/signal.json") as patch:
    ...     model = spey.get_backend("nextstat")(
    ...         analysis="example",
    ...         background_only_model=json.load(workspace),
    ...         signal_patch=json.load(patch),
    ...     )
    >>> round(float(model.poi_upper_limit()), 3)
    2.857
    """

    name = "nextstat"

    def __init__(self, signal_patch: Sequence[Mapping[str, Any]], background_only_model: Mapping[str, Any]) -> None:
        workspace = Workspace(dict(background_only_model))
        model = workspace.model(patches=[list(signal_patch)])
        background, total = _yields(model, workspace["channels"]), _yields(model, model.spec["channels"])
        super().__init__(model, workspace.data(model, include_auxdata=False), total - background, background)


class UncorrelatedBackground(_Backend):
    """Counts with a background whose uncertainties are independent from bin to bin (B each)."""

    name = "nextstat.uncorrelated_background"

    def __init__(
        self, signal_yields: Sequence[float], background_yields: Sequence[float], data: Sequence[float], absolute_uncertainties: Sequence[float]
    ) -> None:
        given = (signal_yields, background_yields, absolute_uncertainties)
        model = simplemodels.uncorrelated_background(*([float(value) for value in values] for values in given))
        super().__init__(model, data, signal_yields, background_yields)


def _yields(model: Model, channels: Sequence[Mapping[str, Any]]) -> Any:
    """Returns nominal yields of all samples of `channels`, in the model's order of bins (B)."""
    by_name = {channel["name"]: np.sum([sample["data"] for sample in channel["samples"]], axis=0) for channel in channels}
    return np.concatenate([by_name[name] for name in model.config.channels])
