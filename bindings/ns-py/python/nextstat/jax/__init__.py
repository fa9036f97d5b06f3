"""Profiled statistics as differentiable functions of histograms, for JAX.

They are `custom_vjp` functions over the same sessions as `nextstat.torch`. Values and gradients are
computed on the host in double precision, by a callback; under `jax.jit` and `jax.grad` they are the
same as outside. Without ``jax.config.update("jax_enable_x64", True)`` JAX rounds both to single
precision. `jax.vmap` calls the session once for each row. Reverse mode only: once, and twice for
minima of -ln L and statistics of the observed data (`jax.jacrev(jax.grad(f))`, or `jax.vjp` of
`jax.grad(f)`; not `jax.hessian`). JAX wraps the errors of a session in an error of its own, whose
text has the message.

>>> import jax, nextstat
>>> jax.config.update("jax_enable_x64", True)
>>> from nextstat.jax import DifferentiableSession, upper_limit
>>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
>>> value, gradient = jax.value_and_grad(lambda signal: upper_limit(session, signal))(
...     jax.numpy.array([12.0, 11.0])
... )
>>> round(float(value), 4), [round(float(part), 4) for part in gradient]
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

from .. import _quantities
from .._nextstat import GradientError
from .._quantities import ONCE, TWICE, Face, P, documented
from ..differentiable import Block, DifferentiableSession, ProfiledDifferentiableSession, tested

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate

    from .._quantities import Definition, Quantity

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
    """Computes one row of inputs on the host."""

    def compute(inputs: Any, mu: Any) -> Any:
        rows = np.ascontiguousarray(inputs, dtype=np.float64).reshape(1, -1)
        values, by_inputs, by_mu = quantity(session._raw, rows, tested(np.asarray(mu), 1), gradient)
        own = values[0].reshape(_shape(quantity)).astype(dtype)
        if not gradient:
            return own
        gradients = (
            by_inputs[0].reshape(*_shape(quantity), -1),
            by_mu[0].reshape(_shape(quantity)),
        )
        return own, *(part.astype(dtype) for part in gradients)

    dtype = jnp.result_type(inputs, jnp.float32)
    like = partial(jax.ShapeDtypeStruct, dtype=dtype)
    shape = _shape(quantity)
    wanted = (like(shape), like((*shape, inputs.shape[-1])), like(shape)) if gradient else like(shape)
    return jax.pure_callback(compute, wanted, inputs, mu, vmap_method="sequential")


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _evaluated(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    return _called(quantity, session, inputs, mu, False)


def _forward(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    value, by_inputs, by_mu = _with_gradient(quantity, session, inputs, mu)
    return value, (by_inputs, by_mu, mu)


def _backward(quantity: Quantity, session: DifferentiableSession, saved: Any, upstream: Any) -> Any:
    by_inputs, by_mu, mu = saved
    return _pulled(upstream, by_inputs, by_mu, mu)


def _pulled(upstream: Any, by_inputs: Any, by_mu: Any, mu: Any) -> Any:
    of_inputs = jnp.tensordot(upstream, by_inputs, axes=upstream.ndim)
    return of_inputs, jnp.sum(upstream * by_mu).astype(mu.dtype).reshape(mu.shape)


_evaluated.defvjp(_forward, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _with_gradient(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    """Returns the value and its gradient, which can be differentiated where second derivatives are
    given.
    """
    return _called(quantity, session, inputs, mu, True)


def _with_gradient_forward(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    if quantity.twice is None:
        raise NotImplementedError(ONCE)
    found = _with_gradient_twice(quantity, session, inputs, mu)
    return found, (*found[1:], inputs, mu)


def _with_gradient_backward(quantity: Quantity, session: DifferentiableSession, saved: Any, upstream: Any) -> Any:
    by_inputs, by_mu, inputs, mu = saved
    first = _pulled(upstream[0], by_inputs, by_mu, mu)
    second = _product(quantity, session, inputs, mu, upstream[1], upstream[2])
    return first[0] + second[0], first[1] + second[1].astype(mu.dtype).reshape(mu.shape)


_with_gradient.defvjp(_with_gradient_forward, _with_gradient_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any, along: Any, along_mu: Any) -> Any:
    """Returns the product of the Hessian by inputs and tested value with a direction."""
    dtype = along.dtype

    def compute(inputs: Any, mu: Any, along: Any, along_mu: Any) -> Any:
        rows, directions = (np.ascontiguousarray(given, dtype=np.float64).reshape(1, -1) for given in (inputs, along))
        by_inputs, by_mu = quantity.product(session._raw, rows, tested(np.asarray(mu), 1), directions, [float(along_mu)])
        return by_inputs[0].astype(dtype), by_mu[0].astype(dtype)

    wanted = (jax.ShapeDtypeStruct(along.shape, dtype), jax.ShapeDtypeStruct((), dtype))
    return jax.pure_callback(compute, wanted, inputs, mu, along, along_mu, vmap_method="sequential")


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _with_gradient_twice(quantity: Quantity, session: DifferentiableSession, inputs: Any, mu: Any) -> Any:
    """Returns the value and its gradient where both derivatives have been taken."""
    return _called(quantity, session, inputs, mu, True)


def _no_third(*_: Any) -> Any:
    raise NotImplementedError(TWICE)


_product.defvjp(_no_third, _no_third)
_with_gradient_twice.defvjp(_no_third, _no_third)


def _evaluate(session: DifferentiableSession, quantity: Quantity, inputs: Any, mu: Any = 0.0) -> Any:
    inputs, mu = jnp.asarray(inputs, dtype=float), jnp.asarray(mu, dtype=float)
    if inputs.shape != (session.n_inputs,):
        raise ValueError(
            f"inputs of shape {inputs.shape} for {session.n_inputs} inputs; `jax.vmap` takes batches"
        )
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
    """Returns -ln L of the data at `params` (P) and `inputs` (M).

    Outside the domain it is +∞, with gradients of NaN.
    """
    params, inputs = jnp.asarray(params, dtype=float), jnp.asarray(inputs, dtype=float)
    if params.ndim != 1 or inputs.ndim != 1:
        shapes = f"{params.shape} and {inputs.shape}"
        raise ValueError(
            f"expected one point and one row of inputs, not shapes {shapes}; "
            "`jax.vmap` takes batches"
        )
    return _nll(session, params, inputs)


_FACE = Face(
    module="nextstat.jax",
    setup='import jax, nextstat\njax.config.update("jax_enable_x64", True)',
    inputs="session.values",
    as_number="float({})",
    input_type="ArrayLike",
    mu_type="ArrayLike",
    result_type="jax.Array",
)


def _function(
    definition: Definition[P],
) -> Callable[Concatenate[DifferentiableSession, Any, P], jax.Array]:
    """Returns the function of a session and its inputs that evaluates a quantity."""

    def function(
        session: DifferentiableSession, inputs: Any, *args: P.args, **kwargs: P.kwargs
    ) -> jax.Array:
        quantity, mu = definition.request(*args, **kwargs)
        return _evaluate(session, quantity, inputs, mu)  # type: ignore[no-any-return]

    return documented(function, definition, _FACE)


profiled_nll = _function(_quantities.profiled_nll)
q0 = _function(_quantities.q0)
q_mu = _function(_quantities.q_mu)
q_mu_tilde = _function(_quantities.q_mu_tilde)
cls = _function(_quantities.cls)
p_value = _function(_quantities.p_value)
significance = _function(_quantities.significance)
upper_limit = _function(_quantities.upper_limit)
sigma_mu = _function(_quantities.sigma_mu)
