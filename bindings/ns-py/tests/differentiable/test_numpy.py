"""`nextstat.differentiable`: gradients as NumPy arrays against differences, blocks, and misuse.

Needs neither PyTorch nor JAX.
"""

import copy
import pickle

import nextstat
import numpy as np
import pytest
from models import gentle_model, random_model
from nextstat import _quantities
from nextstat.differentiable import DifferentiableSession

METHODS = {
    "profiled_nll": lambda s, x: s.profiled_nll(x),
    "q0": lambda s, x: s.q0(x),
    "q_mu": lambda s, x: s.q_mu(x, 2.0),
    "q_mu_tilde": lambda s, x: s.q_mu_tilde(x, 2.0, asimov=True),
    "cls": lambda s, x: s.cls(x, 2.0),
    "p_value": lambda s, x: s.p_value(x),
    "significance": lambda s, x: s.significance(x, asimov=True),
    "upper_limit": lambda s, x: s.upper_limit(x, which=["observed", 0]),
    "sigma_mu": lambda s, x: s.sigma_mu(x),
}


@pytest.mark.parametrize("name", METHODS)
def test_gradients_match_differences(name):
    session = DifferentiableSession(random_model(3), ["signal", "large"], variations=["jes", "xs"])
    found = METHODS[name](session, session.values)
    assert found.by_inputs.shape == (*found.value.shape, session.n_inputs)
    for i in range(0, session.n_inputs, 3):
        step = np.zeros(session.n_inputs)
        step[i] = 1e-3 * max(1, abs(session.values[i]))
        at = [METHODS[name](session, session.values + k * step).value for k in (-2, -1, 1, 2)]
        difference = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step[i])
        assert np.allclose(found.by_inputs[..., i], difference, rtol=1e-5, atol=1e-6), (name, i)


def test_rows_are_evaluated_one_by_one():
    session = DifferentiableSession(random_model(3), "signal")
    rows = np.stack([session.values, 1.1 * session.values])
    found = session.q_mu(rows, [1.5, 2.0])
    assert found.value.shape == (2,) and found.by_inputs.shape == (2, session.n_inputs)
    assert found.value[1] == pytest.approx(float(session.q_mu(rows[1], 2.0).value), rel=1e-12)
    with pytest.raises(nextstat.ParameterError, match="3 values of `mu` for 2 input vectors"):
        session.q_mu(rows, [1.0, 2.0, 3.0])


def test_q0_tests_the_background_whatever_the_tested_value():
    session = DifferentiableSession(random_model(3), "signal")
    test = nextstat.hypotest(session.model, test_stat="q0")
    found = session.cls(session.values, test_stat="q0")
    assert np.allclose(found.value, [test.CLs_obs, *test.CLs_exp], rtol=1e-7)
    assert (found.by_mu == 0).all()


def test_outside_the_domain_nll_has_no_gradient():
    session = DifferentiableSession(random_model(3), "signal")
    params = session.model.init.copy()
    params[session.model.poi_index] = -1e4
    value, by_params, by_inputs = session.nll(params, session.values)
    assert value == np.inf and np.isnan(by_params).all() and np.isnan(by_inputs).all()


def test_a_row_that_fails_is_named():
    session = DifferentiableSession(random_model(3), "signal")
    with pytest.raises(nextstat.GradientError, match=r"^batch element 1 of 2: .*uncertainty"):
        session.sigma_mu(np.stack([session.values, -session.values]))
    with pytest.raises(nextstat.GradientError, match=r"^`mu` has no uncertainty"):
        session.sigma_mu(-session.values)


def test_blocks_say_where_inputs_are():
    model = random_model(3)
    session = DifferentiableSession(model, [("signal", "first")], variations=True)
    assert [block.name for block in session.blocks] == [
        "first/signal",
        "first/signal/jes/hi",
        "first/signal/jes/lo",
        "first/signal/xs/hi",
        "first/signal/xs/lo",
    ]
    assert [(block.start, block.stop) for block in session.blocks] == [(0, 3), (3, 6), (6, 9), (9, 10), (10, 11)]
    assert session.block("first/signal/xs/lo").kind == "normsys_lo"
    assert session.values[9:].tolist() == [1.1, 0.92]


def test_misuse_is_explained():
    model = random_model(3)
    with pytest.raises(nextstat.ParameterError, match="`which` is `observed`"):
        DifferentiableSession(model, "signal").upper_limit(np.ones(5), which="median")
    with pytest.raises(nextstat.ParameterError, match="`level` is 2, which is not between 0 and 1"):
        DifferentiableSession(model, "signal").upper_limit(np.ones(5), level=2)
    with pytest.raises(nextstat.ParameterError, match="is chosen twice"):
        DifferentiableSession(model, ["signal", ("signal", "first")])
    with pytest.raises(TypeError, match="expected a Model"):
        DifferentiableSession(None, "signal")


