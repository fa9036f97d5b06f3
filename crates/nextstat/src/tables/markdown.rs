//! Tables in Markdown: pipe tables as in GitHub Flavored Markdown, with a caption above and the
//! warnings of the result below.

use super::rounding::{Rounded, rounded};
use super::{Cell, Column, ColumnKind, Table, on_one_line};

/// A cell without a number.
const DASH: &str = "–";

/// Returns the table with its caption and its notes.
pub(super) fn text(table: &Table) -> String {
    let caption = if table.has_given_caption { table.caption.clone() } else { escape(&table.caption) };
    let rule = |column: &Column| if column.kind == ColumnKind::Text { ":--" } else { "--:" };
    let mut text = format!("{caption}\n\n");
    text += &line(table.columns.iter().map(|column| escape(&column.heading)));
    text += &line(table.columns.iter().map(|column| rule(column).to_owned()));
    for row in &table.rows {
        text += &line(row.cells.iter().zip(&table.columns).map(|(cell, column)| shown(cell, column.kind)));
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
    table.notes.iter().for_each(|note| text += &format!("- {}\n", escape(note)));
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn shown(cell: &Cell, kind: ColumnKind) -> String {
    match cell {
        Cell::Empty => DASH.to_owned(),
        Cell::Text(name) => escape(name),
        Cell::Number(number) => kind.shown(*number),
        Cell::Measured { value, uncertainty: None } => kind.shown(*value),
        Cell::Measured { value, uncertainty: Some(uncertainty) } => {
            let Rounded { value, uncertainties, exponent } = rounded(*value, &[*uncertainty]);
            scaled(format!("{value} ± {}", uncertainties[0]), exponent)
        }
        Cell::Interval { value, down, up } => {
            let ends = [*down, *up].map(|end| end.map_or(0.0, f64::abs));
            let Rounded { value, uncertainties, exponent } = rounded(*value, &ends);
            let end = |sign: char, k: usize, is_known: bool| match is_known {
                true => format!("{sign}{}", uncertainties[k]),
                false => format!("{sign}{DASH}"),
            };
            scaled(format!("{value} {} {}", end('+', 1, up.is_some()), end('−', 0, down.is_some())), exponent)
        }
    }
}

fn scaled(text: String, exponent: i32) -> String {
    if exponent == 0 { text } else { format!("({text})e{exponent}") }
}

/// Escapes what Markdown would take for its own, and puts everything on one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in on_one_line(text).chars() {
        if "\\`*_{}[]<>|~$&#!".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
