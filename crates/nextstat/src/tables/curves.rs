//! Tables of scans and contours: a row for each point.

use super::document::Place;
use super::results::Contents;
use super::{Cell, Column, ColumnKind, Row, TableError};
use crate::number::significant;

/// Significant digits of coordinates.
const COORDINATE: ColumnKind = ColumnKind::Number(6);

/// Significant digits of rises of -2 ln L, CLs and limits.
const DIGITS: ColumnKind = ColumnKind::Number(4);

fn rise() -> Column {
    Column::new("twice_delta_nll", "2Δ(−ln L)", DIGITS)
}

fn coordinate(name: &str) -> Column {
    Column::new(name, name, COORDINATE)
}

/// Returns the points of a scan of one parameter or of a grid of two.
pub(super) fn scan(scan: &Place<'_>) -> Result<Contents, TableError> {
    if scan.get("parameter").is_none() {
        return grid(scan);
    }
    let name = scan.text_of("parameter")?;
    let values = scan.member("values")?.items()?;
    let rises = scan.numbers_of("twice_delta_nll", values.len())?;
    let mut rows = Vec::with_capacity(values.len());
    for (value, rise) in values.iter().zip(rises) {
        rows.push(Row::new(vec![Cell::number(value.number()?), Cell::number(rise)]));
    }
    let caption = format!("Profile likelihood of {name}.");
    Ok(Contents { caption, columns: vec![coordinate(name), rise()], rows, is_matrix: false })
}

fn grid(scan: &Place<'_>) -> Result<Contents, TableError> {
    let [x, y] = axes(scan)?;
    let values = scan.items_of("values", 2)?;
    let [outer, inner] = [values[0].items()?, values[1].items()?];
    let lines = scan.items_of("twice_delta_nll", outer.len())?;
    let mut rows = Vec::with_capacity(outer.len() * inner.len());
    for (first, line) in outer.iter().zip(&lines) {
        let rises = line.items()?;
        if rises.len() != inner.len() {
            return Err(line.bad(format!("a list of {}", inner.len())));
        }
        for (second, rise) in inner.iter().zip(&rises) {
            rows.push(Row::new(
                [first, second, rise].map(Place::number).into_iter().map(cell).collect::<Result<_, _>>()?,
            ));
        }
    }
    let caption = format!("Profile likelihood of {x} and {y}.");
    Ok(Contents { caption, columns: vec![coordinate(x), coordinate(y), rise()], rows, is_matrix: false })
}

fn cell(number: Result<Option<f64>, TableError>) -> Result<Cell, TableError> {
    Ok(Cell::number(number?))
}

/// Returns the names of the two parameters.
fn axes<'a>(place: &Place<'a>) -> Result<[&'a str; 2], TableError> {
    let names = place.items_of("parameters", 2)?;
    Ok([names[0].text()?, names[1].text()?])
}

/// Returns where the profile of one parameter crosses the heights of confidence levels.
pub(super) fn intervals(scan: &Place<'_>) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("parameter"),
        Column::new("cl", "confidence level", ColumnKind::Number(4)),
        Column::new("interval", "interval", ColumnKind::Interval),
    ];
    let mut rows = Vec::new();
    for interval in scan.member("intervals")?.items()? {
        let (down, up) = (interval.number_of("down")?, interval.number_of("up")?);
        let value = interval.number_of("bestfit")?.filter(|_| scan.has_converged());
        rows.push(Row::new(vec![
            Cell::Text(interval.text_of("parameter")?.to_owned()),
            Cell::number(interval.number_of("cl")?),
            value.map_or(Cell::Empty, |value| Cell::Interval { value, down, up }),
        ]));
    }
    let caption = format!("Intervals of {} by its profile likelihood.", scan.text_of("parameter")?);
    Ok(Contents { caption, columns, rows, is_matrix: false })
}

/// Returns the points of contours in the plane of two parameters.
///
/// Points whose fit did not converge are left out. `cut` says which parts follow the end of a range
/// instead of the likelihood.
pub(super) fn contours(place: &Place<'_>) -> Result<Contents, TableError> {
    let [x, y] = axes(place)?;
    let columns = vec![
        Column::new("cl", "confidence level", ColumnKind::Number(4)),
        coordinate(x),
        coordinate(y),
        Column::text("cut"),
    ];
    let contours = place.get("contours").ok_or(TableError::Missing { key: "contours" })?;
    let mut rows: Vec<Row> = Vec::new();
    for contour in contours.items()? {
        let (first, cl) = (rows.len(), contour.number_of("cl")?);
        for point in contour.member("points")?.items()? {
            if point.get("outcome").is_some_and(|outcome| outcome.value != "converged") {
                continue;
            }
            let values = point.numbers_of("values", 2)?;
            let cut = point.get("cut").map_or(Cell::Empty, |cut| Cell::Text(cut_text(&cut)));
            rows.push(Row::new(vec![Cell::number(cl), Cell::number(values[0]), Cell::number(values[1]), cut]));
        }
        if let Some(row) = rows.get_mut(first) {
            row.has_rule = first > 0;
        }
    }
    Ok(Contents { caption: format!("Contours of {x} and {y}."), columns, rows, is_matrix: false })
}

