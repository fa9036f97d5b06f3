//! Checks the parameter settings of a measurement, and applies them to what the modifiers need.

use super::error::{CompileError, SamplePlace};
use super::structure::{finite, finite_limit, unique};
use super::terms::{TermSettings, impossible_datum};
use crate::constraint::Constraint;
use crate::spec::{Clipping, ConstraintTerm, Measurement, ModifierKind, ParameterConfig};

/// The properties of a parameter set, before and after the settings of the measurement are applied.
#[derive(Debug, Clone)]
pub(super) struct Requirement {
    pub(super) name: String,
    pub(super) kinds: Vec<ModifierKind>,
    /// Whether it is one number, and not a vector.
    pub(super) is_scalar: bool,
    pub(super) init: Vec<f64>,
    pub(super) bounds: Vec<[f64; 2]>,
    pub(super) fixed: Vec<bool>,
    /// The constraint term of each element; `None` for a free one.
    pub(super) constraints: Vec<Option<Constraint>>,
    /// The auxiliary datum of each element; without meaning for a free one.
    pub(super) aux: Vec<f64>,
    /// Names of the elements, and the place of the setting that gives them.
    pub(super) elements: Option<ElementNames>,
    /// The place of its first use.
    pub(super) place: SamplePlace,
}

/// The names that a measurement gives to the elements of a parameter.
#[derive(Debug, Clone)]
pub(super) struct ElementNames {
    pub(super) names: Vec<String>,
    /// JSON pointer of the list.
    pub(super) pointer: String,
}

/// The measurement's settings with their place in the document.
pub(super) struct Settings<'a> {
    measurement: &'a Measurement,
    index: usize,
}

impl<'a> Settings<'a> {
    pub(super) fn new(measurement: &'a Measurement, index: usize) -> Result<Self, CompileError> {
        let names = measurement.parameters.iter().map(|p| p.name.as_str());
        unique("parameter setting", names, |i| format!("/measurements/{index}/config/parameters/{i}"))?;
        let Clipping { templates, samples, bins } = measurement.clip;
        for (field, limit) in [("templates", templates), ("samples", samples), ("bins", bins)] {
            finite_limit(limit, || format!("/measurements/{index}/config/clip/{field}"))?;
        }
        Ok(Self { measurement, index })
    }

    /// Replaces the defaults of `requirement` by the settings of its parameter, if any.
    pub(super) fn apply(&self, requirement: &mut Requirement) -> Result<(), CompileError> {
        let position = self.measurement.parameters.iter().position(|p| p.name == requirement.name);
        let default = ParameterConfig::default();
        let config = position.map_or(&default, |i| &self.measurement.parameters[i]);
        if requirement.kinds[0] == ModifierKind::Lumi {
            self.require_lumi(config, requirement)?;
        }
        let Some(i) = position else { return Ok(()) };
        let setting = Setting { requirement, pointer: format!("/measurements/{}/config/parameters/{i}", self.index) };
        setting.apply(config)
    }

    fn require_lumi(&self, config: &ParameterConfig, requirement: &Requirement) -> Result<(), CompileError> {
        let is_free = config.constraints.as_deref() == Some(&[ConstraintTerm::Flat]);
        let absent = [
            ("auxdata", config.auxdata.is_none() && !is_free),
            ("sigmas", config.sigmas.is_none() && config.constraints.is_none()),
            ("inits", config.inits.is_none()),
            ("bounds", config.bounds.is_none()),
        ];
        let Some((field, _)) = absent.into_iter().find(|(_, absent)| *absent) else {
            return Ok(());
        };
        let (measurement, place) = (self.measurement.name.clone(), requirement.place.clone());
        Err(CompileError::LumiWithoutSettings { measurement, field, place })
    }
}

/// One setting of a measurement, with its place in the document.
struct Setting<'a> {
    requirement: &'a mut Requirement,
    pointer: String,
}

