//! Tables of yields: by region and sample, by region in columns, and bin by bin.

use super::document::Place;
use super::entries::{Entries, Entry};
use super::results::{Contents, Maker};
use super::{Cell, Column, ColumnKind, Row, TableError, fits, goodness};

/// Returns the tables of a report, and how to make them.
pub(super) fn of_report<'a>(root: &Place<'a>) -> Vec<(&'static str, Maker<'a>)> {
    let fit = |root: &Place<'a>| root.member("fit");
    let [parameters, pulls, correlation, shown, goodness] = std::array::from_fn(|_| root.clone());
    let mut tables: Vec<(&'static str, Maker<'a>)> = vec![
        (
            "parameters",
            Box::new(move || {
                let all = vec![Entry { labels: Vec::new(), result: Some(fit(&parameters)?) }];
                fits::parameters(&Entries { kind: "fit", all, notes: Vec::new() })
            }),
        ),
        ("pulls", Box::new(move || fits::pulls(&pulls))),
        ("correlation", Box::new(move || fits::matrix(&fit(&correlation)?, "correlation"))),
    ];
    match shown.get("yields") {
        Some(yields) => tables.extend(self::tables(root, &yields)),
        None => tables.extend(self::tables(root, root)),
    }
    tables.push(("goodness", Box::new(move || goodness::of_report(&goodness))));
    tables
}

/// Returns the tables of yields in `place`, and how to make them; `root` says whether the fit
/// converged.
pub(super) fn tables<'a>(root: &Place<'a>, place: &Place<'a>) -> Vec<(&'static str, Maker<'a>)> {
    let is_sound = root.has_converged();
    let [first, second, third, fourth] = [place.clone(), place.clone(), place.clone(), place.clone()];
    vec![
        ("yields", Box::new(move || by_region(&Channel::all(&first, is_sound)?))),
        ("prefit", Box::new(move || in_columns(&Channel::all(&second, is_sound)?, Stage::Prefit))),
        ("postfit", Box::new(move || in_columns(&Channel::all(&third, is_sound)?, Stage::Postfit))),
        ("bins", Box::new(move || by_bin(&Channel::all(&fourth, is_sound)?))),
    ]
}

/// Before or after the fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Prefit,
    Postfit,
}

/// Data and expected yields of a channel.
struct Channel {
    name: String,
    /// Event counts (b); `None` where they are hidden.
    data: Vec<Option<f64>>,
    /// Each sample or group, then the total.
    rows: Vec<Yields>,
}

/// Yields of a sample, a group or all of them, before and after the fit.
struct Yields {
    name: String,
    /// Sums over the bins.
    sums: [Cell; 2],
    /// By bin (b).
    bins: Vec<[Cell; 2]>,
}

impl Channel {
    /// Reads all channels.
    fn all(place: &Place<'_>, is_sound: bool) -> Result<Vec<Self>, TableError> {
        let channels = place.member("channels")?.items()?;
        channels.iter().map(|channel| Self::read(channel, is_sound)).collect()
    }

    fn read(place: &Place<'_>, is_sound: bool) -> Result<Self, TableError> {
        let data = place.member("data")?.items()?;
        let data = data.iter().map(Place::number).collect::<Result<Vec<_>, _>>()?;
        let [before, after] = [parts(&place.member("prefit")?)?, parts(&place.member("postfit")?)?];
        if before.len() != after.len() {
            return Err(place.bad("the same samples before and after the fit"));
        }
        let mut rows = Vec::with_capacity(before.len());
        for ((name, before), (_, after)) in before.iter().zip(&after) {
            let (before, after) = (cells(before, data.len(), true)?, cells(after, data.len(), is_sound)?);
            rows.push(Yields {
                name: name.clone(),
                sums: [before.0, after.0],
                bins: before.1.into_iter().zip(after.1).map(|(before, after)| [before, after]).collect(),
            });
        }
        Ok(Self { name: place.text_of("channel")?.to_owned(), data, rows })
    }

    /// Returns the sum of the data, which is hidden where one of them is.
    fn count(&self) -> Cell {
        Cell::number(self.data.iter().copied().sum::<Option<f64>>())
    }
}

/// Returns name and yields of each sample, a group instead of its samples, then of the total.
fn parts<'a>(place: &Place<'a>) -> Result<Vec<(String, Place<'a>)>, TableError> {
    let groups = place.get("groups").map_or(Ok(Vec::new()), |groups| groups.items())?;
    let mut members = Vec::with_capacity(groups.len());
    for group in &groups {
        let samples = group.member("samples")?.items()?;
        members.push(samples.iter().map(Place::text).collect::<Result<Vec<_>, _>>()?);
    }
    let mut parts = Vec::new();
    let mut is_shown = vec![false; groups.len()];
    for sample in place.member("samples")?.items()? {
        let name = sample.text_of("sample")?;
        match members.iter().position(|members| members.contains(&name)) {
            None => parts.push((name.to_owned(), sample)),
            Some(group) if !std::mem::replace(&mut is_shown[group], true) => {
                parts.push((groups[group].text_of("group")?.to_owned(), groups[group].clone()));
            }
            Some(_) => {}
        }
    }
    parts.push(("total".to_owned(), place.member("total")?));
    Ok(parts)
}

