//! Tables of fits: parameters, pulls and correlations.

use super::document::Place;
use super::entries::Entries;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};
use crate::number::significant;
use ns_inference::result::ONE_SIGMA;

/// Returns the best fit of each parameter, with its intervals where there are some.
pub(super) fn parameters(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let mut columns = entries.columns();
    columns.push(Column::text("parameter"));
    columns.push(Column::new("bestfit", "best fit", ColumnKind::Measured));
    let levels = levels(entries)?;
    for cl in &levels {
        let percent = significant(100.0 * cl, 4);
        let heading = if *cl == ONE_SIGMA { "1σ interval".to_owned() } else { format!("{percent} % interval") };
        let name = if *cl == ONE_SIGMA { "minos".to_owned() } else { format!("minos_{percent}") };
        columns.push(Column::new(&name, &heading, ColumnKind::Interval));
    }
    let mut rows = Vec::new();
    for entry in &entries.all {
        let Some(fit) = &entry.result else { continue };
        for mut cells in of_fit(fit, &levels)? {
            cells.splice(0..0, entries.cells(entry, &columns));
            rows.push(Row::new(cells));
        }
    }
    Ok(Contents { caption: "Best-fit values of the parameters.".to_owned(), columns, rows, is_matrix: false })
}

/// Returns the confidence levels of the intervals, in the order in which they first occur.
fn levels(entries: &Entries<'_>) -> Result<Vec<f64>, TableError> {
    let mut levels: Vec<f64> = Vec::new();
    for fit in entries.all.iter().filter_map(|entry| entry.result.as_ref()) {
        for interval in intervals(fit)? {
            let cl = interval.number_of("cl")?.ok_or_else(|| interval.bad("an interval with `cl`"))?;
            if !levels.contains(&cl) {
                levels.push(cl);
            }
        }
    }
    Ok(levels)
}

fn intervals<'a>(fit: &Place<'a>) -> Result<Vec<Place<'a>>, TableError> {
    fit.get("minos").map_or(Ok(Vec::new()), |intervals| intervals.items())
}

/// Returns the cells of each parameter of a fit.
fn of_fit(fit: &Place<'_>, levels: &[f64]) -> Result<Vec<Vec<Cell>>, TableError> {
    let names = fit.member("par_names")?.items()?;
    let n = names.len();
    let (bestfit, uncertainties) = (fit.numbers_of("bestfit", n)?, fit.numbers_of("uncertainties", n)?);
    let (is_sound, intervals) = (fit.has_converged(), intervals(fit)?);
    let mut rows = Vec::with_capacity(n);
    for (i, name) in names.iter().enumerate() {
        let name = name.text()?;
        let mut cells = vec![Cell::Text(name.to_owned()), Cell::measured(bestfit[i], uncertainties[i])];
        for cl in levels {
            let mut cell = Cell::Empty;
            for interval in &intervals {
                if interval.text_of("parameter")? == name && interval.number_of("cl")? == Some(*cl) {
                    let value = interval.number_of("bestfit")?.or(bestfit[i]);
                    let (down, up) = (interval.number_of("down")?, interval.number_of("up")?);
                    cell = value.map_or(Cell::Empty, |value| Cell::Interval { value, down, up });
                }
            }
            cells.push(cell);
        }
        if !is_sound {
            cells[1..].fill(Cell::Empty);
        }
        rows.push(cells);
    }
    Ok(rows)
}

/// Returns the matrix `key` of a fit, without parameters that have no uncertainty.
pub(super) fn matrix(fit: &Place<'_>, key: &'static str) -> Result<Contents, TableError> {
    let n = fit.member("par_names")?.items()?.len();
    if fit.get(key).is_none() {
        return Err(TableError::Missing { key });
    }
    let uncertainties = fit.numbers_of("uncertainties", n)?;
    let free: Vec<usize> = (0..n).filter(|&i| uncertainties[i].is_some()).collect();
    let kind = if key == "correlation" { ColumnKind::Fixed(2) } else { ColumnKind::Number(3) };
    let what = if key == "correlation" { "Correlations" } else { "Covariance" };
    let caption = format!("{what} of the parameters after the fit.");
    let (columns, mut rows) = square(fit, key, &free, kind)?;
    if !fit.has_converged() {
        rows.iter_mut().for_each(|row| row.cells[1..].fill(Cell::Empty));
    }
    Ok(Contents { caption, columns, rows, is_matrix: true })
}

/// Returns columns and rows of the matrix `key` of the parameters with these indices.
pub(super) fn square(
    place: &Place<'_>,
    key: &str,
    kept: &[usize],
    kind: ColumnKind,
) -> Result<(Vec<Column>, Vec<Row>), TableError> {
    let names = place.member("par_names")?.items()?;
    let lines = place.items_of(key, names.len())?;
    let mut columns = vec![Column::text("parameter")];
    let mut rows = Vec::with_capacity(kept.len());
    for &i in kept {
        columns.push(Column::new(names[i].text()?, names[i].text()?, kind));
        let line = lines[i].items()?;
        if line.len() != names.len() {
            return Err(lines[i].bad(format!("a list of {}", names.len())));
        }
        let mut cells = vec![Cell::Text(names[i].text()?.to_owned())];
        for &j in kept {
            cells.push(Cell::number(line[j].number()?));
        }
        rows.push(Row::new(cells));
    }
    Ok((columns, rows))
}

/// Returns the pulls of a fit or of a report.
pub(super) fn pulls(result: &Place<'_>) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("parameter"),
        Column::new("bestfit", "best fit", ColumnKind::Measured),
        Column::new("pull", "pull", ColumnKind::Fixed(2)),
        Column::new("constraint", "constraint", ColumnKind::Fixed(2)),
    ];
    let mut rows = Vec::new();
    for pull in result.member("pulls")?.items()? {
        let mut cells = vec![
            Cell::Text(pull.text_of("parameter")?.to_owned()),
            Cell::measured(pull.number_of("bestfit")?, pull.number_of("uncertainty")?),
            Cell::number(pull.number_of("pull")?),
            Cell::number(pull.number_of("constraint")?),
        ];
        if !result.has_converged() {
            cells[1..].fill(Cell::Empty);
        }
        rows.push(Row::new(cells));
    }
    Ok(Contents { caption: "Pulls of the constrained parameters.".to_owned(), columns, rows, is_matrix: false })
}
