"""Tensors in the memory of a session's device: read and written where they are, with the host's
values and gradients.

The device of these tests is the emulation of a GPU on the host, whose memory is the host's: tensors
on the CPU stand for a GPU's. With NEXTSTAT_TEST_DEVICE=cuda it is a real one.
"""

import os

import nextstat
import numpy as np
import pytest
from models import gentle_model, published_models, random_model, random_workspace

torch = pytest.importorskip("torch")
nt = pytest.importorskip("nextstat.torch")

DEVICE = os.environ.get("NEXTSTAT_TEST_DEVICE", "emulated")
pytestmark = pytest.mark.skipif(DEVICE not in nextstat.devices(), reason=f"this build or this machine has no {DEVICE} device")

# Both fits end where an estimate of what is left is below their tolerance: gradients are as exact
# as where they end.
CLOSE = {"rtol": 1e-6, "atol": 1e-7}

FUNCTIONS = {
    "profiled_nll": lambda s, x: nt.profiled_nll(s, x),
    "profiled_nll at 0.5": lambda s, x: nt.profiled_nll(s, x, 0.5),
    "q0": lambda s, x: nt.q0(s, x),
    "q_mu": lambda s, x: nt.q_mu(s, x, 2.0),
    "q_mu_tilde": lambda s, x: nt.q_mu_tilde(s, x, 2.0),
    "p_value": lambda s, x: nt.p_value(s, x),
    "significance": lambda s, x: nt.significance(s, x),
}


def sessions(model, *arguments, **settings):
    return [nt.DifferentiableSession(model, *arguments, device=device, **settings) for device in ("cpu", DEVICE)]


def leaf(values, session):
    """Where the session reads tensors without a copy."""
    return torch.tensor(np.asarray(values), dtype=torch.float64, device=session._raw.resident_on or "cpu", requires_grad=True)


def rows_of(session, n, seed=0):
    return session.values * np.random.default_rng(seed).uniform(0.95, 1.05, (n, session.n_inputs))


def value_and_gradients(function, session, *values):
    leaves = [leaf(part, session) for part in values]
    found = function(session, *leaves)
    weights = torch.arange(1.0, found.numel() + 1, dtype=torch.float64, device=found.device).reshape(found.shape)
    return [part.detach().cpu() for part in (found, *torch.autograd.grad((found * weights).sum(), leaves))]


def require_same(name, host, device, x):
    """Value and gradient at `x` of both sessions."""
    theirs, ours = (value_and_gradients(FUNCTIONS[name], session, x) for session in (host, device))
    for mine, yours in zip(ours, theirs):
        torch.testing.assert_close(mine, yours, **CLOSE)


@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_statistics_and_gradients_are_the_hosts(name, signal_seen):
    host, device = sessions(gentle_model(3, signal_seen), ["signal", "large", "small"], variations=True)
    require_same(name, host, device, rows_of(host, 4))
    # Free and conditional fits of four rows there; a row where a lower minimum may be hidden is the
    # host's.
    assert device.n_device_fits >= 4 and device.n_device_points >= 4
    assert host.n_device_fits == host.n_device_points == 0


@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_of_a_model_that_may_hide_minima_are_the_hosts(name, signal_seen):
    host, device = sessions(random_model(3, signal_seen), ["signal", "large", "small"], variations=True)
    rows = rows_of(host, 4)
    theirs, ours = (value_and_gradients(FUNCTIONS[name], session, rows) for session in (host, device))
    for mine, yours in zip(ours, theirs):
        torch.testing.assert_close(mine, yours, rtol=1e-12, atol=1e-14)
    assert device.n_device_fits == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck_of_statistics(name):
    session = sessions(gentle_model(5, 1.2), ["signal", "small"], variations=True)[1]
    # The differences are off by third derivatives times eps²/6, which are 4e-7 at most.
    assert torch.autograd.gradcheck(lambda x: FUNCTIONS[name](session, x), leaf(session.values, session), eps=1e-4, atol=1e-6, rtol=1e-6)
    assert session.n_device_fits > 0


def test_a_tested_value_of_each_row_has_a_gradient():
    host, device = sessions(gentle_model(4, 1.0), "signal")
    x, mu = rows_of(host, 3), [1.5, 2.0, 2.5]
    theirs, ours = (value_and_gradients(nt.q_mu, session, x, mu) for session in (host, device))
    for mine, yours in zip(ours, theirs):
        torch.testing.assert_close(mine, yours, **CLOSE)
    assert device.n_device_fits >= 6


def test_nll_is_the_hosts_for_vectors_and_rows():
    host, device = sessions(gentle_model(6), ["signal", "large", "small"], variations=True)
    params, x = host.model.init + np.random.default_rng(1).uniform(-0.1, 0.1, (5, len(host.model.init))), rows_of(host, 5)
    for at in [(params, x), (params[0], x), (params, x[0]), (params[0], x[0])]:
        theirs, ours = (value_and_gradients(nt.nll, session, *at) for session in (host, device))
        for mine, yours in zip(ours, theirs):
            assert mine.shape == yours.shape
            torch.testing.assert_close(mine, yours, rtol=1e-12, atol=1e-11)
    assert device.n_device_points == 16
    assert torch.autograd.gradcheck(lambda p, x: nt.nll(device, p, x), (leaf(params, device), leaf(x, device)), eps=1e-5, atol=1e-5)


