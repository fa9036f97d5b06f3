"""Statistics as functions of templates, with exact gradients, for NumPy.

A session takes the histograms of chosen samples as one vector of inputs and returns profiled
statistics of them with their derivatives: of minima by the envelope theorem, of Asimov data, limits
and σ by implicit differentiation with the exact Hessian. `nextstat.torch` and `nextstat.jax` are
built on it. See the page `docs/explanation/gradients.md`.

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

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _nextstat, _quantities
from ._arguments import real, settings
from ._errors import listed
from ._nextstat import DeviceError, GradientError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from ._arguments import Bounds, Start
    from ._nextstat import Model
    from ._quantities import Request

__all__ = ["Block", "DifferentiableSession", "Gradient", "GradientError", "Product", "ProfiledDifferentiableSession"]


class Block(NamedTuple):
    """Inputs that belong together: a histogram, or a factor of a normsys.

    Attributes
    ----------
    name : str
        ``channel/sample``, for variations with ``/parameter/hi`` or ``/parameter/lo``, for morphing
        terms with ``/coefficient``. What would have the name of an earlier block ends with
        `` (normsys)`` or with a number, such as `` (2)``.
    channel, sample : str
    kind : str
        ``nominal``, ``histosys_hi``, ``histosys_lo``, ``normsys_hi``, ``normsys_lo`` or
        ``morphing``.
    parameter : str or None
        The parameter of a variation, the coefficient of a morphing term.
    start, stop : int
        The range of the block among the inputs.
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
        The value: a number, or K of them; with N input vectors one row for each.
    by_inputs : array
        The derivatives by the inputs, which are the last axis (M).
    by_mu : array
        The derivative by the tested value of the parameter of interest; 0 where none is tested.
    """

    value: NDArray[np.float64]
    by_inputs: NDArray[np.float64]
    by_mu: NDArray[np.float64]


class Product(NamedTuple):
    """A Hessian by inputs and tested value, times a direction.

    Attributes
    ----------
    by_inputs : array
        The part by the inputs (M); with N input vectors one row for each.
    by_mu : array
        The part by the tested value of the parameter of interest; 0 where none is tested.
    """

    by_inputs: NDArray[np.float64]
    by_mu: NDArray[np.float64]


class DifferentiableSession:
    """A model whose chosen templates are inputs, with its data and the fits to them.

    The inputs are a vector of M numbers: of every chosen template its nominal yields, then, if
    variations are inputs too, those of each histosys at +1σ and at -1σ, the factors of each normsys
    at +1σ and at -1σ, and the yields of each morphing term. They are independent of each other:
    variations that are not inputs keep their values. Widths of constraint terms and auxiliary data
    keep those of the model.

    Several threads may use a session; they wait for each other.

    Parameters
    ----------
    model : Model
    samples : str, or sequence of str or (sample, channel)
        The samples whose templates are inputs; a sample without a channel means all channels that
        have it.
    variations : bool or sequence of str
        Whether histosys, normsys and morphing terms of these templates are inputs too; names of
        parameters, and coefficients as the workspace writes them, choose among them.
    asimov : ``"fitted"`` or ``"nominal"``
        The parameter values of Asimov data: those of the conditional fit to the observed data, as
        in pyhf, or the starting values, whatever was observed.
    data, init, fixed, bounds, multi_start, seed
        As of `nextstat.fit`.
    host_copy : bool
        Whether tensors of an accelerator may be copied to the host and back; otherwise functions
        that compute on the CPU refuse them.
    warm_start : bool
        Whether a fit begins where the last one of its kind ended, as long as that seems to lead to
        the minimum that a fit from the starting values finds; a model with several minima may end
        in another one. Not with `multi_start`. Otherwise every fit begins at the starting values.
    device : str
        The device that does fits, one of `nextstat.devices()`: the free ones, those for Asimov
        data, and those at a tested value. The host starts from their minima, searches for limits,
        and computes the gradients. `nll` and statistics of the observed data read PyTorch's tensors
        on an NVIDIA GPU in its memory, and compute their gradients there; all other functions need
        them on the host (`host_copy`).

    Examples
    --------
    >>> import nextstat
    >>> from nextstat.differentiable import DifferentiableSession
    >>> model = nextstat.load_workspace("examples/shapes.json")
    >>> session = DifferentiableSession(
    ...     model, ["signal", ("ttbar", "signal_region")], variations=["jet_energy_scale"]
    ... )
    >>> [block.name for block in session.blocks][:2]
    ['signal_region/signal', 'signal_region/signal/jet_energy_scale/hi']
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
        given = settings(
            model,
            device,
            data=data,
            init=init,
            fixed=fixed,
            bounds=bounds,
            multi_start=multi_start,
            seed=seed,
        )
        if warm_start and multi_start is not None:
            raise ParameterError("`warm_start` and `multi_start` exclude each other")
        if "device" in given and multi_start is not None:
            raise DeviceError("`multi_start` is for sessions on the CPU")
        moved = _moved(variations)
        pairs = [(one, None) if isinstance(one, str) else one for one in _as_list(samples)]
        chosen = [
            {"sample": sample, "channel": channel, "variations": moved} for sample, channel in pairs
        ]
        wanted = {"chosen": chosen, "asimov": asimov, "warm_start": bool(warm_start)}
        self._raw = _nextstat.RawSession(model, given, wanted)
        self.model = model
        self.host_copy = bool(host_copy)
        # A copy is made of these.
        self._settings = {
            "samples": samples, "variations": variations, "asimov": asimov, "data": data, "init": init, "fixed": fixed, "bounds": bounds,
            "multi_start": multi_start, "seed": seed, "host_copy": host_copy, "warm_start": warm_start, "device": device,
        }  # fmt: skip
        self.blocks: tuple[Block, ...] = tuple(Block(**block) for block in self._raw.blocks())
        self.values: NDArray[np.float64] = self._raw.values
        self.values.flags.writeable = False

    @property
    def n_inputs(self) -> int:
        """M, the number of inputs."""
        return len(self.values)

    @property
    def n_device_fits(self) -> int:
        """The number of fits that ended in a minimum on the device; 0 on the CPU."""
        return self._raw.n_device_fits

    @property
    def n_device_points(self) -> int:
        """The number of points at which the device computed gradients of -ln L; 0 on the CPU."""
        return self._raw.n_device_points

    def __repr__(self) -> str:
        counts = f"{self.n_inputs} inputs in {len(self.blocks)} blocks"
        return f"<{type(self).__name__} of {self.model!r}: {counts}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Makes a copy of the same model and settings, without the fits of a warm start."""
        return _made_anew, (type(self), self.model, self._settings)

    def block(self, name: str) -> Block:
        """Returns the block called `name`.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> model = nextstat.load_workspace("examples/simple.json")
        >>> DifferentiableSession(model, "signal").block("singlechannel/signal").stop
        2
        """
        for block in self.blocks:
            if block.name == name:
                return block
        known = listed(block.name for block in self.blocks)
        raise ParameterError(f"unknown block `{name}`; choose one of {known}")

    def nll(self, params: ArrayLike, inputs: ArrayLike) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
        """Returns -ln L of the data and its gradients by the parameters (P) and by the inputs (M).

        Outside the domain they are +∞ and NaN. With N parameter vectors, of inputs or of both,
        there are N of each: computed on all threads, or on the session's device if that has double
        precision.

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
        return nll_batch(self._raw, point, given)

    def profiled_nll(
        self, inputs: ArrayLike, mu: float | Iterable[float] | None = None
    ) -> Gradient:
        """Returns the minimum of -ln L over the parameters.

        The parameter of interest is fixed at `mu` if that is given.
        """
        return self._evaluate(_quantities.profiled_nll.request(mu), inputs)

    def q0(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """Returns q₀, the statistic of a discovery (arXiv:1007.1727, eq. 12).

        Of the observed data, or of the Asimov data of a signal of strength 1.
        """
        return self._evaluate(_quantities.q0.request(asimov=asimov), inputs)

    def q_mu(
        self, inputs: ArrayLike, mu: float | Iterable[float], *, asimov: bool = False
    ) -> Gradient:
        """Returns q_μ, the statistic of upper limits (eq. 14).

        Of the observed data, or of the Asimov data of the background.
        """
        return self._evaluate(_quantities.q_mu.request(mu, asimov=asimov), inputs)

    def q_mu_tilde(
        self, inputs: ArrayLike, mu: float | Iterable[float], *, asimov: bool = False
    ) -> Gradient:
        """Returns q̃_μ, the same for a parameter of interest that is not negative (eq. 16)."""
        return self._evaluate(_quantities.q_mu_tilde.request(mu, asimov=asimov), inputs)

    def cls(
        self,
        inputs: ArrayLike,
        mu: float | Iterable[float] = 1.0,
        *,
        test_stat: str = "qtilde",
        kind: str = "CLs",
    ) -> Gradient:
        """Returns CLs by asymptotic formulas; also `CLsb` and `CLb`.

        Six values: observed, then expected at -2, -1, 0, +1, +2 standard deviations of the
        background.
        """
        request = _quantities.cls.request(mu, test_stat=test_stat, kind=kind)
        return self._evaluate(request, inputs)

    def p_value(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """Returns the p-value of the background, 1 - Φ(√q₀) (eq. 53)."""
        return self._evaluate(_quantities.p_value.request(asimov=asimov), inputs)

    def significance(self, inputs: ArrayLike, *, asimov: bool = False) -> Gradient:
        """Returns the significance of a discovery, √q₀ (eq. 53)."""
        return self._evaluate(_quantities.significance.request(asimov=asimov), inputs)

    def upper_limit(
        self,
        inputs: ArrayLike,
        *,
        which: str | float | Sequence[str | float] = 0.0,
        level: float = 0.05,
        test_stat: str = "qtilde",
    ) -> Gradient:
        """Returns the upper limit where CLs is `level`.

        `which` is ``"observed"``, a number of standard deviations from the expected median, or
        several of these.
        """
        request = _quantities.upper_limit.request(which=which, level=level, test_stat=test_stat)
        return self._evaluate(request, inputs)

    def sigma_mu(self, inputs: ArrayLike, *, mu: float | None = None) -> Gradient:
        """Returns σ(μ̂) from the exact Hessian, of the data or of the Asimov data of `mu`."""
        return self._evaluate(_quantities.sigma_mu.request(mu=mu), inputs)

    def profiled_nll_product(
        self,
        inputs: ArrayLike,
        along: ArrayLike,
        mu: float | Iterable[float] | None = None,
        *,
        along_mu: float | Iterable[float] = 0.0,
    ) -> Product:
        """Returns the product of the Hessian of `profiled_nll` with a direction.

        The Hessian is by the inputs and, if it is given, by `mu`; the direction is `along` (M, or N
        rows) and `along_mu`.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> model = nextstat.load_workspace("examples/simple.json")
        >>> session = DifferentiableSession(model, "signal")
        >>> session.profiled_nll_product(session.values, [1.0, 0.0], 1.0).by_inputs.round(5)
        array([0.01336, 0.     ])
        """
        request = _quantities.profiled_nll.request(mu)
        return self._product(request, inputs, along, along_mu)

    def q0_product(self, inputs: ArrayLike, along: ArrayLike) -> Product:
        """Returns the product of the Hessian of `q0` of the data with a direction.

        Examples
        --------
        >>> import nextstat
        >>> from nextstat.differentiable import DifferentiableSession
        >>> model = nextstat.load_workspace("examples/simple.json")
        >>> session = DifferentiableSession(model, "signal")
        >>> session.q0_product(session.values, [1.0, 0.0]).by_inputs.round(5)
        array([-0.00085,  0.00421])
        """
        return self._product(_quantities.q0.request(), inputs, along, 0.0)

    def q_mu_product(
        self,
        inputs: ArrayLike,
        along: ArrayLike,
        mu: float | Iterable[float],
        *,
        along_mu: float | Iterable[float] = 0.0,
    ) -> Product:
        """Returns the product of the Hessian of `q_mu` of the data with a direction."""
        return self._product(_quantities.q_mu.request(mu), inputs, along, along_mu)

    def q_mu_tilde_product(
        self,
        inputs: ArrayLike,
        along: ArrayLike,
        mu: float | Iterable[float],
        *,
        along_mu: float | Iterable[float] = 0.0,
    ) -> Product:
        """Returns the product of the Hessian of `q_mu_tilde` of the data with a direction."""
        return self._product(_quantities.q_mu_tilde.request(mu), inputs, along, along_mu)

    def _product(
        self,
        request: Request,
        inputs: ArrayLike,
        along: ArrayLike,
        along_mu: float | Iterable[float],
    ) -> Product:
        given = np.ascontiguousarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        direction = np.asarray(along, dtype=np.float64)
        if direction.shape not in (rows.shape, rows.shape[1:]):
            raise ParameterError(
                f"`along` has the shape {direction.shape}, and the inputs {given.shape}"
            )
        if not np.isfinite(direction).all():
            raise ParameterError("`along` must be finite")
        directions = np.ascontiguousarray(np.broadcast_to(direction, rows.shape))
        of_mu = np.broadcast_to(tested(along_mu, len(rows), "along_mu"), len(rows)).tolist()
        mu = tested(request.mu, len(rows))
        by_inputs, by_mu = request.quantity.product(self._raw, rows, mu, directions, of_mu)
        is_single = given.ndim == 1
        return Product(by_inputs[0], by_mu[0]) if is_single else Product(by_inputs, by_mu)

    def _evaluate(self, request: Request, inputs: ArrayLike) -> Gradient:
        given = np.ascontiguousarray(inputs, dtype=np.float64)
        rows = np.atleast_2d(given)
        found = request.quantity(self._raw, rows, tested(request.mu, len(rows)), True)
        values, by_inputs, by_mu = (np.asarray(array) for array in found)
        if request.quantity.n_values is None:
            values, by_inputs, by_mu = values[:, 0], by_inputs[:, 0], by_mu[:, 0]
        if given.ndim == 1:
            values, by_inputs, by_mu = values[0], by_inputs[0], by_mu[0]
        return Gradient(values, by_inputs, by_mu)


def _as_list(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else list(given)


def _moved(variations: bool | str | Sequence[str]) -> list[str] | None:
    """Returns the parameters whose variations are inputs; None for all."""
    if isinstance(variations, (bool, np.bool_)):
        return None if variations else []
    return _as_list(variations)


def _made_anew(kind: type[DifferentiableSession], model: Model, given: dict[str, Any]) -> DifferentiableSession:
    return kind(model, **given)


class ProfiledDifferentiableSession(DifferentiableSession):
    """A `DifferentiableSession`, by the name that says what happens to nuisance parameters."""


def tested(mu: float | Iterable[float], n_batch: int, name: str = "mu") -> list[float]:
    """Returns the tested values: one for all input vectors, or one for each."""
    is_single = np.ndim(mu) == 0  # type: ignore[arg-type]
    values = [real(name, one) for one in ([mu] if is_single else mu)]  # type: ignore[union-attr]
    if len(values) not in (1, n_batch):
        raise ParameterError(f"{len(values)} values of `{name}` for {n_batch} input vectors")
    return values


def nll_batch(
    raw: Any, params: NDArray[np.float64], inputs: NDArray[np.float64]
) -> tuple[Any, Any, Any]:
    """Returns -ln L (N) and its gradients (N × P and N × M) at N points, N inputs, or both."""
    if params.ndim not in (1, 2) or inputs.ndim not in (1, 2):
        raise ParameterError("parameters and inputs of `nll` are vectors, or rows of them")
    if params.ndim == 2 and inputs.ndim == 2 and len(params) != len(inputs):
        raise ParameterError(f"{len(params)} parameter vectors and {len(inputs)} of inputs")
    if 0 in (*params.shape[:-1], *inputs.shape[:-1]):
        return np.zeros(0), np.zeros((0, params.shape[-1])), np.zeros((0, inputs.shape[-1]))
    return _nextstat.nll_batch(raw, np.atleast_2d(params), np.atleast_2d(inputs))


def _vector(values: ArrayLike) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)
