//! One request for every patch of a patch set: the workspace is read once, and each signal is
//! patched in, analysed and dropped.

use super::{OutputArgs, SetupArgs, ThreadArgs, compile_error};
use crate::error::CliError;
use crate::output::reporter::with_causes;
use crate::output::table::{Align, table};
use crate::output::{Progress, Reporter, escape, write_result};
use crate::verbs::Status;
use clap::Args;
use nextstat::number::optional;
use nextstat::patchsets::value_of;
use nextstat::{Analysis, CompiledModel};
use ns_inference::parallel::{self, ExecutionContext};
use ns_translate::patchset::{PatchEntry, PatchSet};
use ns_translate::{DocumentError, DocumentSource, pyhf, read_bytes};
use serde_json::{Map, Value, json};

/// The option to analyse a whole grid of signals.
#[derive(Debug, Args)]
pub(crate) struct EveryPatchArgs {
    /// Compute the result for every patch of the patch set
    #[arg(long, requires = "patchset", conflicts_with = "patch_name")]
    pub(crate) every_patch: bool,
}

/// The document of a patch, and whether its fits converged.
pub(crate) type PatchAnswer = Result<(Value, bool), CliError>;

impl EveryPatchArgs {
    /// Analyses every patch, and writes the documents in the order of the set.
    pub(crate) fn run(
        &self,
        setup: &SetupArgs,
        threads: &ThreadArgs,
        output: &OutputArgs,
        analyse: impl Fn(Analysis) -> PatchAnswer + Sync,
    ) -> Result<Status, CliError> {
        let input = &setup.model.input;
        let Some(path) = input.patchset.clone() else { return Err(CliError::NoPatchSet) };
        let (source, set_source) = (input.workspace.source()?, DocumentSource::Path(path));
        let bytes = read_bytes(&source)?;
        let background =
            pyhf::read_value(&bytes).map_err(|error| DocumentError::from(error).in_file(&source.name()))?;
        let set = read_bytes(&set_source).map_err(CliError::from)?;
        let set = PatchSet::from_bytes(&set).and_then(|set| set.require(&bytes).map(|()| set));
        let set = set.map_err(|error| DocumentError::from(error).in_file(&set_source.name()))?;
        drop(bytes);

        let reporter = Reporter::new(output);
        let progress = Progress::new(reporter, "patches");
        let answer = |entry: &PatchEntry| {
            let name = format!("{}, patch `{}`", source.name(), entry.name);
            let workspace = set.workspace(&background, entry);
            let workspace = workspace.map_err(|error| DocumentError::from(error).in_file(&name))?;
            let model = CompiledModel::new(workspace, &setup.model.options()?);
            analyse(setup.of_model(&model.map_err(|error| compile_error(name, error))?)?)
        };
        let entries = set.patches();
        let execution = ExecutionContext::new(threads.count(), &progress);
        let answers = parallel::map(entries.len(), execution, || (), |(), i| answer(&entries[i]));
        drop(progress);

        let done = entries.iter().zip(&answers).filter_map(|(entry, answer)| Some((entry, answer.as_ref()?)));
        let documents: Vec<Value> = done.map(|(entry, answer)| document(&set, entry, answer)).collect();
        let (n_done, n_patches) = (documents.len(), entries.len());
        let is_complete = n_done == n_patches;
        write_result(&json!({"complete": is_complete, "n_patches": n_patches, "patches": &documents}), output)?;
        let n_bad = answers.iter().flatten().filter(|answer| !matches!(answer, Ok((_, true)))).count();
        let alarm =
            (n_bad > 0).then(|| format!("{n_bad} of {n_done} patches have errors or fits that did not converge"));
        reporter.summary_or_warning(alarm.as_deref(), |_| {
            let table = summary(&documents);
            if is_complete { table } else { format!("{table}  interrupted after {n_done} of {n_patches} patches\n") }
        });
        Ok(if is_complete { Status::done_if(n_bad == 0) } else { Status::Interrupted })
    }
}

/// Returns the document of a patch with its name and its values by label, or the reason why there
/// is not a document.
fn document(set: &PatchSet, entry: &PatchEntry, answer: &PatchAnswer) -> Value {
    let labels = set.metadata().labels.iter().zip(&entry.values);
    let values: Map<String, Value> = labels.map(|(label, value)| (label.clone(), value_of(value))).collect();
    let mut document = match answer {
        Ok((document, _)) => document.clone(),
        Err(error) => json!({"error": with_causes(error)}),
    };
    if let Value::Object(fields) = &mut document {
        fields.insert("patch".to_owned(), json!(entry.name));
        fields.insert("values".to_owned(), Value::Object(values));
    }
    document
}

/// Returns a table with a row for each patch: the observed and the median expected CLs or limit.
fn summary(documents: &[Value]) -> String {
    let number = |value: &Value| optional(value.as_f64(), 5);
    let row = |document: &Value| {
        let either = |keys: [&str; 2]| keys.map(|key| document[key].clone()).into_iter().find(|value| !value.is_null());
        let expected = either(["CLs_exp", "expected"]).map_or(Value::Null, |band| band[2].clone());
        let observed = either(["CLs_obs", "observed"]).unwrap_or_default();
        vec![escape(document["patch"].as_str().unwrap_or_default()), number(&observed), number(&expected)]
    };
    let rows: Vec<_> = documents.iter().map(row).collect();
    table(&[("patch", Align::Left), ("observed", Align::Right), ("expected", Align::Right)], &rows)
}
