"""The models that this package gives to spey, and spey-pyhf's own on the shim."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

spey = pytest.importorskip("spey")

EXAMPLES = Path(__file__).parents[4] / "examples"


def full(entry="nextstat"):
    workspace, patch = (json.loads((EXAMPLES / name).read_text()) for name in ("background.json", "signal.json"))
    return plugin(entry)(signal_patch=patch, background_only_model=workspace)


def plugin(entry):
    """The class behind an entry point of this package, installed or not."""
    from nextstat import spey as ours

    return {"nextstat": ours.FullStatisticalModel, "nextstat.uncorrelated_background": ours.UncorrelatedBackground}[entry]


def simple():
    return plugin("nextstat.uncorrelated_background")([12.0, 11.0], [50.0, 52.0], [51.0, 48.0], [3.0, 7.0])


def differences(function, point, step=1e-5):
    shifts = step * np.eye(len(point))
    return np.array([(np.asarray(function(point + shift)) - function(point - shift)) / (2.0 * step) for shift in shifts])


@pytest.mark.parametrize("expected", [spey.ExpectationType.observed, spey.ExpectationType.apriori])
@pytest.mark.parametrize("backend", [full, simple])
def test_gradients_and_hessians_are_those_of_the_likelihood(backend, expected):
    model = backend()
    point = np.array(model.config().suggested_init) * 0.9 + 0.02
    objective = model.get_objective_function(expected)
    assert objective(point)[0] == pytest.approx(-2.0 * model.get_logpdf_func(expected)(point), rel=1e-12)
    assert model.get_objective_function(expected, do_grad=False)(point) == pytest.approx(objective(point)[0], rel=1e-12)
    np.testing.assert_allclose(objective(point)[1], differences(lambda pars: objective(pars)[0], point), rtol=1e-5, atol=1e-5)
    hessian = model.get_hessian_logpdf_func(expected)(point)
    np.testing.assert_allclose(hessian, differences(lambda pars: -0.5 * objective(pars)[1], point), rtol=1e-5, atol=1e-4)


def test_samples_have_auxiliary_data_if_wanted():
    model, point = simple(), [1.0, 1.0, 1.0]
    assert model.get_sampler(point)(3).shape == (3, len(model.expected_data(point)))
    assert model.get_sampler(point)(3, include_auxiliary=False).shape == (3, 2)


def test_signals_may_be_negative_as_far_as_yields_are_not():
    config = simple().config()
    assert config.minimum_poi == pytest.approx(-50.0 / 12.0) and config.suggested_bounds[config.poi_index] == (config.minimum_poi, 10.0)
    assert simple().config(allow_negative_signal=False, poi_upper_bound=3.0).suggested_bounds[0] == (0.0, 3.0)
    assert simple().is_alive


def test_limits_are_those_of_the_engine():
    import nextstat

    workspace = json.loads((EXAMPLES / "simple.json").read_text())
    patch = [{"op": "add", "path": "/channels/0/samples/-", "value": workspace["channels"][0]["samples"].pop(0)}]
    model = spey.StatisticalModel(plugin("nextstat")(patch, workspace), "example")
    wanted = nextstat.upper_limit(nextstat.load_workspace(EXAMPLES / "simple.json"))
    # spey stops within 1e-4 of the level.
    assert model.poi_upper_limit() == pytest.approx(wanted.observed, rel=2e-3)
    assert model.sigma_mu(1.0) > 0.0


def test_spey_pyhf_has_gradients_on_the_shim():
    missing = [name for name in ("spey_pyhf", "jax") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed; spey-pyhf asks for gradients where JAX is")
    code = (
        "import warnings; warnings.simplefilter('ignore'); from nextstat.pyhf import alias; alias.install(); import spey;"
        "m = spey.get_backend('pyhf.uncorrelated_background')(analysis='a', signal_yields=[12.0], background_yields=[50.0], data=[51], absolute_uncertainties=[3.0]);"
        "import pyhf; print(pyhf.__name__, m.backend.manager.grad_available, m.prepare_for_fit()['do_grad'], m.poi_upper_limit() > 0.0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0].split() == ["nextstat.pyhf", "True", "True", "True"]


def test_the_package_announces_its_models():
    entries = {entry.name: entry for entry in spey._get_entry_points("spey.backend.plugins")}
    if "nextstat" not in entries:
        pytest.skip("nextstat is not installed, only found by its path")
    for name in ("nextstat", "nextstat.uncorrelated_background"):
        assert entries[name].load() is plugin(name) and plugin(name).name == name
