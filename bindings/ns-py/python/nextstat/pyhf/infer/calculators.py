"""Test statistics and their distributions, by asymptotic formulas (arXiv:1007.1727) and by toys."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._progress import counted, shown
from ..exceptions import FailedMinimization
from .._current import get_backend
from .mle import _fits_ensembles, _given, fixed_poi_fit
from .test_statistics import _named, _of_each, _of_test

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["AsymptoticCalculator", "AsymptoticTestStatDistribution", "EmpiricalDistribution", "ToyCalculator", "generate_asimov_data"]

_ROOT_2 = math.sqrt(2.0)

#: Standard deviations of an expected band, from the lowest CLs on.
_BAND = (2, 1, 0, -1, -2)


def __dir__():
    return __all__


def generate_asimov_data(asimov_mu, data, pdf, init_pars, par_bounds, fixed_params, return_fitted_pars=False) -> Any:
    """Returns what is expected with the parameter of interest at `asimov_mu` and the others fitted
    to `data`; with those parameters if asked for.

    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> pyhf.infer.calculators.generate_asimov_data(
    ...     1.0, [51, 48] + model.config.auxdata, model, None, None, None
    ... ).round(4)
    array([ 60.6123,  56.5279, 270.0685,  48.3153])
    """
    params = fixed_poi_fit(asimov_mu, data, pdf, init_pars, par_bounds, fixed_params)
    asimov_data = pdf.expected_data(params)
    return (asimov_data, params) if return_fitted_pars else asimov_data


class AsymptoticTestStatDistribution:
    """The normal distribution of -μ̂/σ: mean `shift`, width 1, and no values below `cutoff`."""

    def __init__(self, shift, cutoff=float("-inf")) -> None:
        self.shift = shift
        self.cutoff = cutoff

    def cdf(self, value) -> Any:
        """Returns the probability of a value up to `value`."""
        return get_backend()[0].normal_cdf(value - self.shift)

    def _tail(self, value):
        """Returns `pvalue` of a number."""
        return 0.5 * math.erfc((value - float(self.shift)) / _ROOT_2) if value >= self.cutoff else math.nan

    def pvalue(self, value) -> Any:
        """Returns the probability of a value from `value` on; NaN below the cutoff.

        >>> import nextstat.pyhf as pyhf
        >>> pyhf.infer.calculators.AsymptoticTestStatDistribution(0.0).pvalue(0.0)
        array(0.5)
        """
        tensorlib, _ = get_backend()
        tail = tensorlib.normal_cdf(self.shift - value)
        return tensorlib.where(np.asarray(value) >= self.cutoff, tail, np.nan)

    def expected_value(self, nsigma) -> Any:
        """Returns the value `nsigma` standard deviations above the mean, or the cutoff.

        >>> import nextstat.pyhf as pyhf
        >>> distribution = pyhf.infer.calculators.AsymptoticTestStatDistribution(0.0)
        >>> distribution.expected_value(pyhf.tensorlib.astensor([-2, -1, 0, 1, 2]))
        array([-2., -1.,  0.,  1.,  2.])
        """
        return np.maximum(np.asarray(self.shift + nsigma, dtype=float), self.cutoff)


@dataclass(frozen=True)
class HypoTestFitResults:
    """Parameters (P each) of the fits of a hypothesis test."""

    asimov_pars: Tensor  # noqa: F821
    free_fit_to_data: Tensor  # noqa: F821
    free_fit_to_asimov: Tensor  # noqa: F821
    fixed_poi_fit_to_data: Tensor  # noqa: F821
    fixed_poi_fit_to_asimov: Tensor  # noqa: F821


class _Calculator:
    """What is tested, and p-values of a statistic."""

    def __init__(self, data, pdf, init_pars, par_bounds, fixed_params, test_stat) -> None:
        self.data = data
        self.pdf = pdf
        self.init_pars, self.par_bounds, self.fixed_params = _given(pdf, init_pars, par_bounds, fixed_params)
        self.test_stat = test_stat

    @property
    def _within(self):
        return self.pdf, self.init_pars, self.par_bounds, self.fixed_params

    @property
    def _asimov_mu(self):
        return 1.0 if self.test_stat == "q0" else 0.0

    def pvalues(self, teststat, sig_plus_bkg_distribution, bkg_only_distribution) -> Any:
        """Returns CLsb, CLb and CLs of the statistic `teststat`.

        Where the two distributions are the same, nothing is excluded and CLs is 1.
        """
        if _is_normal(sig_plus_bkg_distribution) and _is_normal(bkg_only_distribution) and np.ndim(teststat) == 0:
            return self._p_values(float(teststat), sig_plus_bkg_distribution, bkg_only_distribution)
        clsb = sig_plus_bkg_distribution.pvalue(teststat)
        clb = bkg_only_distribution.pvalue(teststat)
        with np.errstate(divide="ignore", invalid="ignore"):
            return clsb, clb, get_backend()[0].astensor(clsb / clb)

    def _p_values(self, value, tested, other):
        """Returns the same for one number, by asymptotic formulas."""
        clsb, clb = tested._tail(value), other._tail(value)
        if tested.shift == other.shift and clsb == clb:
            cls = 1.0
        else:
            cls = clsb / clb if clb else math.nan if clsb == 0.0 or clsb != clsb else math.inf
        astensor = get_backend()[0].astensor
        return np.asarray(clsb), np.asarray(clb), astensor(cls)


class AsymptoticCalculator(_Calculator):
    """Tests by asymptotic formulas.

    Parameters
    ----------
    test_stat : ``"qtilde"``, ``"q"`` or ``"q0"``
    calc_base_dist : ``"normal"`` or ``"clipped_normal"``
        Whether expected values stop where the statistic is zero.

    Attributes
    ----------
    fitted_pars : HypoTestFitResults
        Of the last `teststatistic`.
    """

    def __init__(self, data, pdf, init_pars=None, par_bounds=None, fixed_params=None, test_stat="qtilde", calc_base_dist="normal") -> None:
        super().__init__(data, pdf, init_pars, par_bounds, fixed_params, test_stat)
        self.calc_base_dist = calc_base_dist
        self.sqrtqmuA_v = None
        self.fitted_pars = None

    def teststatistic(self, poi_test) -> Any:
        """Returns the statistic in terms of -μ̂/σ: √q - √q_A, or the other branch of eq. 65 for
        q̃ > q̃_A.
        """
        tensorlib, _ = get_backend()
        pdf, *within = self._within
        found = _of_test(self.test_stat, poi_test, self._asimov_mu, self.data, pdf, within) or self._one_by_one(poi_test)
        (q, (conditional, best)), asimov_pars, (q_asimov, (conditional_asimov, best_asimov)) = found
        self.fitted_pars = HypoTestFitResults(asimov_pars, best, best_asimov, conditional, conditional_asimov)
        root, self.sqrtqmuA_v = tensorlib.sqrt(q), tensorlib.sqrt(q_asimov)
        # Where q_A is 0 the two hypotheses predict the same, and the branch that divides by it says
        # nothing.
        if self.test_stat in ("q", "q0") or root <= self.sqrtqmuA_v or self.sqrtqmuA_v == 0.0:
            return tensorlib.astensor(root - self.sqrtqmuA_v)
        return tensorlib.astensor((q - q_asimov) / (2 * self.sqrtqmuA_v))

    def _one_by_one(self, poi_test):
        """Returns the statistic of the data and of the Asimov data set, with the parameters of
        every fit.
        """
        statistic = _named(self.test_stat)
        observed = statistic(poi_test, self.data, *self._within, return_fitted_pars=True)
        asimov_data, asimov_pars = generate_asimov_data(self._asimov_mu, self.data, *self._within, return_fitted_pars=True)
        return observed, asimov_pars, statistic(poi_test, asimov_data, *self._within, return_fitted_pars=True)

    def distributions(self, poi_test) -> Any:
        """Returns the statistic's distributions for signal and background, and for background
        alone; after `teststatistic`.
        """
        if self.sqrtqmuA_v is None:
            raise RuntimeError("need to call .teststatistic(poi_test) first")
        if self.calc_base_dist not in ("normal", "clipped_normal"):
            raise ValueError(f"unknown base distribution for asymptotics {self.calc_base_dist}")
        cutoff = float("-inf") if self.calc_base_dist == "normal" else -self.sqrtqmuA_v
        return AsymptoticTestStatDistribution(-self.sqrtqmuA_v, cutoff), AsymptoticTestStatDistribution(0.0, cutoff)

    def expected_pvalues(self, sig_plus_bkg_distribution, bkg_only_distribution) -> Any:
        """Returns CLsb, CLb and CLs, each at -2 … +2 standard deviations of the background."""
        tested, other = sig_plus_bkg_distribution, bkg_only_distribution
        if _is_normal(tested) and _is_normal(other):
            shift, cutoff = float(other.shift), float(other.cutoff)
            rows = [self._p_values(max(shift + n_sigma, cutoff), tested, other) for n_sigma in _BAND]
        else:
            rows = [self.pvalues(other.expected_value(n_sigma), tested, other) for n_sigma in _BAND]
        return [list(column) for column in zip(*rows)]


def _is_normal(distribution):
    """Returns whether it is the normal distribution of one number."""
    return type(distribution) is AsymptoticTestStatDistribution and np.ndim(distribution.shift) == 0


class EmpiricalDistribution:
    """The distribution of `samples`."""

    def __init__(self, samples) -> None:
        self.samples = get_backend()[0].ravel(samples)

    def pvalue(self, value) -> Any:
        """Returns the fraction of samples from `value` on."""
        return get_backend()[0].astensor(np.count_nonzero(self.samples >= value) / len(self.samples))

    def expected_value(self, nsigma) -> Any:
        """Returns the quantile of `nsigma` standard deviations of a normal distribution."""
        tensorlib, _ = get_backend()
        return tensorlib.percentile(self.samples, tensorlib.normal_cdf(nsigma) * 100, interpolation="linear")


class ToyCalculator(_Calculator):
    """Tests by toys: `ntoys` of each hypothesis, auxiliary data included, thrown by NumPy's global
    generator and fitted by the engine.

    A toy whose fit fails is left out of its distribution, with a warning that says how many there
    were.
    """

    def __init__(self, data, pdf, init_pars=None, par_bounds=None, fixed_params=None, test_stat="qtilde", ntoys=2000, track_progress=True) -> None:
        super().__init__(data, pdf, init_pars, par_bounds, fixed_params, test_stat)
        self.ntoys = ntoys
        self.track_progress = track_progress

    def teststatistic(self, poi_test) -> Any:
        """Returns the statistic of the data."""
        return _named(self.test_stat)(poi_test, self.data, *self._within)

    def distributions(self, poi_test, track_progress=None) -> Any:
        """Returns the statistic's distributions for signal and background, and for background
        alone."""
        shows = self.track_progress if track_progress is None else track_progress
        thrown = []
        for mu in (poi_test, self._asimov_mu):
            params = fixed_poi_fit(mu, self.data, *self._within)
            thrown.append(self.pdf.make_pdf(params).sample((self.ntoys,)))
        return tuple(self._distribution(poi_test, toys, label, shows) for toys, label in zip(thrown, ("Signal-like", "Background-like")))

    def _distribution(self, poi_test, toys, label, shows):
        values = self._values(poi_test, toys, label, shows)
        n_failed = int(np.count_nonzero(np.isnan(values)))
        if n_failed:
            warnings.warn(f"{n_failed} of {len(toys)} toys could not be fitted and are not in the distribution", RuntimeWarning, stacklevel=4)
        return EmpiricalDistribution(get_backend()[0].astensor(values[~np.isnan(values)]))

    def _values(self, poi_test, toys, label, shows):
        """Returns the statistic of every toy, NaN where a fit failed."""
        statistic = _named(self.test_stat)
        if _fits_ensembles(self.pdf):
            with counted(2 * len(toys), label, "fit", shows) as progress:
                return _of_each(self.test_stat, poi_test, np.asarray(toys), self.pdf, self._within[1:], progress)
        values = []
        for toy in shown(toys, label, "toy", shows):
            try:
                values.append(float(statistic(poi_test, toy, *self._within)))
            except FailedMinimization:
                values.append(np.nan)
        return np.array(values)

    def expected_pvalues(self, sig_plus_bkg_distribution, bkg_only_distribution) -> Any:
        """Returns CLsb, CLb and CLs, each at -2 … +2 standard deviations: quantiles over the toys
        of the background.
        """
        samples = bkg_only_distribution.samples
        n_at_least = [len(d.samples) - np.searchsorted(np.sort(d.samples), samples, side="left") for d in (sig_plus_bkg_distribution, bkg_only_distribution)]
        clsb = n_at_least[0] / len(sig_plus_bkg_distribution.samples)
        clb = n_at_least[1] / len(samples)
        quantiles = [50.0 * math.erfc(n_sigma / math.sqrt(2.0)) for n_sigma in _BAND]
        return [[np.asarray(value) for value in np.percentile(values, quantiles)] for values in (clsb, clb, clsb / clb)]
