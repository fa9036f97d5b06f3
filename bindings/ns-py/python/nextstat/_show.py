"""One screen of a result: text for terminals, tables for notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from ._common import confidence
from ._nextstat import escape as _escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._nextstat import Model
    from ._results import Result

# How many lines a table has at most.
_SHOWN = 10

_BAND = ("-2 sigma", "-1 sigma", "expected", "+1 sigma", "+2 sigma")


@dataclass
class _Table:
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    # How many rows there are in all, if not all are here.
    total: int = 0


@dataclass
class _View:
    """What is shown of a result: a headline, facts, tables, and what to beware of."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    warnings: Sequence[str] = ()
    is_bad: bool = False


def _number(value: Any, digits: int = 6) -> str:
    if value is None or value != value:
        return "-"
    # Of a zero without its sign.
    return f"{value + 0.0:.{digits}g}"


def _signed(value: Any, digits: int = 2) -> str:
    return "-" if value is None or value != value else f"{value:+.{digits}f}"


def _measured(value: Any, error: Any) -> str:
    if error is None or error != error:
        return f"{_number(value)} (no uncertainty)"
    return f"{_number(value)} ± {_number(error, 4)}"


def _cut(rows: Iterable[tuple[str, ...]], columns: tuple[str, ...]) -> list[_Table]:
    rows = list(rows)
    return [_Table(columns, rows[:_SHOWN], len(rows))] if rows else []


def _fit(result: Any) -> _View:
    view = _View("FitResult")
    effort = f"{result.n_iterations} iterations, {result.n_evaluations} evaluations, EDM {_number(result.edm, 2)}"
    view.is_bad = not result.converged
    said = "yes" if result.converged else f"NO ({result.outcome}); do not use these numbers"
    view.facts = [("converged", f"{said}: {effort}" if result.converged else said), ("2NLL", _number(result.twice_nll, 10))]
    asymmetric = {interval["parameter"]: interval for interval in result.minos}
    for poi in result.pois:
        text = _measured(poi["bestfit"], poi["uncertainty"])
        if poi["name"] in asymmetric:
            interval = asymmetric[poi["name"]]
            text += f", MINOS {_signed(interval['down'], 4)} {_signed(interval['up'], 4)}"
        view.facts.append((poi["name"], text))
    named = {poi["name"] for poi in result.pois}
    pulls = sorted((pull for pull in result.pulls or () if pull["uncertainty"] is not None), key=lambda pull: -abs(pull["pull"]))
    constrained = {pull["parameter"] for pull in result.pulls or ()}
    free = [
        (name, _number(float(best)), _number(float(width), 4))
        for name, best, width in zip(result.par_names, result.bestfit, result.uncertainties)
        if name not in named and name not in constrained
    ]
    view.tables = _cut(free, ("parameters", "best fit", "error"))
    view.tables += _cut(
        (
            (
                pull["parameter"],
                _number(pull["bestfit"], 4),
                _number(pull["uncertainty"], 4),
                _signed(pull["pull"]),
                _number(pull["constraint"], 2),
            )
            for pull in pulls
        ),
        ("strongest pulls", "best fit", "error", "pull", "constraint"),
    )
    return view


def _hypotest(result: Any) -> _View:
    view = _View("HypotestResult", [("tested", f"{result.parameter} = {_number(result.mu)}")])
    rows = [("observed", *(_number(value, 4) for value in (result.CLs_obs, result.CLsb_obs, result.CLb_obs)))]
    if result.CLs_exp is not None:
        bands = zip(_BAND, result.CLs_exp, result.CLsb_exp, result.CLb_exp)
        rows += [(label, *(_number(value, 4) for value in values)) for label, *values in bands]
    view.tables = [_Table(("", "CLs", "CLs+b", "CLb"), rows)]
    view.facts += [("best fit", _number(result.mu_hat)), ("statistic", _number(result.q))]
    return view


