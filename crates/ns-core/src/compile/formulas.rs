//! Parses the formulas of a workspace, and turns their names into indices.
//!
//! A name in a formula is that of another formula, of a parameter that some modifier uses, or of
//! one that the measurement declares: by a setting, or as its parameter of interest. Anything else
//! is an error, so that a misspelt name is not taken for a new parameter.

use super::error::{CompileError, SamplePlace};
use super::structure::{SortedOrder, place};
use crate::derived::DerivedQuantities;
use crate::formula::{Argument, Formula, Tape, TapeError};
use crate::parameters::Parameters;
use crate::spec::{Expression, Measurement, Modifier, ModifierData, ModifierKind, Workspace};
use std::collections::{BTreeMap, HashMap};

/// Channel, sample and modifier in the document.
pub(super) type ModifierPlace = [usize; 3];

/// The formulas of a workspace, parsed.
pub(super) struct FormulaTable<'a> {
    workspace: &'a Workspace,
    /// The formula of each formula modifier, or the coefficients of each morphing.
    formulas: BTreeMap<ModifierPlace, Vec<Formula>>,
    /// Where each formula modifier is first, by name.
    by_name: BTreeMap<&'a str, ModifierPlace>,
    /// The kind of every other modifier, by name.
    others: HashMap<&'a str, ModifierKind>,
}

/// Derived quantities, and where modifiers use them.
#[derive(Default)]
pub(super) struct Derivation {
    pub(super) derived: DerivedQuantities,
    /// Indices of extended points, one for each formula of a modifier.
    by_modifier: HashMap<ModifierPlace, Vec<usize>>,
}

impl Derivation {
    /// Returns the index of each formula of a modifier in extended points; none if it has none.
    pub(super) fn of_modifier(&self, at: ModifierPlace) -> &[usize] {
        self.by_modifier.get(&at).map_or(&[], Vec::as_slice)
    }
}

impl<'a> FormulaTable<'a> {
    /// Parses every formula of `workspace`.
    pub(super) fn parse(workspace: &'a Workspace, order: &SortedOrder) -> Result<Self, CompileError> {
        let mut table = Self { workspace, formulas: BTreeMap::new(), by_name: BTreeMap::new(), others: HashMap::new() };
        for (&c, samples) in order.channels.iter().zip(&order.samples) {
            for &s in samples {
                for (m, modifier) in workspace.channels[c].samples[s].modifiers.iter().enumerate() {
                    table.add([c, s, m], modifier)?;
                }
            }
        }
        for (name, &at) in &table.by_name {
            if let Some(&other) = table.others.get(name) {
                let (place, name) = (table.place(at, ""), (*name).to_owned());
                return Err(CompileError::IncompatibleKinds { place, name, kind: ModifierKind::Formula, other });
            }
            // Formulas that depend on themselves have no parameters either, which says less.
            table.tape(at, 0, |_| Argument::Parameter(0))?;
        }
        Ok(table)
    }

    /// Checks that measurement `index` has no settings for a parameter with the name of a formula.
    pub(super) fn check_settings(&self, measurement: &Measurement, index: usize) -> Result<(), CompileError> {
        for (i, config) in measurement.parameters.iter().enumerate() {
            if let Some(&at) = self.by_name.get(config.name.as_str()) {
                let pointer = format!("/measurements/{index}/config/parameters/{i}");
                let (name, formula) = (config.name.clone(), self.place(at, "").pointer);
                return Err(CompileError::FormulaSetting { name, formula, pointer });
            }
        }
        Ok(())
    }

    fn add(&mut self, at: ModifierPlace, modifier: &'a Modifier) -> Result<(), CompileError> {
        if !modifier.kind().has_formula() {
            self.others.insert(&modifier.name, modifier.kind());
            return Ok(());
        }
        let parse = |(i, expression): (usize, &Expression)| {
            let arguments = expression.parameters.as_deref().unwrap_or_default();
            Formula::parse(&expression.text, arguments)
                .map_err(|error| CompileError::Formula { place: self.place(at, &expression_at(modifier, i)), error })
        };
        let formulas = modifier.expressions().enumerate().map(parse).collect::<Result<_, _>>()?;
        self.formulas.insert(at, formulas);
        if modifier.kind() == ModifierKind::Formula {
            let first = *self.by_name.entry(&modifier.name).or_insert(at);
            if self.modifier(first).data != modifier.data {
                let (modifier, first) = (modifier.name.clone(), self.place(first, "").pointer);
                return Err(CompileError::FormulaDiffers { place: self.place(at, "/data"), modifier, first });
            }
        }
        Ok(())
    }

