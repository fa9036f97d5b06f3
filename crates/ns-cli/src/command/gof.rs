//! `nextstat gof`: how well the best fit describes the data.

use nextstat::goodness::GoodnessRequest;
use ns_inference::monitor::{Monitor, NoMonitor};
use ns_inference::toys::RunStatus;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::GofArgs;
use crate::error::CliError;
use crate::report::gof::{summary, toys_alarm, warnings_of_toys};
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &GofArgs) -> Result<Status, CliError> {
    let talk = Talk::new(&args.output);
    let request = GoodnessRequest { n_toys: args.toys, aux: args.aux.aux() };
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    // Without toys there is nothing to keep when Ctrl-C ends the command.
    let progress = args.toys.map(|_| Progress::new(talk, "toys"));
    let monitor: &dyn Monitor = progress.as_ref().map_or(&NoMonitor, |progress| progress);
    let answer = analysis.goodness(&request, monitor)?;
    drop(progress);
    let (goodness, toys) = (&answer.result, answer.result.toys.as_ref());
    let is_good = goodness.fit.converged && toys.is_none_or(|toys| toys.p_values.n_failed == 0);
    let is_cut_short = toys.is_some_and(|toys| toys.ended == RunStatus::Cancelled);

    let warnings = toys.map(warnings_of_toys).unwrap_or_default();
    report::write_json(&answer.document(&warnings), &args.output)?;
    talk.say_or_warn(toys_alarm(goodness, &warnings).as_deref(), |paint| {
        summary(answer.model(), goodness, &warnings, paint)
    });
    Ok(if is_cut_short { Status::Interrupted } else { Status::positive_if(is_good) })
}
