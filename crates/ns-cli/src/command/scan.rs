//! `nextstat scan`: the profile likelihood of one or two parameters.

use ns_core::Model;
use ns_core::likelihood::diagnose;
use ns_inference::FitOptions;
use ns_inference::contour::{self, ContourOptions};
use ns_inference::minimize::Domain;
use ns_inference::parallel::Crew;
use ns_inference::profile::DISTINCT;
use ns_inference::scan::{Axis, Values, grid, scan};

use super::Status;
use super::device::choose;
use super::setup::{Setup, setup};
use crate::args::ScanArgs;
use crate::error::CliError;
use crate::parameters::elements;
use crate::report::{self, Progress, Talk};

/// The name of the option that names what is scanned.
const OPTION: &str = "--parameter";

pub(super) fn run(args: &ScanArgs) -> Result<Status, CliError> {
    let Setup { model, data, mut likelihood, options, .. } = setup(&args.setup)?;
    let (domain, _) = ns_inference::fit::domain_and_start(&model, &options);
    let axes = axes(args, &model, &domain)?;
    let talk = Talk::new(&args.output);
    let progress = Progress::new(talk, "points");
    let chosen = choose(&args.device, &model)?;
    let crew = chosen.assist(Crew::new(args.threads.count(), &progress), &data);
    let contours = wanted_contours(args, &axes)?;
    let mut result = match axes.as_slice() {
        [a, b] => grid(&model, &likelihood, &options, [a, b], crew),
        _ => scan(&model, &mut likelihood, &options, &axes[0], crew),
    };
    let contours = contours.map(|wanted| {
        // Round the same minimum as the grid.
        let options = FitOptions { start: Some(result.best.params.clone()), ..options };
        contour::contours(&model, &likelihood, &options, &wanted, crew)
    });
    if contours.as_ref().is_some_and(|contours| contours.best.nll < result.best.nll - DISTINCT) {
        result.warnings.push("the contours surround a lower minimum than the one that the grid refers to".to_owned());
    }
    drop(progress);
    if !result.best.nll.is_finite() {
        result.warnings.extend(diagnose(&model, &data, &result.best.params).map(|reason| reason.to_string()));
    }

    let document = report::scan::document(&model, &axes, &result, contours.as_ref(), !args.no_params);
    report::write_json(&chosen.sign(document)?, &args.output)?;
    let is_good = result.converged && contours.as_ref().is_none_or(|contours| contours.converged);
    let is_complete = result.is_complete && contours.as_ref().is_none_or(|contours| contours.is_complete);
    let warnings = || result.warnings.iter().chain(contours.iter().flat_map(|contours| &contours.warnings));
    let alarm = (!is_good || !is_complete).then(|| warnings().cloned().collect::<Vec<_>>().join("; "));
    talk.say_or_warn(alarm.as_deref(), |paint| report::scan::summary(&axes, &result, contours.as_ref(), paint));
    Ok(if Progress::is_interrupted() && !is_complete { Status::Interrupted } else { Status::positive_if(is_good) })
}

/// The contours that are asked for; they need two parameters.
fn wanted_contours(args: &ScanArgs, axes: &[Axis]) -> Result<Option<ContourOptions>, CliError> {
    if args.contour.is_empty() {
        return Ok(None);
    }
    let [a, b] = axes else { return Err(CliError::NeedsTwo { option: "--contour" }) };
    Ok(Some(ContourOptions {
        parameters: [a.parameter, b.parameter],
        levels: args.contour.clone(),
        n_points: args.contour_points as usize,
    }))
}

/// The parameters to scan, and where they go.
fn axes(args: &ScanArgs, model: &Model, domain: &Domain) -> Result<Vec<Axis>, CliError> {
    let parameters = parameters(args, model, domain)?;
    let second = args.start2.map(|_| "--start2").or(args.points2.map(|_| "--points2"));
    if let (Some(option), 1) = (second, parameters.len()) {
        return Err(CliError::NeedsTwo { option });
    }
    let points = [args.points, args.points2.unwrap_or(args.points)].map(|points| points as usize);
    let ends = [args.start.zip(args.stop), args.start2.zip(args.stop2)];
    let mut axes = Vec::with_capacity(2);
    for (k, &parameter) in parameters.iter().enumerate() {
        let values = match ends[k] {
            None => Values::Automatic(points[k]),
            Some((start, stop)) if start < stop => Values::between(start, stop, points[k]),
            Some((start, stop)) => {
                return Err(CliError::EmptyScan { name: model.parameters.names[parameter].clone(), start, stop });
            }
        };
        axes.push(Axis { parameter, values });
    }
    Ok(axes)
}

/// One or two different free parameters: those that are named, or those of interest.
fn parameters(args: &ScanArgs, model: &Model, domain: &Domain) -> Result<Vec<usize>, CliError> {
    let mut parameters = Vec::new();
    for name in &args.parameter {
        let named = elements(&model.parameters, OPTION, name)?;
        if named.len() != 1 {
            return Err(CliError::Vector { option: OPTION, name: name.clone(), len: named.len() });
        }
        parameters.push(named.start);
    }
    if parameters.is_empty() {
        parameters.clone_from(&model.pois);
    }
    let name = |i: usize| model.parameters.names[i].clone();
    match parameters[..] {
        [] => return Err(CliError::NoPoi { option: "scan" }),
        [_] => {}
        [a, b] if a != b => {}
        _ => {
            let names = parameters.iter().map(|&i| format!("`{}`", name(i))).collect();
            return Err(CliError::NotScannable { names });
        }
    }
    match parameters.iter().find(|&&i| domain.fixed[i]) {
        Some(&fixed) => Err(CliError::HeldFixed { name: name(fixed), verb: "scan" }),
        None => Ok(parameters),
    }
}
