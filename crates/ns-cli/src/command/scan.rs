//! `nextstat scan`: the profile likelihood of one or two parameters.

use nextstat::Analysis;
use nextstat::curves::{AxisRequest, ContourRequest, ScanRequest};
use nextstat::error::{NeedsPoi, Procedure};
use ns_inference::scan::ScanValues;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::ScanArgs;
use crate::error::CliError;
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &ScanArgs) -> Result<Status, CliError> {
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    let request = ScanRequest { axes: axes(args, &analysis)?, parts: Vec::new() };
    let contours = wanted_contours(args, request.axes.len())?;
    let talk = Talk::new(&args.output);
    let progress = Progress::new(talk, "points");
    let answer = analysis.scan_with_contours(&request, contours.as_ref(), &progress)?;
    drop(progress);

    report::write_json(&answer.document(!args.no_params), &args.output)?;
    let curves = &answer.result;
    let is_complete = curves.is_complete();
    let is_good = curves.is_converged();
    let alarm = (!is_good || !is_complete).then(|| curves.warnings().cloned().collect::<Vec<_>>().join("; "));
    talk.say_or_warn(alarm.as_deref(), |paint| report::scan::summary(curves, paint));
    Ok(if Progress::is_interrupted() && !is_complete { Status::Interrupted } else { Status::positive_if(is_good) })
}

/// The contours that are asked for; they need two parameters.
fn wanted_contours(args: &ScanArgs, n_axes: usize) -> Result<Option<ContourRequest>, CliError> {
    match (args.contour.as_slice(), n_axes) {
        ([], _) => Ok(None),
        (_, 1) => Err(CliError::NeedsTwo { option: "--contour" }),
        (levels, _) => Ok(Some(ContourRequest { levels: levels.to_vec(), n_points: args.contour_points as usize })),
    }
}

/// The parameters to scan, those of interest if none is named, and where they go.
fn axes(args: &ScanArgs, analysis: &Analysis) -> Result<Vec<AxisRequest>, CliError> {
    let model = analysis.model();
    let mut names: Vec<Option<String>> = args.parameter.iter().cloned().map(Some).collect();
    if names.is_empty() {
        names.extend(model.pois.iter().map(|&i| Some(model.parameters.names[i].clone())));
    }
    if names.is_empty() {
        analysis.poi(NeedsPoi::Procedure(Procedure::Scan))?;
    }
    let second = args.start2.map(|_| "--start2").or(args.points2.map(|_| "--points2"));
    if let (Some(option), 1) = (second, names.len()) {
        return Err(CliError::NeedsTwo { option });
    }
    let points = [args.points, args.points2.unwrap_or(args.points)].map(|points| points as usize);
    let ends = [args.start.zip(args.stop), args.start2.zip(args.stop2)];
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
