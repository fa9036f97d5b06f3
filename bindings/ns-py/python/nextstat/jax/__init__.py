"""Profiled statistics as differentiable functions of histograms, for JAX: `custom_vjp` over the same sessions as `nextstat.torch`.

Values and gradients are computed on the host in double precision, by a callback; under `jax.jit` and `jax.grad` they are what they are outside. Without
``jax.config.update("jax_enable_x64", True)`` JAX rounds both to single precision. `jax.vmap` calls the session once for each row. Reverse mode only: once,
and twice for minima of -ln L and statistics of the observed data (`jax.jacrev(jax.grad(f))`, or `jax.vjp` of `jax.grad(f)`; not `jax.hessian`).
What a session raises inside of the callback JAX wraps in an error of its own, whose text has the message.

>>> import jax, nextstat
>>> jax.config.update("jax_enable_x64", True)
>>> from nextstat.jax import DifferentiableSession, upper_limit
>>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
>>> value, gradient = jax.value_and_grad(lambda signal: upper_limit(session, signal))(jax.numpy.array([12.0, 11.0]))
>>> round(float(value), 4), [round(float(slope), 4) for slope in gradient]
(1.0943, [-0.0596, -0.0345])
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

try:
    import jax
except ImportError as missing:
    raise ImportError("nextstat.jax needs JAX: pip install jax") from missing

import jax.numpy as jnp
import numpy as np

from ..differentiable import ONCE, TWICE, Block, DifferentiableSession, GradientError, ProfiledDifferentiableSession, Quantities, tested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..differentiable import Quantity

__all__ = [
    "Block",
    "DifferentiableSession",
    "GradientError",
    "ProfiledDifferentiableSession",
    "cls",
    "nll",
    "p_value",
    "profiled_nll",
    "q0",
    "q_mu",
    "q_mu_tilde",
    "sigma_mu",
    "significance",
    "upper_limit",
]


def _shape(quantity: Quantity) -> tuple[int, ...]:
    return () if quantity.n_values is None else (quantity.n_values,)


def _called(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any, gradient: bool) -> Any:
    """The callback: one row of inputs."""

    def compute(inputs: Any, mu: Any) -> Any:
        rows = np.ascontiguousarray(inputs, dtype=np.float64).reshape(1, -1)
        values, by_inputs, by_mu = quantity(session._raw, rows, tested(np.asarray(mu), 1), gradient)
        own = values[0].reshape(_shape(quantity)).astype(dtype)
        if not gradient:
            return own
        return own, by_inputs[0].reshape(*_shape(quantity), -1).astype(dtype), by_mu[0].reshape(_shape(quantity)).astype(dtype)

    dtype = jnp.result_type(inputs, jnp.float32)
    like = partial(jax.ShapeDtypeStruct, dtype=dtype)
    shape = _shape(quantity)
    wanted = (like(shape), like((*shape, inputs.shape[-1])), like(shape)) if gradient else like(shape)
    return jax.pure_callback(compute, wanted, inputs, mu, vmap_method="sequential")


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _evaluated(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    return _called(quantity, session, inputs, mu, False)


def _forward(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    value, by_inputs, by_mu = _with_slopes(quantity, session, inputs, mu)
    return value, (by_inputs, by_mu, mu)


def _backward(quantity: Quantity, session: DifferentiableSession, saved: Any, upstream: Any) -> Any:
    by_inputs, by_mu, mu = saved
    return _pulled(upstream, by_inputs, by_mu, mu)


def _pulled(upstream: Any, by_inputs: Any, by_mu: Any, mu: Any) -> Any:
    return jnp.tensordot(upstream, by_inputs, axes=upstream.ndim), jnp.sum(upstream * by_mu).astype(mu.dtype).reshape(mu.shape)


_evaluated.defvjp(_forward, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _with_slopes(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    """The value and its slopes, as functions that can be differentiated where second derivatives are given."""
    return _called(quantity, session, inputs, mu, True)


def _with_slopes_forward(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    if quantity.twice is None:
        raise NotImplementedError(ONCE)
    found = _with_slopes_still(quantity, session, inputs, mu)
    return found, (*found[1:], inputs, mu)


def _with_slopes_backward(quantity: Quantity, session: DifferentiableSession, saved: Any, upstream: Any) -> Any:
    by_inputs, by_mu, inputs, mu = saved
    first = _pulled(upstream[0], by_inputs, by_mu, mu)
    second = _product(quantity, session, inputs, mu, upstream[1], upstream[2])
    return first[0] + second[0], first[1] + second[1].astype(mu.dtype).reshape(mu.shape)


_with_slopes.defvjp(_with_slopes_forward, _with_slopes_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any, along: Any, along_mu: Any) -> Any:
    """The product of the Hessian by inputs and tested value with a direction."""
    dtype = along.dtype

    def compute(inputs: Any, mu: Any, along: Any, along_mu: Any) -> Any:
        rows, directions = (np.ascontiguousarray(given, dtype=np.float64).reshape(1, -1) for given in (inputs, along))
        by_inputs, by_mu = quantity.product(session._raw, rows, tested(np.asarray(mu), 1), directions, [float(along_mu)])
        return by_inputs[0].astype(dtype), by_mu[0].astype(dtype)

    wanted = (jax.ShapeDtypeStruct(along.shape, dtype), jax.ShapeDtypeStruct((), dtype))
    return jax.pure_callback(compute, wanted, inputs, mu, along, along_mu, vmap_method="sequential")


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _with_slopes_still(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    """The value and its slopes where both derivatives have been taken."""
    return _called(quantity, session, inputs, mu, True)


def _no_third(*_: Any) -> Any:
    raise NotImplementedError(TWICE)


_product.defvjp(_no_third, _no_third)
_with_slopes_still.defvjp(_no_third, _no_third)


def _evaluate(session: DifferentiableSession, quantity: Quantity, inputs: Any, mu: Any = 0.0) -> Any:
    inputs, mu = jnp.asarray(inputs, dtype=float), jnp.asarray(mu, dtype=float)
    if inputs.shape != (session.n_inputs,):
        raise ValueError(f"inputs of shape {inputs.shape} for {session.n_inputs} inputs; `jax.vmap` takes batches")
    return _evaluated(quantity, session, inputs, mu)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _nll(session: DifferentiableSession, params: Any, inputs: Any) -> Any:
    return _nll_forward(session, params, inputs)[0]


def _nll_forward(session: DifferentiableSession, params: Any, inputs: Any) -> Any:
    value, *gradients = _nll_with_gradients(session, params, inputs)
    return value, gradients


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _nll_with_gradients(session: DifferentiableSession, params: Any, inputs: Any) -> Any:
    dtype = jnp.result_type(params, inputs)

    def compute(params: Any, inputs: Any) -> Any:
        value, by_params, by_inputs = session.nll(np.asarray(params), np.asarray(inputs))
        return np.asarray(value, dtype), by_params.astype(dtype), by_inputs.astype(dtype)

    like = partial(jax.ShapeDtypeStruct, dtype=dtype)
    wanted = (like(()), like(params.shape), like(inputs.shape))
    return jax.pure_callback(compute, wanted, params, inputs, vmap_method="sequential")


def _nll_no_second(*_: Any) -> Any:
    raise NotImplementedError("in JAX -ln L can be differentiated once; twice in PyTorch")


_nll_with_gradients.defvjp(_nll_no_second, _nll_no_second)


def _nll_backward(session: DifferentiableSession, gradients: Any, upstream: Any) -> Any:
    return upstream * gradients[0], upstream * gradients[1]


_nll.defvjp(_nll_forward, _nll_backward)


def nll(session: DifferentiableSession, params: Any, inputs: Any) -> Any:
    """-ln L of the data at `params` (P) and `inputs` (M); outside the domain +∞ with gradients that are NaN."""
    params, inputs = jnp.asarray(params, dtype=float), jnp.asarray(inputs, dtype=float)
    if params.ndim != 1 or inputs.ndim != 1:
        raise ValueError(f"one point and one row of inputs are needed, and shapes {params.shape} and {inputs.shape} were given; `jax.vmap` takes batches")
    return _nll(session, params, inputs)


def profiled_nll(session: DifferentiableSession, inputs: Any, mu: Any = None) -> Any:
    """The minimum of -ln L over the parameters, with the parameter of interest at `mu` if that is given."""
    return _evaluate(session, Quantities.profiled_nll(mu is not None), inputs, 0.0 if mu is None else mu)


def q0(session: DifferentiableSession, inputs: Any, *, asimov: bool = False) -> Any:
    """q₀, the statistic of a discovery: of the data, or of the Asimov data of a signal of strength 1."""
    return _evaluate(session, Quantities.statistic("q0", asimov), inputs)


def q_mu(session: DifferentiableSession, inputs: Any, mu: Any, *, asimov: bool = False) -> Any:
    """q_μ, the statistic of upper limits: of the data, or of the Asimov data of the background."""
    return _evaluate(session, Quantities.statistic("q", asimov), inputs, mu)


def q_mu_tilde(session: DifferentiableSession, inputs: Any, mu: Any, *, asimov: bool = False) -> Any:
    """q̃_μ, the same for a parameter of interest that is not negative."""
    return _evaluate(session, Quantities.statistic("qtilde", asimov), inputs, mu)


def cls(session: DifferentiableSession, inputs: Any, mu: Any = 1.0, *, test_stat: str = "qtilde", kind: str = "CLs") -> Any:
    """CLs: observed, then expected at -2, -1, 0, +1, +2 standard deviations of the background (6)."""
    return _evaluate(session, Quantities.p_values(test_stat, kind), inputs, mu)


def p_value(session: DifferentiableSession, inputs: Any, *, asimov: bool = False) -> Any:
    """The p-value of the background, 1 - Φ(√q₀)."""
    return _evaluate(session, Quantities.of_q0("p_value", asimov), inputs)


def significance(session: DifferentiableSession, inputs: Any, *, asimov: bool = False) -> Any:
    """The significance of a discovery, √q₀."""
    return _evaluate(session, Quantities.of_q0("significance", asimov), inputs)


def upper_limit(
    session: DifferentiableSession, inputs: Any, *, which: str | float | Sequence[str | float] = 0.0, level: float = 0.05, test_stat: str = "qtilde"
) -> Any:
    """The upper limit where CLs is `level`: observed, or expected as many standard deviations from the median."""
    return _evaluate(session, Quantities.limit(which, level, test_stat), inputs)


def sigma_mu(session: DifferentiableSession, inputs: Any, *, mu: float | None = None) -> Any:
    """σ(μ̂): at the best fit of the data, or of the Asimov data of `mu`."""
    return _evaluate(session, Quantities.sigma(mu), inputs)
