//! Analyses: which likelihood, and where its parameters start and end.

use super::Hs3Error;
use super::document::{Document, Read, texts};
use super::kept::{Address, KeptKeys};
use super::points::{Points, Ranges};
use crate::json::JsonCursor;

/// What the names of data sets begin with that are those a model expects, as ROOT makes them.
const ASIMOV: &str = "asimovData";

/// An analysis as written.
pub(super) struct WrittenAnalysis {
    pub(super) name: String,
    pub(super) likelihood: String,
    pub(super) pois: Vec<String>,
    /// Distributions and data of the likelihood, for comparison.
    content: Vec<String>,
    is_asimov: bool,
}

/// Reads all analyses. In a document without any, each likelihood is one.
pub(super) fn read_all(document: &Document<'_>) -> Read<Vec<WrittenAnalysis>> {
    let mut analyses = Vec::new();
    for (name, cursor) in document.analyses.iter() {
        let object = cursor.open_object()?;
        let reference = object.need("likelihood")?;
        let likelihood = document.likelihoods.named_at(&reference)?;
        let pois = object.get("parameters_of_interest").or_else(|| object.get("parameter_of_interest"));
        let pois = pois.map(|list| texts(&list)).transpose()?.unwrap_or_default();
        analyses.push(analysis(name, reference.text()?, pois, likelihood)?);
    }
    if document.analyses.is_empty() {
        for (name, cursor) in document.likelihoods.iter() {
            analyses.push(analysis(name, name, Vec::new(), cursor)?);
        }
    }
    Ok(analyses)
}

fn analysis(name: &str, likelihood: &str, pois: Vec<String>, cursor: &JsonCursor<'_>) -> Read<WrittenAnalysis> {
    let object = cursor.open_object()?;
    let mut content = Vec::new();
    let mut is_asimov = true;
    for key in ["distributions", "data"] {
        for entry in object.need(key)?.list()? {
            let written = match entry.text_if_any() {
                Some(name) => name.to_owned(),
                None => entry.number()?.to_string(),
            };
            is_asimov &= key != "data" || written.starts_with(ASIMOV);
            content.push(written);
        }
    }
    let (name, likelihood) = (name.to_owned(), likelihood.to_owned());
    Ok(WrittenAnalysis { name, likelihood, pois, content, is_asimov })
}

/// Analyses that have the distributions and data of the chosen one, which comes first where there
/// is no other order, and the names of all others.
pub(super) struct ChosenAnalyses {
    pub(super) analyses: Vec<WrittenAnalysis>,
    pub(super) others: Vec<String>,
}

/// Chooses the analysis called `name`, or the first one whose data are not those that the model
/// expects.
pub(super) fn choose(analyses: Vec<WrittenAnalysis>, name: Option<&str>) -> Read<ChosenAnalyses> {
    let chosen = match name {
        Some(name) => analyses.iter().find(|analysis| analysis.name == name),
        None => analyses.iter().find(|analysis| !analysis.is_asimov).or_else(|| analyses.first()),
    };
    let Some(chosen) = chosen else {
        return Err(name.map_or(Hs3Error::NoLikelihood, |name| {
            let known = analyses.iter().map(|analysis| analysis.name.clone()).collect();
            Hs3Error::UnknownAnalysis { name: name.to_owned(), known }
        }));
    };
    let content = chosen.content.clone();
    let (analyses, others): (Vec<_>, Vec<_>) = analyses.into_iter().partition(|analysis| analysis.content == content);
    Ok(ChosenAnalyses { analyses, others: others.into_iter().map(|analysis| analysis.name).collect() })
}

/// Where the parameters of an analysis start and end.
pub(super) struct Setup {
    pub(super) points: Points,
    pub(super) ranges: Ranges,
}

/// Reads the points and domains of an analysis.
pub(super) fn setup(document: &Document<'_>, analysis: &WrittenAnalysis, kept: &mut KeptKeys) -> Read<Setup> {
    let Some(cursor) = document.analyses.get(&analysis.name) else {
        let points = Points::read(&document.points, None, kept)?;
        return Ok(Setup { points, ranges: Ranges::read(document, &[], kept)? });
    };
    let list = Address::TOP.key("analyses");
    let known = [
        "name",
        "likelihood",
        "domains",
        "domain",
        "init",
        "parameters_of_interest",
        "parameter_of_interest",
        "aux_likelihood_terms",
    ];
    let object = kept.object(cursor, &known, list.entry(&analysis.name))?;
    let init = object.get("init");
    let points = Points::read(&document.points, init.as_ref(), kept)?;
    let domains = object.get("domains");
    let mut references: Vec<JsonCursor<'_>> = Vec::new();
    if let Some(domains) = &domains {
        references.extend(domains.list()?);
    }
    references.extend(object.get("domain"));
    let ranges = Ranges::read(document, &references, kept)?;
    Ok(Setup { points, ranges })
}
