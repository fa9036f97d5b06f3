"""Statistics, their gradients and Hessians by signal yields, against a likelihood written out here
in JAX, which shares nothing with nextstat.

Minima are found by Newton's iteration. One further step, from the minimum and with the Hessian kept
constant, makes them functions of the yields and of the data with the derivative that the implicit
function theorem gives; statistics need no other for two derivatives, because the gradient at a
minimum is zero.
"""

import nextstat
import numpy as np
import pytest
from nextstat.differentiable import DifferentiableSession

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

SIGNAL, LARGE, SMALL = np.array([4.0, 9.0, 6.0]), np.array([60.0, 45.0, 30.0]), np.array([10.0, 12.0, 9.0])
XS, K = (0.9, 1.12), (0.93, 1.05)
JES = np.array([57.0, 44.0, 33.0]), np.array([63.0, 46.0, 28.0])
STAT, SHAPE = np.array([3.0, 2.5, 2.0]), np.array([1.5, 1.0, 2.0])
SEEN = {"inside": np.array([74.0, 65.0, 46.0]), "at zero": np.array([69.0, 54.0, 37.5])}
# Parameters: mu, xs, k, jes, three gammas of `large` (normal constraints), three of `small`
# (Poisson ones).
START = np.array([1.0, 0.0, 0.0, 0.0, *np.ones(6)])


