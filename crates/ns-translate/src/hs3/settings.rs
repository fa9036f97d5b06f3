//! The settings of a measurement: starting values, ranges, constant parameters and constraint
//! terms of an analysis.
//!
//! A setting that pyhf would have without it is left out, unless the document says that it was
//! there (see `origin`).

use ns_core::spec::{ConstraintTerm, ParameterConfig, PerBinConstraint, PerBinKind};

use super::Hs3Error;
use super::document::Read;
use super::names::NameTable;
use super::parameters::{Parameters, Scalar, Vector, VectorKind};
use super::points::{Points, Ranges};
use super::terms::Term;
use crate::place::DocumentPlace;

/// pyhf's ranges.
const FACTOR: [f64; 2] = [0.0, 10.0];
const ALPHA: [f64; 2] = [-5.0, 5.0];
const GAMMA: [f64; 2] = [1e-10, 10.0];

/// What the settings of an analysis are made of.
pub(super) struct SettingsReader<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) names: &'a NameTable,
    /// The parameter that is the luminosity.
    pub(super) luminosity: Option<&'a str>,
    pub(super) points: &'a Points,
    pub(super) ranges: &'a Ranges,
}

/// The settings of a parameter, all of them, and those that pyhf would have anyway.
pub(super) struct FullSetting {
    pub(super) config: ParameterConfig,
    /// Keys with the values that pyhf would have without them.
    pub(super) defaults: Vec<&'static str>,
}

/// Which elements of a vector are constant.
#[derive(Clone, Copy)]
enum Fixing {
    None,
    All,
    /// Those with a smaller relative uncertainty.
    Below(f64),
}

impl SettingsReader<'_> {
    /// Returns the settings of all parameters.
    pub(super) fn all(&self) -> impl Iterator<Item = Read<FullSetting>> {
        let scalars = self.parameters.scalars.iter().map(|scalar| self.scalar(scalar));
        let vectors = self.parameters.vectors.iter().map(|vector| self.vector(vector));
        scalars.chain(vectors)
    }

    fn scalar(&self, scalar: &Scalar) -> Read<FullSetting> {
        let Scalar { parameter, is_systematic, .. } = scalar;
        let (default_init, default_range) = if *is_systematic { (0.0, ALPHA) } else { (1.0, FACTOR) };
        let start = self.points.start(parameter);
        let init = start.map_or(default_init, |start| start.value);
        let range = self.ranges.of(parameter, default_range);
        let fixed = start.is_some_and(|start| start.is_const);
        let term = self.parameters.term(parameter, self.points)?;
        let name = self.names.scalar(parameter).to_owned();
        let config = ParameterConfig {
            name,
            inits: Some(vec![init]),
            bounds: Some(vec![range]),
            fixed: Some(fixed),
            ..ParameterConfig::default()
        };
        let mut full = FullSetting { config, defaults: Vec::new() };
        full.note("fixed", !fixed);
        if self.luminosity == Some(parameter) {
            full.set_luminosity(term);
            return Ok(full);
        }
        full.set_term(term, *is_systematic);
        full.note("inits", init.total_cmp(&default_init).is_eq());
        full.note("bounds", range == default_range);
        Ok(full)
    }

    fn vector(&self, vector: &Vector) -> Read<FullSetting> {
        let default_range = if vector.kind == VectorKind::Free { FACTOR } else { GAMMA };
        let starts: Vec<_> = vector.parameters.iter().map(|name| self.points.start(name)).collect();
        let inits: Vec<f64> = starts.iter().map(|start| start.map_or(1.0, |start| start.value)).collect();
        let bounds: Vec<_> = vector.parameters.iter().map(|name| self.ranges.of(name, default_range)).collect();
        let fixing = self.fixing(vector)?;
        let fixed = vector.kind == VectorKind::Constant || matches!(fixing, Fixing::All);
        let all_default =
            (inits.iter().all(|init| init.total_cmp(&1.0).is_eq()), bounds.iter().all(|range| *range == default_range));
        let config = ParameterConfig {
            name: self.names.vector(&vector.parameters).to_owned(),
            inits: Some(inits),
            bounds: Some(bounds),
            fixed: Some(fixed),
            ..ParameterConfig::default()
        };
        let mut full = FullSetting { config, defaults: Vec::new() };
        full.note("inits", all_default.0);
        full.note("bounds", all_default.1);
        full.note("fixed", !fixed);
        self.constrain(vector, fixing, &mut full.config)?;
        Ok(full)
    }

    /// Returns which elements of a vector the parameter point makes constant, beside those that the
    /// model fixes by itself.
    fn fixing(&self, vector: &Vector) -> Read<Fixing> {
        let relative = |bin: usize| match &vector.kind {
            VectorKind::Shape { relative, .. } => relative[bin],
            VectorKind::Stat { threshold, sums, .. } => {
                Some(sums.relative(bin)).filter(|r| r >= threshold).unwrap_or(0.0)
            }
            VectorKind::Free | VectorKind::Constant => f64::INFINITY,
        };
        let is_const = |name: &String| self.points.start(name).is_some_and(|start| start.is_const);
        let (mut fixed, mut free) = (Vec::new(), Vec::new());
        for (bin, name) in vector.parameters.iter().enumerate().filter(|(bin, _)| relative(*bin) > 0.0) {
            if is_const(name) { fixed.push(relative(bin)) } else { free.push(relative(bin)) }
        }
        if fixed.is_empty() {
            return Ok(Fixing::None);
        }
        if free.is_empty() {
            return Ok(Fixing::All);
        }
        // ROOT makes factors below its threshold constant, and does not write the threshold.
        let (largest, smallest) =
            (fixed.iter().copied().fold(0.0, f64::max), free.iter().copied().fold(f64::INFINITY, f64::min));
        if matches!(vector.kind, VectorKind::Stat { .. }) && largest < smallest {
            return Ok(Fixing::Below(smallest));
        }
        let place = DocumentPlace { pointer: self.points.pointer.clone(), position: None };
        let (fixed, total) = (fixed.len(), fixed.len() + free.len());
        Err(Hs3Error::PartlyFixed { name: vector.modifier.clone(), fixed, total, place })
    }

    /// Sets the constraint terms of a vector.
    fn constrain(&self, vector: &Vector, fixing: Fixing, config: &mut ParameterConfig) -> Read<()> {
        let per_bin = |kind, threshold: f64| {
            let relative_threshold = (threshold > 0.0).then_some(threshold);
            Some(PerBinConstraint { constraint: Some(kind), relative_threshold })
        };
        match &vector.kind {
            VectorKind::Constant => {}
            VectorKind::Stat { kind, threshold, .. } => {
                let threshold = if let Fixing::Below(smallest) = fixing { smallest } else { *threshold };
                let is_default = *kind == PerBinKind::Gaussian && threshold <= 0.0;
                config.per_bin = if is_default { None } else { per_bin(*kind, threshold) };
            }
            VectorKind::Shape { kind, relative, is_shared: true } => shared_shape(*kind, relative, config),
            VectorKind::Shape { kind: PerBinKind::Gaussian, .. } => {
                config.per_bin = per_bin(PerBinKind::Gaussian, 0.0);
            }
            VectorKind::Shape { .. } => {}
            VectorKind::Free => {
                let terms = vector.parameters.iter().map(|name| self.parameters.term(name, self.points));
                let terms = terms.collect::<Read<Vec<_>>>()?;
                if terms.iter().any(Option::is_some) {
                    let term = |term: &Option<Term>| term.map_or(ConstraintTerm::Flat, |term| term.term);
                    config.constraints = Some(terms.iter().map(term).collect());
                    config.auxdata = Some(terms.iter().map(|term| term.map_or(1.0, |term| term.datum)).collect());
                }
            }
        }
        Ok(())
    }
}

