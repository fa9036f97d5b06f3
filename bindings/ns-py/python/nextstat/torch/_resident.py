"""Tensors in the memory of a session's device, which reads them and writes gradients in place.

A call waits for the work that PyTorch's current stream has been given, and returns when the device
is done, so that any stream may use the results. Tensors of other precisions, or that are not
contiguous, are converted on their device. The host gets the tested values, parameters and -ln L of
the fits, gradients by the parameters where same-sign systematics are reflected, and of each batch
element the first input that no template can have. Elements whose fits did not converge on the
device, and those where another minimum was found or may exist, are copied to the host, which
computes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import _nextstat
from .._errors import with_hint
from .._nextstat import DeviceError, GradientError
from .._quantities import of_q0

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._quantities import Quantity
    from ..differentiable import DifferentiableSession


def is_there(session: DifferentiableSession, inputs: torch.Tensor) -> bool:
    """Returns whether the tensor is in the memory of the session's device."""
    if session._raw.resident_on != inputs.device.type:
        return False
    if inputs.device.index in (None, 0) or session.host_copy:
        return inputs.device.index in (None, 0)
    kind = inputs.device.type
    error = DeviceError(
        f"the inputs are on `{inputs.device}`, and the session's device is `{kind}:0`"
    )
    raise with_hint(error, "move them, or copy them with `DifferentiableSession(..., host_copy=True)`")


def serves(session: DifferentiableSession, quantity: Quantity, inputs: torch.Tensor) -> bool:
    """Returns whether the device computes the quantity of such a tensor.

    It does so for minima and statistics of the observed data.
    """
    is_statistic = quantity.method == "statistic" and not quantity.arguments[1]
    return (quantity.method == "profiled_nll" or is_statistic) and is_there(session, inputs)


def _stream(tensor: torch.Tensor) -> int:
    if tensor.device.type != "cuda":
        return 0
    return torch.cuda.current_stream(tensor.device).cuda_stream  # type: ignore[no-any-return]


