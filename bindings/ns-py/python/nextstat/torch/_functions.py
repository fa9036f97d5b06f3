"""The functions: values and gradients of a session, as nodes of PyTorch's graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._common import DeviceError, with_hint
from ..differentiable import ONCE, TWICE, Quantities, nll_rows, tested
from . import _resident as resident

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ..differentiable import DifferentiableSession, Quantity

    Inputs: TypeAlias = "torch.Tensor | Mapping[str, torch.Tensor]"
    Tested: TypeAlias = "float | torch.Tensor"


def _on_host(session: DifferentiableSession, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's numbers in double precision, contiguous, on the CPU: the tensor itself where it is that already."""
    if tensor.device.type != "cpu" and not session.host_copy:
        error = DeviceError(f"the inputs are on `{tensor.device}`, and this is computed on the CPU")
        raise with_hint(error, "`DifferentiableSession(..., host_copy=True)` copies them to the host and the gradients back")
    return tensor.detach().to(device="cpu", dtype=torch.float64).contiguous()


def _of_host(session: DifferentiableSession, quantity: Quantity, rows: torch.Tensor, mu: Sequence[float], wants_slopes: bool) -> tuple[Any, Any, Any]:
    """Values (N × K) and slopes by inputs (N × K × M) and by tested values (N × K), where they are wanted, of rows that are read on the host."""
    found = quantity(session._raw, _on_host(session, rows).numpy(), mu, wants_slopes)
    return tuple(None if part is None else torch.from_numpy(part) for part in found)  # type: ignore[return-value]


