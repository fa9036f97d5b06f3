//! Turns a measurement as written into settings of parameters.

use ns_core::spec::{
    Clipping, ConstrainedQuantity, ConstraintTerm, LogNormalDensity, Measurement, ParameterConfig, PerBinConstraint,
    PerBinKind,
};

use super::combination::{ParamSetting, Term, TermKind, WrittenMeasurement};
use super::error::{HistFactoryError, HistFactoryProblem};
use super::parameters::{Norm, Parameters, ShapeUncertainty, Target, VectorKind, VectorParameter};
use super::templates::Remark;
use crate::clip::ALPHA_LIMIT;
use crate::place::DocumentPlace;

/// The highest value of Lumi in ROOT, in units of its nominal value.
const LUMI_LIMIT: f64 = 10.0;

/// The highest value of an element of a `ShapeFactor` in ROOT.
const SHAPE_FACTOR_LIMIT: f64 = 1000.0;

/// The range of parameters that must be positive, as pyhf has it.
const POSITIVE: [f64; 2] = [1e-10, 10.0];

/// Makes the settings of one measurement.
pub(super) struct MeasurementReader<'a> {
    written: &'a WrittenMeasurement,
    parameters: &'a Parameters,
    configs: Vec<ParameterConfig>,
    /// What is set for the elements of each vector: values, and whether each is fixed.
    elements: Vec<Vec<ElementSetting>>,
    pub(super) remarks: Vec<Remark>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ElementSetting {
    value: Option<f64>,
    is_const: bool,
}

impl<'a> MeasurementReader<'a> {
    pub(super) fn new(written: &'a WrittenMeasurement, parameters: &'a Parameters) -> Self {
        let elements = parameters.vectors.iter().map(|vector| vec![ElementSetting::default(); vector.n_bins]);
        let elements = elements.collect();
        Self { written, parameters, configs: Vec::new(), elements, remarks: Vec::new() }
    }

    pub(super) fn read(&mut self) -> Result<Measurement, HistFactoryError> {
        let (written, parameters) = (self.written, self.parameters);
        self.lumi()?;
        self.configs.extend(parameters.norms.iter().map(norm));
        for vector in &parameters.vectors {
            if let Some(config) = vector_config(vector, &written.place)? {
                self.configs.push(config);
            }
        }
        for term in &written.terms {
            self.term(term)?;
        }
        for setting in &written.settings {
            self.setting(setting);
        }
        self.finish_elements()?;
        let (name, poi) = (written.name.clone(), self.poi());
        self.remark_lumi();
        Ok(Measurement { name, poi, parameters: std::mem::take(&mut self.configs), clip: Clipping::default() })
    }

    fn remark(&mut self, text: String, place: &DocumentPlace) {
        self.remarks.push(Remark { text, place: place.clone() });
    }

    /// Returns the settings of `name`, added if there are none.
    fn config(&mut self, name: &str) -> &mut ParameterConfig {
        let index = self.configs.iter().position(|config| config.name == name).unwrap_or_else(|| {
            self.configs.push(ParameterConfig { name: name.to_owned(), ..ParameterConfig::default() });
            self.configs.len() - 1
        });
        &mut self.configs[index]
    }

    fn lumi(&mut self) -> Result<(), HistFactoryError> {
        let (lumi, relative) = (self.written.lumi, self.written.lumi_relative_error);
        let wrong = |attribute: &str, value: f64| {
            let (attribute, value) = (attribute.to_owned(), value.to_string());
            HistFactoryProblem::Number { attribute, value }.at(&self.written.place)
        };
        if lumi <= 0.0 {
            return Err(wrong("Lumi", lumi));
        }
        if relative < 0.0 {
            return Err(wrong("LumiRelErr", relative));
        }
        if !self.parameters.has_lumi {
            return Ok(());
        }
        let inits = Some(vec![lumi]);
        let bounds = Some(vec![[0.0, LUMI_LIMIT * lumi]]);
        let config = ParameterConfig { name: "lumi".to_owned(), inits, bounds, ..ParameterConfig::default() };
        self.configs.push(if relative > 0.0 {
            ParameterConfig { auxdata: Some(vec![lumi]), sigmas: Some(vec![lumi * relative]), ..config }
        } else {
            ParameterConfig { constraints: Some(vec![ConstraintTerm::Flat]), fixed: Some(true), ..config }
        });
        Ok(())
    }