def _prepared(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Returns the tensor contiguous and in double precision; itself if it is that already."""
    if tensor.device != like.device:
        raise ValueError(f"parameters are on `{tensor.device}` and inputs on `{like.device}`")
    return tensor.detach().to(torch.float64).contiguous()


def _memory(tensor: torch.Tensor) -> dict[str, int]:
    """Returns the place of a tensor, as the extension module takes it."""
    return {"address": tensor.data_ptr(), "n_rows": len(tensor) if tensor.dim() == 2 else 1}


class _Output:
    """Tensors for -ln L (N) and its gradients by parameters (N × P) and by inputs (N × M)."""

    def __init__(self, session: DifferentiableSession, n: int, device: torch.device) -> None:
        def empty(*shape: int) -> torch.Tensor:
            return torch.empty(shape, dtype=torch.float64, device=device)

        self.values = empty(n)
        self.by_params = empty(n, len(session.model.init))
        self.by_inputs = empty(n, session.n_inputs)

    @property
    def addresses(self) -> dict[str, int]:
        return {
            "values": self.values.data_ptr(),
            "by_params": self.by_params.data_ptr(),
            "by_inputs": self.by_inputs.data_ptr(),
        }


def _require_width(what: str, tensor: torch.Tensor, width: int) -> None:
    if tensor.shape[-1] != width:
        raise ValueError(f"{tensor.shape[-1]} {what} were given, and there are {width}")


def nll(
    session: DifferentiableSession, params: torch.Tensor, inputs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns -ln L and its gradients by parameters and by inputs.

    They are vectors for vectors, and have rows if either argument has rows.
    """
    _require_width("parameters", params, len(session.model.init))
    _require_width("inputs", inputs, session.n_inputs)
    point, given = _prepared(params, inputs), _prepared(inputs, inputs)
    n_points, n_inputs = _memory(point)["n_rows"], _memory(given)["n_rows"]
    n_batch = max(n_points, n_inputs) if len(point) and len(given) else 0
    output = _Output(session, n_batch, inputs.device)
    if n_batch:
        wanted = {
            "stream": _stream(inputs),
            "n_batch": n_batch,
            "params": _memory(point),
            "inputs": _memory(given),
            "output": output.addresses,
        }
        _nextstat.nll_resident(session._raw, wanted)
    found = (output.values, output.by_params, output.by_inputs)
    is_single = point.dim() == given.dim() == 1
    return tuple(part[0] for part in found) if is_single else found  # type: ignore[return-value]


def evaluated(
    session: DifferentiableSession,
    quantity: Quantity,
    batch: torch.Tensor,
    mu: Sequence[float],
    wants_gradient: bool,
) -> tuple[Any, Any, Any]:
    """Evaluates a quantity that the device serves.

    Returns values (N × 1) and, if wanted, gradients by inputs (N × 1 × M) and by tested values
    (N × 1).
    """
    _require_width("inputs", batch, session.n_inputs)
    given = _prepared(batch, batch)
    each = [float(one) for one in mu] * (len(given) if len(mu) == 1 else 1)
    compute = _minimum if quantity.method == "profiled_nll" else _statistic
    values, by_inputs, by_mu, left = compute(session, quantity, given, each, wants_gradient)
    if left:
        _finish(session, quantity, given, each, (left, values, by_inputs, by_mu))
    if wants_gradient:
        bad = ~(torch.isfinite(by_inputs).all(1) & torch.isfinite(by_mu))
        if bool(bad.any()):
            element = int(bad.nonzero()[0])
            place = f"batch element {element} of {len(bad)}: " if len(bad) > 1 else ""
            raise GradientError(f"{place}the gradient of `{quantity.method}` is not finite")
    if quantity.then is not None:
        values, by_inputs, by_mu = _then(quantity.then, values, by_inputs, by_mu)
    found = (values, by_inputs, by_mu)
    return tuple(None if part is None else part.unsqueeze(1) for part in found)  # type: ignore[return-value]


def _minimum(
    session: DifferentiableSession,
    quantity: Quantity,
    given: torch.Tensor,
    mu: list[float],
    wants_gradient: bool,
) -> Any:
    is_fixed = quantity.arguments[0]
    output = _Output(session, len(given), given.device) if wants_gradient else None
    wanted = {
        "stream": _stream(given),
        "inputs": _memory(given),
        "mu": mu if is_fixed else None,
        "output": output.addresses if output else None,
    }
    found = _nextstat.profiled_nll_resident(session._raw, wanted)
    values = torch.tensor(found["values"], dtype=torch.float64, device=given.device)
    if output is None:
        return values, None, None, found["left"]
    poi = session.model.poi_index
    by_mu = output.by_params[:, poi] if is_fixed else torch.zeros_like(values)
    return values, output.by_inputs, by_mu.clone(), found["left"]


def _statistic(
    session: DifferentiableSession,
    quantity: Quantity,
    given: torch.Tensor,
    mu: list[float],
    wants_gradient: bool,
) -> Any:
    test_stat, n = quantity.arguments[0], len(given)
    output = _Output(session, 2 * n, given.device) if wants_gradient else None
    wanted = {
        "stream": _stream(given),
        "inputs": _memory(given),
        "test_stat": test_stat,
        "mu": mu,
        "output": output.addresses if output else None,
    }
    found = _nextstat.statistic_resident(session._raw, wanted)
    values = torch.tensor(found["values"], dtype=torch.float64, device=given.device)
    if output is None:
        return values, None, None, found["left"]
    # Of both minima, the conditional ones first; where the statistic is constant, zero.
    varies = values != 0
    zero = torch.zeros((), dtype=torch.float64, device=given.device)
    rise = 2 * (output.by_inputs[:n] - output.by_inputs[n:])
    by_inputs = torch.where(varies.unsqueeze(1), rise, zero)
    by_mu = torch.zeros_like(values)
    if test_stat != "q0":
        by_mu = torch.where(varies, 2 * output.by_params[:n, session.model.poi_index], zero)
    return values, by_inputs, by_mu, found["left"]


def _finish(
    session: DifferentiableSession,
    quantity: Quantity,
    given: torch.Tensor,
    mu: list[float],
    into: tuple[list[int], Any, Any, Any],
) -> None:
    """Computes the elements that are left on the host, and writes them `into` the values.

    The host raises the error of an element whose fit does not converge there either.
    """
    left, values, by_inputs, by_mu = into
    test_stat = quantity.arguments[0] if quantity.method == "statistic" else None
    is_tested = test_stat is not None or quantity.arguments[0]
    for element in left:
        wanted = {
            "test_stat": test_stat,
            "mu": mu[element] if is_tested else None,
            "place": {"batch_element": element, "n_batch": len(given)},
        }
        on_host = given[element].cpu().numpy()
        value, gradient, derivative = _nextstat.element_on_host(session._raw, on_host, wanted)
        values[element] = value
        if by_inputs is not None:
            by_inputs[element], by_mu[element] = torch.from_numpy(gradient).to(given), derivative


def _then(name: str, values: torch.Tensor, by_inputs: Any, by_mu: Any) -> tuple[Any, Any, Any]:
    """Returns the significance or the p-value of q₀, computed on the host (N numbers)."""
    found = of_q0(name, values.cpu().numpy())
    value, derivative = (torch.from_numpy(part).to(values) for part in found)
    if by_inputs is None:
        return value, None, None
    return value, derivative.unsqueeze(1) * by_inputs, derivative * by_mu