class _Evaluated(torch.autograd.Function):
    """Values of a quantity from inputs (M, or N × M) and tested values (N, or one for all that has no gradient): K, or one that is none, of each row."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, mu: Any, session: DifferentiableSession, quantity: Quantity) -> torch.Tensor:
        wants_slopes = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        rows = inputs.detach().reshape(-1, inputs.shape[-1])
        if resident.serves(session, quantity, inputs):
            values_of_mu = tested(mu.tolist() if isinstance(mu, torch.Tensor) else mu, len(rows))
            found = resident.evaluated(session, quantity, rows, values_of_mu, wants_slopes)
        else:
            values_of_mu = tested(_on_host(session, mu).numpy() if isinstance(mu, torch.Tensor) else mu, len(rows))
            found = _of_host(session, quantity, rows, values_of_mu, wants_slopes)
        like = {"device": inputs.device, "dtype": inputs.dtype}
        if wants_slopes:
            ctx.session, ctx.quantity = session, quantity
            given = mu if isinstance(mu, torch.Tensor) else torch.tensor(values_of_mu, dtype=torch.float64).expand(len(rows))
            ctx.save_for_backward(inputs, given, found[1].to(**like), found[2].to(**like))
        shape = (*inputs.shape[:-1], *(() if quantity.n_values is None else (quantity.n_values,)))
        return found[0].reshape(shape).to(**like)

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        inputs, mu, by_inputs, by_mu = ctx.saved_tensors
        if torch.is_grad_enabled():
            by_inputs, by_mu = _Slopes.apply(inputs, mu, by_inputs.detach(), by_mu.detach(), ctx.session, ctx.quantity)
        weights = upstream[0].reshape(by_mu.shape)
        of_inputs = (weights.unsqueeze(-1) * by_inputs).sum(1).reshape(inputs.shape) if ctx.needs_input_grad[0] else None
        of_mu = (weights * by_mu).sum(1).to(mu) if ctx.needs_input_grad[1] else None
        return of_inputs, of_mu, None, None


class _Slopes(torch.autograd.Function):
    """Slopes by inputs (N × K × M) and by tested values (N × K) as functions of both: an error, not a silent zero, where second derivatives are not given."""

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
            of = session._raw.nll if point.ndim == given.ndim == 1 else functools.partial(nll_rows, session._raw)
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
    """Both gradients of -ln L as functions of the point; their derivatives are products with the exact Hessian."""

    @staticmethod
    def forward(ctx: Any, params: torch.Tensor, inputs: torch.Tensor, by_params: torch.Tensor, by_inputs: torch.Tensor, session: Any) -> Any:
        ctx.session = session
        ctx.save_for_backward(params, inputs)
        return by_params.clone(), by_inputs.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        session = ctx.session

        def product(*given: torch.Tensor) -> Any:
            # One product after the other, each of a row of all four.
            on_host = [_on_host(session, one) for one in given]
            rows = zip(*(one.reshape(-1, one.shape[-1]).numpy() for one in on_host))
            found = [session._raw.hessian_product(*row) for row in rows]
            return tuple(np.stack(part).reshape(like.shape) for part, like in zip(zip(*found), on_host))

        params, inputs = (_Point.apply(given) for given in ctx.saved_tensors)
        of_params, of_inputs = _HessianProduct.apply(params, inputs, *upstream, product)
        return of_params, of_inputs, None, None, None


class _Point(torch.autograd.Function):
    """Where a Hessian is taken: asking how that depends on the point is an error, not a silent zero."""

    @staticmethod
    def forward(ctx: Any, at: torch.Tensor) -> torch.Tensor:
        return at.clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise NotImplementedError(TWICE)


class _HessianProduct(torch.autograd.Function):
    """The product of the Hessian by two kinds of numbers with a direction, in which it is linear; that it depends on the point too is for `_Point` to say."""

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
    """One tensor of inputs, where blocks are given by name."""
    if not isinstance(inputs, Mapping):
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"inputs are a tensor, or a dictionary of tensors by the names of blocks, not `{type(inputs).__name__}`")
        return inputs
    for name in inputs:
        session.block(name)
    if not inputs:
        return torch.from_numpy(session.values.copy())
    like = next(iter(inputs.values()))
    own = torch.as_tensor(session.values.copy(), dtype=like.dtype, device=like.device)
    return torch.cat([_part(inputs[block.name], block) if block.name in inputs else own[block.start : block.stop] for block in session.blocks])


def _part(tensor: torch.Tensor, block: Any) -> torch.Tensor:
    length = block.stop - block.start
    if tensor.numel() != length:
        raise ValueError(f"`{block.name}` has {length} bins, and {tensor.numel()} values were given")
    return tensor.reshape(length)


def evaluate(session: DifferentiableSession, quantity: Quantity, inputs: Inputs, mu: Tested = 0.0) -> torch.Tensor:
    """The quantity: a number or K of them, for a batch a row of each."""
    given = _flat(session, inputs)
    if given.dim() not in (1, 2) or not given.dtype.is_floating_point:
        raise ValueError(f"inputs are floating-point numbers (M) or (N, M), not {_kind(given)}")
    if isinstance(mu, torch.Tensor) and mu.numel() == 1:
        mu = mu.reshape(1).expand(given.shape[0] if given.dim() == 2 else 1)
    return _Evaluated.apply(given, mu, session, quantity)  # type: ignore[no-any-return]


def _kind(given: Any) -> str:
    return f"{given.dtype} of shape {tuple(given.shape)}" if isinstance(given, torch.Tensor) else f"`{type(given).__name__}`"


def nll(session: DifferentiableSession, params: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """-ln L of the data at `params` (P) and `inputs` (M), or at N rows of either or both; differentiable twice. Outside the domain +∞, with gradients of NaN.

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
        raise ValueError(f"parameters are a tensor of floating-point numbers (P) or (N, P), not {_kind(params)}")
    if given.dim() not in (1, 2) or not given.dtype.is_floating_point:
        raise ValueError(f"inputs of `nll` are floating-point numbers (M) or (N, M), not {_kind(given)}")
    if params.dim() == given.dim() == 2 and len(params) != len(given):
        raise ValueError(f"{len(params)} rows of parameters and {len(given)} of inputs")
    return _Nll.apply(params, given, session)  # type: ignore[no-any-return]


def profiled_nll(session: DifferentiableSession, inputs: Inputs, mu: Tested | None = None) -> torch.Tensor:
    """The minimum of -ln L over the parameters, with the parameter of interest at `mu` if that is given; differentiable twice.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, profiled_nll
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(profiled_nll(session, torch.tensor(session.values.copy()), 0.0).item(), 4)
    13.5296
    """
    return evaluate(session, Quantities.profiled_nll(mu is not None), inputs, 0.0 if mu is None else mu)