def workspace(observed):
    def scale(name, ends):
        return {"name": name, "type": "normsys", "data": {"lo": ends[0], "hi": ends[1]}}

    jes = {"name": "jes", "type": "histosys", "data": {"lo_data": JES[0].tolist(), "hi_data": JES[1].tolist()}}
    samples = {
        "signal": (SIGNAL, [{"name": "mu", "type": "normfactor", "data": None}, scale("xs", XS)]),
        "large": (LARGE, [jes, scale("k", K), {"name": "stat", "type": "staterror", "data": STAT.tolist()}]),
        "small": (SMALL, [scale("xs", XS), {"name": "shape", "type": "shapesys", "data": SHAPE.tolist()}]),
    }
    channel = {"name": "channel", "samples": [{"name": name, "data": data.tolist(), "modifiers": m} for name, (data, m) in samples.items()]}
    return {
        "channels": [channel],
        "observations": [{"name": "channel", "data": observed.tolist()}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }


def factor(alpha, ends):
    """Exponential beyond one standard deviation, a polynomial of degree 6 between that has two
    derivatives in common with it.
    """
    lo, hi = ends
    a, b, powers = np.log(hi), np.log(lo), np.arange(1, 7)
    rows = [sign**powers for sign in (1.0, -1.0)]
    rows += [powers * sign ** (powers - 1) for sign in (1.0, -1.0)]
    rows += [powers * (powers - 1) * sign**powers for sign in (1.0, -1.0)]
    coefficients = np.linalg.solve(np.array(rows), np.array([hi - 1, lo - 1, hi * a, -lo * b, hi * a * a, lo * b * b]))
    inside = 1 + sum(c * alpha ** int(n) for c, n in zip(coefficients, powers))
    return jnp.where(alpha > 1, jnp.exp(a * alpha), jnp.where(alpha < -1, jnp.exp(-b * alpha), inside))


def shift(alpha, nominal, ends):
    """Linear beyond one standard deviation, a polynomial between."""
    up, down = ends[1] - nominal, nominal - ends[0]
    inside = alpha * ((up + down) / 2 + alpha * (up - down) / 16 * (15 + alpha**2 * (3 * alpha**2 - 10)))
    return jnp.where(alpha > 1, alpha * up, jnp.where(alpha < -1, alpha * down, inside))


def expected(params, signal):
    """Counts of the bins, and auxiliary data."""
    mu, xs, k, jes, stat, shape = params[0], params[1], params[2], params[3], params[4:7], params[7:]
    large = (LARGE + shift(jes, LARGE, JES)) * factor(k, K) * stat
    main = mu * factor(xs, XS) * signal + large + factor(xs, XS) * shape * SMALL
    return main, jnp.concatenate([params[1:7], shape * (SMALL / SHAPE) ** 2])


WIDTHS = np.concatenate([np.ones(3), STAT / LARGE])


@jax.jit
def nll(params, data, signal):
    (main, aux), (seen, controls) = expected(params, signal), data
    normal = 0.5 * jnp.sum(((controls[:6] - aux[:6]) / WIDTHS) ** 2)
    return jnp.sum(main - seen * jnp.log(main)) + normal + jnp.sum(aux[6:] - controls[6:] * jnp.log(aux[6:]))


def observed(seen):
    return seen, np.concatenate([np.zeros(3), np.ones(3), (SMALL / SHAPE) ** 2])


@jax.jit
def gradient(params, free, data, signal):
    """∂f/∂θ of the free parameters, 0 of others."""
    return free * jax.grad(nll)(params, data, signal)


@jax.jit
def hessian(params, free, data, signal):
    """∂²f/∂θ² of the free parameters, 1 on the diagonal of others."""
    return free[:, None] * jax.jacfwd(gradient)(params, free, data, signal) + jnp.diag(1.0 - free)


@jax.jit
def newton(params, free, data, signal):
    step = jnp.linalg.solve(hessian(params, free, data, signal), gradient(params, free, data, signal))
    # From afar in small steps, so that no expectation becomes negative.
    return params - step * jnp.minimum(1.0, 0.3 / jnp.max(jnp.abs(step) + 1e-300))


def minimum(data, signal, mu=None):
    """The parameters at the minimum with mu free or fixed."""
    free = jnp.ones(len(START)).at[0].set(1.0 if mu is None else 0.0)
    constant = jax.lax.stop_gradient
    start = jnp.asarray(START) if mu is None else jnp.asarray(START).at[0].set(mu)
    still = constant((free, data, signal))
    params = constant(start)
    for _ in range(30):
        params = newton(params, *still)
    inverse = jnp.linalg.inv(hessian(params, *still))
    params = params if mu is None else params.at[0].set(mu)
    return params - inverse @ gradient(params, free, data, signal)


def statistic(data, signal, mu, lowest):
    """2 (f(mu) - f(best)), where the best mu is not below `lowest`; 0 where it is above `mu`."""
    inside = minimum(data, signal)
    best = jnp.where(inside[0] >= lowest, inside, minimum(data, signal, jnp.asarray(lowest)))
    rise = 2 * (nll(minimum(data, signal, mu), data, signal) - nll(best, data, signal))
    return jnp.where(best[0] <= mu, rise, 0.0)


def cls(data, signal, mu):
    asimov = expected(minimum(data, signal, jnp.asarray(0.0)), signal)
    q, q_asimov = statistic(data, signal, mu, 0.0), statistic(asimov, signal, mu, 0.0)
    root, root_asimov = jnp.sqrt(q), jnp.sqrt(q_asimov)
    normal = jax.scipy.stats.norm.cdf
    distance = jnp.where(root > root_asimov, (q - q_asimov) / (2 * root_asimov), root - root_asimov)
    expected_ones = [normal(n - root_asimov) / normal(n) for n in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    return jnp.stack([normal(-distance - root_asimov) / normal(-distance), *expected_ones])


def session_of(where, **options):
    return DifferentiableSession(nextstat.model_of(workspace(SEEN[where])), "signal", **options)


def off(ours, theirs):
    return np.abs(ours - np.asarray(theirs)).max()


@pytest.mark.parametrize("where", SEEN)
def test_the_best_fit_is_where_it_is_meant_to_be(where):
    session = session_of(where)
    mu_hat = minimum(observed(SEEN[where]), SIGNAL)[0]
    assert (mu_hat > 0.3) if where == "inside" else (mu_hat < -0.05)
    fit = nextstat.fit(session.model)
    assert fit.bestfit[session.model.poi_index] == pytest.approx(max(float(mu_hat), 0.0), abs=1e-6)


@pytest.mark.parametrize("where", SEEN)
@pytest.mark.parametrize("name", ["q_mu", "q_mu_tilde"])
def test_statistics_their_gradients_and_hessians(name, where):
    # q_mu differs from q_mu_tilde where the best fit is below zero and allowed to be there.
    lowest = 0.0 if name == "q_mu_tilde" else -3.0
    session = session_of(where, bounds={"mu": (lowest, 10.0)}, warm_start=True)

    def reference(signal, mu):
        return statistic(observed(SEEN[where]), signal, mu, lowest)

    gradients = jax.grad(reference, argnums=(0, 1))
    for mu in (1.6, 2.2):
        found = getattr(session, name)(SIGNAL, mu)
        by_signal, by_mu = gradients(SIGNAL, mu)
        assert found.value > 0.1
        assert off(found.value, reference(SIGNAL, mu)) < 1e-9
        assert off(found.by_inputs, by_signal) < 1e-8 and off(found.by_mu, by_mu) < 1e-8
    (twice, cross), (_, of_mu) = jax.jacfwd(gradients, argnums=(0, 1))(SIGNAL, 2.2)
    rows = np.repeat(SIGNAL[None], 4, axis=0)
    product = getattr(session, f"{name}_product")(rows, np.eye(4)[:, :3], 2.2, along_mu=np.eye(4)[:, 3])
    assert off(product.by_inputs[:3], twice) < 1e-8 and off(product.by_inputs[3], cross) < 1e-8
    assert off(product.by_mu[:3], cross) < 1e-8 and off(product.by_mu[3], of_mu) < 1e-8


@pytest.mark.parametrize("where", SEEN)
def test_cls_and_its_gradients(where):
    session = session_of(where)

    def reference(signal, mu):
        return cls(observed(SEEN[where]), signal, mu)

    gradients = jax.jacrev(reference, argnums=(0, 1))
    for mu in (1.6, 2.2):
        found = session.cls(SIGNAL, mu)
        by_signal, by_mu = gradients(SIGNAL, mu)
        assert off(found.value, reference(SIGNAL, mu)) < 1e-8
        assert off(found.by_inputs, by_signal) < 1e-7 and off(found.by_mu, by_mu) < 1e-7
