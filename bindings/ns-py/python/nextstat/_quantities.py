"""The quantities that have gradients: one list, from which every framework makes its functions.

A quantity is defined by a function of its own arguments, whose signature and docstring are those of
the functions that `nextstat.torch` and `nextstat.jax` make of it. They put a session and its inputs
before these arguments.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ._arguments import number, real
from ._nextstat import GradientError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
_F = TypeVar("_F", bound="Callable[..., Any]")

#: What is said where there are no second derivatives.
ONCE = (
    "this can be differentiated once: second derivatives are given for -ln L, its minima and "
    "statistics of the observed data, and not for CLs, limits, σ or Asimov data"
)
#: What is said where there are no third derivatives.
TWICE = "this can be differentiated twice: third derivatives are not given"


@dataclass(frozen=True)
class Quantity:
    """A function of a session's inputs: a method of the extension module, and its arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
    # Whether the tested values come first among the arguments after `arguments[0]`.
    takes_mu: bool = False
    # K, or None for a single number.
    n_values: int | None = None
    # A function that is applied to q₀: `significance` or `p_value`.
    then: str | None = None
    # The method for products with the Hessian; None if there are no second derivatives.
    twice: str | None = None

    def __call__(
        self, raw: Any, inputs: Any, mu: Sequence[float], gradient: bool
    ) -> tuple[Any, Any, Any]:
        """Returns values (N × K) with derivatives by inputs (N × K × M) and tested value (N × K).
        """
        method = getattr(raw, self.method)
        if self.takes_mu:
            found = method(inputs, self.arguments[0], mu, *self.arguments[1:], gradient)
        else:
            found = method(inputs, *self.arguments, gradient)
        return found if self.then is None else _then(self.then, *found)

    def product(
        self, raw: Any, inputs: Any, mu: Sequence[float], along: Any, along_mu: Sequence[float]
    ) -> tuple[Any, Any]:
        """Returns the products of Hessians with directions, one for each row of inputs.

        The Hessian is by inputs and tested value; products are by inputs (N × M) and by the tested
        value (N).
        """
        if self.twice is None:
            raise NotImplementedError(ONCE)
        direction = {"inputs": along, "mu": along_mu}
        by_inputs, by_mu = getattr(raw, self.twice)(inputs, self.arguments[0], mu, direction)
        if self.then is None:
            return by_inputs, by_mu
        # Of s(q): s' times the product, and s'' (∇q · v) ∇q.
        method = getattr(raw, self.method)
        q, gradient, _ = method(inputs, self.arguments[0], mu, *self.arguments[1:], True)
        _require_resolved(raw, inputs, q[:, 0])
        gradient = gradient[:, 0]
        _, first, second = (part[:, 0] for part in _function_of_q0(self.then, q))
        change = (second * np.sum(gradient * along, axis=1))[:, None] * gradient
        return first[:, None] * by_inputs + change, by_mu


# q₀ is a difference of two -ln L: below this fraction of one of them, second derivatives of its
# root cannot be trusted.
_RESOLVED = 1e-8


def _require_resolved(raw: Any, inputs: Any, q: Any) -> None:
    """Refuses second derivatives of √q₀ where the digits of two large terms cancel."""
    small = np.flatnonzero((q > 0) & (q < 1e-3))
    if len(small) == 0:
        return
    nll = raw.profiled_nll(inputs[small], False, [0.0], False)[0][:, 0]
    unresolved = small[q[small] < _RESOLVED * np.maximum(1.0, np.abs(nll))]
    if len(unresolved) > 0:
        place = f"batch element {unresolved[0]}: " if len(inputs) > 1 else ""
        value = f"{q[unresolved[0]]:.1e}"
        raise GradientError(
            f"{place}q₀ is {value}, too close to 0 for second derivatives of its root"
        )


def _then(name: str, q: Any, by_inputs: Any, by_mu: Any) -> tuple[Any, Any, Any]:
    """Returns √q₀, or its p-value 1 - Φ(√q₀), with its derivatives."""
    value, first, _ = _function_of_q0(name, q)
    return value, None if by_inputs is None else first[..., None] * by_inputs, by_mu


def of_q0(name: str, q: Any) -> tuple[Any, Any]:
    """Returns √q₀, or its p-value, and the derivative by q₀."""
    value, first, _ = _function_of_q0(name, q)
    return value, first


