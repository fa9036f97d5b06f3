//! `nextstat ranking`: which nuisance parameters matter to the parameter of interest.

use ns_core::Model;
use ns_core::likelihood::diagnose;
use ns_inference::minimize::Domain;
use ns_inference::parallel::Crew;
use ns_inference::ranking::{Group, RankingOptions, ranking};

use super::Status;
use super::device::choose;
use super::setup::{Setup, setup};
use crate::args::RankingArgs;
use crate::error::CliError;
use crate::report::{self, Progress, Talk};

pub(super) fn run(args: &RankingArgs) -> Result<Status, CliError> {
    let setup = setup(&args.setup)?;
    let poi = setup.tested_poi("ranking")?;
    let Setup { model, data, likelihood, options: fit, .. } = setup;
    let (domain, _) = ns_inference::fit::domain_and_start(&model, &fit);
    if domain.fixed[poi] {
        return Err(CliError::HeldFixed { name: model.parameters.names[poi].clone(), verb: "ranking" });
    }
    let groups = groups(args, &model, &domain, poi)?;
    let options = RankingOptions { poi, methods: args.method.into(), minos: args.minos, groups, fit };
    let talk = Talk::new(&args.output);
    let progress = Progress::new(talk, "parameters");
    let chosen = choose(&args.device, &model)?;
    if !chosen.is_cpu() && !options.methods.classic {
        return Err(CliError::OnCpuOnly { what: "`--method` without classic refits" });
    }
    let crew = chosen.assist(Crew::new(args.threads.count(), &progress), &data);
    let mut result = ranking(&model, &data, &likelihood, &options, crew);
    drop(progress);
    if !result.best.nll.is_finite() {
        result.warnings.extend(diagnose(&model, &data, &result.best.params).map(|reason| reason.to_string()));
    }

    let document = chosen.sign(report::ranking::document(&model, &result))?;
    report::write_json(&document, &args.output)?;
    let alarm = (!result.converged || !result.is_complete).then(|| result.warnings.join("; "));
    talk.say_or_warn(alarm.as_deref(), |paint| report::ranking::summary(&result, args.top, paint));
    let is_cut_short = Progress::is_interrupted() && !result.is_complete;
    Ok(if is_cut_short { Status::Interrupted } else { Status::positive_if(result.converged) })
}

fn groups(args: &RankingArgs, model: &Model, domain: &Domain, poi: usize) -> Result<Vec<Group>, CliError> {
    let mut groups = Vec::with_capacity(args.group.len());
    for wanted in &args.group {
        if groups.iter().any(|known: &Group| known.name == wanted.name) {
            return Err(CliError::TwoGroups { name: wanted.name.clone() });
        }
        let group = Group::matching(&wanted.name, &wanted.patterns, &model.parameters);
        if !group.members.iter().any(|&i| i != poi && !domain.fixed[i]) {
            return Err(CliError::EmptyGroup { name: wanted.name.clone() });
        }
        groups.push(group);
    }
    Ok(groups)
}