impl FullSetting {
    /// Sets the term of a luminosity, of which pyhf has no defaults.
    fn set_luminosity(&mut self, term: Option<Term>) {
        if let Some(Term { term: ConstraintTerm::Gaussian { sigma }, datum }) = term {
            (self.config.sigmas, self.config.auxdata) = (Some(vec![sigma]), Some(vec![datum]));
        }
    }

    /// Sets the term of another parameter.
    fn set_term(&mut self, term: Option<Term>, is_systematic: bool) {
        match term {
            Some(Term { term: ConstraintTerm::Gaussian { sigma }, datum })
                if is_systematic && sigma.total_cmp(&1.0).is_eq() =>
            {
                self.config.auxdata = Some(vec![datum]);
                self.note("auxdata", datum.total_cmp(&0.0).is_eq());
            }
            Some(Term { term, datum }) => {
                (self.config.constraints, self.config.auxdata) = (Some(vec![term]), Some(vec![datum]));
            }
            None => {}
        }
    }

    fn note(&mut self, key: &'static str, is_default: bool) {
        if is_default {
            self.defaults.push(key);
        }
    }
}

/// Sets the terms of a `shapesys` that several samples share, which is a shapefactor here.
fn shared_shape(kind: PerBinKind, relative: &[f64], config: &mut ParameterConfig) {
    let term = |relative: &f64| match kind {
        _ if *relative <= 0.0 => (ConstraintTerm::Flat, 1.0),
        PerBinKind::Gaussian => (ConstraintTerm::Gaussian { sigma: *relative }, 1.0),
        PerBinKind::Poisson => {
            let tau = 1.0 / (relative * relative);
            (ConstraintTerm::Poisson { tau }, tau)
        }
    };
    let (terms, data) = relative.iter().map(term).unzip();
    (config.constraints, config.auxdata) = (Some(terms), Some(data));
}
