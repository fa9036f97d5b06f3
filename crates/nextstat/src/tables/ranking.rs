//! Tables of rankings: impacts of parameters and groups, and the parts of the uncertainty.

use super::document::Place;
use super::entries::Entries;
use super::limits::poi;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};

/// Significant digits of impacts.
const DIGITS: ColumnKind = ColumnKind::Digits(2);

/// Keys of impacts with two directions, and their headings.
const SHIFTS: [(&str, &str); 3] = [("prefit", "pre-fit"), ("postfit", "post-fit"), ("global", "global")];

/// Keys of impacts from the covariance.
const FORMULAS: [(&str, &str); 1] = [("covariance_postfit", "covariance")];

/// Returns a row for each ranked parameter, with the impacts that the ranking has.
pub(super) fn ranking(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let ranked = of_each(entries, "ranking")?;
    let has = |key: &str| ranked.iter().any(|(_, row)| row.get(key).is_some());
    let shifts: Vec<_> = SHIFTS.into_iter().filter(|(key, _)| has(key)).collect();
    let formulas: Vec<_> = FORMULAS.into_iter().filter(|(key, _)| has(key)).collect();
    let mut columns = vec![
        Column::text("parameter"),
        Column::new("pull", "pull", ColumnKind::Fixed(2)),
        Column::new("constraint", "constraint", ColumnKind::Fixed(2)),
    ];
    for (key, heading) in &shifts {
        columns.push(Column::new(&format!("{key}_up"), &format!("{heading} +1σ"), DIGITS));
        columns.push(Column::new(&format!("{key}_down"), &format!("{heading} −1σ"), DIGITS));
    }
    columns.extend(formulas.iter().map(|(key, heading)| Column::new(key, heading, DIGITS)));
    table(entries, "Impacts of nuisance parameters", columns, &ranked, |row| {
        let mut cells = vec![Cell::Text(row.text_of("parameter")?.to_owned())];
        cells.push(Cell::number(row.number_of("pull")?));
        cells.push(Cell::number(row.number_of("constraint")?));
        for (key, _) in &shifts {
            for direction in ["up", "down"] {
                let shift = row.get(key).and_then(|impacts| impacts.get(direction));
                cells.push(Cell::number(shift.map_or(Ok(None), |shift| shift.number_of("impact"))?));
            }
        }
        for (key, _) in &formulas {
            cells.push(Cell::number(row.number_of(key)?));
        }
        Ok(cells)
    })
}

/// Returns a row for each group.
pub(super) fn groups(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("group"),
        Column::new("parameters", "parameters", ColumnKind::Number(8)),
        Column::new("frozen", "frozen", DIGITS),
        Column::new("global", "global", DIGITS),
    ];
    table(entries, "Impacts of groups of parameters", columns, &of_each(entries, "groups")?, |row| {
        Ok(vec![
            Cell::Text(row.text_of("group")?.to_owned()),
            Cell::Number(row.member("members")?.items()?.len() as f64),
            Cell::number(row.number_of("frozen")?),
            Cell::number(row.number_of("global")?),
        ])
    })
}

/// Returns the parts of the uncertainty of the parameter of interest.
pub(super) fn breakdown(entries: &Entries<'_>) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("uncertainty"),
        Column::new("frozen", "frozen", ColumnKind::Digits(3)),
        Column::new("global", "global", ColumnKind::Digits(3)),
    ];
    let mut parts = Vec::new();
    for (index, entry) in entries.all.iter().enumerate() {
        let Some(result) = &entry.result else { continue };
        let breakdown = result.member("breakdown")?;
        for (name, keys) in [
            ("statistical", ["frozen_statistical", "global_statistical"]),
            ("systematic", ["frozen_systematic", "global_systematic"]),
            ("total", ["total", "total"]),
        ] {
            let numbers = keys.map(|key| breakdown.number_of(key));
            let [frozen, global] = numbers;
            parts.push((index, name, [frozen?, global?]));
        }
    }
    let mut rows = Vec::with_capacity(parts.len());
    for (index, name, numbers) in parts {
        let mut cells = vec![Cell::Text(name.to_owned())];
        cells.extend(numbers.map(Cell::number));
        rows.push(with_labels(entries, index, cells)?);
    }
    let caption = caption(entries, "Uncertainty")?;
    Ok(Contents { caption, columns: all_columns(entries, columns), rows, is_matrix: false })
}

/// Returns the items of the member `key` of each ranking, with the number of its entry.
fn of_each<'a>(entries: &Entries<'a>, key: &str) -> Result<Vec<(usize, Place<'a>)>, TableError> {
    let mut all = Vec::new();
    for (index, entry) in entries.all.iter().enumerate() {
        if let Some(result) = &entry.result {
            all.extend(result.member(key)?.items()?.into_iter().map(|row| (index, row)));
        }
    }
    Ok(all)
}

/// Returns a table with `cells` of each of `found`.
fn table(
    entries: &Entries<'_>,
    what: &str,
    columns: Vec<Column>,
    found: &[(usize, Place<'_>)],
    cells: impl Fn(&Place<'_>) -> Result<Vec<Cell>, TableError>,
) -> Result<Contents, TableError> {
    let mut rows = Vec::with_capacity(found.len());
    for (index, row) in found {
        rows.push(with_labels(entries, *index, cells(row)?)?);
    }
    Ok(Contents { caption: caption(entries, what)?, columns: all_columns(entries, columns), rows, is_matrix: false })
}

/// Returns whether rows need the parameter of interest that they are about.
fn has_several(entries: &Entries<'_>) -> bool {
    entries.all.len() > 1
}

fn all_columns(entries: &Entries<'_>, columns: Vec<Column>) -> Vec<Column> {
    let poi = has_several(entries).then(|| Column::new("poi", "impact on", ColumnKind::Text));
    entries.columns().into_iter().chain(poi).chain(columns).collect()
}

/// Returns a row of the entry `index`; nothing but names if its fit did not converge.
fn with_labels(entries: &Entries<'_>, index: usize, mut cells: Vec<Cell>) -> Result<Row, TableError> {
    let entry = &entries.all[index];
    let mut row = entries.cells(entry, &entries.columns());
    if let Some(result) = &entry.result {
        if result.get("fit").is_some_and(|fit| !fit.has_converged()) {
            cells[1..].fill(Cell::Empty);
        }
        if has_several(entries) {
            row.push(poi(result)?);
        }
    }
    row.extend(cells);
    Ok(Row::new(row))
}

fn caption(entries: &Entries<'_>, what: &str) -> Result<String, TableError> {
    match entries.all.as_slice() {
        [entry] => match &entry.result {
            Some(result) => {
                let name = result.member("poi")?.text_of("name")?;
                Ok(if what == "Uncertainty" { format!("Uncertainty of {name}.") } else { format!("{what} on {name}.") })
            }
            None => Ok(format!("{what}.")),
        },
        _ => Ok(format!("{what}.")),
    }
}
