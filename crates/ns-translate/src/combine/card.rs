//! A data card as written: channels, processes, uncertainties and what else its lines say.

use std::collections::HashMap;

use ns_core::formula::Formula;

use super::words::CardPlace;

/// A card, or several joined ones.
#[derive(Debug, Default)]
pub(super) struct Card {
    pub(super) channels: Vec<CardChannel>,
    /// The names of the processes, by first appearance.
    pub(super) processes: Vec<CardProcess>,
    /// The contributions of processes to channels, in the order of the card.
    pub(super) columns: Vec<Column>,
    pub(super) shapes: Vec<ShapesLine>,
    pub(super) systematics: Vec<Systematic>,
    pub(super) rates: Vec<RateParameter>,
    pub(super) externals: Vec<ExternalParameter>,
    /// Names of `flatParam`.
    pub(super) flats: Vec<String>,
    pub(super) groups: Vec<Group>,
    /// Parameters that `nuisance edit freeze` fixes.
    pub(super) frozen: Vec<String>,
    /// What the card says in vain.
    pub(super) warnings: Vec<String>,
    /// The name that the templates of a renamed uncertainty have, by its new name and the column.
    pub(super) template_names: HashMap<(String, usize), String>,
}

/// A channel.
#[derive(Debug, Clone)]
pub(super) struct CardChannel {
    pub(super) name: String,
    /// Its name in its card, which `$CHANNEL` stands for.
    pub(super) own_name: String,
    /// The observed events; -1 for those of the template.
    pub(super) observed: f64,
    pub(super) mc_stats: Option<McStats>,
    /// Where it is declared.
    pub(super) place: CardPlace,
}

/// What `autoMCStats` says for a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct McStats {
    /// The number of unweighted events from which on a bin has one parameter; negative for none.
    pub(super) threshold: f64,
    /// Whether signals count for the threshold.
    pub(super) include_signal: bool,
    /// Whether templates keep their normalisation when they are morphed (mode 2).
    pub(super) keeps_norm: bool,
}

/// A process.
#[derive(Debug, Clone)]
pub(super) struct CardProcess {
    pub(super) name: String,
    pub(super) is_signal: bool,
}

/// What a process contributes to a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) channel: usize,
    pub(super) process: usize,
    /// Expected events; -1 for those of the template.
    pub(super) rate: f64,
    /// The word of its rate.
    pub(super) place: CardPlace,
}

/// The names of the channel and the process of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnName<'c> {
    pub(super) channel: &'c str,
    pub(super) process: &'c str,
}

/// A line `shapes`.
#[derive(Debug, Clone)]
pub(super) struct ShapesLine {
    /// A name, or `*`.
    pub(super) process: String,
    /// A name, or `*`.
    pub(super) channel: String,
    /// The file, the template in it, and the template of an uncertainty.
    pub(super) names: Vec<String>,
    /// Which card it is of, and the place of its file.
    pub(super) place: CardPlace,
}

/// A line of an uncertainty, with one effect for each column.
#[derive(Debug, Clone)]
pub(super) struct Systematic {
    pub(super) name: String,
    /// The kind as written.
    pub(super) kind: SystematicKind,
    /// One for each column; none for a `param`.
    pub(super) effects: Vec<Effect>,
    pub(super) place: CardPlace,
}

/// Kinds of uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SystematicKind {
    /// `lnN`
    LogNormal,
    /// `lnU`
    LogUniform,
    /// `gmN`, with the events in the sideband.
    GammaCount(f64),
    /// `gmM`
    GammaMultiplier,
    /// `trG`
    TruncatedGaussian,
    /// `unif`, with its range.
    Uniform([f64; 2]),
    /// `shape` and its variants.
    Shape(ShapeKind),
    /// `param`
    Parameter(ParameterTerm),
}

/// Variants of `shape`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeKind {
    /// Whether logarithms are interpolated: `shapeN`.
    pub(super) is_logarithmic: bool,
    /// Whether it is an `lnN` where there is no template: `shape?`.
    pub(super) is_optional: bool,
    /// Whether the parameter is free in -1 … 1: `shapeU`.
    pub(super) is_flat: bool,
}

/// The constraint term of a `param`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ParameterTerm {
    pub(super) mean: f64,
    /// Below and above the mean; equal unless two were given.
    pub(super) sigmas: [f64; 2],
    pub(super) range: [f64; 2],
}

/// What an uncertainty does to a process in a channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Effect {
    /// Nothing, or a factor of 1.
    None,
    /// One number.
    Value(f64),
    /// `lo/hi`
    LowHigh([f64; 2]),
}

/// A factor of a process in a channel.
#[derive(Debug, Clone)]
pub(super) struct RateParameter {
    pub(super) name: String,
    /// Of which column.
    pub(super) column: usize,
    pub(super) value: RateValue,
    pub(super) place: CardPlace,
}