def test_nll_is_infinite_outside_the_domain_with_gradients_that_are_nan():
    session = sessions(gentle_model(6), ["signal", "large"])[1]
    x = leaf(-session.values, session)
    found = nt.nll(session, leaf(session.model.init, session), x)
    (gradient,) = torch.autograd.grad(found, x)
    assert torch.isinf(found) and torch.isnan(gradient).all()


def test_nothing_is_copied_that_need_not_be(monkeypatch):
    session = sessions(gentle_model(6), "signal")[1]
    functions = nt._functions
    monkeypatch.setattr(functions, "_on_host", lambda *_: pytest.fail("a tensor is read on the host"))
    x, params = leaf(session.values, session), leaf(session.model.init, session)
    (nt.nll(session, params, x) + nt.q_mu(session, x, 2.0) + nt.profiled_nll(session, x)).backward()
    assert torch.isfinite(x.grad).all() and torch.isfinite(params.grad).all()
    assert session.n_device_fits == 3


def test_other_precisions_and_tensors_with_gaps_are_converted_there():
    host, device = sessions(gentle_model(6), "signal")
    rows = rows_of(host, 3)
    apart = leaf(np.repeat(rows, 2, axis=1), device).detach()[:, ::2]
    assert not apart.is_contiguous()
    torch.testing.assert_close(nt.q_mu(device, apart, 2.0).cpu(), nt.q_mu(host, torch.tensor(rows), 2.0), **CLOSE)
    single = apart.float().requires_grad_()
    found = nt.q_mu(device, single, 2.0)
    found.sum().backward()
    assert found.dtype == single.grad.dtype == torch.float32
    assert device.n_device_fits >= 12


def test_inputs_that_no_template_can_have_are_refused_by_row_and_block():
    session = sessions(gentle_model(6), "signal", variations=True)[1]
    rows, params = leaf(rows_of(session, 3), session).detach(), leaf(session.model.init, session).detach()
    rows[1, 2] = float("nan")
    for function in (lambda: nt.q0(session, rows), lambda: nt.nll(session, params, rows)):
        with pytest.raises(nextstat.ParameterError, match=r"batch element 1 of 3: .*first/signal.*element 2"):
            function()
    with pytest.raises(ValueError, match="inputs were given"):
        nt.q0(session, rows[:, 1:])
    with pytest.raises(ValueError, match="parameter vectors"):
        nt.nll(session, params.repeat(2, 1), rows)


def test_what_the_device_leaves_to_the_host_is_the_hosts():
    host, device = sessions(gentle_model(3, 1.2), ["signal", "large"], variations=True, host_copy=True)
    both = [(session, leaf(rows_of(host, 2), session)) for session in (host, device)]
    second = [torch.autograd.functional.hvp(lambda x, s=s: nt.q_mu(s, x, 2.0).sum(), x, torch.ones_like(x))[1].cpu() for s, x in both]
    torch.testing.assert_close(*second, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(*(nt.upper_limit(session, x).detach().cpu() for session, x in both), rtol=1e-6, atol=1e-8)


def test_rows_of_a_model_with_kinks_are_the_hosts():
    model = nextstat.model_of(random_workspace(3, 1.2, size=0.05), interp_defaults="pyhf")
    host, device = sessions(model, ["signal", "large"], variations=True)
    for name in ("profiled_nll", "q_mu"):
        require_same(name, host, device, rows_of(host, 2))
    assert device.n_device_fits == 0


def test_a_fit_that_fails_everywhere_raises_its_verdict():
    signal = {"name": "signal", "data": [5.0, 9.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    channel = {"name": "only", "samples": [signal, {"name": "background", "data": [50.0, 60.0], "modifiers": []}]}
    measurement = {"name": "m", "config": {"poi": "mu", "parameters": []}}
    observed = {"name": "only", "data": [56.0, 66.0]}
    model = nextstat.model_of({"channels": [channel], "observations": [observed], "measurements": [measurement], "version": "1.0.0"})
    session = sessions(model, ["signal", "background"])[1]
    rows = leaf(np.stack([session.values, -session.values]), session)
    with pytest.raises(nt.GradientError, match=r"batch element 1 of 2: .*did not converge"):
        nt.profiled_nll(session, rows)
    assert torch.isfinite(nt.profiled_nll(session, rows[:1])).all()


def test_published_models(published):
    for model, sample in published_models(published):
        host, device = sessions(model, sample)
        x = rows_of(host, 1)[0]
        for name in ("profiled_nll", "q_mu"):
            require_same(name, host, device, x)
