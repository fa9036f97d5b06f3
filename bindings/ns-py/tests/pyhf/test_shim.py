"""`nextstat.pyhf` against stored numbers of pyhf, and what it does otherwise than pyhf on purpose.
"""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import nextstat.pyhf as pyhf
import numpy as np
import pytest
from nextstat.pyhf.infer import calculators

sys.path.insert(0, str(Path(__file__).parent))
from specifications import SPECS, data_of, workspace  # noqa: E402

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())["cases"]

names = pytest.mark.parametrize("name", REFERENCE)


@pytest.fixture(autouse=True)
def default_backend():
    yield
    pyhf.set_backend("numpy")


def plain(value):
    return json.loads(json.dumps(value))


@names
def test_the_configuration_is_pyhfs(name):
    config, wanted = pyhf.Model(SPECS[name]).config, REFERENCE[name]
    for attribute in ("par_names", "parameters", "modifiers", "auxdata_order"):
        assert plain(getattr(config, attribute)) == wanted[attribute]
    assert config.auxdata == pytest.approx(wanted["auxdata"], rel=1e-14)
    assert plain([config.suggested_init(), config.suggested_bounds(), config.suggested_fixed()]) == [wanted["init"], wanted["bounds"], wanted["fixed"]]


@names
def test_evaluations_are_pyhfs(name):
    model, wanted = pyhf.Model(SPECS[name]), REFERENCE[name]
    data = data_of(model, name)
    # Both are right to the last few bits.
    for point, expected, logpdf in zip(wanted["points"], wanted["expected_data"], wanted["logpdf"]):
        np.testing.assert_allclose(model.expected_data(point), expected, rtol=1e-13)
        np.testing.assert_allclose(model.logpdf(point, data), [logpdf], rtol=1e-12)
    np.testing.assert_allclose(model.main_model.expected_data(wanted["points"][0], return_by_sample=True), wanted["by_sample"], rtol=1e-13)


@names
def test_fits_are_not_above_pyhfs(name):
    model, wanted = pyhf.Model(SPECS[name]), REFERENCE[name]
    pars, twice_nll = pyhf.infer.mle.fit(data_of(model, name), model, return_fitted_val=True)
    assert twice_nll <= wanted["twice_nll"] + 1e-9
    assert twice_nll == pytest.approx(wanted["twice_nll"], abs=1e-3)
    assert pars.shape == (len(wanted["par_names"]),)


@names
def test_hypothesis_tests_are_pyhfs(name):
    model, wanted = pyhf.Model(SPECS[name]), REFERENCE[name]
    cls, tails, band = pyhf.infer.hypotest(0.7, data_of(model, name), model, return_tail_probs=True, return_expected_set=True)
    # SLSQP stops 1e-5 above the minimum.
    assert float(cls) == pytest.approx(wanted["cls"], rel=2e-3)
    assert [float(tail) for tail in tails] == pytest.approx(wanted["tails"], rel=2e-3)
    assert [float(value) for value in band] == pytest.approx(wanted["band"], rel=2e-3)
    assert float(pyhf.infer.hypotest(0.0, data_of(model, name), model, test_stat="q0")) == pytest.approx(wanted["p0"], rel=5e-3)


def test_parts_of_the_likelihood_add_up():
    model = pyhf.Model(SPECS["two_channels"])
    point, data, n = REFERENCE["two_channels"]["points"][0], data_of(model, "two_channels"), model.config.nmaindata
    parts = model.mainlogpdf(data[:n], point) + model.constraint_logpdf(data[n:], point)
    assert parts == pytest.approx(float(model.logpdf(point, data)[0]), rel=1e-13)
    assert parts == pytest.approx(float(model.make_pdf(point).log_prob(np.array(data))), rel=1e-12)


@pytest.mark.parametrize("returns", ["return_tail_probs", "return_expected", "return_expected_set", "return_calculator"])
def test_returns_come_in_pyhfs_order(returns):
    model = pyhf.Model(SPECS["uncorrelated"])
    data = data_of(model, "uncorrelated")
    assert pyhf.infer.hypotest(1.0, data, model).shape == ()
    observed, more = pyhf.infer.hypotest(1.0, data, model, **{returns: True})
    assert observed.shape == ()
    kinds = {"return_tail_probs": (list, 2), "return_expected": (np.ndarray, None), "return_expected_set": (list, 5)}
    kind, length = kinds.get(returns, (pyhf.infer.calculators.AsymptoticCalculator, None))
    assert isinstance(more, kind) and (length is None or len(more) == length)