/// What a rate parameter is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RateValue {
    /// A free parameter with its range, if one was given.
    Free { start: f64, range: Option<[f64; 2]> },
    /// A formula, and what `@0`, `@1`, … stand for.
    Formula { text: String, arguments: Vec<String> },
}

/// An `extArg`.
#[derive(Debug, Clone)]
pub(super) struct ExternalParameter {
    pub(super) name: String,
    pub(super) start: f64,
    pub(super) range: Option<[f64; 2]>,
    pub(super) is_constant: bool,
}

/// A named group of parameters.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) members: Vec<String>,
    pub(super) place: CardPlace,
}

impl SystematicKind {
    /// Returns whether a line with this kind has effects on processes.
    pub(super) fn has_effects(&self) -> bool {
        !matches!(self, Self::Parameter(_))
    }

    /// Returns its word in cards.
    pub(super) fn word(&self) -> String {
        match self {
            Self::LogNormal => "lnN".to_owned(),
            Self::LogUniform => "lnU".to_owned(),
            Self::GammaCount(_) => "gmN".to_owned(),
            Self::GammaMultiplier => "gmM".to_owned(),
            Self::TruncatedGaussian => "trG".to_owned(),
            Self::Uniform(_) => "unif".to_owned(),
            Self::Shape(shape) => shape.word(),
            Self::Parameter(_) => "param".to_owned(),
        }
    }
}

impl ShapeKind {
    /// Returns the variant that is written `word`.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        let (word, is_optional) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
        let kind = |is_logarithmic, is_flat| Self { is_logarithmic, is_optional, is_flat };
        match word {
            // The number chose a class of Combine that does the same.
            "shape" | "shape2" => Some(kind(false, false)),
            "shapeN" | "shapeN2" => Some(kind(true, false)),
            "shapeU" if !is_optional => Some(kind(false, true)),
            _ => None,
        }
    }

    fn word(self) -> String {
        let letter = if self.is_logarithmic {
            "N"
        } else if self.is_flat {
            "U"
        } else {
            ""
        };
        format!("shape{letter}{}", if self.is_optional { "?" } else { "" })
    }
}

impl Effect {
    /// Returns the factors at -1σ and +1σ.
    pub(super) fn factors(self) -> [f64; 2] {
        match self {
            Self::None => [1.0, 1.0],
            Self::Value(kappa) => [1.0 / kappa, kappa],
            Self::LowHigh(pair) => pair,
        }
    }

    /// Returns whether it changes nothing.
    pub(super) fn is_null(self, kind: &SystematicKind) -> bool {
        match self {
            Self::None => true,
            Self::Value(value) => value == 0.0 || (*kind == SystematicKind::LogNormal && value == 1.0),
            Self::LowHigh(_) => false,
        }
    }
}

impl RateValue {
    /// Gives the parameter `old` of a formula the name `new`.
    pub(super) fn rename(&mut self, old: &str, new: &str) {
        let Self::Formula { text, arguments } = self else { return };
        let renamed = |name: &str| if name == old { new.to_owned() } else { name.to_owned() };
        // The formula was parsed when it was read.
        if let Ok(formula) = Formula::parse(text, arguments) {
            *text = formula.renamed(renamed);
        }
        for argument in arguments {
            *argument = renamed(argument);
        }
    }
}

impl Card {
    pub(super) fn column_name(&self, column: usize) -> ColumnName<'_> {
        let Column { channel, process, .. } = self.columns[column];
        ColumnName { channel: &self.channels[channel].name, process: &self.processes[process].name }
    }

    /// Returns the columns of each channel.
    pub(super) fn columns_by_channel(&self) -> Vec<Vec<usize>> {
        let mut columns = vec![Vec::new(); self.channels.len()];
        for (index, column) in self.columns.iter().enumerate() {
            columns[column.channel].push(index);
        }
        columns
    }

    /// Returns the names of the groups that each parameter is a member of, each once.
    pub(super) fn groups_by_member(&self) -> HashMap<&str, Vec<String>> {
        let mut groups: HashMap<&str, Vec<String>> = HashMap::new();
        for group in &self.groups {
            for member in &group.members {
                let of_member = groups.entry(member).or_default();
                if !of_member.contains(&group.name) {
                    of_member.push(group.name.clone());
                }
            }
        }
        groups
    }

    /// Returns the names of the factors of each column by `rateParam`, each once.
    pub(super) fn rates_by_column(&self) -> Vec<Vec<&str>> {
        let mut rates: Vec<Vec<&str>> = vec![Vec::new(); self.columns.len()];
        for rate in &self.rates {
            let of_column = &mut rates[rate.column];
            if !of_column.contains(&rate.name.as_str()) {
                of_column.push(&rate.name);
            }
        }
        rates
    }

    pub(super) fn is_signal(&self, column: usize) -> bool {
        self.processes[self.columns[column].process].is_signal
    }
}
