//! `nextstat ranking`: nuisance parameters by their impact on the parameter of interest.

use super::{Command, EXIT_CODES, every_poi};
use crate::args::files::Files;
use crate::args::values::{GroupPatterns, group_or_name};
use crate::args::{DeviceArgs, SetupArgs, ThreadArgs, in_fit, stored_fit};
use crate::error::CliError;
use crate::output::reporter::{free_fit_failed, warnings};
use crate::output::table::{Align, table};
use crate::output::{Paint, Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::{Args, ValueEnum};
use nextstat::number::{NOT_CONVERGED, impact, measured, optional, pull};
use nextstat::ranking::{RankingGroup, RankingGroups, RankingRequest};
use ns_inference::ranking::{GroupImpact, Impacts, Ranking, RankingEntry, RankingMethods};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `ranking`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RankingArgs {
    #[command(flatten)]
    setup: SetupArgs,

    /// Definition of the impact
    #[arg(long, value_name = "METHOD", value_enum, default_value_t)]
    method: Method,

    /// Rank at the fit that `nextstat fit --covariance` wrote to this file: with `--method
    /// covariance` by its covariance, for any fit; with the others only if it is the minimum of
    /// this likelihood
    #[arg(long, value_name = "FILE", conflicts_with = "multi_start")]
    from: Option<PathBuf>,

    /// Common impact of all parameters whose name matches a pattern, in which `*` matches any
    /// characters and `?` one; without a pattern, of the group with this name that the measurement
    /// has; repeatable; if not given, of each group that the measurement has
    #[arg(long, value_name = "NAME[=PATTERN,…]", value_parser = group_or_name)]
    group: Vec<GroupPatterns>,

    /// Number of parameters in the summary
    #[arg(long, value_name = "N", default_value_t = 15, allow_hyphen_values = true)]
    top: usize,

    /// Compute post-fit impacts at the ends of MINOS intervals instead of one standard deviation
    /// away
    #[arg(long)]
    minos: bool,

    #[command(flatten)]
    output: ResultArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    device: DeviceArgs,
}

/// Definitions of the impact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Refits with the parameter fixed one pre-fit and one post-fit uncertainty away
    Classic,
    /// Refits with its auxiliary datum shifted; in quadrature, these add up to the uncertainty of
    /// the parameter of interest
    Global,
    /// From the covariance matrix, without refits
    Covariance,
    /// All of them
    #[default]
    All,
}

impl From<Method> for RankingMethods {
    fn from(method: Method) -> Self {
        let is = |wanted| method == wanted || method == Method::All;
        Self { classic: is(Method::Classic), global: is(Method::Global), covariance: is(Method::Covariance) }
    }
}

/// Returns the groups that the arguments name; those of the measurement if they name none.
fn groups_of(given: Vec<GroupPatterns>) -> RankingGroups {
    let group = |GroupPatterns { name, patterns }: GroupPatterns| {
        if patterns.is_empty() { RankingGroup::Named(name) } else { RankingGroup::Matching { name, patterns } }
    };
    if given.is_empty() {
        RankingGroups::OfMeasurement
    } else {
        RankingGroups::These(given.into_iter().map(group).collect())
    }
}

impl Command for RankingArgs {
    fn files(&self) -> Files<'_> {
        self.setup.files(&self.output).reading_paths(self.from.as_slice())
    }

    fn run(self) -> Result<Status, CliError> {
        let analysis = self.setup.analysis(&self.threads, &self.device)?;
        let groups = groups_of(self.group);
        let fit = self.from.as_deref().map(stored_fit).transpose()?.map(Arc::new);
        let request =
            RankingRequest { methods: self.method.into(), minos: self.minos, groups, fit, ..RankingRequest::default() };
        let reporter = Reporter::new(&self.output);
        let progress = Progress::new(reporter, "parameters");
        let from = self.from.as_deref().unwrap_or(Path::new(""));
        // A ranking has threads of its own.
        let answer = analysis
            .every_poi(NonZeroUsize::MIN, |analysis| analysis.ranking(&request, &progress))
            .map_err(in_fit(from))?;
        drop(progress);

        every_poi::write(&answer, &self.output, |answer, paint| summary(&answer.result, self.top, paint))?;
        let rankings = &answer.result.answers;
        let is_interrupted = Progress::is_interrupted() && rankings.iter().any(|ranking| !ranking.result.is_complete);
        let is_good = rankings.iter().all(|ranking| ranking.result.converged);
        Ok(if is_interrupted { Status::Interrupted } else { Status::done_if(is_good) })
    }
}

/// Formats the parameter of interest, the `top` nuisance parameters, groups and warnings.
fn summary(ranking: &Ranking, top: usize, paint: Paint) -> String {
    let mut text = String::new();
    let poi = &ranking.poi;
    let name = escape(&poi.name);
    let line = match poi.bestfit {
        Some(bestfit) => format!("{name} = {}", measured(bestfit, poi.uncertainty)),
        None => format!("{name}: {NOT_CONVERGED}"),
    };
    let _ = writeln!(text, "  {}", paint.strong(&line));
    let breakdown = &ranking.breakdown;
    if breakdown.global_systematic.is_some() {
        let _ = writeln!(
            text,
            "  syst. {}, stat. {}, by refits with shifted auxiliary data",
            optional(breakdown.global_systematic, 4),
            optional(breakdown.global_statistical, 4)
        );
    }
    if !ranking.entries.is_empty() {
        let rows: Vec<Vec<String>> = ranking.entries.iter().take(top).map(row).collect();
        let heading = format!("impact on {name}");
        let columns = [
            (heading.as_str(), Align::Left),
            ("pull", Align::Right),
            ("constraint", Align::Right),
            ("pre-fit +1σ", Align::Right),
            ("-1σ", Align::Right),
            ("post-fit +1σ", Align::Right),
            ("-1σ", Align::Right),
            ("global +1σ", Align::Right),
            ("-1σ", Align::Right),
            ("covariance", Align::Right),
        ];
        let _ = write!(text, "\n{}", table(&columns, &rows));
        let hidden = ranking.entries.len().saturating_sub(top);
        if hidden > 0 {
            let _ = writeln!(text, "  {hidden} more parameters are in the result");
        }
    }
    text.push_str(&groups(&ranking.groups));
    text.push_str(&warnings(&ranking.warnings));
    if !ranking.best.converged {
        text.push_str(&free_fit_failed(paint));
    }
    text
}

fn row(entry: &RankingEntry) -> Vec<String> {
    let mut row = vec![escape(&entry.parameter), pull(entry.pull), optional(entry.constraint, 2)];
    row.extend([&entry.prefit, &entry.postfit, &entry.global].into_iter().flat_map(|impacts| both(impacts.as_ref())));
    row.push(impact(entry.covariance_postfit));
    row
}

/// Formats the impacts of +1σ and of -1σ.
fn both(impacts: Option<&Impacts>) -> [String; 2] {
    let side = |change: Option<f64>| change.map_or_else(|| "failed".to_owned(), |change| impact(Some(change)));
    impacts.map_or_else(|| ["-", "-"].map(str::to_owned), |i| [i.up.impact, i.down.impact].map(side))
}

fn groups(groups: &[GroupImpact]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let columns =
        [("group", Align::Left), ("parameters", Align::Right), ("frozen", Align::Right), ("global", Align::Right)];
    let row = |group: &GroupImpact| {
        let n = group.members.len().to_string();
        vec![escape(&group.group), n, optional(group.frozen, 4), optional(group.global, 4)]
    };
    format!("\n{}", table(&columns, &groups.iter().map(row).collect::<Vec<_>>()))
}
