//! Tables of the coverage of intervals.

use super::entries::Entries;
use super::limits::poi;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};

/// Returns a row for each true value and method.
pub(super) fn table(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let count = |name: &str, heading: &str| Column::new(name, heading, ColumnKind::Number(12));
    let mut columns = entries.columns();
    columns.extend([
        Column::text("parameter"),
        Column::new("true_value", "true value", ColumnKind::Number(6)),
        Column::text("method"),
        Column::new("cl", "confidence level", ColumnKind::Number(4)),
        Column::new("coverage", "coverage", ColumnKind::Measured),
        Column::new("deviation", "standard errors", ColumnKind::Number(3)),
        count("n_toys", "toys"),
        count("n_failed", "failed"),
        Column::text("verdict"),
    ]);
    let mut rows = Vec::new();
    for entry in &entries.all {
        let Some(result) = &entry.result else { continue };
        let labels = entries.cells(entry, &columns);
        let first = rows.len();
        for point in result.member("points")?.items()? {
            let mut cells = labels.clone();
            cells.extend([
                poi(result)?,
                Cell::number(point.number_of("true_value")?),
                Cell::Text(point.text_of("method")?.to_owned()),
                Cell::number(result.number_of("cl")?),
                Cell::measured(point.number_of("coverage")?, point.number_of("coverage_error")?),
                Cell::number(point.number_of("deviation")?),
                Cell::number(point.number_of("n_toys")?),
                Cell::number(point.number_of("n_failed")?),
                Cell::Text(point.text_of("verdict")?.replace('_', " ")),
            ]);
            rows.push(Row::new(cells));
        }
        if let Some(row) = rows.get_mut(first) {
            row.has_rule = first > 0;
        }
    }
    Ok(Contents { caption: "Coverage of intervals, by toys.".to_owned(), columns, rows, is_matrix: false })
}
