//! Development only: checks what must be true of any bytes that are passed as a workspace, a patch,
//! a patch set, a correlation map, HistFactory XML, HS3, a data card or a ROOT file.
//!
//! Each function takes bytes and panics if a promise is broken. The promises: nothing else panics;
//! every error has a message; what compiles has a likelihood that is a number or +∞, never NaN; a
//! fit of it returns, and never calls a value that is not finite converged. Two engines call these
//! functions: libFuzzer (`fuzz/`), for any time, and the short run of `tests/fuzz/main.rs`, with
//! the fixed [`mutate()`](mutate::mutate).
//!
//! | item | contents |
//! |---|---|
//! | [`workspace`], [`patch`], [`patchset`], [`map`], [`xml`], [`hs3`], [`card`], [`root_file`] | one check for each kind of document |
//! | [`FuzzStage`] | how far some bytes came |
//! | [`mod@mutate`] | inputs made of seeds, the same ones in every run |
//!
//! ```
//! use ns_fuzz::FuzzStage;
//!
//! assert_eq!(ns_fuzz::workspace(b"not JSON"), FuzzStage::Refused);
//! assert_eq!(ns_fuzz::workspace(ns_fuzz::PATCHED), FuzzStage::Fitted);
//! ```

mod combine;
mod histfactory;
pub mod mutate;

pub use combine::card;
pub use histfactory::{root_file, xml};

use ns_compute::CpuLikelihood;
use ns_core::spec::Workspace;
use ns_core::{CompileOptions, Likelihood, Model};
use ns_inference::{FitOptions, Problem, fit};
use ns_translate::patch::{Patch, apply};
use ns_translate::patchset::PatchSet;
use ns_translate::workspace::{
    ChannelJoin, CorrelationMap, LabelledWorkspace, MapSyntax, NewName, PruneRequest, RenameRequest, WorkspaceDocument,
    WorkspaceJoin, combine, combine_by_map, prune, rename, sort,
};
use ns_translate::{
    DocumentError, DocumentSource, TargetFormat, convert, full_message, pyhf, python_json, read_document,
};

/// The workspace that patches and patch sets are tried on.
pub const PATCHED: &[u8] = include_bytes!("../../../testdata/fuzz/workspace/every_modifier.json");

/// The last step that some bytes reach. The short run counts them, so that it cannot become idle
/// unnoticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FuzzStage {
    /// The document was refused.
    Refused,
    /// It was read, but does not make a model.
    Read,
    /// It makes a model, whose likelihood is infinite where fits start.
    Compiled,
    /// It was fitted.
    Fitted,
}

/// Reads `data` as a workspace, writes it as HistFactory XML and reads that, compiles and fits it,
/// and returns the stage that it reaches.
pub fn workspace(data: &[u8]) -> FuzzStage {
    check_rewriting(data);
    match pyhf::read_workspace(data) {
        Ok(workspace) => {
            histfactory::check_writing(&workspace);
            evaluate(&workspace)
        }
        Err(error) => refused(error),
    }
}

/// Reads `data` as an HS3 document, writes it back, compiles and fits it, and returns the stage
/// that it reaches.
pub fn hs3(data: &[u8]) -> FuzzStage {
    let read = match read_document(data, &DocumentSource::Stdin) {
        Ok(read) => read,
        Err(error) => return refused(error),
    };
    match convert(&read.workspace, &read.kept, TargetFormat::Hs3) {
        Ok(written) => {
            let back = read_document(written.text.as_bytes(), &DocumentSource::Stdin);
            let back = back.unwrap_or_else(|error| panic!("what was written is refused: {}", full_message(&error)));
            assert_eq!(back.workspace.channels, read.workspace.channels);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.items.is_empty()),
    }
    evaluate(&read.workspace)
}

/// Checks that a workspace is also a document, and that operations make workspaces of it.
fn check_rewriting(data: &[u8]) {
    let document = WorkspaceDocument::from_bytes(data);
    assert_eq!(document.is_ok(), pyhf::read_workspace(data).is_ok(), "one reading accepts what the other refuses");
    let Ok(document) = document else { return };
    let written = |document: &WorkspaceDocument| python_json(document).expect("documents have text keys").into_bytes();
    assert_eq!(WorkspaceDocument::from_bytes(&written(&document)).expect("what was written is read"), document);
    let sorted = sort(document.clone());
    pyhf::read_workspace(&written(&sorted)).expect("a sorted workspace is one");
    prune(document.clone(), &PruneRequest::default()).expect("nothing to remove");
    for channels in [ChannelJoin::Whole, ChannelJoin::Merged] {
        // Duplicate names are refused; nothing else can be wrong with a workspace and itself.
        if let Ok(combination) = combine(document.clone(), document.clone(), WorkspaceJoin::Outer, channels) {
            assert_eq!(combination.document, document);
        }
    }
}

/// Reads `data` as a patch, applies it to [`PATCHED`], compiles and fits the result, and returns
/// the stage that it reaches.
pub fn patch(data: &[u8]) -> FuzzStage {
    match Patch::from_bytes(data) {
        Ok(patch) => apply_and_evaluate(&patch),
        Err(error) => refused(error),
    }
}

/// Reads `data` as a patch set for [`PATCHED`], treats its first patches like [`patch`], and
/// returns the last stage that one reaches.
pub fn patchset(data: &[u8]) -> FuzzStage {
    let set = match PatchSet::from_bytes(data) {
        Ok(set) => set,
        Err(error) => return refused(error),
    };
    if let Err(error) = set.require(PATCHED) {
        refused(error);
    }
    let mut reached = FuzzStage::Read;
    for entry in set.patches().iter().take(4) {
        let by_name = set.by_name(&entry.name).expect("a patch that is listed is found");
        assert_eq!(by_name.name, entry.name);
        set.by_values(&entry.values).expect("a patch that is listed is found by its values");
        let one = match set.read(entry) {
            Ok(patch) => apply_and_evaluate(&patch),
            Err(error) => refused(error),
        };
        reached = reached.max(one);
    }
    reached
}