def _significance(result: Any) -> _View:
    p0_exp = None if result.p0_exp is None else result.p0_exp[2]
    rows = [
        ("observed", _number(result.Z_obs, 4), _number(result.p0_obs, 4)),
        (f"expected at {result.parameter} = {_number(result.mu_expected)}", _number(result.Z_exp, 4), _number(p0_exp, 4)),
    ]
    return _View("SignificanceResult", [("best fit", _number(result.mu_hat))], [_Table(("", "Z", "p-value"), rows)])


def _limit(result: Any) -> _View:
    rows = [("observed", _number(result.observed))]
    rows += [(label, _number(value)) for label, value in zip(_BAND, result.expected)]
    facts = [("limits on", result.parameter), ("confidence", confidence(result.level)), ("best fit", _number(result.mu_hat))]
    return _View("LimitResult", facts, [_Table(("", "limit"), rows)])


def _scan(result: Any) -> _View:
    shape = " x ".join(str(n) for n in result.delta_nll.shape)
    view = _View("ScanResult", [("points", shape)])
    for name, values in zip(result.parameters, result.values):
        if not len(values):
            continue
        best = result.best["params"][result.par_names.index(name)]
        view.facts.append((name, f"{_number(values.min())} to {_number(values.max())}, best fit {_number(best)}"))
    if result.delta_nll.ndim == 1:
        pairs = zip(result.values[0], result.twice_delta_nll)
        rows = [(_number(float(value)), _number(float(rise), 4)) for value, rise in pairs]
        view.tables = _cut(rows, (result.parameters[0], "2 Δ(-ln L)"))
    return view


def _contours(result: Any) -> _View:
    rows = []
    for contour in result.contours:
        rows.append((_number(contour["confidence_level"]), _number(contour["twice_delta_nll"], 5), str(len(contour["points"]))))
    return _View("ContourResult", tables=_cut(rows, ("level", "2 Δ(-ln L)", "points")))


def _impact(pair: dict[str, Any] | None) -> str:
    if pair is None:
        return "-"
    ends = (pair[end]["impact"] if pair[end] else None for end in ("up", "down"))
    return " ".join(_signed(impact, 3) for impact in ends)


def _ranking(result: Any) -> _View:
    poi = result.poi
    rows = [
        (
            entry["parameter"],
            _signed(entry["pull"]),
            _number(entry["constraint"], 2),
            *(_impact(entry[kind]) for kind in ("prefit", "postfit", "global")),
            _signed(entry["covariance_postfit"], 3),
        )
        for entry in result.ranking
    ]
    columns = (f"impact on {poi['name']}", "pull", "constraint", "pre-fit", "post-fit", "global", "covariance")
    view = _View("RankingResult", [(poi["name"], _measured(poi["bestfit"], poi["uncertainty"]))], _cut(rows, columns))
    groups = ((group["group"], _number(group["global"], 4), _number(group["frozen"], 4)) for group in result.groups)
    view.tables += _cut(groups, ("group", "global", "frozen"))
    return view


def _toys(result: Any) -> _View:
    n_toys = len(result.toys)
    view = _View("ToysResult", [("toys", str(n_toys)), ("failed", str(result.n_failed)), ("seed", str(result.seed))])
    if result.poi in result.par_names and n_toys - result.n_failed > 1:
        values = result.values(result.poi)
        view.facts.append((result.poi, f"mean {_number(float(values.mean()), 5)}, width {_number(float(values.std(ddof=1)), 4)}"))
    view.is_bad = result.n_failed > 0
    return view


def _toy_hypotest(result: Any) -> _View:
    tested, alternative = result.n_toys
    view = _View("ToyHypotestResult", [("tested", f"{result.parameter} = {_number(result.mu)}")])
    view.facts += [("toys", f"{tested} and {alternative} of the alternative"), ("statistic", _number(result.q))]
    rows = [("observed", _number(result.CLs_obs, 4), _number(result.CLs_obs_error, 2))]
    bands = zip(_BAND, result.CLs_exp, result.CLs_exp_errors)
    rows += [(label, _number(value, 4), _number(error, 2)) for label, value, error in bands]
    view.tables = [_Table(("", "p-value" if result.test_stat == "q0" else "CLs", "error"), rows)]
    return view


