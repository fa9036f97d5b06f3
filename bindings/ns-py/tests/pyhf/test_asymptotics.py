"""Asymptotic tests of the shim: where the two hypotheses predict the same, limits that depend on
it, and one call of the engine against fits one by one.
"""

import logging
import math
import subprocess
import sys
import warnings

import nextstat
import numpy as np
import pytest
from nextstat import pyhf
from nextstat.pyhf.infer import calculators, test_statistics
from nextstat.pyhf.infer.intervals.upper_limits import upper_limit

MODEL = pyhf.simplemodels.uncorrelated_background([10.0], [50.0], [7.0])


def workspace(counts):
    return {
        "channels": MODEL.spec["channels"],
        "observations": [{"name": "singlechannel", "data": counts}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }


@pytest.mark.parametrize("count", range(20, 50))
def test_no_signal_is_never_excluded(count):
    cls, (clsb, clb), band = pyhf.infer.hypotest(
        0.0, [float(count), *MODEL.config.auxdata], MODEL, return_tail_probs=True, return_expected_set=True
    )
    assert (float(cls), float(clsb), float(clb)) == (1.0, 0.5, 0.5)
    assert [float(value) for value in band] == [1.0] * 5


@pytest.mark.parametrize("count", range(20, 50))
def test_limits_without_a_scan_are_those_of_the_engine(count):
    observed, expected = upper_limit([float(count), *MODEL.config.auxdata], MODEL)
    limits = nextstat.upper_limit(nextstat.model_of(workspace([float(count)])))
    # The search ends within a relative 1e-4.
    assert float(observed) == pytest.approx(limits.observed, rel=3e-4)
    assert [float(limit) for limit in expected] == pytest.approx(list(limits.expected), rel=3e-4)


@pytest.mark.parametrize("test_stat", ["qtilde", "q"])
def test_rounding_is_no_statistic(test_stat):
    calculator = calculators.AsymptoticCalculator([45.0, *MODEL.config.auxdata], MODEL, test_stat=test_stat)
    assert float(calculator.teststatistic(0.0)) == 0.0
    tested, background = calculator.distributions(0.0)
    assert [float(value) for value in calculator.pvalues(0.0, tested, background)] == [0.5, 0.5, 1.0]


def test_toys_forget_rounding_too():
    toys = np.array([[float(count), *MODEL.config.auxdata] for count in range(20, 50)])
    within = (MODEL.config.suggested_init(), MODEL.config.suggested_bounds(), MODEL.config.suggested_fixed())
    values = test_statistics._of_each("qtilde", 0.0, toys, MODEL, within)
    assert (values == 0.0).all()


@pytest.mark.parametrize("order", [slice(None, None, -1), np.random.default_rng(1).permutation(21)])
def test_the_order_of_a_scan_does_not_matter(order):
    data, scan = [45.0, *MODEL.config.auxdata], np.linspace(0.0, 5.0, 21)
    assert upper_limit(data, MODEL, scan) == upper_limit(data, MODEL, scan[order])
    _, _, (tested, results) = upper_limit(data, MODEL, scan[order], return_results=True)
    assert (tested == scan).all() and float(results[0][0]) == 1.0


def test_a_best_fit_at_the_end_of_its_range_is_warned_of():
    with pytest.warns(UserWarning, match="best fit of `mu` is at the end of its range, 10;"):
        upper_limit([250.0, *MODEL.config.auxdata], MODEL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        upper_limit([60.0, *MODEL.config.auxdata], MODEL)


def two_bins():
    model = pyhf.simplemodels.uncorrelated_background([12.0, 11.0], [50.0, 52.0], [3.0, 7.0])
    return model, [51.0, 48.0, *model.config.auxdata]


def correlated():
    model = pyhf.simplemodels.correlated_background([5.0, 6.0], [50.0, 60.0], [55.0, 66.0], [47.0, 52.0])
    return model, [63.0, 71.0, *model.config.auxdata]


def negative():
    model, data = two_bins()
    bounds = model.config.suggested_bounds()
    bounds[0] = (-5.0, 10.0)
    return model, data, {"par_bounds": bounds}


def fixed_modifier():
    model, data = two_bins()
    return model, data, {"fixed_params": [False, True, False], "init_pars": [0.5, 1.1, 1.0]}


@pytest.mark.parametrize("case", [two_bins, correlated, negative, fixed_modifier])
@pytest.mark.parametrize("test_stat", ["qtilde", "q", "q0"])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 4.5])
def test_one_call_is_what_fits_one_by_one_are(case, test_stat, mu, monkeypatch, caplog):
    model, data, *options = case()
    found = []
    for is_alone in (True, False):
        caplog.clear()
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            if is_alone:
                patched.setattr(calculators, "_of_test", lambda *_: None)
            calculator = calculators.AsymptoticCalculator(data, model, test_stat=test_stat, **(options[0] if options else {}))
            statistic = calculator.teststatistic(mu)
            distributions = calculator.distributions(mu)
            values = [statistic, *calculator.pvalues(statistic, *distributions), *np.ravel(calculator.expected_pvalues(*distributions))]
            pars = vars(calculator.fitted_pars)
        found.append((np.array(values, dtype=float), pars, [record.getMessage() for record in caplog.records]))
    (one, pars, said), (other, other_pars, other_said) = found
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert said == other_said
    for name in pars:
        np.testing.assert_allclose(pars[name], other_pars[name], rtol=1e-10, atol=1e-10)


def test_what_cannot_be_fitted_is_said_as_before():
    model, data = two_bins()
    with pytest.raises(ValueError, match=r"index: 0, value: 20.0\) lies outside of its bounds"):
        pyhf.infer.hypotest(20.0, data, model)
    with pytest.raises(pyhf.exceptions.InvalidPdfData):
        pyhf.infer.hypotest(1.0, data[:2], model)
    with pytest.raises(pyhf.exceptions.FailedMinimization):
        pyhf.infer.hypotest(1.0, [math.nan, *data[1:]], model)
    with pytest.raises(pyhf.exceptions.InvalidTestStatistic):
        pyhf.infer.hypotest(1.0, data, model, test_stat="qhat")
    pyhf.set_backend("numpy", pyhf.optimize.scipy_optimizer(maxiter=1))
    try:
        with pytest.raises(pyhf.exceptions.FailedMinimization, match="Call limit"):
            pyhf.infer.hypotest(1.0, data, model)
    finally:
        pyhf.set_backend("numpy")


def test_the_main_entry_points_are_typed_for_checkers_of_users():
    """A call of a function without any annotation is an error of `mypy --strict` in the user's
    code.
    """
    functions = [pyhf.Workspace.__init__, pyhf.Workspace.model, pyhf.Workspace.data, pyhf.Model.__init__, pyhf.Model.logpdf, pyhf.Model.expected_data]
    functions += [pyhf.infer.hypotest, pyhf.infer.mle.fit, pyhf.infer.mle.fixed_poi_fit, upper_limit, pyhf.simplemodels.uncorrelated_background]
    functions += [pyhf.set_backend, pyhf.get_backend, type(MODEL.config).suggested_init]
    assert all("return" in function.__annotations__ for function in functions)


def test_the_shim_needs_few_modules():
    """What takes long to import and is seldom needed is imported when it is."""
    code = "import numpy, sys; before = set(sys.modules); import nextstat.pyhf; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"hashlib", "pathlib", "statistics", "subprocess", "scipy", "jsonschema", "tqdm", "matplotlib", "uproot"} & set(loaded)