/// Returns the sum and the bins of a prediction; nothing unless it is sound.
fn cells(place: &Place<'_>, n_bins: usize, is_sound: bool) -> Result<(Cell, Vec<Cell>), TableError> {
    let (yields, uncertainties) = (place.numbers_of("yields", n_bins)?, place.numbers_of("uncertainties", n_bins)?);
    let (sum, uncertainty) = (place.number_of("sum")?, place.number_of("sum_uncertainty")?);
    if !is_sound {
        return Ok((Cell::Empty, vec![Cell::Empty; n_bins]));
    }
    let bins = yields.into_iter().zip(uncertainties).map(|(value, uncertainty)| Cell::measured(value, uncertainty));
    Ok((Cell::measured(sum, uncertainty), bins.collect()))
}

/// Returns a row for each region and sample.
fn by_region(channels: &[Channel]) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("region"),
        Column::text("sample"),
        Column::events("prefit", "pre-fit"),
        Column::events("postfit", "post-fit"),
    ];
    let mut rows = Vec::new();
    for channel in channels {
        let first = rows.len();
        let name = |name: &str| [Cell::Text(channel.name.clone()), Cell::Text(name.to_owned())];
        for Yields { name: sample, sums: [before, after], .. } in &channel.rows {
            rows.push(Row::new([&name(sample)[..], &[before.clone(), after.clone()]].concat()));
        }
        rows.push(Row::new([&name("data")[..], &[channel.count(), channel.count()]].concat()));
        rows[first].has_rule = first > 0;
    }
    Ok(Contents { caption: "Expected and observed events.".to_owned(), columns, rows, is_matrix: false })
}

/// Returns a row for each sample, with the regions in columns.
fn in_columns(channels: &[Channel], stage: Stage) -> Result<Contents, TableError> {
    let mut columns = vec![Column::text("sample")];
    columns.extend(channels.iter().map(|channel| Column::events(&channel.name, &channel.name)));
    let mut names: Vec<&str> = Vec::new();
    for yields in channels.iter().flat_map(|channel| &channel.rows[..channel.rows.len() - 1]) {
        if !names.contains(&yields.name.as_str()) {
            names.push(&yields.name);
        }
    }
    let sum = |yields: &Yields| yields.sums[stage as usize].clone();
    let mut rows: Vec<Row> = Vec::new();
    for name in names {
        let of = |channel: &Channel| {
            let samples = &channel.rows[..channel.rows.len() - 1];
            samples.iter().find(|yields| yields.name == name).map_or(Cell::Empty, sum)
        };
        rows.push(Row::new([vec![Cell::Text(name.to_owned())], channels.iter().map(of).collect()].concat()));
    }
    let total = |channel: &Channel| channel.rows.last().map_or(Cell::Empty, sum);
    let with = |name: &str, cells: Vec<Cell>| [vec![Cell::Text(name.to_owned())], cells].concat();
    rows.push(Row { cells: with("total", channels.iter().map(total).collect()), has_rule: true });
    rows.push(Row::new(with("data", channels.iter().map(Channel::count).collect())));
    let when = if stage == Stage::Prefit { "before" } else { "after" };
    Ok(Contents { caption: format!("Expected events {when} the fit, and data."), columns, rows, is_matrix: false })
}

/// Returns a row for each bin and sample.
fn by_bin(channels: &[Channel]) -> Result<Contents, TableError> {
    let columns = vec![
        Column::text("region"),
        Column::new("bin", "bin", ColumnKind::Number(8)),
        Column::text("sample"),
        Column::events("prefit", "pre-fit"),
        Column::events("postfit", "post-fit"),
    ];
    let mut rows = Vec::new();
    for channel in channels {
        for (bin, count) in channel.data.iter().enumerate() {
            let first = rows.len();
            let place = [Cell::Text(channel.name.clone()), Cell::Number(bin as f64)];
            for yields in &channel.rows {
                let name = Cell::Text(yields.name.clone());
                rows.push(Row::new([&place[..], &[name], &yields.bins[bin]].concat()));
            }
            let count = Cell::number(*count);
            let data = [Cell::Text("data".to_owned()), count.clone(), count];
            rows.push(Row::new([&place[..], &data].concat()));
            rows[first].has_rule = first > 0;
        }
    }
    Ok(Contents { caption: "Expected and observed events of each bin.".to_owned(), columns, rows, is_matrix: false })
}
