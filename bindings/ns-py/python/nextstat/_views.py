"""One screen of a result or a model: text for terminals, tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _nextstat
from ._nextstat import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._nextstat import Model

# How many lines a table has at most.
_SHOWN = 10

#: Labels of expected values at -2, -1, 0, +1, +2 standard deviations.
BAND = ("-2 sigma", "-1 sigma", "expected", "+1 sigma", "+2 sigma")

#: What is shown instead of a value whose fit did not converge.
NOT_CONVERGED = "did not converge"


class Table(NamedTuple):
    """A few rows of cells under the names of their columns."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    # The number of all rows, if not all are here.
    total: int = 0


class View:
    """What is shown of a result: a headline, facts, tables and warnings."""

    def __init__(
        self,
        title: str,
        facts: Sequence[tuple[str, str]] = (),
        tables: Sequence[Table] = (),
        warnings: Sequence[str] = (),
        is_bad: bool = False,
    ) -> None:
        self.title, self.facts, self.tables = title, list(facts), list(tables)
        self.warnings, self.is_bad = warnings, is_bad
        #: Lines below the title: the data, and what is fixed or masked.
        self.conditions: Sequence[str] = ()


def shown_number(value: Any, digits: int = 6) -> str:
    """Returns `value` with `digits` digits; a dash where there is none."""
    return _nextstat.significant(None if value is None else float(value), digits)


def best_fit(value: Any) -> str:
    """Returns the best-fit value of a parameter, or that there is none because its fit failed."""
    return NOT_CONVERGED if value is None else shown_number(value, 5)


def signed(value: Any, digits: int = 2) -> str:
    """Returns `value` with its sign; a dash where there is none."""
    return "-" if value is None or value != value else f"{value:+.{digits}f}"


def measured(value: Any, uncertainty: Any) -> str:
    """Returns `value` with its uncertainty, of which two digits are shown.

    >>> measured(1282.1646, 89.78), measured(0.0, None)
    ('1282 ± 90', '0 ± -')
    """
    if value is None or value != value:
        return "-"
    return _nextstat.measured(float(value), None if uncertainty is None else float(uncertainty))


def confidence(level: float) -> str:
    """Returns the confidence level of a limit where CLs is `level`.

    What would round to 100 % is written as a difference from 1.

    >>> confidence(0.05), confidence(1e-300)
    ('95 %', '1 - 1e-300')
    """
    percent = f"{100 * (1 - level):.4g}"
    return f"1 - {level:.4g}" if percent == "100" else f"{percent} %"


def tables(rows: Iterable[tuple[str, ...]], columns: tuple[str, ...]) -> list[Table]:
    """Returns a table of the first rows; no table if there are none."""
    rows = list(rows)
    return [Table(columns, rows[:_SHOWN], len(rows))] if rows else []


def text(view: View) -> str:
    """Returns a view as `repr` shows it."""
    view = _escaped(view)
    width = max((len(name) for name, _ in view.facts), default=0)
    lines = [view.title, *(f"  {line}" for line in view.conditions)]
    lines += [*(f"  {name:<{width}}  {value}".rstrip() for name, value in view.facts)]
    for table in view.tables:
        rows, columns = (table.columns, *table.rows), range(len(table.columns))
        widths = [max(len(row[i]) for row in rows) for i in columns]
        # Words to the left, numbers to the right.
        is_left = [i == 0 or any(row[i][:1].isalpha() for row in table.rows) for i in columns]
        lines.append("")
        for row in rows:
            each = zip(row, widths, is_left)
            cells = (cell.ljust(n) if left else cell.rjust(n) for cell, n, left in each)
            lines.append("  " + "  ".join(cells).rstrip())
        if table.total > len(table.rows):
            lines.append(f"  … and {table.total - len(table.rows)} more")
    if view.warnings:
        lines += ["", *(f"  warning: {warning}" for warning in view.warnings)]
    return "\n".join(lines)


def html(view: View) -> str:
    """Returns a view as notebooks show it."""
    view = _escaped(view)
    parts = [f"<div><b>{escape_html(view.title)}</b>"]
    if view.conditions:
        parts.append(f"<p>{'<br>'.join(map(escape_html, view.conditions))}</p>")
    parts += [
        f"<p style='color:#b00'><b>warning:</b> {escape_html(warning)}</p>"
        for warning in view.warnings
    ]
    if view.facts:
        rows = "".join(map(_html_of_fact, view.facts))
        parts.append(f"<table>{rows}</table>")
    for table in view.tables:
        head = _html_cells("th", table.columns)
        body = "".join(f"<tr>{_html_cells('td', row)}</tr>" for row in table.rows)
        n_left = table.total - len(table.rows)
        more = f"<p>… and {n_left} more</p>" if n_left > 0 else ""
        parts.append(
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        )
    return "".join(parts) + "</div>"


def escape_html(text: str) -> str:
    """Returns `text` as HTML shows it."""
    # Slow to import, and only notebooks need it.
    from html import escape

    return escape(text)


def _html_of_fact(fact: tuple[str, str]) -> str:
    name, value = map(escape_html, fact)
    return (
        f"<tr><th style='text-align:left'>{name}</th>"
        f"<td style='text-align:left'>{value}</td></tr>"
    )


def _html_cells(tag: str, cells: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape_html(cell)}</{tag}>" for cell in cells)


def _escaped(view: View) -> View:
    """Returns `view` with the names from documents escaped."""

    def row(cells: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(escape, cells))

    tables = [
        Table(row(table.columns), [row(cells) for cells in table.rows], table.total)
        for table in view.tables
    ]
    facts = [(escape(name), escape(value)) for name, value in view.facts]
    escaped = View(escape(view.title), facts, tables, row(view.warnings), view.is_bad)
    escaped.conditions = row(view.conditions)
    return escaped


def model_html(model: Model) -> str:
    """Returns a model as notebooks show it."""
    pois = "parameters of interest" if len(model.pois) > 1 else "parameter of interest"
    view = View(f"Model {model.measurement}", [(pois, ", ".join(model.pois) or "none")])
    view.facts += [
        ("parameters", str(model.n_params)),
        ("bins", str(model.n_bins)),
        ("auxiliary data", str(model.n_aux)),
        ("samples", ", ".join(model.samples)),
    ]
    channels = zip(model.channels, model.channel_n_bins)
    view.tables = tables(((name, str(n_bins)) for name, n_bins in channels), ("channel", "bins"))
    sets = (
        (found["name"], str(found["len"]), ", ".join(found["kinds"]), found["constraint"] or "free")
        for found in model.parameter_sets()
    )
    view.tables += tables(sets, ("parameter", "elements", "modifiers", "constraint"))
    return html(view)


def correlation_of(covariance: Any) -> Any:
    """Returns the correlations (P, P) of a covariance: 0 where there is no uncertainty, 1 on the
    diagonal.
    """
    import numpy as np

    widths = np.sqrt(np.diagonal(covariance))
    products = np.outer(widths, widths)
    correlation = np.divide(covariance, products, out=np.zeros_like(covariance), where=products > 0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
