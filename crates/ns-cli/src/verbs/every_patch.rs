//! One request for every patch of a patch set, for the verbs that have the option.

use crate::args::{ResultFile, SetupArgs, ShardedArgs, ThreadArgs, is_piped, shard};
use crate::error::CliError;
use crate::output::reporter::{Notice, conditions_of};
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Progress, Reporter, ResultArgs, escape};
use crate::status::Status;
use clap::Args;
use nextstat::number::optional;
use nextstat::patchsets::{GridAnswer, GridRequest, GridShard};
use nextstat::provenance::label_of;
use nextstat::{Analysis, Answer, Document, Face};
use ns_inference::parallel::ExecutionContext;
use ns_translate::toys::Shard;
use serde_json::Value;

/// The option to analyse a whole grid of signals.
#[derive(Debug, Args)]
pub(crate) struct EveryPatchArgs {
    /// Compute the result for every patch of the patch set
    #[arg(long, requires = "patchset", conflicts_with = "patch_name")]
    pub(crate) every_patch: bool,

    /// Compute only the K-th of N contiguous shards of the patches, K from 1; `patchset merge`
    /// joins shards
    #[arg(long, value_name = "K/N", value_parser = shard, requires = "every_patch")]
    pub(crate) shard: Option<Shard>,
}

impl EveryPatchArgs {
    /// Returns what a job must know of the verb `verb`, if it is about every patch.
    pub(crate) fn sharded<'a>(
        &self,
        verb: &'static str,
        setup: &SetupArgs,
        output: &'a ResultArgs,
        threads: &ThreadArgs,
    ) -> Option<ShardedArgs<'a>> {
        self.every_patch.then(|| ShardedArgs {
            verb,
            merged_by: "patchset",
            file_option: "--output-file",
            resumes: false,
            division: (self.shard, false),
            results: vec![ResultFile::of(output)],
            is_table: output.is_table(),
            is_piped: is_piped(setup, None),
            threads: threads.given(),
        })
    }
}

/// The arguments that say what to analyse, how fast, and where the result goes.
pub(crate) struct GridArgs<'a> {
    pub(crate) setup: &'a SetupArgs,
    pub(crate) threads: &'a ThreadArgs,
    pub(crate) output: &'a ResultArgs,
    pub(crate) part: GridShard,
}

impl GridArgs<'_> {
    /// Analyses every patch, and writes the documents in the order of the set.
    pub(crate) fn run<T: Document>(
        &self,
        question: impl Fn(&Analysis) -> Result<Answer<T>, nextstat::Error> + Sync,
    ) -> Result<Status, CliError> {
        let Self { setup, threads, output, part } = self;
        let grid = setup.model.input.grid("--every-patch")?;
        let reporter = Reporter::new(output);
        let progress = Progress::new(reporter, "patches");
        let request = GridRequest {
            options: &setup.model.options()?,
            settings: &setup.settings_of_several()?,
            face: Face::Command,
        };
        let answer =
            grid.every_patch_of(part.clone(), &request, ExecutionContext::new(threads.count(), &progress), question)?;
        drop(progress);

        let document = answer.document();
        output.write(&document)?;
        Ok(report(&answer, &document["provenance"], output))
    }
}

/// Writes the summary of a grid, and returns its status.
pub(super) fn report(answer: &GridAnswer, provenance: &Value, output: &OutputArgs) -> Status {
    let (n_done, n_wanted) = (answer.patches.len(), answer.n_wanted());
    let notice = Notice { alarm: answer.warning(), is_failure: answer.n_failed() > 0 };
    Reporter::new(output).summary_or_warning(notice, |_| {
        let table = conditions_of(provenance) + &summary(&answer.patches, label_of(provenance));
        match answer.is_interrupted() {
            true => format!("{table}  interrupted after {n_done} of {n_wanted} patches\n"),
            false => table,
        }
    });
    if answer.is_interrupted() { Status::Interrupted } else { Status::done_if(answer.n_failed() == 0) }
}

/// Returns a table with a row for each patch, and for each of several parameters of interest: the
/// CLs or the limit of the data, called `label`, and the median expected one.
fn summary(documents: &[Value], label: &str) -> String {
    let is_of_several = documents.iter().any(|document| document["result"]["results"].is_array());
    let number = |value: &Value| optional(value.as_f64(), 5);
    let row = |(patch, result): (&Value, &Value)| {
        let either = |keys: [&str; 2]| keys.map(|key| result[key].clone()).into_iter().find(|value| !value.is_null());
        let expected = either(["CLs_exp", "expected"]).map_or(Value::Null, |band| band[2].clone());
        let observed = either(["CLs_obs", "observed"]).unwrap_or_default();
        let mut row = vec![escape(patch["patch"].as_str().unwrap_or_default()), number(&observed), number(&expected)];
        if is_of_several {
            row.insert(1, escape(result["poi"]["name"].as_str().unwrap_or_default()));
        }
        row
    };
    let results = documents.iter().flat_map(|patch| match patch["result"]["results"].as_array() {
        Some(results) => results.iter().map(|result| (patch, result)).collect(),
        None => vec![(patch, &patch["result"])],
    });
    let rows: Vec<_> = results.map(row).collect();
    let mut columns = vec![("patch", Align::Left), (label, Align::Right), ("expected", Align::Right)];
    if is_of_several {
        columns.insert(1, ("parameter", Align::Left));
    }
    table(&columns, &rows)
}
