"""`device=`: what is not there is an error and never a silent fallback to the CPU; what is there
finds the CPU's minima.

The device of these tests is the emulation of a GPU on the host, which a wheel has that is built for
tests.
"""

import json
import pickle

import nextstat
import numpy as np
import pytest

emulated = pytest.mark.skipif("emulated" not in nextstat.devices(), reason="this build has no emulated device")

CALLS = [
    lambda m, device: nextstat.fit(m, device=device),
    lambda m, device: nextstat.profile_scan(m, [0.0, 1.0], device=device),
    lambda m, device: nextstat.ranking(m, device=device),
    lambda m, device: nextstat.fit_toys(m, n_toys=10, device=device),
    lambda m, device: nextstat.hypotest_toys(m, n_toys=10, device=device),
    lambda m, device: nextstat.fit_toys_batch_gpu(m, m.init, n_toys=10, device=device),
    lambda m, device: nextstat.fit_toys_from_data_gpu(m, n_toys=10, device=device),
    lambda m, device: nextstat.hypotest_qtilde_toys_gpu(m, n_toys=10, device=device),
]


@pytest.fixture
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.fixture(scope="session")
def contract(root):
    """The tolerances that Rust's tests have too."""
    return json.loads((root / "testdata/parity.json").read_text())


@pytest.mark.parametrize("device", ["cuda", "metal"])
@pytest.mark.parametrize("call", CALLS)
def test_a_device_that_is_not_there_is_an_error(model, call, device):
    if device in nextstat.devices():
        pytest.skip(f"there is a {device} device")
    with pytest.raises(nextstat.DeviceError, match=r"driver|macOS|built|device"):
        call(model, device)


def test_devices_are_those_of_the_command():
    listed = nextstat.command(["devices"]).json()["devices"]
    available = {device["backend"] for device in listed if device["state"] == "available"}
    assert {"cpu", *available} == set(nextstat.devices())


@emulated
@pytest.mark.parametrize("call", CALLS)
def test_what_a_device_did_is_in_the_result(model, call):
    result = call(model, "emulated")
    assert result.device["backend"] == "emulated"
    assert result.device["n_fits"] > 0 and result.device["n_launches"] > 0
    assert pickle.loads(pickle.dumps(result)) == result


@emulated
def test_fits_of_toys_are_the_cpus(model, contract):
    cpu, device = (nextstat.fit_toys(model, n_toys=50, seed=3, poi_uncertainty=True, device=name) for name in ("cpu", "emulated"))
    within = contract["double"]["twice_nll_of_fit"]["tolerance"]
    assert np.all(2 * np.abs(device.nll - cpu.nll) <= within)
    assert device.converged.all() and device.outcomes == cpu.outcomes
    np.testing.assert_allclose(device.poi_uncertainty, cpu.poi_uncertainty, rtol=1e-4)


@emulated
def test_tests_by_toys_are_the_cpus(model):
    cpu, device = (nextstat.hypotest_toys(model, 1.2, n_toys=50, seed=3, device=name) for name in ("cpu", "emulated"))
    np.testing.assert_allclose(device.toys_tested, cpu.toys_tested, atol=1e-6)
    np.testing.assert_allclose(device.toys_alternative, cpu.toys_alternative, atol=1e-6)
    assert device.CLs_obs == cpu.CLs_obs


@emulated
def test_a_model_is_uploaded_once(model):
    first, second = (nextstat.fit(model, device="emulated").device["upload_bytes"] for _ in range(2))
    # Data, start and box only; the tables are there.
    assert first == second < 10_000


@emulated
def test_scans_and_fits_are_the_cpus(model):
    fits = [nextstat.fit(model, device=name) for name in ("cpu", "emulated")]
    np.testing.assert_allclose(fits[1].bestfit, fits[0].bestfit, atol=1e-6)
    scans = [nextstat.profile_scan(model, [0.0, 0.5, 2.0], device=name) for name in ("cpu", "emulated")]
    np.testing.assert_allclose(scans[1].twice_delta_nll, scans[0].twice_delta_nll, atol=1e-7)
    assert scans[1].device["n_fits"] == 3
