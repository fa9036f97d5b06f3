//! Tables of tests by toys, of fits of toys, and of fits of other data sets.

use super::document::Place;
use super::entries::Entries;
use super::fits::square;
use super::limits::{BAND, poi, rows, sound, with_band};
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};

/// Significant digits of fitted values.
const DIGITS: ColumnKind = ColumnKind::Number(6);

/// Returns CLs of tests by toys with their Monte Carlo errors, observed and expected.
pub(super) fn tests(entries: &Entries<'_>, data: &str) -> Result<Contents, TableError> {
    let mut columns = entries.columns();
    columns.extend([Column::text("parameter"), Column::new("mu", "tested value", ColumnKind::Number(6))]);
    with_band(&mut columns, data, ColumnKind::Measured);
    let rows = rows(entries, &columns, |test| {
        let mut cells = vec![poi(test)?, Cell::number(test.number_of("mu")?)];
        cells.push(Cell::measured(test.number_of("CLs_obs")?, test.number_of("CLs_obs_error")?));
        let expected = test.numbers_of("CLs_exp", BAND.len())?;
        let errors = test.numbers_of("CLs_exp_errors", BAND.len())?;
        cells.extend(expected.into_iter().zip(errors).map(|(value, error)| Cell::measured(value, error)));
        Ok(cells)
    })?;
    let mut statistics = entries.all.iter().filter_map(|entry| entry.result.as_ref()?.get("test_stat"));
    let is_discovery = statistics.all(|statistic| statistic.value == "q0");
    let what = if is_discovery { "p-values of the background" } else { "CLs of tests" };
    Ok(Contents { caption: format!("{what}, by toys."), columns, rows, is_matrix: false })
}

/// Returns the p-values of both hypotheses of a test, and the toys behind them.
pub(super) fn p_values(test: &Place<'_>) -> Result<Contents, TableError> {
    let count = |name: &str, heading: &str| Column::new(name, heading, ColumnKind::Number(12));
    let columns = vec![
        Column::text("hypothesis"),
        Column::new("p_value", "p-value", ColumnKind::Measured),
        count("n_extreme", "toys beyond the data"),
        count("n_converged", "toys"),
        count("n_failed", "failed"),
    ];
    let found = test.member("tail_probabilities")?;
    let failed = test.numbers_of("n_failed", 2)?;
    let mut rows = Vec::with_capacity(2);
    for (key, name, failed) in [("CLsb_obs", "tested", failed[0]), ("CLb_obs", "alternative", failed[1])] {
        let fraction = found.member(key)?;
        rows.push(Row::new(vec![
            Cell::Text(name.to_owned()),
            Cell::measured(fraction.number_of("value")?, fraction.number_of("error")?),
            Cell::number(fraction.number_of("n_extreme")?),
            Cell::number(fraction.number_of("n_converged")?),
            Cell::number(failed),
        ]));
    }
    let name = test.member("poi")?.text_of("name")?;
    let caption = format!("Toys of the test of {name} and their p-values.");
    Ok(Contents { caption, columns, rows, is_matrix: false })
}

/// Returns a row for each toy: the best fit, unless it did not converge.
pub(super) fn toys(document: &Place<'_>) -> Result<Contents, TableError> {
    let has_uncertainty = document.member("toys")?.items()?.iter().any(|toy| toy.get("poi_uncertainty").is_some());
    let last = has_uncertainty.then_some("poi_uncertainty");
    of_data_sets(document, &Rows { key: "toys", number: "toy", objective: "nll", last }, "Fits of toys.")
}

/// Returns a row for each data set: the best fit, unless it did not converge.
pub(super) fn data_sets(document: &Place<'_>) -> Result<Contents, TableError> {
    let rows = Rows { key: "data_sets", number: "data_set", objective: "twice_nll", last: None };
    of_data_sets(document, &rows, "Fits of data sets.")
}

/// Where a document has its rows, and what they have.
struct Rows {
    key: &'static str,
    number: &'static str,
    objective: &'static str,
    /// A number after the best fit.
    last: Option<&'static str>,
}