    /// Returns the tape of formula `i` of a modifier, with `resolve` to say what names stand for
    /// that are not those of formulas.
    fn tape(
        &self,
        at: ModifierPlace,
        i: usize,
        resolve: impl Fn(&str) -> Argument<'static>,
    ) -> Result<Tape, CompileError> {
        let resolve = |name: &str| match self.by_name.get(name) {
            Some(other) => Argument::Formula(&self.formulas[other][0]),
            None => resolve(name),
        };
        Tape::new(&self.formulas[&at][i], &resolve).map_err(|problem| {
            let place = self.place(at, &expression_at(self.modifier(at), i));
            let modifier = self.modifier(at).name.clone();
            match problem {
                TapeError::Cycle => CompileError::FormulaCycle { place, modifier },
                TapeError::TooLong | TapeError::TooDeep => CompileError::FormulaTooLong { place, modifier },
            }
        })
    }

    fn modifier(&self, [c, s, m]: ModifierPlace) -> &'a Modifier {
        &self.workspace.channels[c].samples[s].modifiers[m]
    }

    fn place(&self, [c, s, m]: ModifierPlace, rest: &str) -> SamplePlace {
        place(self.workspace, c, s, &format!("/modifiers/{m}{rest}"))
    }

    /// Returns the names in the formulas of a modifier that neither formulas nor other modifiers
    /// have: parameters that have to be declared.
    ///
    /// # Errors
    /// A name that is not among `declared` either.
    pub(super) fn own_parameters(&self, at: ModifierPlace, declared: &[&str]) -> Result<Vec<&str>, CompileError> {
        let mut found = Vec::new();
        for (i, formula) in self.formulas.get(&at).into_iter().flatten().enumerate() {
            for (k, name) in formula.names().iter().enumerate() {
                let is_known = self.by_name.contains_key(&**name) || self.others.contains_key(set_name(name));
                if is_known || self.others.contains_key(&**name) {
                    continue;
                }
                if declared.contains(&&**name) {
                    found.push(name.as_str());
                } else if constant(name).is_none() {
                    return Err(self.unknown(at, i, k, declared));
                }
            }
        }
        Ok(found)
    }

    /// Returns the error for name `k` of formula `i` of a modifier.
    fn unknown(&self, at: ModifierPlace, i: usize, k: usize, declared: &[&str]) -> CompileError {
        let formula = &self.formulas[&at][i];
        let name = formula.names()[k].clone();
        let known = self.by_name.keys().chain(self.others.keys()).chain(declared).copied();
        CompileError::UnknownFormulaName {
            place: self.place(at, &expression_at(self.modifier(at), i)),
            similar: crate::similar_name(&name, known).map(str::to_owned),
            name,
            column: formula.column_of(k),
        }
    }

    /// Returns the derived quantities.
    ///
    /// A formula that is nothing but a scale parameter is no derived quantity but that parameter,
    /// unless it scales the sample already.
    pub(super) fn derive(&self, parameters: &Parameters) -> Result<Derivation, CompileError> {
        let mut deriving =
            Deriving { table: self, parameters, known: HashMap::new(), derivation: Derivation::default() };
        for (&at, formulas) in &self.formulas {
            let mut indices = Vec::with_capacity(formulas.len());
            for i in 0..formulas.len() {
                indices.push(deriving.index(at, i)?);
            }
            deriving.derivation.by_modifier.insert(at, indices);
        }
        Ok(deriving.derivation)
    }
}