    /// Replaces the normal distribution of some systematics.
    fn term(&mut self, term: &Term) -> Result<(), HistFactoryError> {
        for name in &term.names {
            let known = self.parameters.systematics.iter().find(|systematic| systematic.name == *name);
            let Some(systematic) = known else {
                self.remark(
                    format!("no sample has a systematic `{name}`: its constraint term is left out"),
                    &term.place,
                );
                continue;
            };
            let (has_overall, has_histo) = (systematic.has_overall, systematic.has_histo);
            match term.kind {
                TermKind::Gamma(_) | TermKind::LogNormal(_) if has_overall && has_histo => {
                    let what = "this term is not supported for a systematic that has an `OverallSys` and a `HistoSys`";
                    return Err(HistFactoryProblem::Unsupported { what, name: name.clone() }.at(&term.place));
                }
                TermKind::Gamma(_) | TermKind::LogNormal(_) if has_histo => {
                    let text = format!("`{name}` is a `HistoSys`, and stays normally distributed as in ROOT");
                    self.remark(text, &term.place);
                    continue;
                }
                TermKind::NoConstraint => {
                    let text = format!(
                        "`{name}` is free here: ROOT 6.40 leaves out an `OverallSys` with `NoConstraint`, and \
                         still constrains a `HistoSys`"
                    );
                    self.remark(text, &term.place);
                }
                _ => {}
            }
            let kind = term.kind;
            set_term(self.config(name), kind);
        }
        Ok(())
    }

    fn setting(&mut self, setting: &ParamSetting) {
        if setting.is_const_misspelled {
            let text = "ROOT fixes parameters for `Const=\"True\"` only; here they are fixed".to_owned();
            self.remark(text, &setting.place);
        }
        for name in &setting.names {
            let Some(target) = self.parameters.target(name) else {
                self.remark(format!("no parameter is called `{name}`: its setting is left out"), &setting.place);
                continue;
            };
            match target {
                Target::Lumi if !self.parameters.has_lumi => {
                    let text = "no sample follows the luminosity: its setting is left out".to_owned();
                    self.remark(text, &setting.place);
                }
                Target::Lumi => self.set("lumi", setting, |value| value),
                Target::Norm(name) => self.set(&name, setting, |value| value),
                Target::Systematic(systematic) => {
                    let unit = self.own_unit(&systematic, name);
                    self.set(&systematic, setting, unit);
                }
                Target::Element { vector, bin } => {
                    let element = &mut self.elements[vector][bin];
                    element.value = setting.value.or(element.value);
                    element.is_const |= setting.is_const;
                }
            }
        }
    }

    /// Returns how values of the parameter that ROOT calls `written` become those of `systematic`:
    /// with a log-normal term ROOT has x, of which α = (κ^x - 1)/r, and with a gamma term β.
    fn own_unit(&self, systematic: &str, written: &str) -> impl Fn(f64) -> f64 + use<> {
        // Of a `HistoSys` no term is replaced.
        let has_own_term = self.configs.iter().any(|config| config.name == systematic && config.constraints.is_some());
        let is_replaced = |term: &&Term| has_own_term && term.names.iter().any(|name| name == systematic);
        let kind = self.written.terms.iter().rfind(is_replaced).map(|term| term.kind);
        let is_beta = written.starts_with("beta_");
        move |value| match kind {
            Some(TermKind::LogNormal(relative)) if !is_beta => alpha_of((1.0 + relative).powf(value), relative),
            Some(TermKind::Gamma(relative)) if is_beta => alpha_of(value, relative),
            _ => value,
        }
    }

    fn set(&mut self, name: &str, setting: &ParamSetting, unit: impl Fn(f64) -> f64) {
        let config = self.config(name);
        if let Some(value) = setting.value {
            config.inits = Some(vec![unit(value)]);
        }
        if setting.is_const {
            config.fixed = Some(true);
        }
    }

    /// Turns the settings of elements into those of their vectors.
    fn finish_elements(&mut self) -> Result<(), HistFactoryError> {
        for (vector, elements) in self.parameters.vectors.iter().zip(std::mem::take(&mut self.elements)) {
            let n_fixed = elements.iter().filter(|element| element.is_const).count();
            if n_fixed > 0 && n_fixed < vector.n_bins {
                let (name, found, wanted) = (format!("{}_bin_…", vector.root_name), n_fixed, vector.n_bins);
                return Err(HistFactoryProblem::PartlyFixed { name, found, wanted }.at(&self.written.place));
            }
            if n_fixed > 0 {
                self.config(&vector.name).fixed = Some(true);
            }
            if elements.iter().any(|element| element.value.is_some()) {
                let config = self.config(&vector.name);
                let known = config.inits.take().unwrap_or_else(|| vec![1.0; vector.n_bins]);
                let values = elements.iter().zip(known).map(|(element, known)| element.value.unwrap_or(known));
                config.inits = Some(values.collect());
            }
        }
        Ok(())
    }

    /// Returns the parameter of interest: the first that is named.
    fn poi(&mut self) -> Option<String> {
        let pois = &self.written.pois;
        if pois.len() > 1 {
            let text = format!(
                "the measurement `{}` has the parameters of interest {}: the first is taken, `--poi` or `poi=` selects \
                 others",
                self.written.name,
                crate::hint::in_backticks(pois)
            );
            self.remark(text, &self.written.place);
        }
        let first = pois.first()?;
        Some(match self.parameters.target(first) {
            Some(Target::Lumi) => "lumi".to_owned(),
            Some(Target::Systematic(name)) => name,
            Some(Target::Element { vector, bin }) => format!("{}[{bin}]", self.parameters.vectors[vector].name),
            Some(Target::Norm(_)) | None => first.clone(),
        })
    }