def test_models_survive_copies_and_pickles():
    model = pyhf.Model(SPECS["two_channels"])
    point, data = model.config.suggested_init(), data_of(model, "two_channels")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.logpdf(point, data) == model.logpdf(point, data)
        assert other.config.poi_name == "mu"


# -- differences from pyhf --


def test_upper_limit_without_a_scan_heeds_the_level():
    model = pyhf.Model(SPECS["uncorrelated"])
    data = data_of(model, "uncorrelated")
    strict, loose = (pyhf.infer.intervals.upper_limits.upper_limit(data, model, level=level)[0] for level in (0.05, 0.3))
    assert loose < 0.8 * strict


def test_a_scan_that_misses_the_level_warns():
    model = pyhf.Model(SPECS["uncorrelated"])
    with pytest.warns(UserWarning, match="do not cross"):
        pyhf.infer.intervals.upper_limits.upper_limit(data_of(model, "uncorrelated"), model, np.linspace(0.0, 0.2, 3))


def test_toys_run_and_repeat_with_numpys_seed():
    model = pyhf.Model(SPECS["uncorrelated"])
    results = []
    for _ in range(2):
        np.random.seed(5)
        results.append(pyhf.infer.hypotest(1.0, data_of(model, "uncorrelated"), model, calctype="toybased", ntoys=200, track_progress=False, return_expected_set=True))
    assert results[0] == results[1]
    asymptotic = pyhf.infer.hypotest(1.0, data_of(model, "uncorrelated"), model)
    # Binomial error of 200 toys.
    assert float(results[0][0]) == pytest.approx(float(asymptotic), abs=0.06)


def test_samples_of_one_name_in_a_channel_are_refused():
    spec = copy.deepcopy(SPECS["uncorrelated"])
    spec["channels"][0]["samples"].append(spec["channels"][0]["samples"][0])
    with pytest.raises(pyhf.exceptions.InvalidModel):
        pyhf.Model(spec)


def test_a_negative_yield_is_minus_infinity():
    model = pyhf.Model(SPECS["correlated"])
    point = [{"mu": 0.0, "shape": 14.0}[name] for name in model.config.par_names]
    assert model.expected_data(point).min() < 0.0
    assert model.logpdf(point, data_of(model, "correlated")) == -np.inf


def test_code2_is_continuous():
    code2 = pyhf.interpolators.get(2)([[[[8.0], [10.0], [13.0]]]])
    inside, outside = code2([[1.0 - 1e-9, 1.0 + 1e-9]]).ravel()
    assert inside == pytest.approx(outside, abs=1e-6)


def test_other_backends_are_accepted_with_a_warning():
    with pytest.warns(UserWarning, match="jax"):
        pyhf.set_backend("jax")
    assert pyhf.tensorlib.name == "nextstat" and pyhf.tensorlib.default_do_grad
    assert isinstance(pyhf.tensorlib, pyhf.tensor.numpy_backend)