/// The way from formulas to derived quantities.
struct Deriving<'t> {
    table: &'t FormulaTable<'t>,
    parameters: &'t Parameters,
    /// Derived quantities by the name of a formula modifier, or by a morphing's coefficient.
    known: HashMap<(&'t str, Option<&'t Expression>), usize>,
    derivation: Derivation,
}

impl<'t> Deriving<'t> {
    /// Returns the index in extended points of formula `i` of a modifier.
    fn index(&mut self, at: ModifierPlace, i: usize) -> Result<usize, CompileError> {
        let modifier = self.table.modifier(at);
        let key = match modifier.expressions().nth(i) {
            Some(expression) if modifier.kind() == ModifierKind::Morphing => ("", Some(expression)),
            _ => (modifier.name.as_str(), None),
        };
        let tape = self.tape(at, i)?;
        if let Some(param) = tape.as_parameter().filter(|param| self.may_stand_for(*param, at)) {
            return Ok(param as usize);
        }
        if let Some(index) = self.known.get(&key) {
            return Ok(*index);
        }
        let derived = &mut self.derivation.derived;
        let index = self.parameters.len() + derived.len();
        derived.names.push(key.1.map_or_else(|| modifier.name.clone(), |expression| expression.text.clone()));
        derived.tapes.push(tape);
        self.known.insert(key, index);
        Ok(index)
    }

    fn tape(&self, at: ModifierPlace, i: usize) -> Result<Tape, CompileError> {
        let (table, parameters) = (self.table, self.parameters);
        let formula = &table.formulas[&at][i];
        let wrong = formula.names().iter().find_map(|name| {
            let set = parameters.set(name).filter(|set| set.len != 1)?;
            let place = table.place(at, &expression_at(table.modifier(at), i));
            Some(CompileError::VectorInFormula { place, name: name.clone(), len: set.len })
        });
        if let Some(error) = wrong {
            return Err(error);
        }
        let is_known = |name: &String| {
            table.by_name.contains_key(&**name) || parameters.index_of(name).is_some() || constant(name).is_some()
        };
        // An element that a vector does not have.
        if let Some(k) = formula.names().iter().position(|name| !is_known(name)) {
            return Err(table.unknown(at, i, k, &[]));
        }
        table.tape(at, i, |name| match parameters.index_of(name) {
            Some(param) => Argument::Parameter(param as u32),
            None => Argument::Constant(constant(name).unwrap_or(f64::NAN)),
        })
    }

    /// Returns whether parameter `param` may be the factor or coefficient itself: a scale parameter
    /// that does not scale the sample in another way too.
    fn may_stand_for(&self, param: u32, at: ModifierPlace) -> bool {
        let scales = [ModifierKind::NormFactor, ModifierKind::Formula, ModifierKind::Morphing];
        let set = self.parameters.sets.iter().find(|set| set.range().contains(&(param as usize)));
        let Some(set) = set.filter(|set| scales.contains(&set.kinds[0])) else { return false };
        let [c, s, m] = at;
        let others = self.table.workspace.channels[c].samples[s].modifiers.iter().enumerate();
        let scales_too = |(k, other): (usize, &Modifier)| match &other.data {
            ModifierData::NormFactor => other.name == set.name,
            ModifierData::Formula(_) => k < m && self.derivation.of_modifier([c, s, k]) == [param as usize],
            _ => false,
        };
        self.table.modifier(at).kind() == ModifierKind::Morphing || !others.into_iter().any(scales_too)
    }
}

/// Returns the pointer, below that of its modifier, of expression `i`.
fn expression_at(modifier: &Modifier, i: usize) -> String {
    match modifier.kind() {
        ModifierKind::Morphing => format!("/data/terms/{i}/expression"),
        _ => "/data/expression".to_owned(),
    }
}

/// Returns the constant called `name`, unless a parameter has that name.
fn constant(name: &str) -> Option<f64> {
    (name == "pi").then_some(std::f64::consts::PI)
}

/// Returns the name of the set of which `name` is an element, or `name` itself.
fn set_name(name: &str) -> &str {
    match name.split_once('[') {
        Some((set, index)) if index.ends_with(']') => set,
        _ => name,
    }
}