def q0(session: DifferentiableSession, inputs: Inputs, *, asimov: bool = False) -> torch.Tensor:
    """q₀, the statistic of a discovery (arXiv:1007.1727, eq. 12): of the data, or of the Asimov data of a signal of strength 1.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, q0
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(q0(session, torch.tensor(session.values.copy())).item(), 4)
    1.7498
    """
    return evaluate(session, Quantities.statistic("q0", asimov), inputs)


def q_mu(session: DifferentiableSession, inputs: Inputs, mu: Tested, *, asimov: bool = False) -> torch.Tensor:
    """q_μ, the statistic of upper limits (eq. 14): of the data, or of the Asimov data of the background. `mu` may be a tensor too.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, q_mu
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(q_mu(session, torch.tensor(session.values.copy()), 1.5).item(), 4)
    1.8189
    """
    return evaluate(session, Quantities.statistic("q", asimov), inputs, mu)


def q_mu_tilde(session: DifferentiableSession, inputs: Inputs, mu: Tested, *, asimov: bool = False) -> torch.Tensor:
    """q̃_μ, the same for a parameter of interest that is not negative (eq. 16).

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, q_mu_tilde
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(q_mu_tilde(session, torch.tensor(session.values.copy()), 1.0, asimov=True).item(), 4)
    3.2294
    """
    return evaluate(session, Quantities.statistic("qtilde", asimov), inputs, mu)


def cls(session: DifferentiableSession, inputs: Inputs, mu: Tested = 1.0, *, test_stat: str = "qtilde", kind: str = "CLs") -> torch.Tensor:
    """CLs by asymptotic formulas: observed, then expected at -2, -1, 0, +1, +2 standard deviations of the background (6).

    Parameters
    ----------
    mu : float or tensor
        The tested value, or one for each row.
    test_stat : ``"qtilde"``, ``"q"`` or ``"q0"``
        For `q0` CLs is the p-value of the background.
    kind : ``"CLs"``, ``"CLsb"`` or ``"CLb"``

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, cls
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> cls(session, torch.tensor(session.values.copy())).numpy().round(5)
    array([0.34567, 0.00322, 0.01625, 0.07233, 0.25283, 0.59393])
    """
    return evaluate(session, Quantities.p_values(test_stat, kind), inputs, mu)


def p_value(session: DifferentiableSession, inputs: Inputs, *, asimov: bool = False) -> torch.Tensor:
    """The p-value of the background, 1 - Φ(√q₀) (eq. 53).

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, p_value
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(p_value(session, torch.tensor(session.values.copy())).item(), 4)
    0.0929
    """
    return evaluate(session, Quantities.of_q0("p_value", asimov), inputs)


def significance(session: DifferentiableSession, inputs: Inputs, *, asimov: bool = False) -> torch.Tensor:
    """The significance of a discovery, √q₀ (eq. 53): observed, or expected of a signal of strength 1.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, significance
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(significance(session, torch.tensor(session.values.copy()), asimov=True).item(), 4)
    1.8309
    """
    return evaluate(session, Quantities.of_q0("significance", asimov), inputs)


def upper_limit(
    session: DifferentiableSession,
    inputs: Inputs,
    *,
    which: str | float | Sequence[str | float] = 0.0,
    level: float = 0.05,
    test_stat: str = "qtilde",
) -> torch.Tensor:
    """The upper limit on the parameter of interest where CLs is `level`.

    Parameters
    ----------
    which : ``"observed"``, float, or several
        The observed limit, or the one expected if the background fluctuates by as many standard deviations.
    level : float
        0.05 for limits at 95% confidence level.
    test_stat : ``"qtilde"`` or ``"q"``

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, upper_limit
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> upper_limit(session, torch.tensor(session.values.copy()), which=["observed", -1, 0, 1]).numpy().round(4)
    array([1.7053, 0.7795, 1.0943, 1.547 ])
    """
    return evaluate(session, Quantities.limit(which, level, test_stat), inputs)


def sigma_mu(session: DifferentiableSession, inputs: Inputs, *, mu: float | None = None) -> torch.Tensor:
    """σ(μ̂) from the exact Hessian: at the best fit of the data, or of the Asimov data of `mu`.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, sigma_mu
    >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
    >>> round(sigma_mu(session, torch.tensor(session.values.copy()), mu=1.0).item(), 4)
    0.5652
    """
    return evaluate(session, Quantities.sigma(mu), inputs)
