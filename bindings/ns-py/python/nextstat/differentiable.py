"""Statistics as functions of templates, with exact gradients: what `nextstat.torch` and `nextstat.jax` stand on, for NumPy.

A session takes the histograms of chosen samples as one vector of inputs and returns profiled statistics of them with their derivatives: of minima by the
envelope theorem, of Asimov data, limits and σ by implicit differentiation with the exact Hessian. See the page `docs/differentiable.md`.

>>> import nextstat
>>> from nextstat.differentiable import DifferentiableSession
>>> model = nextstat.load_workspace("examples/simple.json")
>>> session = DifferentiableSession(model, "signal")
>>> session.values
array([12., 11.])
>>> limit = session.upper_limit(session.values)
>>> round(float(limit.value), 4), limit.by_inputs.round(4)
(1.0943, array([-0.0596, -0.0345]))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _nextstat
from ._common import DeviceError, real, settings
from ._nextstat import GradientError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from ._common import Bounds, Start
    from ._nextstat import Model

__all__ = ["Block", "DifferentiableSession", "Gradient", "GradientError", "Product", "ProfiledDifferentiableSession"]


class Block(NamedTuple):
    """Inputs that belong together: a histogram, or a factor of a normsys.

    Attributes
    ----------
    name : str
        ``channel/sample``, for variations with ``/parameter/hi`` or ``/parameter/lo``.
    channel, sample : str
    kind : str
        ``nominal``, ``histosys_hi``, ``histosys_lo``, ``normsys_hi`` or ``normsys_lo``.
    parameter : str or None
        The parameter of a variation.
    start, stop : int
        Where they are among the inputs.
    """

    name: str
    channel: str
    sample: str
    kind: str
    parameter: str | None
    start: int
    stop: int


class Gradient(NamedTuple):
    """Values with their derivatives.

    Attributes
    ----------
    value : array
        The value: a number, or K of them; with N rows of inputs one row for each.
    by_inputs : array
        Its derivatives by the inputs; the inputs are the last axis (M).
    by_mu : array
        Its derivative by the tested value of the parameter of interest; 0 where none is tested.
    """

    value: NDArray[np.float64]
    by_inputs: NDArray[np.float64]
    by_mu: NDArray[np.float64]


class Product(NamedTuple):
    """A Hessian by inputs and tested value, times a direction: how the gradient changes along it.

    Attributes
    ----------
    by_inputs : array
        Its part by the inputs (M); with N rows of inputs one row for each.
    by_mu : array
        Its part by the tested value of the parameter of interest; 0 where none is tested.
    """

    by_inputs: NDArray[np.float64]
    by_mu: NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """A function of a session's inputs: which method of the extension module gives it, and with what arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
    # Whether the tested values go first among the arguments after `arguments[0]`.
    takes_mu: bool = False
    # K, or None for a single number.
    n_values: int | None = None
    # Applied to q: `significance` or `p_value`.
    then: str | None = field(default=None)
    # Which method gives products with its Hessian; None where second derivatives are not given.
    twice: str | None = None

    def __call__(self, raw: Any, inputs: Any, mu: Sequence[float], gradient: bool) -> tuple[Any, Any, Any]:
        """Values (N × K), their derivatives by the inputs (N × K × M) and by the tested value (N × K)."""
        if self.takes_mu:
            found = getattr(raw, self.method)(inputs, self.arguments[0], mu, *self.arguments[1:], gradient)
        else:
            found = getattr(raw, self.method)(inputs, *self.arguments, gradient)
        return found if self.then is None else _of_q0(self.then, *found)

    def product(self, raw: Any, inputs: Any, mu: Sequence[float], along: Any, along_mu: Sequence[float]) -> tuple[Any, Any]:
        """Of every row the product of the Hessian by inputs and tested value with a direction: by inputs (N × M) and by the tested value (N)."""
        if self.twice is None:
            raise NotImplementedError(ONCE)
        by_inputs, by_mu = getattr(raw, self.twice)(inputs, self.arguments[0], mu, (along, along_mu))
        if self.then is None:
            return by_inputs, by_mu
        # Of s(q): s' times the product, and s'' (∇q · v) ∇q.
        q, gradient, _ = getattr(raw, self.method)(inputs, self.arguments[0], mu, *self.arguments[1:], True)
        _require_resolved(raw, inputs, q[:, 0])
        gradient = gradient[:, 0]
        _, slope, second = (part[:, 0] for part in _function_of_q0(self.then, q))
        return slope[:, None] * by_inputs + (second * np.sum(gradient * along, axis=1))[:, None] * gradient, by_mu


