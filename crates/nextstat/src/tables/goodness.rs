//! Tables of how well a fit describes data: each region, the constraint terms, and all together.

use super::document::Place;
use super::entries::{Entries, Entry};
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};

/// Significant digits of statistics and p-values.
const DIGITS: ColumnKind = ColumnKind::Number(4);

/// The schema of a comparison of data with the prediction of a stored fit.
const COMPARISON: &str = "comparison";

/// The key of the statistic that a region of a fit has, and one of a comparison.
const STATISTICS: [&str; 2] = ["deviance", "statistic"];

/// Returns the table of the goodness of fit of a report.
pub(super) fn of_report(report: &Place<'_>) -> Result<Contents, TableError> {
    let found = report.get("goodness_of_fit").ok_or(TableError::Missing { key: "goodness_of_fit" })?;
    let all = vec![Entry { labels: Vec::new(), result: Some(found) }];
    // The report of a stored fit says which parameters it did not match.
    let kind = if report.get("unmatched").is_some() { COMPARISON } else { "gof" };
    let mut contents = table(&Entries { kind, all, notes: Vec::new() })?;
    if !report.has_converged() {
        contents.rows.iter_mut().for_each(|row| row.cells[1..].fill(Cell::Empty));
    }
    Ok(contents)
}

/// Returns a row for each region of each result, and one for all its regions.
pub(super) fn table(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let results = || entries.all.iter().filter_map(|entry| entry.result.as_ref());
    let has_toys = results().any(|result| result.get("toys").is_some());
    let is_comparison = entries.kind == COMPARISON;
    let mut columns = entries.columns();
    columns.push(Column::text("region"));
    // The bins of a prediction that did not use the data are its degrees of freedom.
    columns.extend((!is_comparison).then(|| Column::new("bins", "bins", ColumnKind::Number(8))));
    let [heading, caption] = match is_comparison {
        true => ["χ²", "Agreement of data and prediction."],
        false => ["deviance", "Goodness of fit."],
    };
    columns.push(Column::new("statistic", heading, DIGITS));
    columns.push(Column::new("ndf", "degrees of freedom", DIGITS));
    columns.push(Column::new("p_value", "p-value", DIGITS));
    columns.extend(has_toys.then(|| Column::new("p_value_toys", "p-value by toys", ColumnKind::Measured)));
    let mut rows = Vec::new();
    for entry in &entries.all {
        let labels = entries.cells(entry, &columns);
        let Some(result) = &entry.result else {
            rows.push(with_labels(&labels, Vec::new(), columns.len()));
            continue;
        };
        let first = rows.len();
        for mut cells in of_result(result)? {
            if is_comparison {
                cells.remove(1);
            }
            rows.push(with_labels(&labels, cells, columns.len()));
        }
        if let Some(last) = rows.last_mut() {
            last.has_rule = true;
        }
        rows[first].has_rule = first > 0;
    }
    Ok(Contents { caption: caption.to_owned(), columns, rows, is_matrix: false })
}

fn with_labels(labels: &[Cell], cells: Vec<Cell>, n_columns: usize) -> Row {
    let mut row = [labels.to_vec(), cells].concat();
    row.resize(n_columns, Cell::Empty);
    Row::new(row)
}

/// Returns name, bins, statistic, degrees of freedom and p-values of each region, of the constraint
/// terms where they are part of the statistic, and of all together.
fn of_result(result: &Place<'_>) -> Result<Vec<Vec<Cell>>, TableError> {
    let channels = result.member("channels")?.items()?;
    let toys = result.get("toys");
    let by_toys = toys.as_ref().map_or(Ok(Vec::new()), |toys| toys.items_of("channels", channels.len()))?;
    let mut rows = Vec::with_capacity(channels.len() + 2);
    for (i, channel) in channels.iter().enumerate() {
        let statistic = STATISTICS.iter().find_map(|key| channel.get(key));
        let statistic = statistic.map_or(Ok(None), |statistic| statistic.number())?;
        rows.push(row(channel.text_of("channel")?, channel, statistic, by_toys.get(i))?);
    }
    if let Some(constraints) = result.get("constraint_deviance") {
        rows.push(vec![
            Cell::Text("constraint terms".to_owned()),
            Cell::Empty,
            Cell::number(constraints.number()?),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
        ]);
    }
    let total = toys.map(|toys| toys.member("total")).transpose()?;
    rows.push(row("all", result, result.number_of("statistic")?, total.as_ref())?);
    if !result.has_converged() {
        rows.iter_mut().for_each(|cells| cells[1..].fill(Cell::Empty));
    }
    Ok(rows)
}

fn row(
    name: &str,
    place: &Place<'_>,
    statistic: Option<f64>,
    by_toys: Option<&Place<'_>>,
) -> Result<Vec<Cell>, TableError> {
    let by_toys = match by_toys {
        Some(fraction) => Cell::measured(fraction.number_of("value")?, fraction.number_of("error")?),
        None => Cell::Empty,
    };
    Ok(vec![
        Cell::Text(name.to_owned()),
        Cell::number(place.number_of("n_bins")?),
        Cell::number(statistic),
        Cell::number(place.number_of("n_dof")?),
        Cell::number(place.number_of("p_value")?),
        by_toys,
    ])
}
