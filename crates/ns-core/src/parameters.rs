//! The parameters of a model: names, order, starting values, ranges, and which constraint term each
//! one has.
//!
//! Order and naming are pyhf's: sets by modifier kind (histosys, lumi, normfactor, normsys,
//! shapefactor, shapesys, staterror, and then mcstat, which pyhf lacks), inside a kind by first
//! appearance; a scalar set has the set's name, element i of a vector set is `name[i]`, of an
//! mcstat `name_bini` as in Combine.

use crate::constraint::Constraint;
use crate::spec::ModifierKind;

/// A named parameter, or a named vector with one element per bin.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSet {
    /// The name that modifiers and measurements use.
    pub name: String,
    /// The kinds of modifier that share it, in parameter order.
    pub kinds: Vec<ModifierKind>,
    /// Index of its first element.
    pub first: usize,
    /// Number of elements.
    pub len: usize,
    /// Whether it is one number by nature (a vector of one bin is not).
    pub is_scalar: bool,
}

impl ParameterSet {
    /// Returns the name of element `i`.
    #[must_use]
    pub fn element_name(&self, i: usize) -> String {
        match self.kinds[..] {
            _ if self.is_scalar => self.name.clone(),
            [ModifierKind::McStat] => format!("{}_bin{i}", self.name),
            _ => format!("{}[{i}]", self.name),
        }
    }

    /// Returns the indices of its elements.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.len
    }
}

/// Every parameter of a model, one entry per element, in pyhf's order. P is their number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// The named sets, in order.
    pub sets: Vec<ParameterSet>,
    /// Names (P).
    pub names: Vec<String>,
    /// Starting values (P).
    pub init: Vec<f64>,
    /// Lower ends of the allowed ranges (P).
    pub lower: Vec<f64>,
    /// Upper ends of the allowed ranges (P).
    pub upper: Vec<f64>,
    /// Whether fits keep it at its starting value (P).
    pub fixed: Vec<bool>,
    /// The constraint term, if it has one (P).
    pub constraint: Vec<Option<Constraint>>,
    /// Position of its auxiliary datum among the auxiliary data, if it has one (P).
    pub aux_index: Vec<Option<usize>>,
}

impl Parameters {
    /// Returns P, the number of parameters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the index of the element called `name`; the bare name of a vector set of one element
    /// counts as its element.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let set = self.sets.iter().find(|set| set.name == name);
        match set {
            Some(set) if set.len == 1 => Some(set.first),
            Some(_) => None,
            None => self.names.iter().position(|n| n == name),
        }
    }

    /// Returns the set called `name`.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<&ParameterSet> {
        self.sets.iter().find(|set| set.name == name)
    }

    /// Returns the name of a parameter or set that is most similar to `name`, or `None` if none is
    /// similar.
    #[must_use]
    pub fn similar(&self, name: &str) -> Option<&str> {
        let candidates = self.sets.iter().map(|s| s.name.as_str()).chain(self.names.iter().map(String::as_str));
        crate::similar_name(name, candidates)
    }
}
