//! Physics models: which factor a process in a channel has, and which parameters there are.

mod multi_signal;
mod production;

use self::multi_signal::MultiSignal;
use self::production::FloatingProduction;
use super::card::Card;
use super::option_error::CardOptionError;
use super::options::CardOptions;

/// The names of the physics models that can be chosen.
pub(super) const MODELS: &[&str] = &["multiSignalModel", "floatingXSHiggs"];

/// A parameter of a physics model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelParameter {
    pub(super) name: String,
    pub(super) start: f64,
    /// `None` for a constant.
    pub(super) range: Option<[f64; 2]>,
}

/// A factor that is a formula of parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelFormula {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) arguments: Vec<String>,
}

/// The factor of a process in a channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum YieldScale {
    /// The process is left out.
    Zero,
    One,
    /// A parameter or formula of the model.
    Named(String),
}

/// What a physics model makes of a card.
#[derive(Debug, Default)]
pub(super) struct Physics {
    /// Those with a range are of interest.
    pub(super) parameters: Vec<ModelParameter>,
    pub(super) formulas: Vec<ModelFormula>,
    /// One for each column.
    pub(super) scales: Vec<YieldScale>,
}

impl Physics {
    /// Returns the names of the parameters of interest.
    pub(super) fn pois(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().filter(|parameter| parameter.range.is_some()).map(|parameter| parameter.name.as_str())
    }

    /// Returns what the model of `options` makes of `card`.
    pub(super) fn new(card: &Card, options: &CardOptions) -> Result<Self, CardOptionError> {
        let Some(name) = &options.physics_model else { return Self::default_model(card, options) };
        match name.rsplit(':').next().unwrap_or(name) {
            "multiSignalModel" => MultiSignal::read(&options.model_options)?.apply(card),
            "floatingXSHiggs" => FloatingProduction::read(&options.model_options)?.apply(card),
            "defaultModel" => Self::default_model(card, options),
            _ => Err(CardOptionError::UnknownModel { name: name.clone() }),
        }
    }

    /// Returns one signal strength for all signals.
    fn default_model(card: &Card, options: &CardOptions) -> Result<Self, CardOptionError> {
        if let Some(option) = options.model_options.first() {
            return Err(CardOptionError::NoModel { option: option.clone() });
        }
        let scale = |column: usize| match card.is_signal(column) {
            true => YieldScale::Named("r".to_owned()),
            false => YieldScale::One,
        };
        let r = ModelParameter { name: "r".to_owned(), start: 1.0, range: Some([0.0, 20.0]) };
        Ok(Self { parameters: vec![r], formulas: Vec::new(), scales: (0..card.columns.len()).map(scale).collect() })
    }
}
