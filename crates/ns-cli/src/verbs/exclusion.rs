//! `nextstat exclusion`: exclusion contours of a grid of signals.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::named_or_piped;
use crate::args::values::{choice, finite, source};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions_of, warnings};
use crate::output::table::{Align, table};
use crate::output::{Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::alarm::Alarm;
use nextstat::exclusion::{Exclusion, ExclusionCurve, ExclusionPoint, ExclusionRequest, Quantity};
use nextstat::number::{optional, significant};
use nextstat::provenance::label_of;
use ns_translate::{DocumentSource, read_bytes};
use std::fmt::Write as _;

/// Arguments of `exclusion`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExclusionArgs {
    /// Result of `hypotest --every-patch` or `limit --every-patch`; `-`, or no file, reads standard
    /// input
    #[arg(value_name = "GRID", value_parser = source())]
    grid: Option<DocumentSource>,

    /// Label of the horizontal axis, such as a mass; the first in alphabetical order whose values
    /// are numbers and differ if not given
    #[arg(long, value_name = "LABEL")]
    x: Option<String>,

    /// Label of the vertical axis; the next one if not given
    #[arg(long, value_name = "LABEL")]
    y: Option<String>,

    /// Use only the patches with this value of another label; repeatable
    #[arg(long, value_name = "LABEL=VALUE", value_parser = choice)]
    at: Vec<(String, String)>,

    /// Confidence level, 0.95 if not given; limits have their own
    #[arg(long, value_name = "CL", value_parser = finite, allow_hyphen_values = true)]
    cl: Option<f64>,

    /// Triangulate in x and the splitting x - y instead of x and y, for compressed spectra
    #[arg(long)]
    mass_splitting: bool,

    #[command(flatten)]
    output: ResultArgs,
}

impl Command for ExclusionArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[self.grid.as_ref()], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let source = named_or_piped(self.grid.as_ref())?;
        let (x, y, at, cl) = (self.x, self.y, self.at, self.cl);
        let request = ExclusionRequest { x, y, at, cl, mass_splitting: self.mass_splitting };
        let found = Exclusion::from_json(&read_bytes(&source)?, &request);
        let found = found.map_err(|error| CliError::Exclusion { name: source.name(), error })?;
        let file = source.path().map_or("-".to_owned(), |path| path.display().to_string());
        let found = found.from_file(&file);
        self.output.write(&found.document())?;
        let notice = Notice { alarm: found.alarm(), is_failure: !found.converged };
        Reporter::new(&self.output).summary_or_warning(notice, |_| summary(&found));
        Ok(Status::done_if(found.converged))
    }
}

/// Formats the points, a line on the contours of each curve, and the warnings.
fn summary(found: &Exclusion) -> String {
    let (x, y) = (escape(&found.x), escape(&found.y));
    let what = match found.quantity {
        Quantity::Cls => "CLs",
        Quantity::Limit => "limit",
    };
    let columns = [
        ("patch", Align::Left),
        (&x, Align::Right),
        (&y, Align::Right),
        (what, Align::Right),
        ("expected", Align::Right),
        ("excluded", Align::Left),
        ("expected", Align::Left),
    ];
    let of_grid = found.grid_provenance();
    let label = label_of(of_grid);
    let mut text = conditions_of(of_grid) + &table(&columns, &found.points.iter().map(row).collect::<Vec<_>>());
    let _ = writeln!(text, "\n  exclusion at {} % confidence level", significant(100.0 * found.cl, 6));
    for (name, curve) in [(label, &found.observed), ("expected", &found.expected[2])] {
        let _ = writeln!(text, "  {name}: {}", contours(curve));
    }
    text + &warnings(&found.warnings)
}

fn row(point: &ExclusionPoint) -> Vec<String> {
    let word = |is_excluded: Option<bool>| is_excluded.map_or("-", |is| if is { "yes" } else { "no" }).to_owned();
    let numbers = [Some(point.x), Some(point.y), point.observed, point.expected[2]];
    let mut cells = vec![escape(&point.patch)];
    cells.extend(numbers.iter().zip([8, 8, 5, 5]).map(|(number, digits)| optional(*number, digits)));
    cells.extend([point.excluded, point.excluded_expected].map(word));
    cells
}

/// Says how many contours there are, and how many of them end at the edge of the grid.
fn contours(curve: &ExclusionCurve) -> String {
    let n_open = curve.contours.iter().filter(|contour| contour.ends_at_edge).count();
    match (n_open, curve.contours.len() - n_open) {
        (0, 0) => "no contour".to_owned(),
        (0, n_closed) => format!("{}, closed", counted(n_closed)),
        (n_open, 0) => format!("{} to the edge of the grid", counted(n_open)),
        (n_open, n_closed) => format!("{} to the edge of the grid, {n_closed} closed", counted(n_open)),
    }
}

fn counted(n: usize) -> String {
    format!("{n} {}", if n == 1 { "contour" } else { "contours" })
}
