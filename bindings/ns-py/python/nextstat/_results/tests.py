"""Results of tests of the parameter of interest: CLs, significances, limits, by formulas and by
toys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._views import BAND, Table, View, best_fit, confidence, shown_number, tables
from .base import Result
from .frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray

    from .frozen import Poi

__all__ = ["HypotestResult", "LimitResult", "LimitScanResult", "SignificanceResult", "ToyHypotestResult"]


class HypotestResult(Result):
    """The test of one value of the parameter of interest.

    Attributes
    ----------
    CLs_obs : float or None
        Observed CLs; None where a fit failed, for a reason in `warnings`.
    CLs_exp : tuple of float or None
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    CLsb_obs, CLb_obs, CLsb_exp, CLb_exp
        The p-values that CLs is made of.
    q, q_asimov : float or None
        The test statistic of the data and of the Asimov data set.
    mu : float
        The tested value.
    poi : Poi
        `name`, `index`, `bestfit` and `bestfit_asimov` of the parameter of interest.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "hypotest"
    CLs_obs: float | None
    CLs_exp: tuple[float, ...] | None
    CLsb_obs: float | None
    CLb_obs: float | None
    CLsb_exp: tuple[float, ...] | None
    CLb_exp: tuple[float, ...] | None
    q: float | None
    q_asimov: float | None
    mu: float
    poi: Poi
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        view = View("HypotestResult", [("tested", f"{self.poi.name} = {shown_number(self.mu)}")])
        rows = [(self._said.data, *_digits(self.CLs_obs, self.CLsb_obs, self.CLb_obs))]
        if self.CLs_exp is not None:
            bands = zip(BAND, self.CLs_exp, self.CLsb_exp, self.CLb_exp)  # type: ignore[arg-type]
            rows += [(label, *_digits(*values)) for label, *values in bands]
        view.tables = [Table(("", "CLs", "CLs+b", "CLb"), rows)]
        view.facts += [("best fit", best_fit(self.poi.bestfit)), ("statistic", shown_number(self.q))]
        return view


class SignificanceResult(Result):
    """The significance of a discovery.

    Attributes
    ----------
    Z_obs, p0_obs : float or None
        Observed significance and p-value; None where a fit failed.
    Z_exp : float or None
        Expected significance of a signal of strength `mu_expected`.
    p0_exp : tuple of float or None
        Expected p-values at -2, -1, 0, +1, +2 standard deviations.
    q0, q0_asimov : float or None
    poi : Poi
        `name`, `index`, `bestfit` and `bestfit_asimov` of the parameter of interest.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "significance"
    Z_obs: float | None
    p0_obs: float | None
    Z_exp: float | None
    p0_exp: tuple[float, ...] | None
    poi: Poi
    converged: bool
    mu_expected: float
    warnings: tuple[str, ...]

    def _view(self) -> View:
        p0_exp = None if self.p0_exp is None else self.p0_exp[2]
        expected = f"expected at {self.poi.name} = {shown_number(self.mu_expected)}"
        rows = [
            (self._said.data, *_digits(self.Z_obs, self.p0_obs)),
            (expected, *_digits(self.Z_exp, p0_exp)),
        ]
        facts = [("best fit", best_fit(self.poi.bestfit))]
        return View("SignificanceResult", facts, [Table(("", "Z", "p-value"), rows)])


class LimitResult(Result):
    """Upper limits on the parameter of interest.

    Attributes
    ----------
    observed : float or None
        None where there is no limit, for a reason in `warnings`.
    expected : tuple of float or None
        At -2, -1, 0, +1, +2 standard deviations of the background.
    level : float
        CLs at the limit.
    tested : tuple of dict
        Values of the parameter of interest that were tested, with their CLs.
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "limit"
    observed: float | None
    expected: tuple[float | None, ...]
    level: float
    tested: tuple[Mapping[str, Any], ...]
    poi: Poi
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        rows = [(self._said.data, shown_number(self.observed))]
        rows += [(label, shown_number(value)) for label, value in zip(BAND, self.expected)]
        facts = [
            ("limits on", self.poi.name),
            ("confidence", confidence(self.level)),
            ("best fit", best_fit(self.poi.bestfit)),
        ]
        return View("LimitResult", facts, [Table(("", "limit"), rows)])