    /// Says where samples that are not normalised by theory are treated otherwise than in ROOT.
    fn remark_lumi(&mut self) {
        let is_fixed = self.configs.iter().any(|config| config.name == "lumi" && config.fixed == Some(true));
        if let Some(sample) = &self.parameters.scaled_sample
            && self.parameters.has_lumi
            && !is_fixed
        {
            let text = format!(
                "`{sample}` is not normalised by theory and does not follow `Lumi`; ROOT 6.40 scales it by `Lumi` all \
                 the same"
            );
            self.remark(text, &self.written.place);
        }
    }
}

fn norm(norm: &Norm) -> ParameterConfig {
    let (inits, bounds) = (Some(vec![norm.value]), Some(vec![norm.limits]));
    ParameterConfig { name: norm.name.clone(), inits, bounds, ..ParameterConfig::default() }
}

/// Returns the settings of a parameter with one element for each bin, unless it needs none.
fn vector_config(vector: &VectorParameter, place: &DocumentPlace) -> Result<Option<ParameterConfig>, HistFactoryError> {
    let config = ParameterConfig { name: vector.name.clone(), ..ParameterConfig::default() };
    let per_bin = |constraint, relative_threshold| {
        let per_bin = Some(PerBinConstraint { constraint: Some(constraint), relative_threshold });
        ParameterConfig { per_bin, ..config.clone() }
    };
    Ok(match &vector.kind {
        VectorKind::Stat(stat) if stat.kind == PerBinKind::Gaussian && stat.threshold <= 0.0 => None,
        VectorKind::Stat(stat) => Some(per_bin(stat.kind, (stat.threshold > 0.0).then_some(stat.threshold))),
        VectorKind::Shape(shape) if shape.is_shared => Some(shared_shape(vector, shape, place)?),
        VectorKind::Shape(shape) => (shape.kind == PerBinKind::Gaussian).then(|| per_bin(PerBinKind::Gaussian, None)),
        VectorKind::Free { initial, is_const } => Some(ParameterConfig {
            inits: initial.clone(),
            bounds: Some(vec![[0.0, SHAPE_FACTOR_LIMIT]; vector.n_bins]),
            fixed: is_const.then_some(true),
            ..config
        }),
    })
}

/// Returns the settings of a `ShapeSys` that several samples share. Here it is a shapefactor with
/// constraint terms, because a shapesys belongs to one sample.
fn shared_shape(
    vector: &VectorParameter,
    shape: &ShapeUncertainty,
    place: &DocumentPlace,
) -> Result<ParameterConfig, HistFactoryError> {
    if shape.relative.contains(&0.0) {
        let what = "a `ShapeSys` of several samples must have an uncertainty in every bin";
        return Err(HistFactoryProblem::Unsupported { what, name: vector.name.clone() }.at(place));
    }
    let tau = |relative: &f64| 1.0 / relative / relative;
    let term = |relative: &f64| match shape.kind {
        PerBinKind::Gaussian => ConstraintTerm::Gaussian { sigma: *relative },
        PerBinKind::Poisson => ConstraintTerm::Poisson { tau: tau(relative) },
    };
    let datum = |relative: &f64| if shape.kind == PerBinKind::Gaussian { 1.0 } else { tau(relative) };
    Ok(ParameterConfig {
        name: vector.name.clone(),
        bounds: Some(vec![POSITIVE; vector.n_bins]),
        constraints: Some(shape.relative.iter().map(term).collect()),
        auxdata: Some(shape.relative.iter().map(datum).collect()),
        ..ParameterConfig::default()
    })
}

/// Replaces the normal distribution of a systematic, as ROOT does. The parameter stays the α that
/// the systematic reads, and the term constrains β = 1 + rα.
fn set_term(config: &mut ParameterConfig, kind: TermKind) {
    let (term, datum) = match kind {
        TermKind::Gamma(relative) => {
            config.beta = Some(ConstrainedQuantity { offset: 1.0, factor: relative });
            config.bounds = Some(vec![POSITIVE.map(|beta| alpha_of(beta, relative))]);
            let tau = 1.0 / (relative * relative);
            (ConstraintTerm::Gamma { tau }, Some(tau))
        }
        TermKind::LogNormal(relative) => {
            let kappa = 1.0 + relative;
            config.beta = Some(ConstrainedQuantity { offset: 1.0, factor: relative });
            config.bounds = Some(vec![[-ALPHA_LIMIT, ALPHA_LIMIT].map(|x| alpha_of(kappa.powf(x), relative))]);
            (ConstraintTerm::LogNormal { kappa, density: LogNormalDensity::Datum }, Some(1.0))
        }
        // ROOT's Gaussian of width 100 is flat once it is normalised over its global observable.
        TermKind::Uniform | TermKind::NoConstraint => (ConstraintTerm::Flat, None),
    };
    config.constraints = Some(vec![term]);
    config.auxdata = datum.map(|datum| vec![datum]);
}

fn alpha_of(beta: f64, relative: f64) -> f64 {
    (beta - 1.0) / relative
}