def _goodness(result: Any) -> _View:
    facts = [("statistic", _number(result.statistic, 5)), ("degrees of freedom", str(result.n_dof))]
    facts.append(("p-value", _number(result.p_value, 3)))
    if result._fields.get("toys"):
        total = result.toys["total"]
        facts.append(("p-value by toys", f"{_number(total['value'], 3)} ± {_number(total['error'], 2)} ({total['n_toys']} toys)"))
    rows = [(channel["channel"], _number(channel["deviance"], 4), str(channel["n_bins"]), _number(channel["p_value"], 3)) for channel in result.channels]
    return _View("GoodnessOfFit", facts, _cut(rows, ("channel", "statistic", "bins", "p-value")))


def _yields(result: Any) -> _View:
    view = _View("YieldsResult")
    view.tables = _channels(result.channels)
    return view


def _channels(channels: Iterable[dict[str, Any]]) -> list[_Table]:
    rows = []
    for channel in channels:
        before, after = channel["prefit"]["total"], channel["postfit"]["total"]
        rows.append(
            (
                channel["channel"],
                _number(float(channel["data"].sum())),
                _measured(before["sum"], before["sum_uncertainty"]),
                _measured(after["sum"], after["sum_uncertainty"]),
            )
        )
    return _cut(rows, ("channel", "data", "before", "after"))


def _report(result: Any) -> _View:
    view = _fit(result.fit)
    view.title = "ReportResult"
    goodness = result.goodness_of_fit
    view.facts.append(("goodness of fit", f"q = {_number(goodness.statistic, 5)}, {goodness.n_dof} degrees of freedom, p = {_number(goodness.p_value, 3)}"))
    view.tables += _channels(result.channels)
    return view


def _check(result: Any) -> _View:
    view = _View("CheckResult", [("errors", str(result.n_errors)), ("warnings", str(result.n_warnings)), ("notes", str(result.n_notes))])
    rows = [(found["severity"], found["code"], found.get("message", "")) for found in result.findings]
    view.tables = _cut(rows, ("severity", "code", "what"))
    view.is_bad = result.n_errors > 0
    return view


def _inspect(result: Any) -> _View:
    facts = [(what, str(n)) for what, n in result.summary.items()]
    facts.append(("measurement", result.measurement))
    rows = [(name, str(n_bins)) for name, n_bins in result.channels]
    return _View("InspectResult", facts, _cut(rows, ("channel", "bins")))


def _grid(result: Any) -> _View:
    rows = []
    for found in result.patches:
        answer = found.get("result")
        value = "-" if answer is None else _first_number(answer)
        rows.append((found["patch"], found.get("error", value)))
    return _View("GridResult", [("patches", str(result.n_patches))], _cut(rows, ("patch", "answer")))


def _first_number(answer: Any) -> str:
    for name in ("CLs_obs", "observed", "Z_obs", "twice_nll"):
        if name in getattr(answer, "_fields", ()):
            return f"{name} = {_number(getattr(answer, name))}"
    return type(answer).__name__


def _command(result: Any) -> _View:
    view = _View("CommandResult", [("exit code", str(result.exit_code)), ("output", f"{len(result.output)} characters")])
    first, *rest = result.messages.strip().split("\n")
    view.facts += [("messages", first), *(("", line) for line in rest)]
    return view


def _any(result: Result) -> _View:
    facts = [(name, _value(value)) for name, value in result._fields.items() if name != "warnings"]
    return _View(type(result).__name__, facts)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if hasattr(value, "shape"):
        return f"array of shape {value.shape}"
    if isinstance(value, (list, tuple, dict)):
        return f"{len(value)} entries"
    return str(value)