class LimitScanResult(Result):
    """Upper limits at each of N values of another parameter.

    Attributes
    ----------
    at : dict
        The other parameter, and its `values`.
    values : ndarray
        These values (N).
    observed : ndarray
        Observed limits (N); NaN where there is none, for a reason in `warnings`.
    expected : ndarray
        Limits at -2, -1, 0, +1, +2 standard deviations of the background (N, 5); likewise.
    limits : tuple of LimitResult
        The whole result at each value (N).
    poi : Poi
        `name` and `index` of the parameter that the limits are on.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "limit-scan"
    at: Mapping[str, Any]
    limits: tuple[LimitResult, ...]
    poi: Poi
    complete: bool
    converged: bool
    measurement: str
    warnings: tuple[str, ...]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        about = fields.get("about", fields.get("provenance"))
        limits = (
            limit if isinstance(limit, LimitResult) else LimitResult({**limit, "about": about})
            for limit in fields["limits"]
        )
        super().__init__({**fields, "limits": tuple(limits)})

    @property
    def values(self) -> ndarray:
        return self._numbers([limit.value for limit in self.limits])

    @property
    def observed(self) -> ndarray:
        return self._numbers([limit.observed for limit in self.limits])

    @property
    def expected(self) -> ndarray:
        return self._numbers([limit.expected for limit in self.limits])

    def _numbers(self, found: Any) -> ndarray:
        import numpy

        return frozen(numpy.array(found, dtype=float))

    def _view(self) -> View:
        rows = [
            (
                shown_number(limit.value),
                *(shown_number(found, 5) for found in (limit.observed, *limit.expected)),
            )
            for limit in self.limits
        ]
        facts = [("limits on", self.poi.name)]
        if self.limits:
            facts.append(("confidence", confidence(self.limits[0].level)))
        return View("LimitScanResult", facts, tables(rows, (self.at["parameter"], self._said.data, *BAND)))

    def _document(self) -> dict[str, Any]:
        return {**super()._document(), "limits": [limit._document() for limit in self.limits]}


class ToyHypotestResult(Result):
    """The test of one value of the parameter of interest by toys.

    Attributes
    ----------
    CLs_obs, CLs_obs_error : float
        Observed CLs and its Monte-Carlo error; for `q0` the p-value of the background.
    CLs_exp, CLs_exp_errors : tuple of float
        Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background.
    CLsb_obs, CLsb_obs_error, CLb_obs, CLb_obs_error : float
        The p-values that CLs is made of.
    Z_obs, Z_exp : float or None
        With `q0`: observed significance and that of the median expected p-value, as `significance`
        has them; None where no toy is as extreme.
    p0_obs, p0_obs_error : float
        With `q0`: the p-value of the background and its error.
    p0_exp, p0_exp_errors : tuple of float
        With `q0`: expected p-values at -2, -1, 0, +1, +2 standard deviations, and their errors.
    q, mu : float
        The statistic of the data and the tested value.
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    n_toys, n_failed : tuple of int
        Toys of the tested and of the other hypothesis, and those whose fits failed.
    toys_tested, toys_alternative : ndarray
        The statistic of every toy whose fit did not fail.
    converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "hypotest-toys"
    CLs_obs: float
    CLs_obs_error: float
    CLs_exp: tuple[float, ...]
    CLs_exp_errors: tuple[float, ...]
    poi: Poi
    test_stat: str
    CLsb_obs: float
    CLsb_obs_error: float
    CLb_obs: float
    CLb_obs_error: float
    Z_obs: float | None
    p0_obs: float
    p0_obs_error: float
    Z_exp: float | None
    p0_exp: tuple[float, ...]
    p0_exp_errors: tuple[float, ...]
    q: float
    mu: float
    n_toys: tuple[int, int]
    n_failed: tuple[int, int]
    toys_tested: ndarray
    toys_alternative: ndarray
    warnings: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """Whether the fits of all toys converged."""
        return sum(self.n_failed) == 0

    def _document(self) -> dict[str, Any]:
        # A call that is interrupted raises.
        return {**super()._document(), "complete": True, "converged": self.converged}

    def _view(self) -> View:
        tested, alternative = self.n_toys
        facts = [
            ("tested", f"{self.poi.name} = {shown_number(self.mu)}"),
            ("toys", f"{tested} and {alternative} of the alternative"),
            ("statistic", shown_number(self.q)),
        ]
        if self.test_stat == "q0":
            facts.append(("significance", "{}, expected {}".format(*_digits(self.Z_obs, self.Z_exp))))
        bands = zip(
            (self._said.data, *BAND),
            (self.CLs_obs, *self.CLs_exp),
            (self.CLs_obs_error, *self.CLs_exp_errors),
        )
        rows = [
            (label, shown_number(value, 4), shown_number(error, 2)) for label, value, error in bands
        ]
        columns = ("", "p-value" if self.test_stat == "q0" else "CLs", "error")
        return View("ToyHypotestResult", facts, [Table(columns, rows)])


def _digits(*values: float | None) -> tuple[str, ...]:
    return tuple(shown_number(value, 4) for value in values)
