"""Results of toys that are thrown until errors are small: intervals, regions, limits,
significances, and coverages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._views import BAND, Table, View, best_fit, confidence, shown_number
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .frozen import Poi

__all__ = ["CoverageResult", "IntervalResult", "RegionResult", "ToyLimitResult", "ToySignificanceResult"]


class IntervalResult(Result):
    """A confidence interval of the parameter of interest by toys.

    Attributes
    ----------
    lower, upper : dict or None
        The lowest and the highest end: its `value`, its Monte Carlo `error`, and whether it is
        `at_bound` of the range. A `value` of None is an end that is not known or not there. None if
        no value is accepted.
    regions : tuple of dict
        The accepted regions, each with `lower` and `upper`; several if values between them are
        excluded.
    asymptotic : tuple of float or None
        The ends by asymptotic formulas; None where the range ends before.
    construction : str
        ``"fc"``, ``"central"`` or ``"upper"``.
    cl : float
    tested : tuple of dict
        Values that were tested: `value`, `t` of the data, and `p_value` with its counts.
    n_toys, n_failed : int
        Toys, and those whose fits failed.
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "interval"
    lower: Mapping[str, Any] | None
    upper: Mapping[str, Any] | None
    regions: tuple[Mapping[str, Any], ...]
    asymptotic: tuple[float | None, ...]
    construction: str
    cl: float
    tested: tuple[Mapping[str, Any], ...]
    n_toys: int
    n_failed: int
    poi: Poi
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        def end(found: Mapping[str, Any]) -> str:
            value = shown_number(found["value"], 5)
            return value if found["error"] is None else f"{value} ± {shown_number(found['error'], 2)}"

        rows = [(end(region["lower"]), end(region["upper"])) for region in self.regions]
        facts = [
            ("interval of", self.poi.name),
            ("construction", self.construction),
            ("confidence", confidence(1.0 - self.cl)),
            ("best fit", best_fit(self.poi.bestfit)),
            ("toys", str(self.n_toys)),
        ]
        return View("IntervalResult", facts, [Table(("from", "to"), rows)])


class CoverageResult(Result):
    """The coverage of intervals by toys.

    Attributes
    ----------
    points : tuple of dict
        For each true value and method: `true_value`, `method`, `coverage` with its
        `coverage_error` and its Clopper-Pearson `coverage_bounds`, its `deviation` from `cl` in
        standard errors, its `verdict`, and counts of toys. A `coverage` of None is one without
        toys, or of toys too many of which failed.
    methods : tuple of dict
        For each `method` the `verdict` at all true values, and the same as a `statement`.
    cl : float
    tolerance : float
        The deviation from `cl` that is small enough.
    max_failed_fraction : float
        The largest fraction of failed toys for which there is a coverage.
    n_toys : int
        The wanted number of toys at each true value.
    max_inner_toys : int or None
        The largest number of inner toys of each toy; None without ``"fc"``.
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "coverage"
    points: tuple[Mapping[str, Any], ...]
    methods: tuple[Mapping[str, Any], ...]
    cl: float
    tolerance: float
    max_failed_fraction: float
    n_toys: int
    max_inner_toys: int | None
    poi: Poi
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        def row(point: Mapping[str, Any]) -> tuple[str, ...]:
            bounds = point["coverage_bounds"]
            return (
                shown_number(point["true_value"], 6),
                point["method"],
                shown_number(point["coverage"], 4),
                shown_number(point["coverage_error"], 2),
                "" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}",
                shown_number(point["deviation"], 3),
            )

        columns = (self.poi.name, "method", "coverage", "error", "95 % bounds", "standard errors")
        facts = [
            ("coverage of intervals of", self.poi.name),
            ("confidence", confidence(1.0 - self.cl)),
            ("best fit", best_fit(self.poi.bestfit)),
            ("toys at each value", str(self.n_toys)),
        ]
        facts += [(method["method"], method["statement"]) for method in self.methods]
        return View("CoverageResult", facts, [Table(columns, [row(point) for point in self.points])])


class RegionResult(Result):
    """A confidence region of two parameters by toys.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    values : tuple of tuple of float
        The values of each (A and B).
    points : tuple of dict
        The points of the grid (A * B), those of the first value of the first parameter first:
        `values`, `t` of the data, and `p_value` with its error and counts, None far outside.
    contours : tuple of dict
        For each confidence level `cl` the `contours` with their `vertices`, and the accepted
        `region` as closed rings.
    cl, bestfit : tuple of float
    n_toys, n_failed : int
        Toys, and those whose fits failed.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "region"
    parameters: tuple[str, str]
    values: tuple[tuple[float, ...], ...]
    points: tuple[Mapping[str, Any], ...]
    contours: tuple[Mapping[str, Any], ...]
    cl: tuple[float, ...]
    bestfit: tuple[float, ...]
    n_toys: int
    n_failed: int
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        def extent(contours: Mapping[str, Any], k: int) -> str:
            found = [vertex[k] for ring in contours["region"] for vertex in ring]
            return f"{shown_number(min(found), 4)} to {shown_number(max(found), 4)}" if found else "none"

        rows = [(confidence(1.0 - each["cl"]), extent(each, 0), extent(each, 1)) for each in self.contours]
        best = " and ".join(shown_number(value, 5) for value in self.bestfit)
        facts = [("region of", " and ".join(self.parameters)), ("best fit", best), ("toys", str(self.n_toys))]
        return View("RegionResult", facts, [Table(("", *self.parameters), rows)])