_VIEWS: dict[str, Callable[[Any], _View]] = {
    "CheckResult": _check,
    "CommandResult": _command,
    "ContourResult": _contours,
    "FitResult": _fit,
    "GoodnessOfFit": _goodness,
    "GridResult": _grid,
    "HypotestResult": _hypotest,
    "InspectResult": _inspect,
    "LimitResult": _limit,
    "RankingResult": _ranking,
    "ReportResult": _report,
    "ScanResult": _scan,
    "SignificanceResult": _significance,
    "ToyHypotestResult": _toy_hypotest,
    "ToysResult": _toys,
    "YieldsResult": _yields,
}


def _view(result: Result) -> _View:
    try:
        view = _VIEWS.get(type(result).__name__, _any)(result)
    except (AttributeError, KeyError, IndexError, TypeError):
        # Of a result that was made by hand and lacks fields.
        view = _any(result)
    fields = result._fields
    view.warnings = getattr(result, "warnings", ())
    view.is_bad = view.is_bad or fields.get("converged", True) is False
    if view.is_bad and "converged" in fields and not any(name == "converged" for name, _ in view.facts):
        view.facts.insert(0, ("converged", "NO; do not use these numbers"))
    return _escaped(view)


def _escaped(view: _View) -> _View:
    """`view` as it can be shown: it is full of names from documents."""

    def row(cells: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(_escape, cells))

    tables = [_Table(row(table.columns), [row(cells) for cells in table.rows], table.total) for table in view.tables]
    facts = [(_escape(name), _escape(value)) for name, value in view.facts]
    return _View(_escape(view.title), facts, tables, row(view.warnings), view.is_bad)


def text(result: Result) -> str:
    """As `repr` shows it."""
    view = _view(result)
    width = max((len(name) for name, _ in view.facts), default=0)
    lines = [view.title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in view.facts)]
    for table in view.tables:
        widths = [max(len(row[i]) for row in (table.columns, *table.rows)) for i in range(len(table.columns))]
        # Words to the left, numbers to the right.
        is_left = [i == 0 or any(row[i][:1].isalpha() for row in table.rows) for i in range(len(table.columns))]
        lines.append("")
        for row in (table.columns, *table.rows):
            cells = (cell.ljust(n) if left else cell.rjust(n) for cell, n, left in zip(row, widths, is_left))
            lines.append("  " + "  ".join(cells).rstrip())
        if table.total > len(table.rows):
            lines.append(f"  … and {table.total - len(table.rows)} more")
    if view.warnings:
        lines += ["", *(f"  warning: {warning}" for warning in view.warnings)]
    return "\n".join(lines)


def html(result: Result) -> str:
    """As notebooks show it."""
    return _markup(_view(result))


def model_html(model: Model) -> str:
    """A model as notebooks show it."""
    view = _View(f"Model {model.measurement}")
    view.facts = [("parameters of interest" if len(model.pois) > 1 else "parameter of interest", ", ".join(model.pois) or "none")]
    counts = (("parameters", model.n_params), ("bins", model.n_bins), ("auxiliary data", model.n_aux))
    view.facts += [*((what, str(n)) for what, n in counts), ("samples", ", ".join(model.samples))]
    channels = zip(model.channels, model.channel_n_bins)
    view.tables = _cut(((name, str(n_bins)) for name, n_bins in channels), ("channel", "bins"))
    rows = ((found["name"], str(found["len"]), ", ".join(found["kinds"]), found["constraint"] or "free") for found in model.parameter_sets())
    view.tables += _cut(rows, ("parameter", "elements", "modifiers", "constraint"))
    return _markup(_escaped(view))


def _markup(view: _View) -> str:
    parts = [f"<div><b>{escape(view.title)}</b>"]
    parts += [f"<p style='color:#b00'><b>warning:</b> {escape(warning)}</p>" for warning in view.warnings]
    if view.facts:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>" for name, value in view.facts
        )
        parts.append(f"<table>{rows}</table>")
    for table in view.tables:
        head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
        more = f"<p>… and {table.total - len(table.rows)} more</p>" if table.total > len(table.rows) else ""
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}")
    return "".join(parts) + "</div>"
