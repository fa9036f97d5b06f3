//! Compiles a workspace into a model: the only place where names become indices and where checks
//! are made.
//!
//! After [`compile`] no lookup can fail. Rules of order, constraints, zero-rate bins and
//! defaults are pyhf 0.7's.

mod error;
mod formulas;
mod masked;
mod outline;
mod requirements;
mod responses;
mod settings;
mod structure;
mod tables;
mod terms;

pub use error::{CompileError, SamplePlace};
pub use outline::WorkspaceOutline;

use crate::interpolate::Interpolation;
use crate::model::{BinPlace, Data, Model};
use crate::nonlinearity::Nonlinearity;
use crate::parameters::{ParameterSet, Parameters};
use crate::spec::{Measurement, Workspace};
use formulas::FormulaTable;
use settings::{ElementNames, Requirement, Settings};
use std::collections::HashSet;
use tables::TableSources;

/// Which parameters of interest a model has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PoiChoice {
    /// Those that the measurement names, if any.
    #[default]
    FromMeasurement,
    /// No parameter of interest.
    None,
    /// These, the first being *the* parameter of interest.
    Named(Vec<String>),
}

/// The choices that a workspace leaves open.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileOptions {
    /// The measurement to compile for; the first one when `None`.
    pub measurement: Option<String>,
    /// The parameters of interest.
    pub poi: PoiChoice,
    /// The interpolation rules.
    pub interpolation: Interpolation,
}

/// Compiles `workspace` into a [`Model`].
///
/// # Errors
/// [`CompileError`] names the first fault with its JSON pointer, channel, sample and modifier.
pub fn compile(workspace: &Workspace, options: &CompileOptions) -> Result<Model, CompileError> {
    let (index, measurement) = choose_measurement(workspace, options.measurement.as_deref())?;
    let order = structure::check(workspace)?;
    let main = structure::observed(workspace, &order)?;
    let settings = Settings::new(measurement, index)?;
    let formulas = FormulaTable::parse(workspace, &order)?;
    formulas.check_settings(measurement, index)?;
    let mut requirements = requirements::collect(workspace, &order, &formulas, measurement)?;
    for requirement in &mut requirements {
        settings.apply(requirement)?;
    }
    let renamed: Vec<ElementNames> = requirements.iter().filter_map(|r| r.elements.clone()).collect();
    let (parameters, aux) = lay_out(requirements);
    check_names(&parameters, &renamed)?;
    let pois = choose_pois(&parameters, measurement, index, &options.poi)?;
    let derivation = formulas.derive(&parameters)?;
    let sources = TableSources {
        parameters: &parameters,
        formulas: &derivation,
        interpolation: options.interpolation,
        clip: measurement.clip,
    };
    let flat = tables::flatten(workspace, &order, &sources)?;
    let channels: Vec<String> = order.channels.iter().map(|&c| workspace.channels[c].name.clone()).collect();
    let mut model = Model {
        channel_origins: channels.iter().map(|channel| BinPlace { channel: channel.clone(), bin: 0 }).collect(),
        channels,
        samples: flat.samples,
        coefficients: flat.coefficients,
        parameters,
        pois,
        measurement: measurement.name.clone(),
        interpolation: options.interpolation,
        responses: flat.responses,
        observed: Data { main, aux },
        indices: flat.indices.into(),
        reals: flat.reals.into(),
        shifts: flat.shifts.into(),
        layout: flat.layout,
        derived: derivation.derived,
        rules: flat.rules,
        nonlinearity: Nonlinearity::default(),
    };
    model.nonlinearity = Nonlinearity::of(&model);
    Ok(model)
}

/// Returns the measurement called `name`, or the first one, with its index.
///
/// # Errors
/// No measurement, none of that name, or two of one name.
pub fn choose_measurement<'a>(
    workspace: &'a Workspace,
    name: Option<&str>,
) -> Result<(usize, &'a Measurement), CompileError> {
    let names = workspace.measurements.iter().map(|m| m.name.as_str());
    structure::unique("measurement", names.clone(), |i| format!("/measurements/{i}"))?;
    let mut measurements = workspace.measurements.iter().enumerate();
    let Some(name) = name else {
        return measurements.next().ok_or(CompileError::NoMeasurement);
    };
    measurements.find(|(_, m)| m.name == name).ok_or_else(|| CompileError::UnknownMeasurement {
        name: name.to_owned(),
        known: names.map(str::to_owned).collect(),
    })
}

