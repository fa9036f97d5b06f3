//! `nextstat fit`: the maximum-likelihood fit of a model.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::number;
use crate::args::{DeviceArgs, IgnoredArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions, warnings};
use crate::output::table::{Align, table};
use crate::output::{Paint, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::FitRequest;
use nextstat::alarm::Alarm;
use nextstat::fit::{IntervalTarget, Matrices};
use nextstat::number::{self, counted, fitted, interval, measured, optional, parts, significant};
use ns_core::{Data, Model};
use ns_inference::minimize::Outcome;
use ns_inference::pulls::{Pull, pulls};
use ns_inference::{FitResult, Uncertainties};
use std::convert::Infallible;
use std::fmt::Write;

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// No effect: `twice_nll` is always in the result. Accepted for compatibility with pyhf
    #[arg(long)]
    value: bool,

    /// Asymmetric intervals at -ln L = minimum + 1/2: of the named parameter, of `all`, or without
    /// a name of the parameters of interest; repeatable
    #[arg(
        long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = interval_target
    )]
    minos: Vec<IntervalTarget>,

    /// Two-sided confidence level of the asymmetric intervals, instead of one standard deviation;
    /// repeatable
    #[arg(long, value_name = "CL", value_parser = number, requires = "minos", allow_hyphen_values = true)]
    minos_cl: Vec<f64>,

    /// Include the covariance matrix
    #[arg(long)]
    covariance: bool,

    /// Include the correlation matrix
    #[arg(long)]
    correlation: bool,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,

    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Parses the value of `--minos`, which is empty if the option has none.
fn interval_target(name: &str) -> Result<IntervalTarget, Infallible> {
    Ok(if name.is_empty() { IntervalTarget::OfInterest } else { IntervalTarget::Named(name.to_owned()) })
}

impl Command for FitArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let matrices = Matrices { covariance: self.covariance, correlation: self.correlation };
        let uncertainties =
            if matrices == Matrices::default() { Uncertainties::Hessian } else { Uncertainties::Covariance };
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let fit = analysis
            .fit(&FitRequest { uncertainties, minos: self.minos, minos_cls: self.minos_cl, matrices })?
            .diagnosed();
        self.output.write(&fit.document())?;
        let (result, reporter) = (&fit.result, Reporter::new(&self.output));
        reporter.warn(&self.ignored.warnings());
        let notice = Notice { alarm: fit.alarm(), is_failure: !result.converged };
        reporter.summary_or_warning(notice, |paint| {
            conditions(&analysis) + &summary(analysis.model(), analysis.data(), result, paint)
        });
        Ok(Status::done_if(result.converged))
    }
}

/// Pulls in the summary.
const SHOWN: usize = 10;

/// Formats the verdict, the parameters of interest, the strongest pulls and the warnings.
fn summary(model: &Model, data: &Data, result: &FitResult, paint: Paint) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\n", fitted_model(model, result));
    let _ = writeln!(text, "{}", verdict(result, paint));
    let _ = writeln!(text, "  2NLL  {}", significant(result.twice_nll, 10));
    text.push_str(&parameters(model, result, paint));
    let pulls = strongest_pulls(model, data, result);
    if !pulls.is_empty() {
        let _ = write!(text, "\n{pulls}");
    }
    text.push_str(&warnings(&result.warnings));
    if !result.converged {
        let _ = writeln!(text, "\n{}", verdict(result, paint));
    }
    text
}

/// Formats what was fitted: the measurement, and its numbers of parameters and bins.
pub(super) fn fitted_model(model: &Model, result: &FitResult) -> String {
    let (parameters, bins) = (counted(model.n_params(), "parameter"), counted(model.n_bins(), "bin"));
    format!("measurement `{}`: {parameters} ({} free), {bins}", escape(&model.measurement), result.n_free)
}

/// Formats whether to trust the fit, in a line.
pub(super) fn verdict(result: &FitResult, paint: Paint) -> String {
    let effort =
        format!("{} iterations, {} evaluations, EDM {:.1e}", result.n_iterations, result.n_evaluations, result.edm);
    let reason = match result.outcome {
        Outcome::Converged => return format!("  converged: {effort}"),
        Outcome::IterationLimit => "the iterations ran out",
        Outcome::Stalled => "no step makes progress",
        Outcome::Saddle => "it ended at a saddle point, not at a minimum",
        Outcome::NotFinite => "the likelihood is not finite at the starting point",
    };
    paint.alarm(&format!("!!! THE FIT DID NOT CONVERGE: {reason}; do not use these numbers !!!"))
        + &format!("\n  {effort}")
}

/// Parameters other than those of interest in the summary.
const NORMALISATIONS: usize = 20;

/// Formats the parameters of interest, the other free parameters without a constraint term, and
/// those with an asymmetric interval, one line each.
pub(super) fn parameters(model: &Model, result: &FitResult, paint: Paint) -> String {
    let mut text = String::new();
    for (k, &poi) in model.pois.iter().enumerate() {
        let split = result.splits.get(k).map(|split| parts(split.statistical, split.systematic)).unwrap_or_default();
        let _ = writeln!(text, "  {}", paint.strong(&(value(result, poi) + &split + &intervals(result, poi))));
    }
    let set = |i: usize| model.parameters.sets.iter().find(|set| set.range().contains(&i));
    let is_shown = |i: &usize| {
        let is_free = model.parameters.constraint[*i].is_none() && !model.parameters.fixed[*i];
        let is_normalisation = is_free && set(*i).is_some_and(|set| set.is_scalar);
        !model.pois.contains(i) && (is_normalisation || !intervals(result, *i).is_empty())
    };
    let shown: Vec<usize> = (0..model.n_params()).filter(is_shown).collect();
    for &i in shown.iter().take(NORMALISATIONS) {
        let _ = writeln!(text, "  {}{}", value(result, i), intervals(result, i));
    }
    if shown.len() > NORMALISATIONS {
        let _ = writeln!(text, "  {} more parameters are in the result", shown.len() - NORMALISATIONS);
    }
    text
}

