//! One question asked of every patch of a patch set: the background is read once, each signal is patched in, answered and forgotten.

use nextstat::Analysis;
use nextstat::patchsets::value_of;
use ns_inference::parallel::{self, ExecutionContext};
use ns_translate::patchset::{PatchEntry, PatchSet};
use ns_translate::{DocumentError, DocumentSource, full_message, pyhf, read_bytes};
use serde_json::{Map, Value, json};

use super::setup::{Machine, analysis_of};
use super::{Status, model};
use crate::args::{OutputArgs, SetupArgs, ThreadArgs};
use crate::error::CliError;
use crate::report::{self, Progress, Talk};

/// An answer's document, and whether it is a good one.
pub(super) type Answer = Result<(Value, bool), CliError>;

/// Asks `question` of every patch, and writes the answers in the order of the set.
pub(super) fn run(
    setup: &SetupArgs,
    (output, threads): (&OutputArgs, &ThreadArgs),
    question: impl Fn(Analysis) -> Answer + Sync,
) -> Result<Status, CliError> {
    let input = &setup.model.input;
    let Some(path) = input.patchset.clone() else { return Err(CliError::NoPatchSet) };
    let (source, set_source) = (input.workspace.source()?, DocumentSource::Path(path));
    let bytes = read_bytes(&source)?;
    let background = pyhf::read_value(&bytes).map_err(|error| DocumentError::from(error).in_file(&source.name()))?;
    let set = read_bytes(&set_source).map_err(CliError::from)?;
    let set = PatchSet::from_bytes(&set).and_then(|set| set.require(&bytes).map(|()| set));
    let set = set.map_err(|error| DocumentError::from(error).in_file(&set_source.name()))?;
    drop(bytes);

    let talk = Talk::new(output);
    let progress = Progress::new(talk, "patches");
    let answer = |entry: &PatchEntry| {
        let name = format!("{}, patch `{}`", source.name(), entry.name);
        let workspace = set.workspace(&background, entry);
        let workspace = workspace.map_err(|error| DocumentError::from(error).in_file(&name))?;
        let model = model::model_of(&setup.model, workspace, name)?;
        question(analysis_of(setup, &model, Machine::default())?)
    };
    let entries = set.patches();
    let execution = ExecutionContext::new(threads.count(), &progress);
    let answers = parallel::map(entries.len(), execution, || (), |(), i| answer(&entries[i]));
    drop(progress);

    let asked = entries.iter().zip(&answers).filter_map(|(entry, answer)| Some((entry, answer.as_ref()?)));
    let documents: Vec<Value> = asked.map(|(entry, answer)| document(&set, entry, answer)).collect();
    let n_done = documents.len();
    report::write_json(
        &json!({"complete": n_done == entries.len(), "n_patches": entries.len(), "patches": &documents}),
        output,
    )?;
    let n_bad = answers.iter().flatten().filter(|answer| !matches!(answer, Ok((_, true)))).count();
    let alarm = (n_bad > 0).then(|| format!("{n_bad} of {n_done} patches have no good answer"));
    talk.say_or_warn(alarm.as_deref(), |_| {
        let table = report::hypotest::patches(&documents);
        if n_done < entries.len() {
            format!("{table}  interrupted after {n_done} of {} patches\n", entries.len())
        } else {
            table
        }
    });
    Ok(if n_done < entries.len() { Status::Interrupted } else { Status::positive_if(n_bad == 0) })
}

/// A patch's name, its values by label, and the answer or the reason why there is none.
fn document(set: &PatchSet, entry: &PatchEntry, answer: &Answer) -> Value {
    let labels = set.metadata().labels.iter().zip(&entry.values);
    let values: Map<String, Value> = labels.map(|(label, value)| (label.clone(), value_of(value))).collect();
    let mut document = match answer {
        Ok((answer, _)) => answer.clone(),
        Err(error) => json!({"error": full_message(error)}),
    };
    if let Value::Object(fields) = &mut document {
        fields.insert("patch".to_owned(), json!(entry.name));
        fields.insert("values".to_owned(), Value::Object(values));
    }
    document
}