# Fits stop at an estimated distance of 1e-15 in -ln L, which is 4e-8 standard deviations: σ and
# limits of fitted Asimov data depend on the position.
SAME = {"rtol": 1e-7, "atol": 1e-9}


@pytest.mark.parametrize("make", [random_model, gentle_model])
def test_warm_starts_change_nothing_but_time(make):
    model = make(3)
    warm, cold = (DifferentiableSession(model, ["signal", "large"], warm_start=warm_start) for warm_start in (True, False))
    random = np.random.default_rng(5)
    inputs = warm.values.copy()
    for _ in range(20):
        inputs = inputs * random.uniform(0.98, 1.02, len(inputs))
        for name, method in METHODS.items():
            warm_started, initial = method(warm, inputs), method(cold, inputs)
            assert np.allclose(warm_started.value, initial.value, **SAME), name
            assert np.allclose(warm_started.by_inputs, initial.by_inputs, rtol=1e-6, atol=1e-7), name


@pytest.mark.skipif("emulated" not in nextstat.devices(), reason="this build has no emulated device")
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_fits_of_a_device_give_what_those_of_the_host_do(signal_seen):
    assert require_same_on_a_device(gentle_model(3, signal_seen), signal_seen) >= 20


@pytest.mark.skipif("emulated" not in nextstat.devices(), reason="this build has no emulated device")
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_fits_of_a_model_that_may_hide_minima_are_the_hosts(signal_seen):
    assert require_same_on_a_device(random_model(3, signal_seen), signal_seen) == 0


def require_same_on_a_device(model, signal_seen):
    """The number of fits that a device did, where its values and gradients are the host's."""
    host, device = (DifferentiableSession(model, ["signal", "large"], variations=["jes"], device=name) for name in ("cpu", "emulated"))
    for scale in (1.0, 1.05):
        for name, method in METHODS.items():
            if name == "sigma_mu" and signal_seen < 0:
                continue
            ours, theirs = method(host, scale * host.values), method(device, scale * host.values)
            # The host polishes and has the gradients, so this is far inside the parity contract.
            assert np.allclose(theirs.value, ours.value, **SAME), name
            assert np.allclose(theirs.by_inputs, ours.by_inputs, rtol=1e-6, atol=1e-7), name
    assert host.n_device_fits == 0
    # The templates of the model itself are where they were.
    assert nextstat.fit(model, device="emulated").nll == pytest.approx(nextstat.fit(model).nll, rel=1e-12)
    return device.n_device_fits


def test_a_device_that_is_not_there_is_an_error():
    model = random_model(3)
    with pytest.raises(nextstat.DeviceError, match="unknown device"):
        DifferentiableSession(model, "signal", device="abacus")
    with pytest.raises(nextstat.DeviceError, match="`multi_start` is for sessions on the CPU"):
        DifferentiableSession(model, "signal", device="cuda", multi_start=3)
    for name in {"cuda", "metal"} - set(nextstat.devices()):
        with pytest.raises(nextstat.DeviceError):
            DifferentiableSession(model, "signal", device=name)


def test_roots_of_a_vanishing_q0_have_no_second_derivative(root):
    model = nextstat.load_workspace(root / "examples/simple.json")
    params = model.init.copy()
    params[model.poi_index] = 0.0
    data = np.array(model.expected_data(params))
    for excess, is_refused in [(1e-3, True), (0.5, False)]:
        seen = data.copy()
        seen[0] += excess
        session = DifferentiableSession(model, "signal", data=seen)
        assert session.q0(session.values).value > 0
        along = np.ones(session.n_inputs)
        significance = _quantities.significance.request()
        if is_refused:
            with pytest.raises(nextstat.GradientError, match="too close to 0 for second derivatives"):
                session._product(significance, session.values, along, 0.0)
        else:
            assert np.isfinite(session._product(significance, session.values, along, 0.0).by_inputs).all()


@pytest.mark.parametrize(("along", "message"), [([1.0], r"shape \(1,\)"), (1.0, r"shape \(\)"), ([np.nan, 0.0], "finite")])
def test_directions_are_checked(root, along, message):
    session = DifferentiableSession(nextstat.load_workspace(root / "examples/simple.json"), "signal")
    with pytest.raises(nextstat.ParameterError, match=message):
        session.q0_product(session.values, along)


