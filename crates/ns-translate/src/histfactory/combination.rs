//! The file of a combination as written: names of channel files, and measurements.

use super::element::Node;
use super::error::{HistFactoryError, HistFactoryProblem};
use crate::place::DocumentPlace;

/// A combination as written.
pub(super) struct Combination {
    /// The files of the channels.
    pub(super) inputs: Vec<Input>,
    pub(super) measurements: Vec<WrittenMeasurement>,
}

/// The name of a channel's file.
pub(super) struct Input {
    pub(super) file: String,
    pub(super) place: DocumentPlace,
}

/// A measurement as written.
pub(super) struct WrittenMeasurement {
    pub(super) name: String,
    pub(super) lumi: f64,
    pub(super) lumi_relative_error: f64,
    /// The first bin, and the one after the last, which ROOT reads and does not heed.
    pub(super) bins: [Option<f64>; 2],
    pub(super) pois: Vec<String>,
    pub(super) settings: Vec<ParamSetting>,
    pub(super) terms: Vec<Term>,
    pub(super) place: DocumentPlace,
}

/// A value, or being constant, for some parameters.
pub(super) struct ParamSetting {
    pub(super) names: Vec<String>,
    pub(super) value: Option<f64>,
    pub(super) is_const: bool,
    /// Whether `Const` is spelled as ROOT does not read it.
    pub(super) is_const_misspelled: bool,
    pub(super) place: DocumentPlace,
}

/// A constraint term in place of the normal distribution, for some systematics.
pub(super) struct Term {
    pub(super) names: Vec<String>,
    pub(super) kind: TermKind,
    pub(super) place: DocumentPlace,
}

/// The kinds of constraint terms that XML can ask for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TermKind {
    /// With a relative uncertainty.
    Gamma(f64),
    /// With a relative uncertainty.
    LogNormal(f64),
    Uniform,
    NoConstraint,
}

const TERMS: &[&str] = &["Gamma", "LogNormal", "Uniform", "NoConstraint"];

/// The luminosity of a measurement that names none.
const DEFAULT_LUMI: f64 = 1.0;

/// The relative uncertainty of the luminosity of a measurement that names none.
const DEFAULT_LUMI_ERROR: f64 = 0.1;

impl Combination {
    pub(super) fn read(root: Node<'_>) -> Result<Self, HistFactoryError> {
        root.require_known(&["OutputFilePrefix", "Mode"], &["Function", "Input", "Measurement"])?;
        if let Some(function) = root.children("Function").next() {
            let (what, name) = (
                "functions of parameters are not supported",
                function.attribute("Name").unwrap_or_default().to_owned(),
            );
            return Err(HistFactoryProblem::Unsupported { what, name }.at(&function.place()));
        }
        let inputs = root.children("Input").map(|node| {
            node.require_known(&[], &[])?;
            Ok(Input { file: node.required_text("the name of a channel's file")?, place: node.place() })
        });
        let inputs = inputs.collect::<Result<Vec<Input>, HistFactoryError>>()?;
        let measurements = root.children("Measurement").map(measurement).collect::<Result<Vec<_>, _>>()?;
        let missing = |name| HistFactoryProblem::NoElement { name, parent: root.name().to_owned() }.at(&root.place());
        match (inputs.is_empty(), measurements.is_empty()) {
            (true, _) => Err(missing("Input")),
            (_, true) => Err(missing("Measurement")),
            _ => Ok(Self { inputs, measurements }),
        }
    }
}

fn measurement(node: Node<'_>) -> Result<WrittenMeasurement, HistFactoryError> {
    node.require_known(
        &["Name", "Lumi", "LumiRelErr", "BinLow", "BinHigh", "Mode", "ExportOnly"],
        &["POI", "ParamSetting", "ConstraintTerm", "Asimov"],
    )?;
    node.truth("ExportOnly")?;
    let mut pois = Vec::new();
    for poi in node.children("POI") {
        poi.require_known(&[], &[])?;
        pois.extend(poi.words());
    }
    Ok(WrittenMeasurement {
        name: node.required("Name")?.to_owned(),
        lumi: node.number("Lumi")?.unwrap_or(DEFAULT_LUMI),
        lumi_relative_error: node.number("LumiRelErr")?.unwrap_or(DEFAULT_LUMI_ERROR),
        bins: [node.number("BinLow")?, node.number("BinHigh")?],
        pois,
        settings: node.children("ParamSetting").map(setting).collect::<Result<_, _>>()?,
        terms: node.children("ConstraintTerm").map(term).collect::<Result<_, _>>()?,
        place: node.place(),
    })
}

fn setting(node: Node<'_>) -> Result<ParamSetting, HistFactoryError> {
    node.require_known(&["Const", "Val"], &[])?;
    let is_const = node.truth("Const")?.unwrap_or(false);
    Ok(ParamSetting {
        names: node.required_words("names of parameters")?,
        value: node.number("Val")?,
        is_const,
        is_const_misspelled: is_const && node.attribute("Const") != Some("True"),
        place: node.place(),
    })
}

fn term(node: Node<'_>) -> Result<Term, HistFactoryError> {
    node.require_known(&["Type", "RelativeUncertainty"], &[])?;
    node.required("Type")?;
    let relative = || {
        let relative = node.required_number("RelativeUncertainty")?;
        let value = relative.to_string();
        let problem = HistFactoryProblem::Number { attribute: "RelativeUncertainty".to_owned(), value };
        if relative > 0.0 { Ok(relative) } else { Err(problem.at(&node.place())) }
    };
    let kind = match node.word("Type", TERMS)?.unwrap_or_default() {
        "Gamma" => TermKind::Gamma(relative()?),
        "LogNormal" => TermKind::LogNormal(relative()?),
        "Uniform" => TermKind::Uniform,
        "NoConstraint" => TermKind::NoConstraint,
        word => {
            let (attribute, value) = ("Type".to_owned(), word.to_owned());
            return Err(HistFactoryProblem::Word { attribute, value, allowed: TERMS }.at(&node.place()));
        }
    };
    Ok(Term { names: node.required_words("names of systematics")?, kind, place: node.place() })
}
