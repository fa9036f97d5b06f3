//! What a run of toys depends on, as the document beside its file says it.

use std::collections::BTreeSet;

use nextstat::Analysis;
use ns_inference::toys::{ToyHypotest, ToySampler};
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::pyhf::write_workspace;
use ns_translate::toys::ToyRunIdentity;
use serde_json::{Map, Value, json};

use super::record::{FitRecord, TestRecord};
use super::shard;
use crate::args::{DeviceArgs, HypotestToysArgs, RunArgs, SetupArgs, ThrowArgs, ThrowAt};
use crate::report::to_document;

/// What every run of toys depends on.
pub(in crate::command) fn common(args: &SetupArgs, run: &RunArgs, analysis: &Analysis) -> Map<String, Value> {
    let (model, options) = (analysis.model(), analysis.options());
    let name = |i: usize| model.parameters.names[i].clone();
    let fixed: Map<String, Value> = options.fixed.iter().map(|&(i, value)| (name(i), json!(value))).collect();
    let bounds: Map<String, Value> = options.bounds.iter().map(|&(i, ends)| (name(i), json!(ends))).collect();
    let text = write_workspace(analysis.compiled().workspace()).to_string();
    let asimov_at: Map<String, Value> = args.asimov_at.iter().map(|at| (at.name.clone(), json!(at.value))).collect();
    let mut settings = Map::new();
    settings.extend([
        ("nextstat_version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
        ("workspace_sha256".to_owned(), json!(digest(text.as_bytes(), DigestAlgorithm::Sha256).ok())),
        ("measurement".to_owned(), json!(model.measurement)),
        ("poi".to_owned(), json!(model.poi().map(name))),
        (
            "interpolation".to_owned(),
            json!({"normsys": model.interpolation.normsys.code(), "histosys": model.interpolation.histosys.code()}),
        ),
        ("fixed".to_owned(), Value::Object(fixed)),
        ("bounds".to_owned(), Value::Object(bounds)),
        ("asimov".to_owned(), json!(args.asimov.map(|mu| mu.unwrap_or(1.0)))),
        ("asimov_at".to_owned(), Value::Object(asimov_at)),
        ("multi_start".to_owned(), json!(args.multi_start)),
        ("seed".to_owned(), json!(args.seed)),
        ("aux".to_owned(), json!(run.aux.aux())),
        ("par_names".to_owned(), json!(model.parameters.names)),
    ]);
    settings
}

/// The identity of a run of fits.
pub(super) fn fit_identity(
    args: &ThrowArgs,
    analysis: &Analysis,
    sampler: &ToySampler,
    written: &[usize],
) -> ToyRunIdentity {
    let mut settings = common(&args.setup, &args.run, analysis);
    let names: Vec<&String> = written.iter().map(|&i| &analysis.model().parameters.names[i]).collect();
    let rule = if args.throw_at == ThrowAt::Init { "init" } else { "mle" };
    settings.extend([
        ("ensemble".to_owned(), json!("fits")),
        ("thrown_at".to_owned(), json!({"rule": rule, "mu": args.mu, "parameters": sampler.params()})),
        ("parameters".to_owned(), json!(names)),
    ]);
    let layout = FitRecord::layout(written.len(), args.poi_uncertainty);
    let (n_toys, shard, devices) = (args.n_toys, shard(&args.run), devices(&args.device));
    ToyRunIdentity { kind: "fits".to_owned(), settings, layout, n_toys, shard, devices }
}

/// The identity of a hypothesis test.
pub(in crate::command) fn test_identity(
    mut settings: Map<String, Value>,
    test: &ToyHypotest<'_>,
    args: &HypotestToysArgs,
) -> ToyRunIdentity {
    let [tested, alternative] = test.thrown_at();
    settings.extend([
        ("observed".to_owned(), to_document(&test.observed())),
        ("thrown_at".to_owned(), json!({"tested": tested, "alternative": alternative})),
        ("n_toys_of_hypotheses".to_owned(), json!(test.settings().n_toys)),
        ("stop_at_error".to_owned(), json!(args.stop_at_error)),
    ]);
    let (layout, n_toys) = (TestRecord::layout(), test.settings().n_units());
    let (shard, devices) = (shard(&args.run), devices(&args.device));
    ToyRunIdentity { kind: "hypotest".to_owned(), settings, layout, n_toys, shard, devices }
}

fn devices(args: &DeviceArgs) -> BTreeSet<String> {
    BTreeSet::from([args.name().to_owned()])
}
