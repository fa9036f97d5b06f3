//! `nextstat scan`: the profile likelihood of one or two parameters.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::{finite, number};
use crate::args::{DeviceArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, free_fit_failed, warnings};
use crate::output::table::{Align, table};
use crate::output::{Paint, Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::Analysis;
use nextstat::alarm::Alarm;
use nextstat::curves::{AxisRequest, ContourLevels, Curves, ScanRequest};
use nextstat::error::{NeedsPoi, Procedure};
use nextstat::number::{NOT_CONVERGED, measured, optional, significant};
use ns_inference::contour::Contours;
use ns_inference::result::MinosInterval;
use ns_inference::scan::{Scan, ScanValues};
use std::fmt::Write as _;

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Parameter to scan, the parameter of interest if not given; give it twice for a grid of two,
    /// or `--poi` twice
    #[arg(long, value_name = "NAME")]
    parameter: Vec<String>,

    /// First value; if not given, the scan covers 2 Δ(-ln L) up to about 9 within the range of the
    /// parameter
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "stop", allow_hyphen_values = true)]
    start: Option<f64>,

    /// Last value
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "start", allow_hyphen_values = true)]
    stop: Option<f64>,

    /// Number of values
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..=100_000), allow_hyphen_values = true)]
    points: u32,

    /// First value of the second parameter
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "stop2", allow_hyphen_values = true)]
    start2: Option<f64>,

    /// Last value of the second parameter
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "start2", allow_hyphen_values = true)]
    stop2: Option<f64>,

    /// Number of values of the second parameter; that of the first if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000), allow_hyphen_values = true)]
    points2: Option<u32>,

    /// Add the contour of two parameters at a confidence level such as 0.68; repeatable
    #[arg(long, value_name = "CL", value_parser = number, allow_hyphen_values = true)]
    contour: Vec<f64>,

    /// Number of points of a contour, in addition to those where a range cuts it off
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(4..=100_000), allow_hyphen_values = true)]
    contour_points: u32,

    /// Omit the parameters of the conditional fits
    #[arg(long)]
    no_params: bool,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

impl Command for ScanArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let axes = self.axes(&analysis)?;
        let contours = self.contours(axes.len())?;
        let request = ScanRequest { axes, contours, parts: Vec::new(), has_params: !self.no_params };
        let reporter = Reporter::new(&self.output);
        let progress = Progress::new(reporter, "points");
        let answer = analysis.scan(&request, &progress)?;
        drop(progress);

        self.output.write(&answer.document())?;
        let curves = &answer.result;
        let (is_good, is_complete) = (curves.is_converged(), curves.is_complete());
        let notice = Notice { alarm: curves.alarm(), is_failure: !is_good };
        reporter.summary_or_warning(notice, |paint| conditions(&answer.analysis) + &summary(curves, paint));
        let is_interrupted = Progress::is_interrupted() && !is_complete;
        Ok(if is_interrupted { Status::Interrupted } else { Status::done_if(is_good) })
    }
}

impl ScanArgs {
    /// Returns the contours, which need two parameters.
    fn contours(&self, n_axes: usize) -> Result<Option<ContourLevels>, CliError> {
        match (self.contour.as_slice(), n_axes) {
            ([], _) => Ok(None),
            (_, 1) => Err(CliError::NeedsTwo { option: "--contour" }),
            (levels, _) => Ok(Some(ContourLevels { levels: levels.to_vec(), n_points: self.contour_points as usize })),
        }
    }

    /// Returns the parameters, those of interest if none is named, and their values.
    fn axes(&self, analysis: &Analysis) -> Result<Vec<AxisRequest>, CliError> {
        let model = analysis.model();
        let mut names: Vec<Option<String>> = self.parameter.iter().cloned().map(Some).collect();
        if names.is_empty() {
            names.extend(model.pois.iter().map(|&i| Some(model.parameters.names[i].clone())));
        }
        if names.is_empty() {
            analysis.poi(NeedsPoi::Procedure(Procedure::Scan))?;
        }
        let second = self.start2.map(|_| "--start2").or(self.points2.map(|_| "--points2"));
        if let (Some(option), 1) = (second, names.len()) {
            return Err(CliError::NeedsTwo { option });
        }
        let points = [self.points, self.points2.unwrap_or(self.points)].map(|points| points as usize);
        let ends = [self.start.zip(self.stop), self.start2.zip(self.stop2)];
        let axis = |(k, parameter): (usize, Option<String>)| {
            let k = k.min(1);
            let values = match ends[k] {
                None => ScanValues::Automatic(points[k]),
                Some((start, stop)) if start < stop => ScanValues::between(start, stop, points[k]),
                Some((start, stop)) => {
                    let name = parameter.unwrap_or_default();
                    return Err(CliError::EmptyScan { name, start, stop });
                }
            };
            Ok(AxisRequest { parameter, values })
        };
        names.into_iter().enumerate().map(axis).collect()
    }
}