def test_sessions_are_copied_and_pickled():
    session = DifferentiableSession(random_model(3), ["signal"], variations=["jes"], fixed={"xs": 0.1}, asimov="nominal")
    for copied in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert copied.blocks == session.blocks
        assert copied.q0(session.values, asimov=True).value == session.q0(session.values, asimov=True).value
    with pytest.raises(nextstat.ParameterError, match="`warm_start` and `multi_start` exclude each other"):
        DifferentiableSession(random_model(3), "signal", warm_start=True, multi_start=3)


def reflected(channels, observations):
    mu = {"name": "mu", "type": "normfactor", "data": None}

    def jes(hi, lo):
        return {"name": "jes", "type": "histosys", "data": {"hi_data": hi, "lo_data": lo}}

    def modifiers(is_signal, moved):
        return [mu] * is_signal + ([] if moved is None else [jes(*moved)])

    samples = [
        [{"name": name, "data": data, "modifiers": modifiers(is_signal, moved)} for name, data, is_signal, moved in channel]
        for channel in channels
    ]
    return nextstat.model_of(
        {
            "channels": [{"name": f"c{i}", "samples": channel} for i, channel in enumerate(samples)],
            "observations": [{"name": f"c{i}", "data": data} for i, data in enumerate(observations)],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0",
        }
    )


def test_reflected_conditional_minima_are_found_as_in_a_hypothesis_test():
    # The signal lies above both its templates at one standard deviation.
    model = reflected(
        [[("sig", [5.985], True, None), ("b", [52.0], False, ([58.0], [45.0]))], [("sig", [9.135], True, ([8.9], [7.9])), ("b2", [1.0], False, None)]],
        [[73.0], [19.0]],
    )
    for warm_start in (False, True):
        session = DifferentiableSession(model, "sig", warm_start=warm_start)
        x = session.values
        for _ in range(2):
            q = session.q_mu(x, 3.0).value
            assert q == pytest.approx(2 * float(session.profiled_nll(x, 3.0).value - session.profiled_nll(x).value), abs=1e-8)
            test = nextstat.hypotest(model, 3.0)
            assert q == pytest.approx(test.q, abs=1e-7)
            assert session.cls(x, 3.0).value[0] == pytest.approx(test.CLs_obs, rel=1e-7)


def test_limits_are_where_the_statistic_passes_the_level_and_nowhere_else(root):
    two_ways = reflected(
        [
            [
                ("sig0", [8.1, 4.9, 7.0], True, None),
                ("sig1", [2.3, 4.9, 4.9], True, ([2.4, 5.0, 5.2], [2.1, 4.7, 4.9])),
                ("b0", [61.0, 68.0, 43.0], False, ([67.0, 73.0, 48.0], [60.0, 66.0, 38.0])),
            ]
        ],
        [[75.0, 82.0, 59.0]],
    )
    # Far out the signal's own systematic has the data fitted in two ways, and the limit is on the
    # curve of the better one.
    session = DifferentiableSession(two_ways, ["sig0", "sig1"])
    for factor in np.linspace(0.01, 0.06, 26):
        limit = session.upper_limit(factor * session.values)
        assert session.q_mu(factor * session.values, float(limit.value), asimov=True).value == pytest.approx(3.8414588, rel=1e-4)
    session = DifferentiableSession(nextstat.load_workspace(root / "examples/shapes.json"), "signal")
    with pytest.raises(nextstat.GradientError, match="no value tested is excluded"):
        session.upper_limit(0.0 * session.values)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_nll_of_rows_is_that_of_each(device):
    if device == "emulated" and device not in nextstat.devices():
        pytest.skip("this build has no emulated device")
    model = random_model(4)
    session = DifferentiableSession(model, ["signal", "large"], variations=True, device=device)
    random = np.random.default_rng(3)
    # As many as several threads are worth.
    params = model.init + random.uniform(-0.1, 0.1, (700, len(model.init)))
    inputs = session.values * random.uniform(0.95, 1.05, (700, session.n_inputs))
    params[3, model.poi_index] = -1e6
    for at in [(params, inputs), (params[0], inputs), (params, inputs[0])]:
        found = session.nll(*at)
        for row in [0, 1, 2, 350, 699]:
            one = session.nll(*(part[row] if part.ndim == 2 else part for part in at))
            for all_rows, expected in zip(found, one):
                np.testing.assert_allclose(all_rows[row], expected, rtol=1e-12, atol=1e-11)
    assert np.isposinf(session.nll(params, inputs)[0][3]) and np.isnan(session.nll(params, inputs)[2][3]).all()
    assert (session.n_device_points > 0) == (device == "emulated")
    inputs[5, 1] = np.nan
    with pytest.raises(nextstat.ParameterError, match=r"batch element 5 of 700: NaN is not a valid value for"):
        session.nll(params, inputs)
    with pytest.raises(nextstat.ParameterError, match="699 parameter vectors and 700 of inputs"):
        session.nll(params[1:], inputs)
