"""`nextstat.jax`: check_grads of every function at and away from bounds, twice where that is given,
compiled and not, and batches.
"""

import nextstat
import numpy as np
import pytest
from models import TWICE, functions, gentle_model, needs_inside, published_models, random_model

jax = pytest.importorskip("jax")
nj = pytest.importorskip("nextstat.jax")
jax.config.update("jax_enable_x64", True)
from jax.test_util import check_grads  # noqa: E402

# Central differences of fits, as in the tests of PyTorch.
CHECK = {"order": 1, "modes": ["rev"], "eps": 4e-4, "atol": 1e-6, "rtol": 1e-6}

# The same of gradients along a random direction in all inputs, where they curve; the tests in Rust
# compare with differences of higher order.
CHECK_TWICE = {**CHECK, "eps": 3e-5, "atol": 1e-5, "rtol": 1e-5}

FUNCTIONS = functions(nj)


@pytest.mark.parametrize("asimov", ["fitted", "nominal"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_gradients_on_random_models(name, signal_seen, asimov):
    if signal_seen < 0 and needs_inside(name):
        pytest.skip("the best fit is at zero: see the test of kinks")
    for seed in (3, 5, 7):
        session = nj.DifferentiableSession(random_model(seed, signal_seen), ["signal", "small"], variations=True, asimov=asimov)
        mu_hat = nextstat.fit(session.model).bestfit[session.model.poi_index]
        assert (mu_hat == 0) == (signal_seen < 0)
        check_grads(lambda x, session=session: FUNCTIONS[name](session, x), (jax.numpy.array(session.values),), **CHECK)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_on_published_models(name, published):
    for model, sample in published_models(published):
        session = nj.DifferentiableSession(model, sample)
        mu_hat = nextstat.fit(model).bestfit[model.poi_index]
        if needs_inside(name) and mu_hat < 1e-3:
            continue
        # All inputs of a large model move together in a few directions.
        directions = np.random.default_rng(1).uniform(-1, 1, (3, session.n_inputs))

        def along(steps, session=session, directions=directions):
            return FUNCTIONS[name](session, session.values * (1 + steps @ directions))

        check_grads(along, (jax.numpy.zeros(3),), **{**CHECK, "eps": 2e-5})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_are_the_same(name):
    session = nj.DifferentiableSession(random_model(3), ["signal", "large"], variations=["jes", "xs"])
    x = jax.numpy.array(session.values)
    compiled = jax.jit(lambda x: FUNCTIONS[name](session, x))
    assert np.allclose(compiled(x), FUNCTIONS[name](session, x), rtol=1e-12)


@pytest.mark.parametrize("name", ["q0", "p_value", "significance", "q_mu"])
def test_constant_statistics_have_gradient_zero(name):
    seen = 3.0 if name == "q_mu" else -1.5
    session = nj.DifferentiableSession(random_model(3, seen), "signal")
    gradient = jax.grad(lambda x: FUNCTIONS[name](session, x))(jax.numpy.array(session.values))
    assert (gradient == 0).all()


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_gradients_have_gradients(name, signal_seen):
    for make, seed in ((random_model, 3), (random_model, 5), (gentle_model, 3)):
        # Differences of gradients need fits as tight as those that follow each other.
        session = nj.DifferentiableSession(make(seed, signal_seen), ["signal", "small"], variations=["xs"], warm_start=True)
        gradient = jax.grad(lambda x, session=session: FUNCTIONS[name](session, x))
        check_grads(gradient, (jax.numpy.array(session.values),), **CHECK_TWICE)


def test_hessians_are_symmetric_and_those_of_the_session():
    session = nj.DifferentiableSession(random_model(3), "signal", warm_start=True)
    x = jax.numpy.array(session.values)
    hessian = jax.jit(jax.jacrev(jax.grad(lambda x: nj.q_mu(session, x, 2.0))))(x)
    rows = np.repeat(session.values[None], session.n_inputs, axis=0)
    own = session.q_mu_product(rows, np.eye(session.n_inputs), 2.0).by_inputs
    assert np.abs(own).max() > 1e-2
    assert np.allclose(hessian, own, rtol=1e-9, atol=1e-12) and np.allclose(own, own.T, rtol=1e-7, atol=1e-9)


def test_second_derivatives_by_the_tested_value():
    session = nj.DifferentiableSession(random_model(3), "signal", warm_start=True)
    at = (jax.numpy.array(session.values), 2.0)
    for function in (nj.q_mu, nj.q_mu_tilde, nj.profiled_nll):
        check_grads(jax.grad(lambda x, mu, function=function: function(session, x, mu), argnums=(0, 1)), at, **CHECK_TWICE)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - set(TWICE)))
def test_what_can_be_differentiated_once_says_so(name):
    session = nj.DifferentiableSession(random_model(5), "signal")
    gradient = jax.grad(lambda x: FUNCTIONS[name](session, x).sum())
    with pytest.raises(NotImplementedError, match="can be differentiated once"):
        jax.grad(lambda x: gradient(x).sum())(jax.numpy.array(session.values))


def test_third_derivatives_are_not_given():
    session = nj.DifferentiableSession(random_model(5), "signal")
    second = jax.grad(lambda x: jax.grad(lambda x: nj.q_mu(session, x, 2.0))(x).sum())
    with pytest.raises(NotImplementedError, match="differentiated twice"):
        jax.grad(lambda x: second(x).sum())(jax.numpy.array(session.values))


def test_nll_has_gradients_by_both():
    session = nj.DifferentiableSession(random_model(3), ["signal", "large"], variations=True)
    at = (jax.numpy.array(session.model.init + 0.05), jax.numpy.array(session.values))
    check_grads(lambda p, x: nj.nll(session, p, x), at, order=1, modes=["rev"], atol=1e-5, rtol=1e-5, eps=1e-5)


def test_nll_says_that_it_is_differentiated_once():
    session = nj.DifferentiableSession(random_model(5), "signal")
    x = jax.numpy.array(session.values)
    gradient = jax.grad(lambda params: nj.nll(session, params, x))
    with pytest.raises(NotImplementedError, match="can be differentiated once"):
        jax.grad(lambda params: gradient(params).sum())(jax.numpy.array(session.model.init))


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
