//! Tables as values separated by commas: RFC 4180, with a header and all digits.
//!
//! A name that a spreadsheet would take for a formula, because it begins with `=`, `+`, `-`, `@`, a
//! tab or a carriage return, gets an apostrophe in front.

use super::{Cell, Column, ColumnKind, Table};

/// A value of a flat table, with a column for each number.
#[derive(Debug, Clone, PartialEq)]
pub enum FlatValue {
    /// No value.
    Empty,
    /// A name.
    Text(String),
    /// A number.
    Number(f64),
}

impl Table {
    /// Returns the names and the values of the columns with one number in each: an uncertainty
    /// follows its value as `NAME_uncertainty`, the ends of an interval as `NAME_down` and
    /// `NAME_up`.
    #[must_use]
    pub fn flat(&self) -> Vec<(String, Vec<FlatValue>)> {
        let mut flat = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            let first = flat.len();
            flat.extend(names(column).into_iter().map(|name| (name, Vec::with_capacity(self.rows.len()))));
            for row in &self.rows {
                let values = values(&row.cells[i]);
                flat[first..].iter_mut().zip(values).for_each(|((_, column), value)| column.push(value));
            }
        }
        flat
    }
}

fn names(column: &Column) -> Vec<String> {
    let suffixes: &[&str] = match column.kind {
        ColumnKind::Text | ColumnKind::Number(_) | ColumnKind::Digits(_) | ColumnKind::Fixed(_) => &[""],
        ColumnKind::Measured => &["", "_uncertainty"],
        ColumnKind::Interval => &["", "_down", "_up"],
    };
    suffixes.iter().map(|suffix| format!("{}{suffix}", column.name)).collect()
}

/// Returns the values of a cell, at most as many as its column has names.
fn values(cell: &Cell) -> [FlatValue; 3] {
    let number = |value: Option<f64>| value.map_or(FlatValue::Empty, FlatValue::Number);
    match cell {
        Cell::Empty => [FlatValue::Empty, FlatValue::Empty, FlatValue::Empty],
        Cell::Text(name) => [FlatValue::Text(name.clone()), FlatValue::Empty, FlatValue::Empty],
        Cell::Number(value) => [number(Some(*value)), FlatValue::Empty, FlatValue::Empty],
        Cell::Measured { value, uncertainty } => [number(Some(*value)), number(*uncertainty), FlatValue::Empty],
        Cell::Interval { value, down, up } => [number(Some(*value)), number(*down), number(*up)],
    }
}

/// Returns the table with a header; lines end with a carriage return and a line feed.
pub(super) fn text(table: &Table) -> String {
    let flat = table.flat();
    let mut text = line(flat.iter().map(|(name, _)| field(name)));
    for row in 0..table.rows.len() {
        text += &line(flat.iter().map(|(_, column)| match &column[row] {
            FlatValue::Empty => String::new(),
            FlatValue::Text(name) => field(name),
            FlatValue::Number(number) => format!("{number:?}"),
        }));
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join(",") + "\r\n"
}

/// Returns a name as a field.
fn field(name: &str) -> String {
    let guard = if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    // A terminal would obey other control characters.
    let is_kept = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\n');
    let name: String = name.chars().map(|c| if is_kept(c) { c } else { '\u{fffd}' }).collect();
    if name.contains([',', '"', '\r', '\n']) {
        return format!("\"{guard}{}\"", name.replace('"', "\"\""));
    }
    format!("{guard}{name}")
}