# What is said where there are no second derivatives, and of third ones.
ONCE = (
    "this can be differentiated once: second derivatives are given for -ln L, its minima and statistics of the observed data,"
    " and not for CLs, limits, σ or Asimov data"
)
TWICE = "this can be differentiated twice: third derivatives are not given"


# q₀ is a difference of two -ln L: below this part of one of them its root has no second derivative that can be trusted.
_RESOLVED = 1e-8


def _require_resolved(raw: Any, inputs: Any, q: Any) -> None:
    """Refuses second derivatives of √q₀ where two large terms cancel that are known to fewer digits than they share."""
    small = np.flatnonzero((q > 0) & (q < 1e-3))
    if len(small) == 0:
        return
    nll = raw.profiled_nll(inputs[small], False, [0.0], False)[0][:, 0]
    unresolved = small[q[small] < _RESOLVED * np.maximum(1.0, np.abs(nll))]
    if len(unresolved) > 0:
        row = f"row {unresolved[0]}: " if len(inputs) > 1 else ""
        raise GradientError(f"{row}q₀ is {q[unresolved[0]]:.1e}, too close to 0 for second derivatives of its root")


def _of_q0(then: str, q: Any, by_inputs: Any, by_mu: Any) -> tuple[Any, Any, Any]:
    """√q₀, or its p-value 1 - Φ(√q₀), with their derivatives."""
    value, slope, _ = _function_of_q0(then, q)
    return value, None if by_inputs is None else slope[..., None] * by_inputs, by_mu


def of_q0(then: str, q: Any) -> tuple[Any, Any]:
    """√q₀, or its p-value, and its derivative by q₀."""
    value, slope, _ = _function_of_q0(then, q)
    return value, slope


def _function_of_q0(then: str, q: Any) -> tuple[Any, Any, Any]:
    """√q₀, or its p-value, and two derivatives by q₀. Both are constant where q₀ is 0 on one side; their derivatives there are taken as 0."""
    root = np.sqrt(q)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    if then == "significance":
        return root, 0.5 * inverse, -0.25 * inverse**3
    value = np.vectorize(lambda z: 0.5 * math.erfc(z / math.sqrt(2)), otypes=[float])(root)
    density = np.exp(-0.5 * q) / math.sqrt(2 * math.pi)
    return value, -0.5 * inverse * density, 0.25 * density * (inverse + inverse**3)


_WHICH = "`which` is `observed`, a number of standard deviations, or several of them"


def _limits(which: Any) -> tuple[list[float | None], bool]:
    """What limits are wanted, and whether it is a single one."""
    single = isinstance(which, str) or not hasattr(which, "__iter__")
    wanted: list[float | None] = []
    for one in [which] if single else which:
        if isinstance(one, str) and one != "observed":
            raise ParameterError(f"{_WHICH}, not `{one}`")
        wanted.append(None if one == "observed" else real("which", one))
    if not wanted:
        raise ParameterError(_WHICH)
    return wanted, single


def _twice(asimov: bool) -> str | None:
    return None if asimov else "statistic_product"


class Quantities:
    """The quantities by their names, so that every framework has the same."""

    @staticmethod
    def profiled_nll(is_held: bool) -> Quantity:
        return Quantity("profiled_nll", (is_held,), takes_mu=True, twice="profiled_nll_product")

    @staticmethod
    def statistic(test_stat: str, asimov: bool) -> Quantity:
        return Quantity("statistic", (test_stat, bool(asimov)), takes_mu=True, twice=_twice(asimov))

    @staticmethod
    def of_q0(then: str, asimov: bool) -> Quantity:
        return Quantity("statistic", ("q0", bool(asimov)), takes_mu=True, then=then, twice=_twice(asimov))

    @staticmethod
    def p_values(test_stat: str, kind: str) -> Quantity:
        if kind not in ("CLs", "CLsb", "CLb"):
            raise ParameterError(f"`kind` is `CLs`, `CLsb` or `CLb`, not `{kind}`")
        return Quantity("p_values", (test_stat, kind), takes_mu=True, n_values=6)

    @staticmethod
    def limit(which: Any, level: float, test_stat: str) -> Quantity:
        wanted, single = _limits(which)
        return Quantity("limits", (tuple(wanted), real("level", level), test_stat), n_values=None if single else len(wanted))

    @staticmethod
    def sigma(mu: float | None) -> Quantity:
        return Quantity("sigma", (None if mu is None else real("mu", mu),))