def _function_of_q0(name: str, q: Any) -> tuple[Any, Any, Any]:
    """Returns √q₀, or its p-value, and two derivatives by q₀.

    Both are constant where q₀ is 0 on one side; their derivatives there are taken as 0.
    """
    root = np.sqrt(q)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    if name == "significance":
        return root, 0.5 * inverse, -0.25 * inverse**3
    p_value = np.vectorize(lambda z: 0.5 * math.erfc(z / math.sqrt(2)), otypes=[float])
    density = np.exp(-0.5 * q) / math.sqrt(2 * math.pi)
    return p_value(root), -0.5 * inverse * density, 0.25 * density * (inverse + inverse**3)


class Request(NamedTuple):
    """A quantity, and the values of the parameter of interest that it is tested at."""

    quantity: Quantity
    mu: Any = 0.0


@dataclass(frozen=True)
class Definition(Generic[P]):
    """A quantity by its name, arguments and documentation, with an example."""

    request: Callable[P, Request]
    #: Arguments of the example, and what it prints.
    arguments: str
    result: str
    digits: int

    @property
    def name(self) -> str:
        return self.request.__name__


def _defined(arguments: str, result: str, digits: int = 4) -> Callable[
    [Callable[P, Request]], Definition[P]
]:
    return lambda request: Definition(request, arguments, result, digits)


@_defined("0.0", "13.5296")
def profiled_nll(mu: Any = None) -> Request:
    """Returns the minimum of -ln L over the parameters; it can be differentiated twice.

    Parameters
    ----------
    mu : float or array, optional
        The value at which the parameter of interest is fixed, or one for each row of inputs.
    """
    is_fixed = mu is not None
    quantity = Quantity(
        "profiled_nll", (is_fixed,), takes_mu=True, twice="profiled_nll_product"
    )
    return Request(quantity, mu if is_fixed else 0.0)


@_defined("", "1.7498")
def q0(*, asimov: bool = False) -> Request:
    """Returns q₀, the statistic of a discovery (arXiv:1007.1727, eq. 12).

    Parameters
    ----------
    asimov : bool
        Whether of the Asimov data of a signal of strength 1, instead of the observed data.
    """
    return Request(_statistic("q0", asimov))


@_defined("1.5", "1.8189")
def q_mu(mu: Any, *, asimov: bool = False) -> Request:
    """Returns q_μ, the statistic of upper limits (arXiv:1007.1727, eq. 14).

    Parameters
    ----------
    mu : float or array
        The tested value, or one for each row of inputs.
    asimov : bool
        Whether of the Asimov data of the background, instead of the observed data.
    """
    return Request(_statistic("q", asimov), mu)


@_defined("1.0, asimov=True", "3.2294")
def q_mu_tilde(mu: Any, *, asimov: bool = False) -> Request:
    """Returns q̃_μ, the statistic of upper limits on a parameter that is not negative (eq. 16).

    Parameters
    ----------
    mu : float or array
        The tested value, or one for each row of inputs.
    asimov : bool
        Whether of the Asimov data of the background, instead of the observed data.
    """
    return Request(_statistic("qtilde", asimov), mu)


@_defined("", "[0.34567, 0.00322, 0.01625, 0.07233, 0.25283, 0.59393]", digits=5)
def cls(mu: Any = 1.0, *, test_stat: str = "qtilde", kind: str = "CLs") -> Request:
    """Returns CLs by asymptotic formulas.

    Six values: observed, then expected at -2, -1, 0, +1, +2 standard deviations of the background.

    Parameters
    ----------
    mu : float or array
        The tested value, or one for each row of inputs.
    test_stat : ``"qtilde"``, ``"q"`` or ``"q0"``
        For `q0` CLs is the p-value of the background.
    kind : ``"CLs"``, ``"CLsb"`` or ``"CLb"``
    """
    if kind not in ("CLs", "CLsb", "CLb"):
        raise ParameterError(f"`kind` is `CLs`, `CLsb` or `CLb`, not `{kind}`")
    return Request(Quantity("p_values", (test_stat, kind), takes_mu=True, n_values=6), mu)


@_defined("", "0.0929")
def p_value(*, asimov: bool = False) -> Request:
    """Returns the p-value of the background, 1 - Φ(√q₀) (arXiv:1007.1727, eq. 53).

    Parameters
    ----------
    asimov : bool
        Whether of the Asimov data of a signal of strength 1, instead of the observed data.
    """
    return Request(_statistic("q0", asimov, then="p_value"))


