"""Hypothesis tests, limits and toys."""

import numpy as np
import pyhf
import pytest
from both import box_of, FITTED, close, flat, models, names, same_shape
from specifications import data_of

import nextstat.pyhf as ours

STATISTICS = ["qtilde", "q", "q0"]
RETURNS = [
    {},
    {"return_tail_probs": True},
    {"return_expected": True},
    {"return_expected_set": True},
    {"return_tail_probs": True, "return_expected": True, "return_expected_set": True},
]


@names
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("returns", RETURNS, ids=lambda flags: "+".join(flags) or "plain")
def test_hypotest(name, statistic, returns):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        results.append(package.infer.hypotest(0.7, data_of(model, name), model, test_stat=statistic, **returns))
    same_shape(*results)
    close(flat(results[0]), flat(results[1]), **FITTED)


@names
@pytest.mark.parametrize("base", ["normal", "clipped_normal"])
def test_calculators(name, base):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        calculator = package.infer.calculators.AsymptoticCalculator(data_of(model, name), model, calc_base_dist=base)
        statistic = calculator.teststatistic(0.8)
        distributions = calculator.distributions(0.8)
        pvalues = calculator.pvalues(statistic, *distributions)
        expected = calculator.expected_pvalues(*distributions)
        results.append([statistic, *map(float, pvalues), *[float(value) for row in expected for value in row]])
        assert set(vars(calculator.fitted_pars)) == {"asimov_pars", "free_fit_to_data", "free_fit_to_asimov", "fixed_poi_fit_to_data", "fixed_poi_fit_to_asimov"}
    close(*results, rtol=5e-3, atol=2e-3)


@names
@pytest.mark.parametrize("statistic", ["qmu", "qmu_tilde", "tmu", "tmu_tilde", "q0"])
def test_statistics(name, statistic):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        function = getattr(package.infer.test_statistics, statistic)
        mu = 0.0 if statistic == "q0" else 0.9
        results.append(function(mu, data_of(model, name), model, *box_of(model)))
        value, (conditional, best) = function(mu, data_of(model, name), model, *box_of(model), return_fitted_pars=True)
        assert conditional.shape == best.shape == (model.config.npars,)
    close(*results, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["uncorrelated", "correlated", "staterror", "two_channels"])
def test_asimov_data(name):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        results.append(package.infer.calculators.generate_asimov_data(0.5, data_of(model, name), model, None, None, None, return_fitted_pars=True))
    same_shape(*results)
    close(results[0][0], results[1][0], rtol=1e-3, atol=5e-4)


@pytest.mark.parametrize("name", ["uncorrelated", "correlated", "staterror", "two_channels"])
@pytest.mark.parametrize("level", [0.05, 0.1])
def test_limits_on_a_grid(name, level):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        results.append(package.infer.intervals.upper_limits.upper_limit(data_of(model, name), model, np.linspace(0.05, 5, 12), level=level, return_results=True))
    assert len(results[0]) == len(results[1]) == 3
    for result in results:
        assert len(result[2][1]) == 12
    close(flat(list(results[0][:2])), flat(list(results[1][:2])), **FITTED)


@pytest.mark.parametrize("name", ["uncorrelated", "correlated", "staterror", "two_channels"])
def test_limits_by_search(name):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        results.append(package.infer.intervals.upper_limits.toms748_scan(data_of(model, name), model, 0.0, 5.0, level=0.1))
    close(flat(list(results[0])), flat(list(results[1])), **FITTED)


def test_old_name_of_limits():
    for package, model in zip((pyhf, ours), models("uncorrelated")):
        with pytest.warns(DeprecationWarning):
            package.infer.intervals.upperlimit(data_of(model, "uncorrelated"), model, np.linspace(0, 5, 5))


def test_toys_of_one_seed():
    # pyhf fails in `percentile` with NumPy 2.4, so what comes before is compared.
    results = []
    for package, model in zip((pyhf, ours), models("uncorrelated")):
        np.random.seed(0)
        calculator = package.infer.calculators.ToyCalculator(data_of(model, "uncorrelated"), model, ntoys=50, track_progress=False)
        results.append([distribution.samples for distribution in calculator.distributions(1.0)])
    for theirs, mine in zip(*results):
        # Where the fits that toys are thrown at differ in the sixth digit, a few of the same random
        # numbers round to other counts.
        assert np.mean(np.isclose(theirs, mine, rtol=1e-3, atol=1e-3)) > 0.9


def test_empirical_distribution():
    samples = np.random.default_rng(0).normal(size=50)
    a, b = (package.infer.calculators.EmpiricalDistribution(samples) for package in (pyhf, ours))
    for value in (-1.0, 0.0, 0.5):
        assert a.pvalue(value) == b.pvalue(value)