/// Returns the vertices of the contours of a region by toys.
pub(super) fn region(place: &Place<'_>) -> Result<Contents, TableError> {
    let [x, y] = axes(place)?;
    let columns = vec![
        Column::new("cl", "confidence level", ColumnKind::Number(4)),
        Column::new("contour", "contour", ColumnKind::Number(8)),
        coordinate(x),
        coordinate(y),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for level in place.member("contours")?.items()? {
        let (first, cl) = (rows.len(), level.number_of("cl")?);
        for (number, contour) in level.member("contours")?.items()?.iter().enumerate() {
            for vertex in contour.member("vertices")?.items()? {
                let [x, y] = pair(&vertex)?;
                rows.push(Row::new(vec![Cell::number(cl), Cell::Number((number + 1) as f64), x, y]));
            }
        }
        if let Some(row) = rows.get_mut(first) {
            row.has_rule = first > 0;
        }
    }
    Ok(Contents { caption: format!("Contours of {x} and {y}, by toys."), columns, rows, is_matrix: false })
}

/// Returns the points of the grid of a region by toys, with their p-values.
pub(super) fn region_points(place: &Place<'_>) -> Result<Contents, TableError> {
    let [x, y] = axes(place)?;
    let columns = vec![
        coordinate(x),
        coordinate(y),
        Column::new("t", "t", DIGITS),
        Column::new("p_value", "p-value", ColumnKind::Measured),
        Column::new("n_toys", "toys", ColumnKind::Number(12)),
    ];
    let mut rows = Vec::new();
    for point in place.member("points")?.items()? {
        let [x, y] = pair(&point.member("values")?)?;
        let tested = point.get("p_value").filter(|tested| !tested.value.is_null());
        let [p_value, n_toys] = match tested {
            Some(tested) => [
                Cell::measured(tested.number_of("value")?, tested.number_of("error")?),
                Cell::number(tested.number_of("n_converged")?),
            ],
            None => [Cell::Empty, Cell::Empty],
        };
        rows.push(Row::new(vec![x, y, Cell::number(point.number_of("t")?), p_value, n_toys]));
    }
    let caption = format!("p-values of {x} and {y}, by toys.");
    Ok(Contents { caption, columns, rows, is_matrix: false })
}

/// Returns the two coordinates of a vertex or of a point.
fn pair(vertex: &Place<'_>) -> Result<[Cell; 2], TableError> {
    match vertex.items()?.as_slice() {
        [x, y] => Ok([Cell::number(x.number()?), Cell::number(y.number()?)]),
        _ => Err(vertex.bad("a list of 2")),
    }
}

/// Returns what cuts a contour off, as words.
fn cut_text(cut: &Place<'_>) -> String {
    match cut.value.as_str() {
        Some(text) => text.replace('_', " "),
        None => cut.value.to_string(),
    }
}

/// Returns the signals of an exclusion plane.
pub(super) fn points(exclusion: &Place<'_>, data: &str) -> Result<Contents, TableError> {
    let [x, y] = [exclusion.text_of("x")?, exclusion.text_of("y")?];
    let mut columns = vec![Column::text("patch"), coordinate(x), coordinate(y)];
    super::limits::with_band(&mut columns, data, DIGITS);
    columns.push(Column::text("excluded"));
    let mut rows = Vec::new();
    for point in exclusion.member("points")?.items()? {
        let mut cells = vec![Cell::Text(point.text_of("patch")?.to_owned())];
        for key in ["x", "y", "observed"] {
            cells.push(Cell::number(point.number_of(key)?));
        }
        cells.extend(point.numbers_of("expected", super::limits::BAND.len())?.into_iter().map(Cell::number));
        let is_excluded = point.get("excluded").and_then(|excluded| excluded.value.as_bool());
        cells.push(is_excluded.map_or(Cell::Empty, |is| Cell::Text(if is { "yes" } else { "no" }.to_owned())));
        rows.push(Row::new(cells));
    }
    let what = if exclusion.text_of("quantity")? == "limit" { "Upper limits" } else { "CLs" };
    Ok(Contents { caption: format!("{what} of the signals, {}.", level(exclusion)?), columns, rows, is_matrix: false })
}

/// Returns the vertices of the exclusion contours, of the data and expected.
pub(super) fn exclusion(exclusion: &Place<'_>, data: &str) -> Result<Contents, TableError> {
    let [x, y] = [exclusion.text_of("x")?, exclusion.text_of("y")?];
    let columns = vec![
        Column::text("exclusion"),
        Column::new("contour", "contour", ColumnKind::Number(8)),
        coordinate(x),
        coordinate(y),
    ];
    let mut curves = vec![(data, exclusion.member("observed")?)];
    let expected = exclusion.items_of("expected", super::limits::BAND.len())?;
    curves.extend(super::limits::BAND.map(|[_, heading]| heading).into_iter().zip(expected));
    let mut rows: Vec<Row> = Vec::new();
    for (name, curve) in curves {
        let first = rows.len();
        for (number, contour) in curve.member("contours")?.items()?.iter().enumerate() {
            for vertex in contour.member("vertices")?.items()? {
                let [x, y] = pair(&vertex)?;
                rows.push(Row::new(vec![Cell::Text(name.to_owned()), Cell::Number((number + 1) as f64), x, y]));
            }
        }
        if let Some(row) = rows.get_mut(first) {
            row.has_rule = first > 0;
        }
    }
    Ok(Contents { caption: format!("Exclusion contours, {}.", level(exclusion)?), columns, rows, is_matrix: false })
}

/// Returns the confidence level in words.
fn level(exclusion: &Place<'_>) -> Result<String, TableError> {
    let cl = exclusion.number_of("cl")?.ok_or_else(|| exclusion.bad("an exclusion with `cl`"))?;
    Ok(format!("{} % confidence level", significant(100.0 * cl, 4)))
}