@_defined("asimov=True", "1.8309")
def significance(*, asimov: bool = False) -> Request:
    """Returns the significance of a discovery, √q₀ (arXiv:1007.1727, eq. 53).

    Parameters
    ----------
    asimov : bool
        Whether expected of a signal of strength 1, instead of observed.
    """
    return Request(_statistic("q0", asimov, then="significance"))


@_defined('which=["observed", -1, 0, 1]', "[1.7053, 0.7795, 1.0943, 1.547]")
def upper_limit(
    *,
    which: str | float | Sequence[str | float] = 0.0,
    level: float = 0.05,
    test_stat: str = "qtilde",
) -> Request:
    """Returns the upper limit on the parameter of interest where CLs is `level`.

    Parameters
    ----------
    which : ``"observed"``, float, or several
        The observed limit, or the one expected if the background fluctuates by as many standard
        deviations.
    level : float
        0.05 for limits at 95% confidence level.
    test_stat : ``"qtilde"`` or ``"q"``
    """
    wanted, is_single = _limits(which)
    arguments = (tuple(wanted), number(level, "`level`"), test_stat)
    return Request(Quantity("limits", arguments, n_values=None if is_single else len(wanted)))


@_defined("mu=1.0", "0.5652")
def sigma_mu(*, mu: float | None = None) -> Request:
    """Returns σ(μ̂) from the exact Hessian.

    Parameters
    ----------
    mu : float, optional
        At the best fit of the Asimov data of this signal strength, instead of the observed data.
    """
    return Request(Quantity("sigma", (None if mu is None else real("mu", mu),)))


#: All of them.
QUANTITIES: tuple[Definition[Any], ...] = (
    profiled_nll,
    q0,
    q_mu,
    q_mu_tilde,
    cls,
    p_value,
    significance,
    upper_limit,
    sigma_mu,
)


def _statistic(test_stat: str, asimov: bool, then: str | None = None) -> Quantity:
    twice = None if asimov else "statistic_product"
    return Quantity("statistic", (test_stat, bool(asimov)), takes_mu=True, then=then, twice=twice)


def _limits(which: Any) -> tuple[list[float | None], bool]:
    """Returns the wanted limits, None for the observed one, and whether `which` is a single one."""
    is_single = isinstance(which, str) or not hasattr(which, "__iter__")
    form = "`which` is `observed`, a number of standard deviations, or several of them"
    wanted: list[float | None] = []
    for one in [which] if is_single else which:
        if isinstance(one, str) and one != "observed":
            raise ParameterError(f"{form}, not `{one}`")
        wanted.append(None if one == "observed" else real("which", one))
    if not wanted:
        raise ParameterError(form)
    return wanted, is_single


@dataclass(frozen=True)
class Face:
    """How a framework documents the functions that it makes of the definitions."""

    #: The module in which users find the functions.
    module: str
    #: Lines before the example, the inputs in it, and a number made of the function's value.
    setup: str
    inputs: str
    as_number: str
    #: The types of inputs, tested values and results.
    input_type: str
    mu_type: str
    result_type: str


def documented(function: _F, definition: Definition[Any], face: Face) -> _F:
    """Returns `function` with the name, the signature and the documentation of the definition."""
    function.__name__ = function.__qualname__ = definition.name
    signature = inspect.signature(definition.request)
    own = [
        parameter.replace(annotation=face.mu_type) if parameter.annotation == "Any" else parameter
        for parameter in signature.parameters.values()
    ]
    common = [
        inspect.Parameter("session", _POSITIONAL, annotation="DifferentiableSession"),
        inspect.Parameter("inputs", _POSITIONAL, annotation=face.input_type),
    ]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*common, *own], return_annotation=face.result_type
    )
    function.__doc__ = f"{inspect.getdoc(definition.request)}\n\n{_example(definition, face)}"
    return function


_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _example(definition: Definition[Any], face: Face) -> str:
    arguments = ", ".join(filter(None, ["session", face.inputs, definition.arguments]))
    call, digits = f"{definition.name}({arguments})", definition.digits
    if definition.result.startswith("["):
        number = face.as_number.format("value")
        shown = f"[round({number}, {digits}) for value in {call}]"
    else:
        shown = f"round({face.as_number.format(call)}, {digits})"
    lines = [
        *face.setup.splitlines(),
        f"from {face.module} import DifferentiableSession, {definition.name}",
        'model = nextstat.load_workspace("examples/simple.json")',
        'session = DifferentiableSession(model, "signal")',
        shown,
    ]
    text = "\n".join(f">>> {line}" for line in lines)
    return f"Examples\n--------\n{text}\n{definition.result}\n"
