"""Values and gradients of a session, as nodes of PyTorch's graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import _quantities
from .._errors import with_hint
from .._nextstat import DeviceError
from .._quantities import ONCE, TWICE, Face, P, documented
from ..differentiable import nll_batch, tested
from . import _resident as resident

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Concatenate, TypeAlias

    from .._quantities import Definition, Quantity
    from ..differentiable import DifferentiableSession

    Inputs: TypeAlias = "torch.Tensor | Mapping[str, torch.Tensor]"
    Tested: TypeAlias = "float | torch.Tensor"


def _on_host(session: DifferentiableSession, tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor in double precision, contiguous, on the CPU; itself if it is that."""
    if tensor.device.type != "cpu" and not session.host_copy:
        error = DeviceError(f"the inputs are on `{tensor.device}`, and this is computed on the CPU")
        hint = "`DifferentiableSession(..., host_copy=True)` copies them and the gradients"
        raise with_hint(error, hint)
    return tensor.detach().to(device="cpu", dtype=torch.float64).contiguous()


def _of_host(
    session: DifferentiableSession,
    quantity: Quantity,
    batch: torch.Tensor,
    mu: Sequence[float],
    wants_gradient: bool,
) -> tuple[Any, Any, Any]:
    """Evaluates a batch on the host.

    Returns values (N × K) and, if wanted, gradients by inputs (N × K × M) and by tested values
    (N × K).
    """
    found = quantity(session._raw, _on_host(session, batch).numpy(), mu, wants_gradient)
    return tuple(None if part is None else torch.from_numpy(part) for part in found)  # type: ignore[return-value]