fn lay_out(requirements: Vec<Requirement>) -> (Parameters, Vec<f64>) {
    let mut parameters = Parameters::default();
    let mut aux = Vec::new();
    for requirement in requirements {
        let Requirement { name, kinds, is_scalar, elements, .. } = requirement;
        let (first, len) = (parameters.len(), requirement.init.len());
        let set = ParameterSet { name, kinds, first, len, is_scalar };
        match elements {
            Some(elements) => parameters.names.extend(elements.names),
            None => parameters.names.extend((0..len).map(|i| set.element_name(i))),
        }
        parameters.sets.push(set);
        parameters.init.extend(requirement.init);
        parameters.lower.extend(requirement.bounds.iter().map(|b| b[0]));
        parameters.upper.extend(requirement.bounds.iter().map(|b| b[1]));
        parameters.fixed.extend(requirement.fixed);
        for (constraint, datum) in requirement.constraints.into_iter().zip(requirement.aux) {
            parameters.constraint.push(constraint);
            parameters.aux_index.push(constraint.map(|_| aux.len()));
            aux.extend(constraint.map(|_| datum));
        }
    }
    (parameters, aux)
}

/// Refuses names that a measurement gives to elements and that are those of other parameters.
fn check_names(parameters: &Parameters, renamed: &[ElementNames]) -> Result<(), CompileError> {
    if renamed.is_empty() {
        return Ok(());
    }
    let of_sets: HashSet<&str> = parameters.sets.iter().map(|set| set.name.as_str()).collect();
    let mut sorted: Vec<&str> = parameters.names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let repeated: HashSet<&str> = sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    for ElementNames { names, pointer } in renamed {
        let is_taken = |name: &str| of_sets.contains(name) || repeated.contains(name);
        if let Some(i) = names.iter().position(|name| is_taken(name)) {
            return Err(CompileError::ElementName { name: names[i].clone(), pointer: format!("{pointer}/{i}") });
        }
    }
    Ok(())
}

fn choose_pois(
    parameters: &Parameters,
    measurement: &Measurement,
    index: usize,
    choice: &PoiChoice,
) -> Result<Vec<usize>, CompileError> {
    let named: Vec<&str> = match choice {
        PoiChoice::None => Vec::new(),
        PoiChoice::FromMeasurement => of_measurement(parameters, measurement),
        PoiChoice::Named(names) => names.iter().map(String::as_str).collect(),
    };
    let pointer = match choice {
        PoiChoice::Named(_) => None,
        _ => Some(format!("/measurements/{index}/config/poi")),
    };
    structure::unique("parameter of interest", named.iter().copied(), |i| format!("--poi number {}", i + 1))?;
    named.into_iter().map(|poi| find_poi(parameters, measurement, poi, pointer.as_deref())).collect()
}

/// Returns the parameters of interest of a measurement: the one that it names, and those that the
/// model has of others.
fn of_measurement<'m>(parameters: &Parameters, measurement: &'m Measurement) -> Vec<&'m str> {
    let is_there = |name: &&str| {
        measurement.poi.as_deref() == Some(*name)
            || parameters.index_of(name).is_some()
            || parameters.set(name).is_some()
    };
    measurement.pois().filter(is_there).collect()
}

/// The largest number of parameters that a hint names.
const NAMED: usize = 5;

/// Returns the names of the first few parameters without a constraint term.
fn unconstrained(parameters: &Parameters) -> Vec<String> {
    let free = (0..parameters.names.len()).filter(|&i| parameters.constraint[i].is_none());
    free.take(NAMED).map(|i| parameters.names[i].clone()).collect()
}

fn find_poi(
    parameters: &Parameters,
    measurement: &Measurement,
    poi: &str,
    pointer: Option<&str>,
) -> Result<usize, CompileError> {
    if let Some(index) = parameters.index_of(poi) {
        return Ok(index);
    }
    if let Some(set) = parameters.set(poi) {
        return Err(CompileError::VectorPoi { poi: poi.to_owned(), len: set.len });
    }
    Err(unknown_poi(parameters, &measurement.name, poi, pointer))
}

/// Returns the error of a parameter of interest called `poi`, which is none of `parameters`:
/// `pointer` is its place in the document, or `None` if the caller asks for it.
#[must_use]
pub fn unknown_poi(parameters: &Parameters, measurement: &str, poi: &str, pointer: Option<&str>) -> CompileError {
    CompileError::UnknownPoi {
        measurement: measurement.to_owned(),
        poi: poi.to_owned(),
        similar: parameters.similar(poi).map(str::to_owned),
        unconstrained: unconstrained(parameters),
        pointer: pointer.map(str::to_owned),
    }
}