class DifferentiableSession:
    """A model whose chosen templates are inputs, with its data and the fits to them.

    The inputs are a vector of M numbers: of every chosen template its nominal yields, then, if variations are inputs too, those of each histosys at +1σ
    and at -1σ and the factors of each normsys at +1σ and at -1σ. They are independent of each other: variations that are not inputs stay where they are.
    Widths of constraint terms and auxiliary data stay as they were compiled.

    A session may be used by several threads; they wait for each other.

    Parameters
    ----------
    model : Model
    samples : str, or sequence of str or (sample, channel)
        Whose templates are inputs; a sample without a channel means all channels that have it.
    variations : bool or sequence of str
        Whether histosys and normsys of these templates are inputs too, or those of which parameters.
    asimov : ``"fitted"`` or ``"nominal"``
        Where Asimov data are made: at the conditional fit to the observed data, as pyhf does, or at the starting values, whatever was observed.
    data, init, fixed, bounds, multi_start, seed
        As of `nextstat.fit`.
    host_copy : bool
        Whether tensors of an accelerator may be copied to the host and back; otherwise they are refused by all that is computed on the CPU.
    warm_start : bool
        Whether a fit begins where the last one of its kind ended, as long as that seems to lead to the minimum that a fit from the starting values finds; a
        model with several minima may end in another one. Never with `multi_start`. Otherwise every fit begins at the starting values.
    device : ``"cpu"``, ``"cuda"`` or ``"metal"``
        Where fits are done: on a device the free ones, those where Asimov data are made, and those at a tested value. The host goes on from where they
        end, does the search for a limit, and has the gradients. PyTorch's tensors on an NVIDIA GPU are read where they are by `nll` and by statistics of the
        observed data, which the device computes with their gradients then; by all else on the host (`host_copy`).

    Examples
    --------
    >>> import nextstat
    >>> from nextstat.differentiable import DifferentiableSession
    >>> model = nextstat.load_workspace("examples/shapes.json")
    >>> session = DifferentiableSession(model, ["signal", ("ttbar", "signal_region")], variations=["jet_energy_scale"])
    >>> [block.name for block in session.blocks]
    ['signal_region/signal', 'signal_region/signal/jet_energy_scale/hi', ..., 'signal_region/ttbar/jet_energy_scale/lo']
    """

    def __init__(
        self,
        model: Model,
        samples: str | Sequence[str | tuple[str, str]],
        *,
        variations: bool | Sequence[str] = False,
        asimov: str = "fitted",
        data: ArrayLike | None = None,
        init: Start | None = None,
        fixed: Mapping[str, float] | None = None,
        bounds: Bounds | None = None,
        multi_start: int | None = None,
        seed: int = 0,
        host_copy: bool = False,
        warm_start: bool = False,
        device: str = "cpu",
    ) -> None:
        given = settings(model, device, on_devices=True, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed)
        if warm_start and multi_start is not None:
            raise ParameterError("with `multi_start` every fit begins at its own points: no `warm_start`")
        if "device" in given and multi_start is not None:
            raise DeviceError("a session on a device goes on from the device's fits: `multi_start` is for the CPU")
        moved = None if variations is True else [] if variations is False else [variations] if isinstance(variations, str) else list(variations)
        chosen = [(one, None, moved) if isinstance(one, str) else (one[0], one[1], moved) for one in ([samples] if isinstance(samples, str) else samples)]
        self._raw = _nextstat.RawSession(model, given, chosen, asimov, bool(warm_start))
        self.model = model
        self.host_copy = bool(host_copy)
        # What a copy is made of.
        self._settings = {
            "samples": samples, "variations": variations, "asimov": asimov, "data": data, "init": init, "fixed": fixed, "bounds": bounds,
            "multi_start": multi_start, "seed": seed, "host_copy": host_copy, "warm_start": warm_start, "device": device,
        }  # fmt: skip
        self.blocks: tuple[Block, ...] = tuple(Block(*block) for block in self._raw.blocks())
        self.values: NDArray[np.float64] = self._raw.values
        self.values.flags.writeable = False

    @property
    def n_inputs(self) -> int:
        """M, the number of inputs."""
        return len(self.values)

    @property
    def n_device_fits(self) -> int:
        """How many fits have ended in a minimum on the device; 0 on the CPU."""
        return self._raw.n_device_fits

    @property
    def n_device_points(self) -> int:
        """At how many points the device has found -ln L with its gradients; 0 on the CPU."""
        return self._raw.n_device_points

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.model!r}: {self.n_inputs} inputs in {len(self.blocks)} blocks>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """A copy, or a session in another process, is made anew of the same model and settings; fits that it follows are its own."""
        return _made_anew, (type(self), self.model, self._settings)

    def block(self, name: str) -> Block:
        """The block called `name`.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal").block("singlechannel/signal").stop
        2
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise ParameterError(f"there is no block `{name}`; there are `{'`, `'.join(block.name for block in self.blocks)}`")

    def nll(self, params: ArrayLike, inputs: ArrayLike) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
        """-ln L of the data at `params` (P) and `inputs` (M), its gradient by the parameters (P) and by the inputs (M); outside the domain +∞ and NaN.

        With N rows of parameters, of inputs or of both, there are N of each: on all threads, or on the session's device if that has double precision.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> model = nextstat.load_workspace("examples/simple.json")
        >>> session = DifferentiableSession(model, "signal")
        >>> value, by_params, by_inputs = session.nll(model.init, session.values)
        >>> round(value, 4), by_params.round(4), by_inputs.round(4)
        (12.7994, array([0.9677, 4.0323, 0.    ]), array([0.0806, 0.    ]))
        """
        point, given = _vector(params), _vector(inputs)
        if point.ndim == 1 and given.ndim == 1:
            return self._raw.nll(point, given)
        return nll_rows(self._raw, point, given)

    def profiled_nll(self, inputs: ArrayLike, mu: float | Iterable[float] | None = None) -> Gradient:
        """The minimum of -ln L over the parameters, with the parameter of interest at `mu` if that is given."""
        return self._evaluate(Quantities.profiled_nll(mu is not None), inputs, 0.0 if mu is None else mu)

    def q0(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """q₀, the statistic of a discovery (arXiv:1007.1727, eq. 12): of the data, or of the Asimov data of a signal of strength 1."""
        return self._evaluate(Quantities.statistic("q0", asimov), inputs)

    def q_mu(self, inputs: ArrayLike, mu: float | Iterable[float], *, asimov: bool = False) -> Gradient:
        """q_μ, the statistic of upper limits (eq. 14): of the data, or of the Asimov data of the background."""
        return self._evaluate(Quantities.statistic("q", asimov), inputs, mu)

    def q_mu_tilde(self, inputs: ArrayLike, mu: float | Iterable[float], *, asimov: bool = False) -> Gradient:
        """q̃_μ, the same for a parameter of interest that is not negative (eq. 16)."""
        return self._evaluate(Quantities.statistic("qtilde", asimov), inputs, mu)

    def cls(self, inputs: ArrayLike, mu: float | Iterable[float] = 1.0, *, test_stat: str = "qtilde", kind: str = "CLs") -> Gradient:
        """CLs by asymptotic formulas: observed, then expected at -2, -1, 0, +1, +2 standard deviations of the background (6); also `CLsb` and `CLb`."""
        return self._evaluate(Quantities.p_values(test_stat, kind), inputs, mu)

    def p_value(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """The p-value of the background, 1 - Φ(√q₀) (eq. 53)."""
        return self._evaluate(Quantities.of_q0("p_value", asimov), inputs)

    def significance(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """The significance of a discovery, √q₀ (eq. 53)."""
        return self._evaluate(Quantities.of_q0("significance", asimov), inputs)

    def upper_limit(self, inputs: ArrayLike, *, which: Any = 0.0, level: float = 0.05, test_stat: str = "qtilde") -> Gradient:
        """The upper limit where CLs is `level`: `which` is ``"observed"``, a number of standard deviations from the expected median, or several of these."""
        return self._evaluate(Quantities.limit(which, level, test_stat), inputs)

    def sigma_mu(self, inputs: ArrayLike, *, mu: float | None = None) -> Gradient:
        """σ(μ̂) from the exact Hessian: at the best fit of the data, or of the Asimov data of `mu`."""
        return self._evaluate(Quantities.sigma(mu), inputs)

    def profiled_nll_product(
        self, inputs: ArrayLike, along: ArrayLike, mu: float | Iterable[float] | None = None, *, along_mu: float | Iterable[float] = 0.0
    ) -> Product:
        """The product of the Hessian of `profiled_nll` by inputs and, if it is held, `mu` with the direction `along` (M, or N rows) and `along_mu`.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
        >>> session.profiled_nll_product(session.values, [1.0, 0.0], 1.0).by_inputs.round(5)
        array([0.01336, 0.     ])
        """
        return self._product(Quantities.profiled_nll(mu is not None), inputs, along, 0.0 if mu is None else mu, along_mu)

    def q0_product(self, inputs: ArrayLike, along: ArrayLike) -> Product:
        """The same of `q0` of the data.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
        >>> session.q0_product(session.values, [1.0, 0.0]).by_inputs.round(5)
        array([-0.00085,  0.00421])
        """
        return self._product(Quantities.statistic("q0", False), inputs, along, 0.0, 0.0)

    def q_mu_product(self, inputs: ArrayLike, along: ArrayLike, mu: float | Iterable[float], *, along_mu: float | Iterable[float] = 0.0) -> Product:
        """The same of `q_mu` of the data."""
        return self._product(Quantities.statistic("q", False), inputs, along, mu, along_mu)

    def q_mu_tilde_product(self, inputs: ArrayLike, along: ArrayLike, mu: float | Iterable[float], *, along_mu: float | Iterable[float] = 0.0) -> Product:
        """The same of `q_mu_tilde` of the data."""
        return self._product(Quantities.statistic("qtilde", False), inputs, along, mu, along_mu)

    def _product(self, quantity: Quantity, inputs: ArrayLike, along: ArrayLike, mu: float | Iterable[float], along_mu: float | Iterable[float]) -> Product:
        given = np.ascontiguousarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        direction = np.asarray(along, dtype=np.float64)
        if direction.shape not in (rows.shape, rows.shape[1:]):
            raise ParameterError(f"`along` has the shape {direction.shape}, and the inputs {given.shape}")
        if not np.isfinite(direction).all():
            raise ParameterError("`along` is to be finite")
        directions = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
        of_mu = np.broadcast_to(tested(along_mu, len(rows), "along_mu"), len(rows)).tolist()
        by_inputs, by_mu = quantity.product(self._raw, rows, tested(mu, len(rows)), directions, of_mu)
        return Product(by_inputs[0], by_mu[0]) if given.ndim == 1 else Product(by_inputs, by_mu)

    def _evaluate(self, quantity: Quantity, inputs: ArrayLike, mu: float | Iterable[float] = 0.0) -> Gradient:
        given = np.ascontiguousarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        found = quantity(self._raw, rows, tested(mu, len(rows)), True)
        values, by_inputs, by_mu = (np.asarray(array) for array in found)
        if quantity.n_values is None:
            values, by_inputs, by_mu = values[:, 0], by_inputs[:, 0], by_mu[:, 0]
        if given.ndim == 1:
            values, by_inputs, by_mu = values[0], by_inputs[0], by_mu[0]
        return Gradient(values, by_inputs, by_mu)


def _made_anew(kind: type[DifferentiableSession], model: Model, given: dict[str, Any]) -> DifferentiableSession:
    return kind(model, **given)


class ProfiledDifferentiableSession(DifferentiableSession):
    """The same under the name that says what is done with nuisance parameters."""


def tested(mu: float | Iterable[float], n_rows: int, name: str = "mu") -> list[float]:
    """The tested values: one for all rows, or one for each."""
    values = [real(name, mu)] if np.ndim(mu) == 0 else [real(name, one) for one in mu]  # type: ignore[union-attr, arg-type]
    if len(values) not in (1, n_rows):
        raise ParameterError(f"{len(values)} values of `{name}` for {n_rows} rows of inputs")
    return values


def nll_rows(raw: Any, params: NDArray[np.float64], inputs: NDArray[np.float64]) -> tuple[Any, Any, Any]:
    """-ln L (N) and its gradients (N × P and N × M) at rows of parameters, of inputs, or of both."""
    if params.ndim not in (1, 2) or inputs.ndim not in (1, 2):
        raise ParameterError("parameters and inputs of `nll` are vectors, or rows of them")
    if params.ndim == 2 and inputs.ndim == 2 and len(params) != len(inputs):
        raise ParameterError(f"{len(params)} rows of parameters and {len(inputs)} of inputs")
    if 0 in (*params.shape[:-1], *inputs.shape[:-1]):
        return np.zeros(0), np.zeros((0, params.shape[-1])), np.zeros((0, inputs.shape[-1]))
    return _nextstat.nll_rows(raw, np.atleast_2d(params), np.atleast_2d(inputs))


def _vector(values: ArrayLike) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)