/// Reads `data` as a correlation map in YAML and in JSON, combines [`PATCHED`] with a copy of it
/// whose names differ as the map says, and returns the stage that it reaches: a combination is
/// compiled but not fitted.
pub fn map(data: &[u8]) -> FuzzStage {
    let yaml = CorrelationMap::from_bytes(data, MapSyntax::Yaml);
    if let Err(error) = CorrelationMap::from_bytes(data, MapSyntax::Json) {
        refused(error);
    }
    let map = match yaml {
        Ok(map) => map,
        Err(error) => return refused(error),
    };
    let document = WorkspaceDocument::from_bytes(PATCHED).expect("our own document");
    let other = PruneRequest { measurements: vec!["background_only".to_owned()], ..PruneRequest::default() };
    let document = prune(document, &other).expect("one measurement is left").document;
    let copy = rename_all(&document);
    let labelled = |label: &str, document| LabelledWorkspace { label: label.to_owned(), file: None, document };
    match combine_by_map(vec![labelled("A", document), labelled("B", copy)], &map) {
        Ok(made) => {
            let text = python_json(&made.document).expect("documents have text keys");
            let workspace = pyhf::read_workspace(text.as_bytes()).expect("a combination is a workspace");
            // A map may set what makes no model; that is refused later.
            match ns_core::compile(&workspace, &CompileOptions::default()) {
                Ok(_) => FuzzStage::Compiled,
                Err(_) => FuzzStage::Read,
            }
        }
        Err(error) => refused(error).max(FuzzStage::Read),
    }
}

/// Returns a copy with channels of other names.
fn rename_all(document: &WorkspaceDocument) -> WorkspaceDocument {
    let value = serde_json::to_value(document).expect("documents have text keys");
    let names = value["channels"].as_array().expect("a list").iter().filter_map(|channel| channel["name"].as_str());
    let channels = names.map(|name| NewName { from: name.to_owned(), to: format!("B_{name}") }).collect();
    rename(document.clone(), &RenameRequest { channels, ..RenameRequest::default() }).expect("free names")
}

fn apply_and_evaluate(patch: &Patch) -> FuzzStage {
    let mut document = pyhf::read_value(PATCHED).expect("our own document");
    if let Err(error) = apply(&mut document, patch) {
        return refused(error);
    }
    match pyhf::from_value(&document) {
        Ok(workspace) => evaluate(&workspace),
        Err(error) => refused(error),
    }
}

fn refused(error: impl Into<DocumentError>) -> FuzzStage {
    let error = error.into();
    assert!(!full_message(&error).trim().is_empty(), "an error without a message: {error:?}");
    let _ = (error.advice(), error.pointer());
    FuzzStage::Refused
}

fn evaluate(workspace: &Workspace) -> FuzzStage {
    match ns_core::compile(workspace, &CompileOptions::default()) {
        Ok(model) => check_likelihood(&model),
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without a message: {error:?}");
            let _ = error.advice();
            FuzzStage::Read
        }
    }
}

fn check_likelihood(model: &Model) -> FuzzStage {
    let mut likelihood = CpuLikelihood::new(model);
    let parameters = &model.parameters;
    let mut gradient = vec![0.0; model.n_params()];
    let mut start = f64::INFINITY;
    for (at, point) in [&parameters.lower, &parameters.upper, &parameters.init].into_iter().enumerate() {
        let value = likelihood.nll(point);
        assert!(is_number_or_infinity(value), "-ln L is {value} at point {at}");
        start = likelihood.nll_and_grad(point, &mut gradient);
        assert!(is_number_or_infinity(start), "-ln L is {start} with its gradient, at point {at}");
        let agree = value.is_finite() == start.is_finite() || has_huge_numbers(model, point);
        assert!(agree, "{value} alone but {start} with its gradient, at point {at}");
    }
    check_fit(model, &mut likelihood);
    if start.is_finite() { FuzzStage::Fitted } else { FuzzStage::Compiled }
}

/// Returns whether there are numbers so large that the tiny replacement of a zero factor, by which
/// derivatives divide, is visible in them. A factor of a normsys is raised to the power |α|, 5 at
/// the end of its range.
fn has_huge_numbers(model: &Model, point: &[f64]) -> bool {
    model.reals.iter().any(|number| number.abs() > 1e8) || point.iter().any(|number| number.abs() > 1e40)
}

fn check_fit(model: &Model, likelihood: &mut CpuLikelihood) {
    let mut options = FitOptions::default();
    options.minimize.max_iterations = 15;
    let result = fit(&mut Problem::new(model, likelihood, &options));
    assert_eq!(result.bestfit.len(), model.n_params());
    assert!(is_number_or_infinity(result.nll), "the fit's -ln L is {}", result.nll);
    if result.converged {
        assert!(result.nll.is_finite(), "converged at {}", result.nll);
        assert!(result.bestfit.iter().all(|value| value.is_finite()), "converged at {:?}", result.bestfit);
    }
    for width in result.uncertainties.iter().flatten() {
        assert!(width.is_finite() && *width >= 0.0, "an uncertainty of {width}");
    }
}

fn is_number_or_infinity(value: f64) -> bool {
    value.is_finite() || value == f64::INFINITY
}