def test_a_fit_that_fails_says_why():
    # Nothing is expected in a bin with data.
    spec = {"channels": [{"name": "c", "samples": [{"name": "s", "data": [0.0, 1.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}]}]}
    model = pyhf.Model(spec)
    with pytest.raises(pyhf.exceptions.FailedMinimization) as caught:
        pyhf.infer.mle.fit([3.0, 1.0], model)
    assert len(str(caught.value)) > len("Optimization failed.")


def test_a_fit_of_counts_that_are_no_numbers_fails_by_name():
    model = pyhf.Model(SPECS["uncorrelated"])
    with pytest.raises(pyhf.exceptions.FailedMinimization, match="NaN is not a valid number of events"):
        pyhf.infer.mle.fit([np.nan, 48.0, *model.config.auxdata], model)


def test_the_alias_serves_programs_that_import_pyhf():
    code = (
        "import nextstat.pyhf.alias as alias; alias.install(); import pyhf, pyhf.infer.mle; from pyhf.contrib.viz import brazil; "
        "import nextstat.pyhf; print(pyhf is nextstat.pyhf, pyhf.infer.mle is nextstat.pyhf.infer.mle)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_importing_costs_little_and_needs_numpy_only():
    code = "import sys, nextstat.pyhf; print([m for m in ('scipy', 'jsonschema', 'matplotlib', 'iminuit', 'tqdm') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def by_ensemble(model, data, is_ensemble, monkeypatch, **settings):
    """Values of toys: of all in one call, or toy by toy."""
    monkeypatch.setattr(calculators, "_fits_ensembles", lambda pdf: is_ensemble)
    np.random.seed(3)
    return [found.samples for found in calculators.ToyCalculator(data, model, ntoys=60, track_progress=False, **settings).distributions(0.8)]


@pytest.mark.parametrize("test_stat", ["qtilde", "q", "q0"])
@names
def test_ensembles_of_toys_are_fitted_as_toy_by_toy(name, test_stat, monkeypatch):
    model = pyhf.Model(SPECS[name])
    data = data_of(model, name)
    each, together = (by_ensemble(model, data, is_ensemble, monkeypatch, test_stat=test_stat) for is_ensemble in (False, True))
    # The same minimiser from the same start.
    np.testing.assert_allclose(together, each, rtol=0, atol=1e-8)


def test_settings_of_a_calculator_hold_for_ensembles(monkeypatch):
    model = pyhf.Model(SPECS["two_channels"])
    data, config = data_of(model, "two_channels"), model.config
    jes = config.par_names.index("jes")
    settings = {"init_pars": config.suggested_init(), "par_bounds": config.suggested_bounds(), "fixed_params": config.suggested_fixed()}
    settings["init_pars"][jes], settings["fixed_params"][jes] = 0.4, True
    settings["par_bounds"][config.poi_index] = (0.0, 1.2)
    each, together = (by_ensemble(model, data, is_ensemble, monkeypatch, **settings) for is_ensemble in (False, True))
    np.testing.assert_allclose(together, each, rtol=0, atol=1e-8)
    assert np.abs(np.array(together) - by_ensemble(model, data, True, monkeypatch)).max() > 0.1


def test_toys_that_cannot_be_fitted_are_left_out_and_counted():
    # Where a toy has counts in the first bin, nothing is expected there.
    modifier = {"name": "mu", "type": "normfactor", "data": None}
    spec = {"channels": [{"name": "c", "samples": [{"name": "s", "data": [0.0, 5.0], "modifiers": [modifier]}]}]}
    model = pyhf.Model(spec)
    calculator = calculators.ToyCalculator([0.0, 5.0], model, ntoys=3, track_progress=False)
    with pytest.warns(RuntimeWarning, match="2 of 3 toys"):
        found = calculator._distribution(1.0, np.array([[0.0, 4.0], [1.0, 4.0], [2.0, 6.0]]), "toys", False)
    assert found.samples.shape == (1,)


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        ([{"op": "remove", "path": "/nowhere"}], "JsonPatchPathNotFound"),
        ([{"op": "add", "path": "/channels/7", "value": 1}], "JsonPatchConflict"),
        ([{"op": "add", "path": "/nowhere/else", "value": 1}], "JsonPointerException"),
        ([{"op": "test", "path": "/channels", "value": 1}], "JsonPatchTestFailed"),
        ([{"op": "turn", "path": "/channels"}], "InvalidJsonPatch"),
        ({"op": "remove"}, "InvalidJsonPatch"),
        ("[", "InvalidJsonPatch"),
    ],
)
def test_patches_fail_by_the_names_of_jsonpatch(patch, name):
    with pytest.raises(Exception) as caught:
        pyhf.Workspace(workspace("correlated")).model(patches=[patch])
    assert type(caught.value).__name__ == name


def test_workspaces_of_models_round_trip():
    model = pyhf.Model(SPECS["correlated"])
    data = data_of(model, "correlated")
    again = pyhf.Workspace.build(model, data)
    assert again.data(again.model()) == pytest.approx(data)
    assert pyhf.Workspace(workspace("correlated")).model().config.par_names == model.config.par_names
