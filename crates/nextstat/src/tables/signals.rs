//! The table of a scan of signals.

use super::document::Place;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};

/// The place of the median among expected values.
const MEDIAN: usize = 2;

/// Returns a row for each signal, of the results of a scan.
pub(super) fn table(result: &Place<'_>) -> Result<Contents, TableError> {
    let n = result.member("signal_converged")?.items()?.len();
    let number = |name: &str, heading: &str| Column::new(name, heading, ColumnKind::Number(4));
    let mut columns = vec![
        Column::new("signal", "signal", ColumnKind::Number(12)),
        number("best_fit", "best fit"),
        number("cls", "CLs"),
        number("expected_cls", "expected CLs"),
    ];
    let mut lists =
        vec![result.numbers_of("bestfit", n)?, result.numbers_of("CLs_obs", n)?, medians(result, "CLs_exp", n)?];
    if let Some(limits) = result.get("limits").filter(|limits| !limits.value.is_null()) {
        columns.extend([number("limit", "limit"), number("expected_limit", "expected limit")]);
        lists.extend([limits.numbers_of("observed", n)?, medians(&limits, "expected", n)?]);
    }
    let row = |i: usize| {
        let numbers = lists.iter().map(|list| Cell::number(list[i]));
        Row::new(std::iter::once(Cell::number(Some(i as f64))).chain(numbers).collect())
    };
    let caption = "Tests of signals with one background.".to_owned();
    Ok(Contents { caption, columns, rows: (0..n).map(row).collect(), is_matrix: false })
}

/// Returns the medians of `n` lists of expected values.
fn medians(result: &Place<'_>, key: &str, n: usize) -> Result<Vec<Option<f64>>, TableError> {
    let median = |band: &Place<'_>| band.items()?.get(MEDIAN).map_or(Ok(None), Place::number);
    result.items_of(key, n)?.iter().map(median).collect()
}