class _Evaluated(torch.autograd.Function):
    """Values of a quantity: K, or a single number, for each row of inputs.

    Inputs are (M) or (N × M); tested values are a tensor (N), or a number without a gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        mu: Any,
        session: DifferentiableSession,
        quantity: Quantity,
    ) -> torch.Tensor:
        wants_gradient = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        rows = inputs.detach().reshape(-1, inputs.shape[-1])
        if resident.serves(session, quantity, inputs):
            values_of_mu = tested(mu.tolist() if isinstance(mu, torch.Tensor) else mu, len(rows))
            found = resident.evaluated(session, quantity, rows, values_of_mu, wants_gradient)
        else:
            on_host = _on_host(session, mu).numpy() if isinstance(mu, torch.Tensor) else mu
            values_of_mu = tested(on_host, len(rows))
            found = _of_host(session, quantity, rows, values_of_mu, wants_gradient)
        like = {"device": inputs.device, "dtype": inputs.dtype}
        if wants_gradient:
            ctx.session, ctx.quantity = session, quantity
            given = mu
            if not isinstance(mu, torch.Tensor):
                given = torch.tensor(values_of_mu, dtype=torch.float64).expand(len(rows))
            ctx.save_for_backward(inputs, given, found[1].to(**like), found[2].to(**like))
        shape = (*inputs.shape[:-1], *(() if quantity.n_values is None else (quantity.n_values,)))
        return found[0].reshape(shape).to(**like)

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        inputs, mu, by_inputs, by_mu = ctx.saved_tensors
        if torch.is_grad_enabled():
            by_inputs, by_mu = _Gradients.apply(
                inputs, mu, by_inputs.detach(), by_mu.detach(), ctx.session, ctx.quantity
            )
        weights = upstream[0].reshape(by_mu.shape)
        of_inputs = of_mu = None
        if ctx.needs_input_grad[0]:
            of_inputs = (weights.unsqueeze(-1) * by_inputs).sum(1).reshape(inputs.shape)
        if ctx.needs_input_grad[1]:
            of_mu = (weights * by_mu).sum(1).to(mu)
        return of_inputs, of_mu, None, None


class _Gradients(torch.autograd.Function):
    """Gradients by inputs (N × K × M) and by tested values (N × K) as functions of both.

    Where second derivatives are not given, their derivatives are an error, not a silent zero.
    """

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, mu: torch.Tensor, by_inputs: torch.Tensor, by_mu: torch.Tensor, session: Any, quantity: Quantity) -> Any:
        ctx.session, ctx.quantity = session, quantity
        ctx.save_for_backward(inputs, mu)
        return by_inputs.clone(), by_mu.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        session, quantity = ctx.session, ctx.quantity
        if quantity.twice is None:
            raise NotImplementedError(ONCE)

        def product(inputs: torch.Tensor, mu: torch.Tensor, along: torch.Tensor, along_mu: torch.Tensor) -> Any:
            at, of_mu, direction, direction_of_mu = (_on_host(session, given).numpy() for given in (inputs, mu, along, along_mu))
            rows = at.reshape(-1, at.shape[-1])
            by_inputs, by_mu = quantity.product(session._raw, rows, of_mu.tolist(), direction.reshape(rows.shape), direction_of_mu.tolist())
            return by_inputs.reshape(at.shape), by_mu

        inputs, mu = (_Point.apply(given) for given in ctx.saved_tensors)
        of_inputs, of_mu = _HessianProduct.apply(inputs, mu, upstream[0].reshape(inputs.shape), upstream[1].squeeze(1), product)
        return of_inputs, of_mu, None, None, None, None


class _Nll(torch.autograd.Function):
    """-ln L at parameters (P, or N × P) and inputs (M, or N × M)."""

    @staticmethod
    def forward(ctx: Any, params: torch.Tensor, inputs: torch.Tensor, session: DifferentiableSession) -> torch.Tensor:
        ctx.session = session
        if resident.is_there(session, inputs):
            value, by_params, by_inputs = resident.nll(session, params, inputs)
        else:
            point, given = _on_host(session, params).numpy(), _on_host(session, inputs).numpy()
            of = session._raw.nll if point.ndim == given.ndim == 1 else functools.partial(nll_batch, session._raw)
            value, by_params, by_inputs = (torch.as_tensor(part, dtype=torch.float64) for part in of(point, given))
        ctx.save_for_backward(params, inputs, by_params.to(params), by_inputs.to(inputs))
        return value.to(inputs)

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        params, inputs, by_params, by_inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            # One point, or one row of inputs, for all.
            rows = by_params.shape[:-1]
            at = (params.expand(*rows, -1), inputs.expand(*rows, -1))
            by_params, by_inputs = _NllGradient.apply(*at, by_params.detach(), by_inputs.detach(), ctx.session)
        weights = upstream[0].unsqueeze(-1)
        return (weights * by_params).sum_to_size(params.shape), (weights * by_inputs).sum_to_size(inputs.shape), None


class _NllGradient(torch.autograd.Function):
    """Both gradients of -ln L as functions of the point.

    Their derivatives are products with the exact Hessian.
    """

    @staticmethod
    def forward(ctx: Any, params: torch.Tensor, inputs: torch.Tensor, by_params: torch.Tensor, by_inputs: torch.Tensor, session: Any) -> Any:
        ctx.session = session
        ctx.save_for_backward(params, inputs)
        return by_params.clone(), by_inputs.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        session = ctx.session

        def product(*given: torch.Tensor) -> Any:
            # One product after the other, each of one row of all four tensors.
            on_host = [_on_host(session, one) for one in given]
            rows = zip(*(one.reshape(-1, one.shape[-1]).numpy() for one in on_host))
            found = [_nll_product(session, *row) for row in rows]
            return tuple(np.stack(part).reshape(like.shape) for part, like in zip(zip(*found), on_host))

        params, inputs = (_Point.apply(given) for given in ctx.saved_tensors)
        of_params, of_inputs = _HessianProduct.apply(params, inputs, *upstream, product)
        return of_params, of_inputs, None, None, None


def _nll_product(session: DifferentiableSession, *row: Any) -> tuple[Any, Any]:
    params, inputs, along_params, along_inputs = row
    at = {"params": params, "inputs": inputs}
    return session._raw.hessian_product(at, {"params": along_params, "inputs": along_inputs})


class _Point(torch.autograd.Function):
    """The point of a Hessian: derivatives by it are an error, not a silent zero."""

    @staticmethod
    def forward(ctx: Any, at: torch.Tensor) -> torch.Tensor:
        return at.clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise NotImplementedError(TWICE)


class _HessianProduct(torch.autograd.Function):
    """The product of the Hessian by two kinds of numbers with a direction.

    It is linear in the direction; `_Point` refuses derivatives by the point.
    """

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, second: torch.Tensor, along_first: torch.Tensor, along_second: torch.Tensor, product: Any) -> Any:
        ctx.product = product
        ctx.save_for_backward(first, second)
        of_first, of_second = product(first, second, along_first, along_second)
        return torch.from_numpy(of_first).to(first), torch.from_numpy(of_second).to(second)

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        first, second = ctx.saved_tensors
        # The Hessian is symmetric.
        of_first, of_second = _HessianProduct.apply(first, second, *upstream, ctx.product)
        return torch.zeros_like(first), torch.zeros_like(second), of_first, of_second, None


def _flat(session: DifferentiableSession, inputs: Inputs) -> torch.Tensor:
    """Returns one tensor of inputs, also of blocks that are given by name."""
    if not isinstance(inputs, Mapping):
        if not isinstance(inputs, torch.Tensor):
            kind = type(inputs).__name__
            raise TypeError(
                f"inputs are a tensor, or a dictionary of tensors by names of blocks, not `{kind}`"
            )
        return inputs
    for name in inputs:
        session.block(name)
    if not inputs:
        return torch.from_numpy(session.values.copy())
    like = next(iter(inputs.values()))
    own = torch.as_tensor(session.values.copy(), dtype=like.dtype, device=like.device)
    parts = (
        _part(inputs[block.name], block) if block.name in inputs else own[block.start : block.stop]
        for block in session.blocks
    )
    return torch.cat(list(parts))


def _part(tensor: torch.Tensor, block: Any) -> torch.Tensor:
    length = block.stop - block.start
    if tensor.numel() != length:
        raise ValueError(f"`{block.name}` has {length} bins, and {tensor.numel()} values were given")
    return tensor.reshape(length)


def evaluate(
    session: DifferentiableSession, quantity: Quantity, inputs: Inputs, mu: Tested = 0.0
) -> torch.Tensor:
    """Returns the quantity: a number or K of them, for a batch a row of each."""
    given = _flat(session, inputs)
    if given.dim() not in (1, 2) or not given.dtype.is_floating_point:
        raise ValueError(f"inputs are floating-point numbers (M) or (N, M), not {_kind(given)}")
    if isinstance(mu, torch.Tensor) and mu.numel() == 1:
        mu = mu.reshape(1).expand(given.shape[0] if given.dim() == 2 else 1)
    return _Evaluated.apply(given, mu, session, quantity)  # type: ignore[no-any-return]


def _kind(given: Any) -> str:
    if isinstance(given, torch.Tensor):
        return f"{given.dtype} of shape {tuple(given.shape)}"
    return f"`{type(given).__name__}`"


def nll(session: DifferentiableSession, params: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Returns -ln L of the data at `params` (P) and `inputs` (M), or at N rows of either or both.

    It can be differentiated twice. Outside the domain it is +∞, with gradients of NaN.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, nll
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> session = DifferentiableSession(model, "signal")
    >>> params = torch.tensor(model.init, requires_grad=True)
    >>> round(nll(session, params, torch.tensor(session.values.copy())).item(), 4)
    12.7994
    """
    given = _flat(session, inputs)
    if not isinstance(params, torch.Tensor) or params.dim() not in (1, 2) or not params.dtype.is_floating_point:
        kind = _kind(params)
        raise ValueError(f"parameters are floating-point numbers (P) or (N, P), not {kind}")
    if given.dim() not in (1, 2) or not given.dtype.is_floating_point:
        kind = _kind(given)
        raise ValueError(f"inputs of `nll` are floating-point numbers (M) or (N, M), not {kind}")
    if params.dim() == given.dim() == 2 and len(params) != len(given):
        raise ValueError(f"{len(params)} parameter vectors and {len(given)} of inputs")
    return _Nll.apply(params, given, session)  # type: ignore[no-any-return]


_FACE = Face(
    module="nextstat.torch",
    setup="import nextstat, torch",
    inputs="torch.tensor(session.values.copy())",
    as_number="{}.item()",
    input_type="Inputs",
    mu_type="Tested",
    result_type="torch.Tensor",
)


def _function(
    definition: Definition[P],
) -> Callable[Concatenate[DifferentiableSession, Inputs, P], torch.Tensor]:
    """Returns the function of a session and its inputs that evaluates a quantity."""

    def function(
        session: DifferentiableSession, inputs: Inputs, *args: P.args, **kwargs: P.kwargs
    ) -> torch.Tensor:
        quantity, mu = definition.request(*args, **kwargs)
        return evaluate(session, quantity, inputs, mu)

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
