//! `nextstat ranking`: which nuisance parameters matter to the parameter of interest.

use nextstat::ranking::RankingRequest;

use super::Status;
use super::setup::{Machine, analysis};
use crate::args::RankingArgs;
use crate::error::CliError;
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &RankingArgs) -> Result<Status, CliError> {
    let analysis = analysis(&args.setup, Machine::with_device(&args.threads, &args.device))?;
    let groups = args.group.iter().map(|group| (group.name.clone(), group.patterns.clone())).collect();
    let request =
        RankingRequest { methods: args.method.into(), minos: args.minos, groups, ..RankingRequest::default() };
    let talk = Talk::new(&args.output);
    let progress = Progress::new(talk, "parameters");
    let answer = analysis.ranking(&request, &progress)?;
    drop(progress);

    report::write_json(&answer.document(), &args.output)?;
    let result = &answer.result;
    let alarm = (!result.converged || !result.is_complete).then(|| result.warnings.join("; "));
    talk.say_or_warn(alarm.as_deref(), |paint| report::ranking::summary(result, args.top, paint));
    let is_cut_short = Progress::is_interrupted() && !result.is_complete;
    Ok(if is_cut_short { Status::Interrupted } else { Status::positive_if(result.converged) })
}
