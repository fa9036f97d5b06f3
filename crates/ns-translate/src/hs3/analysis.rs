//! Analyses: which likelihood, and where its parameters start and end.

use std::collections::HashMap;
use std::rc::Rc;

use super::Hs3Error;
use super::document::{Document, Read, texts};
use super::kept::{Address, KeptKeys};
use super::points::{DomainTable, PointTable, Points, Ranges};
use crate::json::JsonCursor;

/// What the names of data sets begin with that are those a model expects, as ROOT makes them.
const ASIMOV: &str = "asimovData";

/// An analysis as written.
pub(super) struct WrittenAnalysis {
    pub(super) name: String,
    pub(super) likelihood: String,
    pub(super) pois: Vec<String>,
    content: Rc<Content>,
}

/// What a likelihood has, for comparison.
#[derive(PartialEq, Eq)]
struct Content {
    /// Its distributions and data.
    entries: Vec<String>,
    is_asimov: bool,
}

/// Reads all analyses. In a document without any, each likelihood is one.
pub(super) fn read_all(document: &Document<'_>) -> Read<Vec<WrittenAnalysis>> {
    let mut analyses = Vec::new();
    let mut contents: HashMap<String, Rc<Content>> = HashMap::new();
    for (name, cursor) in document.analyses.iter() {
        let object = cursor.open_object()?;
        let reference = object.need("likelihood")?;
        let likelihood = reference.text()?.to_owned();
        let content = match contents.get(&likelihood) {
            Some(content) => Rc::clone(content),
            None => {
                let content = content(document.likelihoods.named_at(&reference)?)?;
                Rc::clone(contents.entry(likelihood.clone()).or_insert(content))
            }
        };
        let pois = object.get("parameters_of_interest").or_else(|| object.get("parameter_of_interest"));
        let pois = pois.map(|list| texts(&list)).transpose()?.unwrap_or_default();
        analyses.push(WrittenAnalysis { name: name.to_owned(), likelihood, pois, content });
    }
    if document.analyses.is_empty() {
        for (name, cursor) in document.likelihoods.iter() {
            let (name, likelihood) = (name.to_owned(), name.to_owned());
            analyses.push(WrittenAnalysis { name, likelihood, pois: Vec::new(), content: content(cursor)? });
        }
    }
    Ok(analyses)
}

fn content(likelihood: &JsonCursor<'_>) -> Read<Rc<Content>> {
    let object = likelihood.open_object()?;
    let mut entries = Vec::new();
    let mut is_asimov = true;
    for key in ["distributions", "data"] {
        for entry in object.need(key)?.list()? {
            let written = match entry.text_if_any() {
                Some(name) => name.to_owned(),
                None => entry.number()?.to_string(),
            };
            is_asimov &= key != "data" || written.starts_with(ASIMOV);
            entries.push(written);
        }
    }
    Ok(Rc::new(Content { entries, is_asimov }))
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
        None => analyses.iter().find(|analysis| !analysis.content.is_asimov).or_else(|| analyses.first()),
    };
    let Some(chosen) = chosen else {
        return Err(name.map_or(Hs3Error::NoLikelihood, |name| {
            let known = analyses.iter().map(|analysis| analysis.name.clone()).collect();
            Hs3Error::UnknownAnalysis { name: name.to_owned(), known }
        }));
    };
    let content = Rc::clone(&chosen.content);
    let (analyses, others): (Vec<_>, Vec<_>) = analyses.into_iter().partition(|analysis| analysis.content == content);
    Ok(ChosenAnalyses { analyses, others: others.into_iter().map(|analysis| analysis.name).collect() })
}

/// Where the parameters of an analysis start and end.
pub(super) struct Setup {
    pub(super) points: Points,
    pub(super) ranges: Ranges,
}

/// Reads the points and domains of analyses.
pub(super) struct SetupReader<'d> {
    document: &'d Document<'d>,
    points: PointTable<'d>,
    domains: DomainTable<'d>,
}

impl<'d> SetupReader<'d> {
    pub(super) fn new(document: &'d Document<'d>) -> Read<Self> {
        let points = PointTable::read(&document.points)?;
        Ok(Self { document, points, domains: DomainTable::new(document) })
    }

    /// Returns where an analysis is: a likelihood may be one.
    pub(super) fn place(&self, analysis: &WrittenAnalysis) -> Option<&JsonCursor<'d>> {
        let Document { analyses, likelihoods, .. } = self.document;
        analyses.get(&analysis.name).or_else(|| likelihoods.get(&analysis.name))
    }

    pub(super) fn read(&mut self, analysis: &WrittenAnalysis, kept: &mut KeptKeys) -> Read<Setup> {
        let Some(cursor) = self.document.analyses.get(&analysis.name) else {
            return Ok(Setup { points: self.points.points(None, kept)?, ranges: self.domains.ranges(&[], kept)? });
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
        let points = self.points.points(object.get("init").as_ref(), kept)?;
        let domains = object.get("domains");
        let mut references: Vec<JsonCursor<'_>> = Vec::new();
        if let Some(domains) = &domains {
            references.extend(domains.list()?);
        }
        references.extend(object.get("domain"));
        Ok(Setup { points, ranges: self.domains.ranges(&references, kept)? })
    }
}
