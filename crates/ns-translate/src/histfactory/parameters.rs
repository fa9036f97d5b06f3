//! What the channels of a combination say of their parameters, and which of them a name of ROOT
//! means.

use ns_core::spec::PerBinKind;

use super::channel::StatErrors;

/// What is known of the parameters of all channels, in the order in which they were met.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) norms: Vec<Norm>,
    pub(super) systematics: Vec<Systematic>,
    pub(super) vectors: Vec<VectorParameter>,
    /// Whether a sample follows the luminosity.
    pub(super) has_lumi: bool,
    /// A sample that is not normalised by theory: the nominal luminosity scales it.
    pub(super) scaled_sample: Option<String>,
}

/// A normalisation factor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Norm {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) limits: [f64; 2],
}

/// A systematic uncertainty, with one parameter for all its effects.
pub(super) struct Systematic {
    pub(super) name: String,
    pub(super) has_overall: bool,
    pub(super) has_histo: bool,
}

/// A parameter with one element for each bin.
pub(super) struct VectorParameter {
    /// Its name here.
    pub(super) name: String,
    /// What the names of its elements in ROOT begin with, before `_bin_`.
    pub(super) root_name: String,
    pub(super) n_bins: usize,
    pub(super) kind: VectorKind,
}

/// The kinds of parameters with one element for each bin.
pub(super) enum VectorKind {
    /// Statistical uncertainties of templates.
    Stat(StatErrors),
    /// `ShapeSys`.
    Shape(ShapeUncertainty),
    /// `ShapeFactor`.
    Free { initial: Option<Vec<f64>>, is_const: bool },
}

/// What a `ShapeSys` says of its parameter.
pub(super) struct ShapeUncertainty {
    pub(super) kind: PerBinKind,
    /// Relative uncertainties (B).
    pub(super) relative: Vec<f64>,
    /// Whether more than one sample has it.
    pub(super) is_shared: bool,
}

/// The parameter that a name of ROOT means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The luminosity.
    Lumi,
    /// A normalisation factor.
    Norm(String),
    /// A systematic uncertainty.
    Systematic(String),
    /// The element of a bin.
    Element { vector: usize, bin: usize },
}

impl Parameters {
    /// Adds a normalisation factor. Returns whether it differs from one of that name, which stays.
    pub(super) fn add_norm(&mut self, norm: Norm) -> bool {
        match self.norms.iter().find(|known| known.name == norm.name) {
            Some(known) => *known != norm,
            None => {
                self.norms.push(norm);
                false
            }
        }
    }

    /// Returns the systematic `name`, added if it is new.
    pub(super) fn systematic(&mut self, name: &str) -> &mut Systematic {
        let index = self.systematics.iter().position(|known| known.name == name).unwrap_or_else(|| {
            let systematic = Systematic { name: name.to_owned(), has_overall: false, has_histo: false };
            self.systematics.push(systematic);
            self.systematics.len() - 1
        });
        &mut self.systematics[index]
    }

    /// Adds a parameter with one element for each bin. Returns what differs from one of that name.
    pub(super) fn add_vector(&mut self, vector: VectorParameter) -> Option<&'static str> {
        let Some(known) = self.vectors.iter_mut().find(|known| known.name == vector.name) else {
            self.vectors.push(vector);
            return None;
        };
        if known.n_bins != vector.n_bins {
            return Some("numbers of bins");
        }
        match (&mut known.kind, vector.kind) {
            (VectorKind::Shape(known), VectorKind::Shape(new)) => {
                known.is_shared = true;
                (known.kind != new.kind || known.relative != new.relative).then_some("uncertainties")
            }
            (VectorKind::Free { initial, is_const }, VectorKind::Free { initial: other, is_const: also }) => {
                (*initial != other || *is_const != also).then_some("initial values")
            }
            // They are called after their channel; two channels of one name are refused later.
            (VectorKind::Stat(_), VectorKind::Stat(_)) => None,
            _ => Some("kinds"),
        }
    }

    /// Returns whether several samples have the `ShapeSys` of this name.
    pub(super) fn is_shared(&self, name: &str) -> bool {
        let shared = |vector: &VectorParameter| match &vector.kind {
            VectorKind::Shape(shape) => shape.is_shared && vector.name == name,
            _ => false,
        };
        self.vectors.iter().any(shared)
    }

    /// Returns the parameter that ROOT calls `written`.
    pub(super) fn target(&self, written: &str) -> Option<Target> {
        if written == "Lumi" {
            return Some(Target::Lumi);
        }
        if self.norms.iter().any(|norm| norm.name == written) {
            return Some(Target::Norm(written.to_owned()));
        }
        // `beta_` where a constraint term replaces the normal distribution.
        let systematic = ["alpha_", "beta_"].iter().find_map(|prefix| written.strip_prefix(prefix));
        if let Some(name) = systematic.filter(|name| self.systematics.iter().any(|known| known.name == **name)) {
            return Some(Target::Systematic(name.to_owned()));
        }
        let (root_name, bin) = written.rsplit_once("_bin_")?;
        let bin: usize = bin.parse().ok()?;
        let is_meant = |vector: &VectorParameter| vector.root_name == root_name && bin < vector.n_bins;
        self.vectors.iter().position(is_meant).map(|vector| Target::Element { vector, bin })
    }
}