impl Setting<'_> {
    fn apply(self, config: &ParameterConfig) -> Result<(), CompileError> {
        self.check_lengths(config)?;
        let terms = TermSettings { config, pointer: &self.pointer };
        let fixed_bins = terms.apply(self.requirement)?;
        self.check_meaning(config)?;
        self.check_values(config)?;
        let (pointer, elements_pointer) = (self.at("auxdata"), self.at("elements"));
        let r = self.requirement;
        if let Some(names) = &config.elements {
            if r.is_scalar {
                return Err(CompileError::ElementsOfScalar { parameter: r.name.clone(), pointer: elements_pointer });
            }
            r.elements = Some(ElementNames { names: names.clone(), pointer: elements_pointer });
        }
        if let Some(inits) = &config.inits {
            r.init.clone_from(inits);
        }
        if let Some(bounds) = &config.bounds {
            r.bounds.clone_from(bounds);
        }
        if let Some(aux) = &config.auxdata {
            r.aux.clone_from(aux);
        }
        if let Some(sigmas) = &config.sigmas {
            r.constraints = sigmas.iter().map(|&sigma| Some(Constraint::Gaussian { sigma })).collect();
        }
        if let Some(factors) = &config.factors {
            r.constraints = factors.iter().map(|&tau| Some(Constraint::Poisson { tau })).collect();
        }
        if let Some(fixed) = config.fixed {
            r.fixed.iter_mut().zip(fixed_bins).for_each(|(element, is_fixed)| *element = fixed || is_fixed);
        }
        match impossible_datum(r) {
            Some(i) => {
                let (parameter, value) = (r.name.clone(), r.aux[i]);
                Err(CompileError::SettingNotPositive {
                    parameter,
                    field: "auxdata",
                    value,
                    pointer: format!("{pointer}/{i}"),
                })
            }
            None => Ok(()),
        }
    }

    fn check_lengths(&self, config: &ParameterConfig) -> Result<(), CompileError> {
        let expected = self.requirement.init.len();
        let lengths = [
            ("inits", config.inits.as_ref().map(Vec::len)),
            ("bounds", config.bounds.as_ref().map(Vec::len)),
            ("auxdata", config.auxdata.as_ref().map(Vec::len)),
            ("factors", config.factors.as_ref().map(Vec::len)),
            ("sigmas", config.sigmas.as_ref().map(Vec::len)),
            ("constraints", config.constraints.as_ref().map(Vec::len)),
            ("elements", config.elements.as_ref().map(Vec::len).filter(|_| !self.requirement.is_scalar)),
        ];
        let wrong = lengths.into_iter().find_map(|(field, len)| len.filter(|&n| n != expected).map(|n| (field, n)));
        let Some((field, found)) = wrong else {
            return Ok(());
        };
        let parameter = self.requirement.name.clone();
        Err(CompileError::SettingLength { parameter, field, pointer: self.at(field), expected, found })
    }

    /// Refuses settings that mean nothing for the parameter, as pyhf does: widths unless the
    /// modifier has its own, scales unless the term is Poisson's, centres unless there is a term.
    fn check_meaning(&self, config: &ParameterConfig) -> Result<(), CompileError> {
        let kinds = &self.requirement.kinds;
        let has_sigmas = kinds.iter().any(|k| matches!(k, ModifierKind::Lumi | ModifierKind::StatError));
        let has_factors = kinds.contains(&ModifierKind::ShapeSys);
        let unused = [
            ("auxdata", config.auxdata.is_some() && self.requirement.constraints.iter().all(Option::is_none)),
            ("sigmas", config.sigmas.is_some() && !has_sigmas),
            ("factors", config.factors.is_some() && !has_factors),
        ];
        let Some((field, _)) = unused.into_iter().find(|(_, wrong)| *wrong) else {
            return Ok(());
        };
        let parameter = self.requirement.name.clone();
        Err(CompileError::SettingUnused { parameter, field, kind: kinds[0], pointer: self.at(field) })
    }

    fn check_values(&self, config: &ParameterConfig) -> Result<(), CompileError> {
        let lists = [("inits", &config.inits), ("auxdata", &config.auxdata)];
        for (field, values) in lists {
            finite(values.as_deref().unwrap_or_default(), || self.at(field))?;
        }
        for (field, values) in [("sigmas", &config.sigmas), ("factors", &config.factors)] {
            let values = values.as_deref().unwrap_or_default();
            finite(values, || self.at(field))?;
            if let Some(i) = values.iter().position(|&v| v <= 0.0) {
                let (parameter, pointer) = (self.requirement.name.clone(), format!("{}/{i}", self.at(field)));
                return Err(CompileError::SettingNotPositive { parameter, field, value: values[i], pointer });
            }
        }
        for (i, &[lower, upper]) in config.bounds.iter().flatten().enumerate() {
            let pointer = format!("{}/{i}", self.at("bounds"));
            finite(&[lower, upper], || pointer.clone())?;
            if lower >= upper {
                let parameter = self.requirement.name.clone();
                return Err(CompileError::EmptyRange { parameter, lower, upper, pointer });
            }
        }
        Ok(())
    }

    fn at(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }
}