class ToyLimitResult(Result):
    """Upper limits on the parameter of interest by toys.

    Attributes
    ----------
    observed, observed_error : float or None
        The limit and its Monte Carlo error.
    expected, expected_errors : tuple of float or None
        At -2, -1, 0, +1, +2 standard deviations of the background, with their errors; None if they
        were not asked for.
    asymptotic : dict
        `observed` and `expected` limits of CLs by asymptotic formulas.
    level : float
        CLs or CLs+b at the limit.
    criterion : ``"CLs"`` or ``"CLsb"``
    tested : tuple of dict
        Values of the parameter of interest that were tested, with their p-values.
    n_toys : tuple of int
        Toys of the tested and of the other hypothesis.
    n_failed : int
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "limit-toys"
    observed: float | None
    observed_error: float | None
    expected: tuple[float | None, ...]
    expected_errors: tuple[float | None, ...]
    asymptotic: Mapping[str, Any]
    level: float
    criterion: str
    tested: tuple[Mapping[str, Any], ...]
    n_toys: tuple[int, int]
    n_failed: int
    poi: Poi
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        found = zip(
            (self._said.data, *BAND),
            (self.observed, *self.expected),
            (self.observed_error, *self.expected_errors),
            (self.asymptotic["observed"], *self.asymptotic["expected"]),
        )
        rows = [
            (label, shown_number(value, 5), shown_number(error, 2), shown_number(asymptotic, 5))
            for label, value, error, asymptotic in found
            if value is not None or label == self._said.data
        ]
        facts = [
            ("limits on", self.poi.name),
            ("confidence", confidence(self.level)),
            ("criterion", self.criterion),
            ("best fit", best_fit(self.poi.bestfit)),
            ("toys", str(sum(self.n_toys))),
        ]
        return View("ToyLimitResult", facts, [Table(("", "limit", "error", "asymptotic"), rows)])


class ToySignificanceResult(Result):
    """The significance of a discovery by toys.

    Attributes
    ----------
    Z_obs, Z_obs_error : float or None
        The significance and its Monte Carlo error; None if no toy is as extreme as the data.
    Z_obs_lower : float
        A lower bound on it at 95 % confidence level.
    p0_obs, p0_obs_error : float
        The p-value of the background and its error.
    p0_obs_upper : float
        An upper bound on it at 95 % confidence level.
    q0 : float
        The statistic of the data.
    n_toys, n_failed : int
    importance_sampling : dict
        Only with importance sampling: the values of the parameter of interest at which toys were
        thrown (`thrown_at`), their numbers (`n_toys`), `n_effective`, the `mean_weight`, which is 1
        but for its `mean_weight_error`, and `n_toys_without`, the number of toys of the background
        alone with the same error.
    poi : Poi
        `name`, `index` and `bestfit` of the parameter of interest.
    complete, converged : bool
    warnings : tuple of str
    """

    __slots__ = ()
    _schema = "significance-toys"
    Z_obs: float | None
    Z_obs_error: float | None
    Z_obs_lower: float
    p0_obs: float
    p0_obs_error: float
    p0_obs_upper: float
    q0: float
    n_toys: int
    n_failed: int
    poi: Poi
    complete: bool
    converged: bool
    warnings: tuple[str, ...]

    def _view(self) -> View:
        rows = [
            ("Z", shown_number(self.Z_obs, 4), shown_number(self.Z_obs_error, 2), f"> {shown_number(self.Z_obs_lower, 4)}"),
            (
                "p-value",
                shown_number(self.p0_obs, 4),
                shown_number(self.p0_obs_error, 2),
                f"< {shown_number(self.p0_obs_upper, 4)}",
            ),
        ]
        facts = [("significance of", self.poi.name), ("best fit", best_fit(self.poi.bestfit)), ("toys", str(self.n_toys))]
        if sampling := self._fields.get("importance_sampling"):
            facts.append(("same error as", f"{shown_number(sampling['n_toys_without'], 2)} toys of the background alone"))
        return View("ToySignificanceResult", facts, [Table(("", "value", "error", "at 95 %"), rows)])
