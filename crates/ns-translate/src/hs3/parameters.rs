//! The parameters of the model as the modifiers of all channels use them, with their constraint
//! terms as written.

use std::collections::{HashMap, HashSet};

use ns_core::spec::PerBinKind;

use super::Hs3Error;
use super::document::Read;
use super::names::NameTable;
use super::points::Points;
use super::terms::{Term, WrittenTerm};

/// What the modifiers say of the parameters, in the order in which they are met.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) scalars: Vec<Scalar>,
    pub(super) vectors: Vec<Vector>,
    /// Terms by parameter, each once.
    terms: HashMap<String, Vec<WrittenTerm>>,
    scalar_index: HashMap<String, usize>,
    vector_index: HashMap<Vec<String>, usize>,
    elements: HashSet<String>,
}

/// A parameter that is one number.
pub(super) struct Scalar {
    pub(super) parameter: String,
    /// The name of its first modifier.
    pub(super) modifier: String,
    /// Whether it is the α of a `normsys` or `histosys`, and not a factor.
    pub(super) is_systematic: bool,
}

/// Parameters of which each is the factor of one bin.
pub(super) struct Vector {
    pub(super) parameters: Vec<String>,
    /// The name of its first modifier.
    pub(super) modifier: String,
    pub(super) kind: VectorKind,
}

/// Where the constraint terms of a vector come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum VectorKind {
    /// A `shapefactor`: from distributions, if any.
    Free,
    /// A `shapesys`: from its relative uncertainties (B), 0 for a bin that is constant.
    Shape { kind: PerBinKind, relative: Vec<f64>, is_shared: bool },
    /// A `shapesys` whose parameters are all constant.
    Constant,
    /// A `staterror`: from the errors of the samples.
    Stat { kind: PerBinKind, threshold: f64, sums: StatSums },
}

/// Sums over the samples with a `staterror`, by bin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatSums {
    pub(super) nominal: Vec<f64>,
    /// Of squared uncertainties.
    pub(super) squares: Vec<f64>,
}

impl StatSums {
    fn add(&mut self, other: &Self) {
        self.nominal.iter_mut().zip(&other.nominal).for_each(|(sum, new)| *sum += new);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, new)| *sum += new);
    }

    /// Returns the relative uncertainty of a bin, 0 if it has none.
    pub(super) fn relative(&self, bin: usize) -> f64 {
        if self.nominal[bin] > 0.0 { self.squares[bin].sqrt() / self.nominal[bin] } else { 0.0 }
    }
}

impl Parameters {
    /// Returns the number of parameters, each element of a vector as one.
    pub(super) fn n_elements(&self) -> usize {
        self.scalars.len() + self.elements.len()
    }

    /// Adds a parameter that is one number.
    pub(super) fn add_scalar(&mut self, parameter: &str, modifier: &str, is_systematic: bool) {
        if let Some(&known) = self.scalar_index.get(parameter) {
            // A factor that is also a systematic is refused when the model is compiled.
            self.scalars[known].is_systematic |= is_systematic;
            return;
        }
        self.scalar_index.insert(parameter.to_owned(), self.scalars.len());
        let (parameter, modifier) = (parameter.to_owned(), modifier.to_owned());
        self.scalars.push(Scalar { parameter, modifier, is_systematic });
    }

    /// Adds a vector. Returns what is wrong with it, if anything is.
    pub(super) fn add_vector(&mut self, vector: Vector) -> Result<(), &'static str> {
        let Some(&known) = self.vector_index.get(&vector.parameters) else {
            self.vector_index.insert(vector.parameters.clone(), self.vectors.len());
            self.elements.extend(vector.parameters.iter().cloned());
            self.vectors.push(vector);
            return Ok(());
        };
        match (&mut self.vectors[known].kind, vector.kind) {
            (
                VectorKind::Shape { kind, relative, is_shared },
                VectorKind::Shape { kind: other_kind, relative: other, .. },
            ) if *kind == other_kind && is_close(relative, &other) => {
                *is_shared = true;
                Ok(())
            }
            (
                VectorKind::Stat { kind, threshold, sums },
                VectorKind::Stat { kind: other_kind, threshold: other, sums: more },
            ) if *kind == other_kind && threshold.total_cmp(&other).is_eq() => {
                sums.add(&more);
                Ok(())
            }
            (known, new) if *known == new => Ok(()),
            _ => Err("a modifier whose parameters have other constraint terms elsewhere:"),
        }
    }

    /// Adds a constraint term, unless it is known.
    pub(super) fn add_term(&mut self, term: WrittenTerm) {
        let known = self.terms.entry(term.parameter.clone()).or_default();
        if !known.contains(&term) {
            known.push(term);
        }
    }

    /// Returns whether the model has a parameter called `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.scalar_index.contains_key(name) || self.elements.contains(name)
    }

    /// Returns whether a constraint term of `name` is written or implied.
    pub(super) fn has_term(&self, name: &str) -> bool {
        self.terms.contains_key(name)
    }

    /// Returns the parameter that several scalars and vectors, or elements of vectors, share.
    pub(super) fn doubly_used(&self) -> Option<&Vector> {
        let mut seen: HashSet<&str> = self.scalar_index.keys().map(String::as_str).collect();
        self.vectors.iter().find(|vector| !vector.parameters.iter().all(|name| seen.insert(name)))
    }

    /// Returns the vector of these elements.
    pub(super) fn vector(&self, parameters: &[String]) -> Option<&Vector> {
        self.vector_index.get(parameters).map(|&index| &self.vectors[index])
    }

    /// Returns the constraint term of the parameter `name`, with the numbers of `points`.
    pub(super) fn term(&self, name: &str, points: &Points) -> Read<Option<Term>> {
        let mut found: Option<Term> = None;
        for written in self.terms.get(name).into_iter().flatten() {
            let term = written.resolve(points)?;
            if found.is_some_and(|found| found != term) {
                return Err(Hs3Error::TwoTerms { parameter: name.to_owned(), place: written.place() });
            }
            found = Some(term);
        }
        Ok(found)
    }

    /// Chooses the names of all parameters.
    pub(super) fn names(&self) -> NameTable {
        let scalars: Vec<(&str, &str)> =
            self.scalars.iter().map(|scalar| (scalar.parameter.as_str(), scalar.modifier.as_str())).collect();
        let vectors: Vec<(&[String], &str)> =
            self.vectors.iter().map(|vector| (&vector.parameters[..], vector.modifier.as_str())).collect();
        NameTable::choose(&scalars, &vectors, self.luminosity())
    }

    /// Returns the parameter that is the luminosity: a factor of that name with a Gaussian term.
    pub(super) fn luminosity(&self) -> Option<&str> {
        let is_meant = |scalar: &&Scalar| {
            matches!(scalar.parameter.as_str(), "Lumi" | "lumi")
                && !scalar.is_systematic
                && self.terms.get(&scalar.parameter).is_some_and(|terms| terms.iter().all(WrittenTerm::is_gaussian))
        };
        self.scalars.iter().find(is_meant).map(|scalar| scalar.parameter.as_str())
    }
}

/// Returns whether relative uncertainties are the same but for the rounding of several samples.
fn is_close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs())
}
