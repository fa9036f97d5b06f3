"""`nextstat.jax`: check_grads of every function, compiled and not, and batches."""

import nextstat
import numpy as np
import pytest
from models import random_model

jax = pytest.importorskip("jax")
nj = pytest.importorskip("nextstat.jax")
jax.config.update("jax_enable_x64", True)
from jax.test_util import check_grads  # noqa: E402

FUNCTIONS = {
    "profiled_nll": lambda s, x: nj.profiled_nll(s, x, 0.5),
    "q0": lambda s, x: nj.q0(s, x),
    "q_mu": lambda s, x: nj.q_mu(s, x, 2.0),
    "q_mu_tilde": lambda s, x: nj.q_mu_tilde(s, x, 2.0, asimov=True),
    "cls": lambda s, x: nj.cls(s, x, 2.0),
    "p_value": lambda s, x: nj.p_value(s, x),
    "significance": lambda s, x: nj.significance(s, x, asimov=True),
    "upper_limit": lambda s, x: nj.upper_limit(s, x, which=["observed", 0]),
    "sigma_mu": lambda s, x: nj.sigma_mu(s, x, mu=1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    session = nj.DifferentiableSession(random_model(3), ["signal", "large"], variations=["jes", "xs"])
    x = jax.numpy.array(session.values)
    check_grads(lambda x: FUNCTIONS[name](session, x), (x,), order=1, modes=["rev"], atol=1e-4, rtol=1e-4, eps=1e-3)
    compiled = jax.jit(lambda x: FUNCTIONS[name](session, x))
    assert np.allclose(compiled(x), FUNCTIONS[name](session, x), rtol=1e-12)


def test_nll_has_gradients_by_both():
    session = nj.DifferentiableSession(random_model(3), ["signal", "large"], variations=True)
    at = (jax.numpy.array(session.model.init + 0.05), jax.numpy.array(session.values))
    check_grads(lambda p, x: nj.nll(session, p, x), at, order=1, modes=["rev"], atol=1e-5, rtol=1e-5, eps=1e-5)


def test_the_tested_value_has_a_gradient_too():
    session = nj.DifferentiableSession(random_model(3), "signal")
    x = jax.numpy.array(session.values)
    check_grads(lambda mu: nj.q_mu(session, x, mu), (2.0,), order=1, modes=["rev"], atol=1e-5, rtol=1e-5, eps=1e-4)


def test_batches_by_vmap():
    session = nj.DifferentiableSession(random_model(3), "signal")
    rows = jax.numpy.stack([session.values, 1.1 * session.values])
    limits = jax.vmap(lambda x: nj.upper_limit(session, x))(rows)
    assert np.allclose(limits, session.upper_limit(np.asarray(rows)).value, rtol=1e-9)
    gradients = jax.vmap(jax.grad(lambda x: nj.upper_limit(session, x)))(rows)
    assert np.allclose(gradients, session.upper_limit(np.asarray(rows)).by_inputs, rtol=1e-7)


def test_failures_are_not_gradients():
    session = nj.DifferentiableSession(random_model(3, -1.5), "signal")
    with pytest.raises(Exception, match="has no uncertainty"):
        jax.block_until_ready(nj.sigma_mu(session, jax.numpy.array(session.values)))
    with pytest.raises(ValueError, match="takes batches"):
        nj.q0(session, np.ones((2, session.n_inputs)))
    assert issubclass(nj.GradientError, nextstat.NextstatError)