/// Values in the summary.
const SHOWN: usize = 41;

/// Formats the best fit, the curve or the contours, and the warnings.
fn summary(curves: &Curves, paint: Paint) -> String {
    let Curves { scan, axes, contours, .. } = curves;
    let mut text = String::new();
    for (axis, name) in axes.iter().zip(&scan.parameters) {
        let value = scan.best.params.get(axis.parameter).map_or(f64::NAN, |value| *value);
        let uncertainty = scan.best.uncertainties.get(axis.parameter).copied().flatten();
        let line = match scan.best.converged {
            true => format!("{} = {}", escape(name), measured(value, uncertainty)),
            false => format!("{}: {NOT_CONVERGED}", escape(name)),
        };
        let _ = writeln!(text, "  {}", paint.strong(&line));
    }
    let lowest = Some(scan.best.twice_nll).filter(|_| scan.best.converged);
    let _ = writeln!(text, "  2NLL  {}\n", optional(lowest, 10));
    match scan.values.as_slice() {
        [values] => {
            text.push_str(&curve(&escape(&scan.parameters[0]), values, scan));
            text.push_str(&crossings(&curves.intervals));
        }
        values => {
            let [rows, columns] = [0, 1].map(|k| values.get(k).map_or(0, Vec::len));
            let done = scan.outcomes.iter().flatten().count();
            let _ = writeln!(text, "  {done} points of a grid of {rows} x {columns}");
        }
    }
    if let Some(contours) = contours {
        text.push_str(&extents(contours));
    }
    text.push_str(&warnings(&curves.warnings().cloned().collect::<Vec<_>>()));
    if !scan.best.converged {
        text.push_str(&free_fit_failed(paint));
    }
    text
}

fn curve(name: &str, values: &[f64], scan: &Scan) -> String {
    let columns = [(name, Align::Right), ("2ΔNLL", Align::Right), ("", Align::Left)];
    let step = values.len().div_ceil(SHOWN).max(1);
    let row = |(value, twice): (&f64, &Option<f64>)| {
        // Four marks per unit, up to 2ΔNLL = 9.
        let bar = twice.map_or(0, |twice| (4.0 * twice.clamp(0.0, 9.0)).round() as usize);
        vec![significant(*value, 5), optional(*twice, 4), "*".repeat(bar)]
    };
    let rows: Vec<Vec<String>> = values.iter().zip(&scan.twice_delta_nll).step_by(step).map(row).collect();
    table(&columns, &rows)
}

/// Formats where the profile crosses one and two standard deviations.
fn crossings(intervals: &[MinosInterval]) -> String {
    let end = |bestfit: f64, distance: Option<f64>| optional(distance.map(|distance| bestfit + distance), 5);
    let row = |(n, MinosInterval { cl, bestfit, down, up, .. }): (usize, &MinosInterval)| {
        let level = format!("{}σ, {} %", n + 1, significant(100.0 * cl, 4));
        vec![level, end(*bestfit, *down), end(*bestfit, *up)]
    };
    let rows: Vec<Vec<String>> = intervals.iter().enumerate().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table(&[("interval", Align::Left), ("from", Align::Right), ("to", Align::Right)], &rows))
}

/// Formats the extent of each contour in both parameters.
fn extents(contours: &Contours) -> String {
    let [first, second] = contours.parameters.each_ref().map(|name| escape(name));
    let columns = [("contour", Align::Right), (first.as_str(), Align::Left), (second.as_str(), Align::Left)];
    let rows = contours.contours.iter().map(|contour| {
        let reach = |k: usize| {
            let values = || contour.points.iter().filter(|p| p.twice_delta_nll.is_some()).map(|p| p.values[k]);
            let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            format!("{} … {}", significant(low, 5), significant(high, 5))
        };
        vec![format!("{}%", significant(100.0 * contour.cl, 6)), reach(0), reach(1)]
    });
    format!("\n{}", table(&columns, &rows.collect::<Vec<_>>()))
}
