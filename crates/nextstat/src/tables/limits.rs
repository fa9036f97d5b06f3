//! Tables of limits, tests and significances: a row for each result.

use super::document::Place;
use super::entries::Entries;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};
use crate::number::significant;

/// Significant digits of limits, p-values and significances.
const DIGITS: ColumnKind = ColumnKind::Number(4);

/// Names and headings of expected values at -2 … +2 standard deviations.
pub(super) const BAND: [[&str; 2]; 5] = [
    ["expected_minus_2", "−2σ"],
    ["expected_minus_1", "−1σ"],
    ["expected", "expected"],
    ["expected_plus_1", "+1σ"],
    ["expected_plus_2", "+2σ"],
];

/// Returns columns of what the data give and of the band.
pub(super) fn with_band(columns: &mut Vec<Column>, data: &str, kind: ColumnKind) {
    let name = data.split(' ').next().unwrap_or(data).to_lowercase();
    columns.push(Column::new(&name, data, kind));
    columns.extend(BAND.map(|[name, heading]| Column::new(name, heading, kind)));
}

/// Returns the limits, observed and expected.
pub(super) fn limits(entries: &Entries<'_>, data: &str) -> Result<Contents, TableError> {
    let mut columns = entries.columns();
    columns.extend([Column::text("parameter"), Column::new("cl", "confidence level", ColumnKind::Number(6))]);
    with_band(&mut columns, data, DIGITS);
    let rows = rows(entries, &columns, |limit| {
        let level = limit.number_of("level")?;
        // 1 - 0.05 is not the number that is written as 0.95.
        let cl = level.and_then(|level| significant(1.0 - level, 12).parse().ok());
        let mut cells = vec![poi(limit)?, Cell::number(cl)];
        cells.push(Cell::number(limit.number_of("observed")?));
        cells.extend(limit.numbers_of("expected", BAND.len())?.into_iter().map(Cell::number));
        Ok(cells)
    })?;
    Ok(Contents { caption: "Upper limits.".to_owned(), columns, rows, is_matrix: false })
}

/// Returns CLs of tests, observed and expected.
pub(super) fn tests(entries: &Entries<'_>, data: &str) -> Result<Contents, TableError> {
    let mut columns = entries.columns();
    columns.extend([Column::text("parameter"), Column::new("mu", "tested value", ColumnKind::Number(6))]);
    with_band(&mut columns, data, DIGITS);
    let rows = rows(entries, &columns, |test| {
        let mut cells = vec![poi(test)?, Cell::number(test.number_of("mu")?)];
        cells.push(sound(test, test.number_of("CLs_obs")?));
        let expected = match test.get("CLs_exp") {
            Some(_) => test.numbers_of("CLs_exp", BAND.len())?,
            None => vec![None; BAND.len()],
        };
        cells.extend(expected.into_iter().map(|value| sound(test, value)));
        Ok(cells)
    })?;
    Ok(Contents { caption: "CLs of tests.".to_owned(), columns, rows, is_matrix: false })
}

/// Returns significances, observed and expected.
pub(super) fn significance(entries: &Entries<'_>, data: &str) -> Result<Contents, TableError> {
    let mut columns = entries.columns();
    columns.push(Column::text("parameter"));
    for (name, heading) in [
        ("Z_obs", format!("Z, {data}")),
        ("p0_obs", format!("p-value, {data}")),
        ("mu_expected", "expected at".to_owned()),
        ("Z_exp", "Z, expected".to_owned()),
        ("p0_exp", "p-value, expected".to_owned()),
    ] {
        columns.push(Column::new(name, &heading, DIGITS));
    }
    let rows = rows(entries, &columns, |found| {
        let mut cells = vec![poi(found)?];
        for key in ["Z_obs", "p0_obs", "mu_expected", "Z_exp"] {
            cells.push(sound(found, found.number_of(key)?));
        }
        let median = match found.get("p0_exp") {
            Some(_) => found.numbers_of("p0_exp", BAND.len())?[BAND.len() / 2],
            None => None,
        };
        cells.push(sound(found, median));
        Ok(cells)
    })?;
    Ok(Contents { caption: "Significance of a discovery.".to_owned(), columns, rows, is_matrix: false })
}

/// Returns a row for each result, or an empty one where there is none.
pub(super) fn rows(
    entries: &Entries<'_>,
    columns: &[Column],
    cells: impl Fn(&Place<'_>) -> Result<Vec<Cell>, TableError>,
) -> Result<Vec<Row>, TableError> {
    let mut rows = Vec::with_capacity(entries.all.len());
    for entry in &entries.all {
        let mut row = entries.cells(entry, columns);
        if let Some(result) = &entry.result {
            row.extend(cells(result)?);
        }
        row.resize(columns.len(), Cell::Empty);
        rows.push(Row::new(row));
    }
    Ok(rows)
}

/// Returns the name of the parameter of interest.
pub(super) fn poi(result: &Place<'_>) -> Result<Cell, TableError> {
    Ok(Cell::Text(result.member("poi")?.text_of("name")?.to_owned()))
}

/// Returns a number unless the result did not converge.
pub(super) fn sound(result: &Place<'_>, value: Option<f64>) -> Cell {
    Cell::number(value.filter(|_| result.has_converged()))
}
