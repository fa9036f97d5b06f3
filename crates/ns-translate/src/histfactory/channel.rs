//! The file of a channel as written: data, samples and systematics, with the places of their
//! histograms, which inner elements inherit from outer ones.

use ns_core::spec::PerBinKind;

use super::element::Node;
use super::error::{HistFactoryError, HistFactoryProblem};
use crate::place::DocumentPlace;

/// A channel as written.
pub(super) struct WrittenChannel {
    pub(super) name: String,
    /// The observed counts, if there are any.
    pub(super) data: Option<HistogramName>,
    /// Names of other data, which are left out; empty for those without one.
    pub(super) other_data: Vec<String>,
    pub(super) stat_errors: StatErrors,
    pub(super) samples: Vec<WrittenSample>,
    pub(super) place: DocumentPlace,
}

/// How a channel constrains the statistical uncertainties of its templates.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct StatErrors {
    pub(super) kind: PerBinKind,
    pub(super) threshold: f64,
}

impl Default for StatErrors {
    /// Returns the defaults of ROOT's `StatErrorConfig`.
    fn default() -> Self {
        Self { kind: PerBinKind::Poisson, threshold: 0.05 }
    }
}

/// A sample as written.
pub(super) struct WrittenSample {
    pub(super) name: String,
    pub(super) nominal: HistogramName,
    pub(super) is_normalised_by_theory: bool,
    pub(super) stat_error: StatError,
    pub(super) effects: Vec<Effect>,
}

/// The statistical uncertainty of a sample.
pub(super) enum StatError {
    /// It has none.
    Off,
    /// That of its histogram.
    OfNominal,
    /// Relative uncertainties of their own.
    Relative(HistogramName),
}

/// What scales or shifts a sample.
pub(super) struct Effect {
    pub(super) name: String,
    pub(super) kind: EffectKind,
    pub(super) place: DocumentPlace,
}

/// The kinds of effects.
pub(super) enum EffectKind {
    Norm {
        value: f64,
        limits: [f64; 2],
        has_const: bool,
    },
    Overall {
        low: f64,
        high: f64,
    },
    Histo {
        low: HistogramName,
        high: HistogramName,
    },
    ShapeSys {
        relative: HistogramName,
        kind: PerBinKind,
    },
    ShapeFactor {
        initial: Option<HistogramName>,
        is_const: bool,
    },
    /// `HistoFactor`, which ROOT reads and leaves out.
    Ignored,
}

/// Where a histogram is.
#[derive(Clone)]
pub(super) struct HistogramName {
    pub(super) file: String,
    /// Directories and the name.
    pub(super) path: String,
    pub(super) place: DocumentPlace,
}

/// What elements inherit.
#[derive(Clone, Copy)]
struct Inherited<'a> {
    file: &'a str,
    folder: &'a str,
    histogram: Option<&'a str>,
}

const CONSTRAINTS: &[&str] = &["Gaussian", "Gauss", "Poisson", "Pois"];

impl<'a> Inherited<'a> {
    fn of(self, node: Node<'a>) -> Self {
        Self {
            file: node.attribute("InputFile").unwrap_or(self.file),
            folder: node.attribute("HistoPath").unwrap_or(self.folder),
            histogram: self.histogram,
        }
    }

    /// Returns the histogram that `node` names by the attribute `name`.
    fn histogram(self, node: Node<'a>, name: &'static str) -> Result<HistogramName, HistFactoryError> {
        let written = node.attribute(name).filter(|name| !name.is_empty()).or(self.histogram);
        let histogram = match written {
            Some(histogram) => histogram,
            None => node.required(name)?,
        };
        let (place, folder) = (node.place(), self.folder.trim_matches('/'));
        if self.file.is_empty() {
            return Err(HistFactoryProblem::NoInputFile { histogram: histogram.to_owned() }.at(&place));
        }
        let path = if folder.is_empty() { histogram.to_owned() } else { format!("{folder}/{histogram}") };
        Ok(HistogramName { file: self.file.to_owned(), path, place })
    }

    /// Returns the place without a name of histograms: those of systematics are their own.
    fn nameless(self) -> Self {
        Self { histogram: None, ..self }
    }
}

impl WrittenChannel {
    pub(super) fn read(root: Node<'_>) -> Result<Self, HistFactoryError> {
        root.require_known(&["Name", "InputFile", "HistoPath", "HistoName"], &["Data", "StatErrorConfig", "Sample"])?;
        let outer = Inherited { file: "", folder: "", histogram: root.attribute("HistoName") }.of(root);
        let (mut data, mut other_data) = (None, Vec::new());
        for node in root.children("Data") {
            node.require_known(&["Name", "InputFile", "HistoPath", "HistoName"], &[])?;
            let name = node.attribute("Name").filter(|name| !name.is_empty());
            match (&data, name) {
                (None, None) => data = Some(outer.of(node).histogram(node, "HistoName")?),
                (_, name) => other_data.push(name.unwrap_or_default().to_owned()),
            }
        }
        let stat_errors = root.children("StatErrorConfig").last().map(stat_errors).transpose()?.unwrap_or_default();
        let samples = root.children("Sample").map(|node| sample(node, outer)).collect::<Result<Vec<_>, _>>()?;
        if samples.is_empty() {
            let (name, parent) = ("Sample", root.name().to_owned());
            return Err(HistFactoryProblem::NoElement { name, parent }.at(&root.place()));
        }
        let name = root.required("Name")?.to_owned();
        Ok(Self { name, data, other_data, stat_errors, samples, place: root.place() })
    }
}