/// Formats `name = value ± uncertainty`.
fn value(result: &FitResult, i: usize) -> String {
    let bound = result.at_bounds.iter().find(|bound| bound.parameter == result.par_names[i]);
    format!("{} = {}", escape(&result.par_names[i]), fitted(result.bestfit[i], result.uncertainties[i], bound))
}

/// Formats the MINOS intervals of a parameter, if it has any.
fn intervals(result: &FitResult, i: usize) -> String {
    result.minos.iter().filter(|interval| interval.parameter == result.par_names[i]).map(interval).collect()
}

/// Formats a table of the strongest pulls; returns an empty text if there are none.
pub(super) fn strongest_pulls(model: &Model, data: &Data, result: &FitResult) -> String {
    let mut pulls = pulls(model, data, result, &model.parameters.fixed);
    pulls.retain(|pull| pull.uncertainty.is_some());
    if pulls.is_empty() {
        return String::new();
    }
    pulls.sort_by(|a, b| b.pull.abs().total_cmp(&a.pull.abs()));
    let row = |pull: &Pull| {
        vec![
            escape(&pull.parameter),
            measured(pull.bestfit, pull.uncertainty),
            number::pull(Some(pull.pull)),
            optional(pull.constraint, 2),
        ]
    };
    let rows: Vec<_> = pulls.iter().take(SHOWN).map(row).collect();
    let columns = ["pulls", "best fit", "pull", "constraint"];
    let align = |(i, name)| (name, if i == 0 { Align::Left } else { Align::Right });
    table(&columns.into_iter().enumerate().map(align).collect::<Vec<_>>(), &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
    use ns_inference::result::{MinosInterval, ONE_SIGMA};

    fn model() -> Model {
        let modifier = |name: &str, data| Modifier::new(name, data);
        let modifiers =
            vec![modifier("mu", ModifierData::NormFactor), modifier("jes", ModifierData::NormSys { lo: 0.9, hi: 1.1 })];
        let sample = Sample { name: "signal".to_owned(), data: vec![10.0], modifiers, ..Default::default() };
        let workspace = Workspace {
            channels: vec![Channel { name: "SR".to_owned(), samples: vec![sample] }],
            observations: vec![Observation { name: "SR".to_owned(), data: vec![12.0] }],
            measurements: vec![Measurement {
                name: "m".to_owned(),
                poi: Some("mu".to_owned()),
                parameters: vec![],
                ..Default::default()
            }],
        };
        ns_core::compile(&workspace, &ns_core::CompileOptions::default()).expect("sound")
    }

    fn result(outcome: Outcome) -> FitResult {
        let converged = outcome == Outcome::Converged;
        FitResult {
            par_names: vec!["mu".to_owned(), "jes".to_owned()],
            bestfit: vec![1.2, 0.5],
            uncertainties: vec![Some(0.36), Some(0.9)],
            splits: vec![],
            covariance: None,
            n_free: 2,
            twice_nll: 6.25,
            nll: 3.125,
            converged,
            outcome,
            edm: 1e-15,
            projected_gradient: 1e-9,
            n_iterations: 3,
            n_evaluations: 5,
            at_bounds: vec![],
            flat_directions: vec![],
            not_parabolic: vec![],
            not_finite: None,
            minos: vec![MinosInterval {
                parameter: "mu".to_owned(),
                cl: ONE_SIGMA,
                bestfit: 1.2,
                down: Some(-0.33),
                up: None,
            }],
            minima: vec![],
            warnings: if converged {
                vec![]
            } else {
                vec!["the fit did not converge: its iterations ran out".to_owned()]
            },
        }
    }

    #[test]
    fn a_good_fit_has_a_verdict_and_pulls() {
        let model = model();
        let text = summary(&model, &model.observed, &result(Outcome::Converged), Paint::Plain);
        insta::assert_snapshot!(text, @r#"
        measurement `m`: 2 parameters (2 free), 1 bin

          converged: 3 iterations, 5 evaluations, EDM 1.0e-15
          2NLL  6.25
          mu = 1.20 ± 0.36, MINOS -0.3300 (at its bound)

          pulls     best fit   pull  constraint
          -----     --------   ----  ----------
          jes    0.50 ± 0.90  +0.50         0.9
        "#);
    }

    #[test]
    fn a_bad_verdict_is_first_and_last() {
        let model = model();
        let text = summary(&model, &model.observed, &result(Outcome::IterationLimit), Paint::Plain);
        insta::assert_snapshot!(text, @r#"
        measurement `m`: 2 parameters (2 free), 1 bin

        !!! THE FIT DID NOT CONVERGE: the iterations ran out; do not use these numbers !!!
          3 iterations, 5 evaluations, EDM 1.0e-15
          2NLL  6.25
          mu = 1.20 ± 0.36, MINOS -0.3300 (at its bound)

          pulls     best fit   pull  constraint
          -----     --------   ----  ----------
          jes    0.50 ± 0.90  +0.50         0.9

        warning: the fit did not converge: its iterations ran out

        !!! THE FIT DID NOT CONVERGE: the iterations ran out; do not use these numbers !!!
          3 iterations, 5 evaluations, EDM 1.0e-15
        "#);
    }
}
