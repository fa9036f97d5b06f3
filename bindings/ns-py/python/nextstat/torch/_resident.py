"""Tensors that are in the memory of a session's device: it reads them where they are and writes gradients into tensors of theirs.

A call waits for what PyTorch's current stream has been given, and returns when the device is done,
so that any stream may use the results. Tensors of other precisions, or that are not contiguous, are
converted on their device. What passes through the host: the tested values, parameters and -ln L of
the fits, slopes by the parameters where minima are looked for across folds, and of each row which
input no template can have. Rows whose fits have not arrived on the device, and those where another
minimum was found or may be hidden, are copied to the host, which does them anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import _nextstat
from .._common import DeviceError, with_hint
from ..differentiable import GradientError, of_q0

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..differentiable import DifferentiableSession, Quantity


def is_there(session: DifferentiableSession, inputs: torch.Tensor) -> bool:
    """Whether the tensor is in the memory of the session's device."""
    if session._raw.resident_on != inputs.device.type:
        return False
    if inputs.device.index in (None, 0) or session.host_copy:
        return inputs.device.index in (None, 0)
    error = DeviceError(f"the inputs are on `{inputs.device}`, and the session's device is `{inputs.device.type}:0`")
    raise with_hint(error, "move them, or copy them with `DifferentiableSession(..., host_copy=True)`")


def serves(session: DifferentiableSession, quantity: Quantity, inputs: torch.Tensor) -> bool:
    """Whether the quantity of such a tensor is the device's: minima and statistics of the observed data are."""
    is_observed = quantity.method == "profiled_nll" or (quantity.method == "statistic" and not quantity.arguments[1])
    return is_observed and is_there(session, inputs)