fn stat_errors(node: Node<'_>) -> Result<StatErrors, HistFactoryError> {
    node.require_known(&["RelErrorThreshold", "ConstraintType"], &[])?;
    let default = StatErrors::default();
    Ok(StatErrors {
        kind: constraint(node)?.unwrap_or(default.kind),
        threshold: node.number("RelErrorThreshold")?.unwrap_or(default.threshold),
    })
}

fn constraint(node: Node<'_>) -> Result<Option<PerBinKind>, HistFactoryError> {
    let word = node.word("ConstraintType", CONSTRAINTS)?;
    Ok(word.map(|word| if word.starts_with('G') { PerBinKind::Gaussian } else { PerBinKind::Poisson }))
}

fn sample<'a>(node: Node<'a>, outer: Inherited<'a>) -> Result<WrittenSample, HistFactoryError> {
    node.require_known(
        &["Name", "InputFile", "HistoName", "HistoPath", "NormalizeByTheory"],
        &["StatError", "NormFactor", "OverallSys", "HistoSys", "HistoFactor", "ShapeSys", "ShapeFactor"],
    )?;
    let name = node.required("Name")?.to_owned();
    let inherited = outer.of(node);
    let nominal = inherited.histogram(node, "HistoName")?;
    let inherited = inherited.nameless();
    let mut stat_error = StatError::Off;
    let mut effects = Vec::new();
    for child in node.all() {
        match child.name() {
            "StatError" => stat_error = read_stat_error(child, inherited)?,
            _ => effects.push(effect(child, inherited)?),
        }
    }
    let is_normalised_by_theory = node.truth("NormalizeByTheory")?.unwrap_or(true);
    Ok(WrittenSample { name, nominal, is_normalised_by_theory, stat_error, effects })
}

fn read_stat_error<'a>(node: Node<'a>, inherited: Inherited<'a>) -> Result<StatError, HistFactoryError> {
    node.require_known(&["Activate", "HistoName", "InputFile", "HistoPath"], &[])?;
    if !node.truth("Activate")?.unwrap_or(false) {
        return Ok(StatError::Off);
    }
    // An empty path or file means the inherited one here, as in ROOT.
    let own = inherited.of(node);
    let file = if own.file.is_empty() { inherited.file } else { own.file };
    let folder = if own.folder.is_empty() { inherited.folder } else { own.folder };
    match node.attribute("HistoName") {
        None | Some("") => Ok(StatError::OfNominal),
        Some(_) => Ok(StatError::Relative(Inherited { file, folder, ..own }.histogram(node, "HistoName")?)),
    }
}

fn effect<'a>(node: Node<'a>, inherited: Inherited<'a>) -> Result<Effect, HistFactoryError> {
    let kind = match node.name() {
        "NormFactor" => norm_factor(node)?,
        "OverallSys" => {
            node.require_known(&["Name", "Low", "High"], &[])?;
            EffectKind::Overall { low: node.required_number("Low")?, high: node.required_number("High")? }
        }
        "HistoSys" => histo_sys(node, inherited)?,
        "ShapeSys" => {
            node.require_known(&["Name", "HistoName", "HistoPath", "InputFile", "ConstraintType"], &[])?;
            // Without a type it is Gaussian in ROOT, unlike a statistical uncertainty.
            let kind = constraint(node)?.unwrap_or(PerBinKind::Gaussian);
            EffectKind::ShapeSys { relative: inherited.of(node).histogram(node, "HistoName")?, kind }
        }
        "ShapeFactor" => shape_factor(node, inherited)?,
        _ => EffectKind::Ignored,
    };
    Ok(Effect { name: node.required("Name")?.to_owned(), kind, place: node.place() })
}

fn norm_factor(node: Node<'_>) -> Result<EffectKind, HistFactoryError> {
    node.require_known(&["Name", "Val", "Low", "High", "Const"], &[])?;
    let value = node.number("Val")?.unwrap_or(1.0);
    let (low, high) = (node.required_number("Low")?, node.required_number("High")?);
    if low >= high || value < low || value > high {
        let name = node.required("Name")?.to_owned();
        return Err(HistFactoryProblem::Limits { name, value, low, high }.at(&node.place()));
    }
    Ok(EffectKind::Norm { value, limits: [low, high], has_const: node.truth("Const")?.unwrap_or(false) })
}

fn histo_sys<'a>(node: Node<'a>, inherited: Inherited<'a>) -> Result<EffectKind, HistFactoryError> {
    node.require_known(
        &[
            "Name",
            "InputFile",
            "HistoPath",
            "HistoFileHigh",
            "HistoPathHigh",
            "HistoNameHigh",
            "HistoFileLow",
            "HistoPathLow",
            "HistoNameLow",
        ],
        &[],
    )?;
    let both = inherited.of(node);
    let side = |file: &str, folder: &str, name: &'static str| {
        let file = node.attribute(file).unwrap_or(both.file);
        let folder = node.attribute(folder).unwrap_or(both.folder);
        Inherited { file, folder, histogram: None }.histogram(node, name)
    };
    Ok(EffectKind::Histo {
        low: side("HistoFileLow", "HistoPathLow", "HistoNameLow")?,
        high: side("HistoFileHigh", "HistoPathHigh", "HistoNameHigh")?,
    })
}

fn shape_factor<'a>(node: Node<'a>, inherited: Inherited<'a>) -> Result<EffectKind, HistFactoryError> {
    node.require_known(&["Name", "Const", "HistoName", "HistoPath", "InputFile"], &[])?;
    let is_const = node.truth("Const")?.unwrap_or(false);
    let initial = match node.attribute("HistoName") {
        None | Some("") => None,
        Some(_) => Some(inherited.of(node).histogram(node, "HistoName")?),
    };
    Ok(EffectKind::ShapeFactor { initial, is_const })
}
