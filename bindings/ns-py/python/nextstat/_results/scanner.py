"""The result of a scan of many signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._views import shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray

__all__ = ["SignalScanResult"]


class SignalScanResult(Result):
    """Tests of many signals with one background.

    Arrays have an entry for each signal (N), NaN where there is no result.

    Attributes
    ----------
    n_signals : int
    sample : str
        The name of the signals as a sample.
    poi : str
        The parameter that scales the signals.
    lumi : str or None
        The luminosity that scales them, too.
    normsys : dict
        Normalisation uncertainties of all signals: factors at -1 and +1 standard deviation.
    mu : float
        Its tested value.
    test_stat : str
    CLs_obs : array (N)
        Observed CLs.
    CLs_exp : array (N × 5)
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    q, q_asimov : array (N)
        The test statistic of the data and of the Asimov data set.
    bestfit : array (N)
        The best fit of the strength.
    twice_nll, twice_nll_best : array (N)
        -2 ln L at the tested strength and at the best fit, without the normalisations of the
        statistical uncertainties of signals, so that different signals can be compared.
    twice_nll_background : float
        The same without signal.
    limits : dict or None
        Upper limits on the strength: `level`, `observed` (N) and `expected` (N × 5).
    signal_converged : array (N) of bool
        Which signals have a result whose fits converged; those without events have none.
    explored : bool
        Whether the lowest minima were searched for with every signal.
    measurement : str
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "signal-scan"
    n_signals: int
    sample: str
    poi: str
    lumi: str | None
    normsys: Mapping[str, tuple[float, float]]
    mu: float
    test_stat: str
    CLs_obs: ndarray
    CLs_exp: ndarray
    q: ndarray
    q_asimov: ndarray
    bestfit: ndarray
    twice_nll: ndarray
    twice_nll_best: ndarray
    twice_nll_background: float
    limits: Mapping[str, Any] | None
    signal_converged: ndarray
    explored: bool
    measurement: str
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> _views.View:
        columns: tuple[str, ...] = ("signal", "best fit", "CLs", "expected CLs")
        lists = [self.bestfit, self.CLs_obs, self.CLs_exp[:, 2]]
        if self.limits is not None:
            columns += ("limit", "expected limit")
            lists += [self.limits["observed"], self.limits["expected"][:, 2]]
        rows = [(str(i), *(shown_number(values[i]) for values in lists)) for i in range(self.n_signals)]
        facts = [("tested", f"{self.poi} = {shown_number(self.mu)}")]
        return _views.View("SignalScanResult", facts, _views.tables(rows, columns))