fn of_data_sets(document: &Place<'_>, wanted: &Rows, caption: &str) -> Result<Contents, TableError> {
    let heading = if wanted.objective == "nll" { "−ln L" } else { "−2 ln L" };
    let mut columns = vec![
        Column::new(wanted.number, &wanted.number.replace('_', " "), ColumnKind::Number(20)),
        Column::text("outcome"),
        Column::new(wanted.objective, heading, ColumnKind::Number(8)),
    ];
    let names = document.member("par_names")?.items()?;
    let found = document.member(wanted.key)?.items()?;
    let kind = match found.iter().any(|row| row.get("uncertainties").is_some()) {
        true => ColumnKind::Measured,
        false => DIGITS,
    };
    for name in &names {
        columns.push(Column::new(name.text()?, name.text()?, kind));
    }
    columns.extend(wanted.last.map(|key| Column::new(key, &key.replace("poi_", "its "), DIGITS)));
    let rows = found.iter().map(|row| of_data_set(row, wanted, names.len()).map(Row::new));
    Ok(Contents { caption: caption.to_owned(), columns, rows: rows.collect::<Result<_, _>>()?, is_matrix: false })
}

fn of_data_set(row: &Place<'_>, wanted: &Rows, n: usize) -> Result<Vec<Cell>, TableError> {
    let outcome = row.text_of("outcome")?;
    let bestfit = row.numbers_of("bestfit", n)?;
    let widths = match row.get("uncertainties") {
        Some(_) => row.numbers_of("uncertainties", n)?,
        None => vec![None; n],
    };
    let mut cells = vec![
        Cell::number(row.number_of(wanted.number)?),
        Cell::Text(outcome.replace('_', " ")),
        Cell::number(row.number_of(wanted.objective)?),
    ];
    cells.extend(bestfit.into_iter().zip(widths).map(|(value, width)| Cell::measured(value, width)));
    if let Some(key) = wanted.last {
        cells.push(Cell::number(row.number_of(key)?));
    }
    if outcome != "converged" {
        cells[2..].fill(Cell::Empty);
    }
    Ok(cells)
}

/// Returns the nominal fit of each parameter, and its mean and standard deviation over the data
/// sets.
pub(super) fn spread(document: &Place<'_>) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("parameter"),
        Column::new("bestfit", "nominal", ColumnKind::Measured),
        Column::new("mean", "mean", DIGITS),
        Column::new("standard_deviation", "standard deviation", ColumnKind::Number(3)),
    ];
    let nominal = document.member("nominal")?;
    let mut rows = Vec::new();
    for parameter in document.member("parameters")?.items()? {
        let bestfit = sound(&nominal, parameter.number_of("bestfit")?);
        rows.push(Row::new(vec![
            Cell::Text(parameter.text_of("parameter")?.to_owned()),
            match bestfit {
                Cell::Number(value) => Cell::measured(Some(value), parameter.number_of("uncertainty")?),
                _ => Cell::Empty,
            },
            Cell::number(parameter.number_of("mean")?),
            Cell::number(parameter.number_of("standard_deviation")?),
        ]));
    }
    let caption = "Nominal fit, and mean and standard deviation over the data sets.".to_owned();
    Ok(Contents { caption, columns, rows, is_matrix: false })
}

/// Returns the correlations of the parameters over the data sets, without those that do not vary.
pub(super) fn correlation(document: &Place<'_>) -> Result<Contents, TableError> {
    let n = document.member("par_names")?.items()?.len();
    let lines = document.items_of("correlation", n)?;
    let mut varying = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let own = line.items()?.into_iter().nth(i);
        if own.map_or(Ok(None), |own| own.number())?.is_some() {
            varying.push(i);
        }
    }
    let (columns, rows) = square(document, "correlation", &varying, ColumnKind::Fixed(2))?;
    let caption = "Correlations of the parameters over the data sets.".to_owned();
    Ok(Contents { caption, columns, rows, is_matrix: true })
}