def _stream(tensor: torch.Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.device.type == "cuda" else 0  # type: ignore[no-any-return]


def _prepared(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Contiguous and in double precision: the tensor itself where it is that already."""
    if tensor.device != like.device:
        raise ValueError(f"parameters are on `{tensor.device}` and inputs on `{like.device}`")
    return tensor.detach().to(torch.float64).contiguous()


def _rows(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and number of rows."""
    return tensor.data_ptr(), len(tensor) if tensor.dim() == 2 else 1


class _Room:
    """Tensors that the device writes -ln L (N) and its gradients by parameters (N × P) and by inputs (N × M) into."""

    def __init__(self, session: DifferentiableSession, n: int, device: torch.device) -> None:
        def empty(*shape: int) -> torch.Tensor:
            return torch.empty(shape, dtype=torch.float64, device=device)

        self.values, self.by_params, self.by_inputs = empty(n), empty(n, len(session.model.init)), empty(n, session.n_inputs)

    @property
    def addresses(self) -> tuple[int, int, int]:
        return self.values.data_ptr(), self.by_params.data_ptr(), self.by_inputs.data_ptr()


def _require_width(what: str, tensor: torch.Tensor, width: int) -> None:
    if tensor.shape[-1] != width:
        raise ValueError(f"{tensor.shape[-1]} {what} were given, and there are {width}")


def nll(session: DifferentiableSession, params: torch.Tensor, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """-ln L and its gradients by parameters and by inputs: vectors for vectors, rows where either has rows."""
    _require_width("parameters", params, len(session.model.init))
    _require_width("inputs", inputs, session.n_inputs)
    point, given = _prepared(params, inputs), _prepared(inputs, inputs)
    is_single = point.dim() == given.dim() == 1
    n = max(_rows(point)[1], _rows(given)[1]) if len(point) and len(given) else 0
    room = _Room(session, n, inputs.device)
    if n:
        _nextstat.nll_resident(session._raw, _stream(inputs), n, _rows(point), _rows(given), room.addresses)
    found = (room.values, room.by_params, room.by_inputs)
    return tuple(part[0] for part in found) if is_single else found  # type: ignore[return-value]


def evaluated(session: DifferentiableSession, quantity: Quantity, rows: torch.Tensor, mu: Sequence[float], wants_slopes: bool) -> tuple[Any, Any, Any]:
    """Values (N × 1) of a quantity that the device serves, and slopes by inputs (N × 1 × M) and by tested values (N × 1), where they are wanted."""
    _require_width("inputs", rows, session.n_inputs)
    given = _prepared(rows, rows)
    each = [float(one) for one in mu] * (len(given) if len(mu) == 1 else 1)
    of = _minimum if quantity.method == "profiled_nll" else _statistic
    values, by_inputs, by_mu, left = of(session, quantity, given, each, wants_slopes)
    if left:
        _finish(session, quantity, given, each, left, (values, by_inputs, by_mu))
    if wants_slopes:
        bad = ~(torch.isfinite(by_inputs).all(1) & torch.isfinite(by_mu))
        if bool(bad.any()):
            row = f"row {int(bad.nonzero()[0])} of {len(bad)}: " if len(bad) > 1 else ""
            raise GradientError(f"{row}the gradient of `{quantity.method}` is not finite")
    if quantity.then is not None:
        values, by_inputs, by_mu = _then(quantity.then, values, by_inputs, by_mu)
    return values.unsqueeze(1), None if by_inputs is None else by_inputs.unsqueeze(1), None if by_mu is None else by_mu.unsqueeze(1)


def _minimum(session: DifferentiableSession, quantity: Quantity, given: torch.Tensor, mu: list[float], wants_slopes: bool) -> Any:
    is_held = quantity.arguments[0]
    room = _Room(session, len(given), given.device) if wants_slopes else None
    found, left = _nextstat.profiled_nll_resident(
        session._raw, _stream(given), _rows(given), mu if is_held else None, room.addresses if room else None
    )
    values = torch.tensor(found, dtype=torch.float64, device=given.device)
    if room is None:
        return values, None, None, left
    by_mu = room.by_params[:, session.model.poi_index] if is_held else torch.zeros_like(values)
    return values, room.by_inputs, by_mu.clone(), left


def _statistic(session: DifferentiableSession, quantity: Quantity, given: torch.Tensor, mu: list[float], wants_slopes: bool) -> Any:
    test_stat, n = quantity.arguments[0], len(given)
    room = _Room(session, 2 * n, given.device) if wants_slopes else None
    found, left = _nextstat.statistic_resident(session._raw, _stream(given), _rows(given), test_stat, mu, room.addresses if room else None)
    values = torch.tensor(found, dtype=torch.float64, device=given.device)
    if room is None:
        return values, None, None, left
    # Of both minima, the conditional ones first; where the statistic is constant it has no slopes.
    varies = values != 0
    zero = torch.zeros((), dtype=torch.float64, device=given.device)
    by_inputs = torch.where(varies.unsqueeze(1), 2 * (room.by_inputs[:n] - room.by_inputs[n:]), zero)
    by_mu = torch.where(varies, 2 * room.by_params[:n, session.model.poi_index], zero) if test_stat != "q0" else torch.zeros_like(values)
    return values, by_inputs, by_mu, left


def _finish(session: DifferentiableSession, quantity: Quantity, given: torch.Tensor, mu: list[float], left: list[int], into: tuple[Any, Any, Any]) -> None:
    """Lets the host do the rows `left`, which are copied there; it says why, where it does not arrive either."""
    test_stat = quantity.arguments[0] if quantity.method == "statistic" else None
    is_tested = test_stat is not None or quantity.arguments[0]
    for row in left:
        on_host = given[row].cpu().numpy()
        value, slopes, by_mu = _nextstat.row_on_host(session._raw, on_host, test_stat, mu[row] if is_tested else None, (row, len(given)))
        into[0][row] = value
        if into[1] is not None:
            into[1][row], into[2][row] = torch.from_numpy(slopes).to(given), by_mu


def _then(name: str, values: torch.Tensor, by_inputs: Any, by_mu: Any) -> tuple[Any, Any, Any]:
    """The significance or the p-value of q₀, which are N numbers of the host's."""
    value, slope = (torch.from_numpy(part).to(values) for part in of_q0(name, values.cpu().numpy()))
    if by_inputs is None:
        return value, None, None
    return value, slope.unsqueeze(1) * by_inputs, slope * by_mu
