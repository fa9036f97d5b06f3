//! The parameters of a card: where they start, their ranges, and their constraint terms.
//!
//! Ranges are Combine's: 7 standard deviations for `lnN`, 4 for `shape`, -1 … 1 for flat ones.

use std::collections::HashMap;

use ns_core::spec::{ConstraintTerm, ParameterConfig};

use super::card::{Card, RateValue, ShapeKind, SystematicKind};
use super::numbers::{six_decimals, six_digits};
use super::options::CardOptions;
use super::physics::Physics;

/// A range in place of none, in units of the start value or of 1.
const WIDE: f64 = 1000.0;

/// The parameters by name, each as its first line has it.
#[derive(Default)]
pub(super) struct Parameters {
    known: HashMap<String, ParameterConfig>,
    order: Vec<String>,
}

/// What one parameter is.
struct Declared<'a> {
    name: &'a str,
    start: f64,
    range: [f64; 2],
    /// The constraint term and its datum; `None` for that of a normsys or histosys.
    term: Option<(ConstraintTerm, Option<f64>)>,
}

impl Parameters {
    pub(super) fn new(card: &Card, physics: &Physics, options: &CardOptions) -> Self {
        let mut parameters = Self::default();
        for parameter in &physics.parameters {
            let range = parameter.range.unwrap_or_else(|| wide(parameter.start));
            parameters.free(&parameter.name, parameter.start, range);
            parameters.fix_if(&parameter.name, parameter.range.is_none());
        }
        for systematic in &card.systematics {
            parameters.systematic(&systematic.name, &systematic.kind, &systematic.effects);
        }
        for external in &card.externals {
            parameters.free(&external.name, external.start, external.range.unwrap_or_else(|| wide(external.start)));
            parameters.fix_if(&external.name, external.is_constant);
        }
        for rate in &card.rates {
            if let RateValue::Free { start, range } = &rate.value {
                parameters.free(&rate.name, *start, range.unwrap_or_else(|| wide(*start)));
            }
        }
        if let Some(mass) = options.mass {
            parameters.free("MH", mass, wide(mass));
            parameters.fix_if("MH", true);
        }
        card.frozen.iter().for_each(|name| parameters.fix_if(name, true));
        parameters
    }

    /// Returns whether the card declares the parameter `name`.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns all names in the order of the card.
    pub(super) fn names(&self) -> &[String] {
        &self.order
    }

    /// Returns where the parameter starts.
    pub(super) fn start(&self, name: &str) -> f64 {
        self.known.get(name).and_then(|config| config.inits.as_ref()).map_or(0.0, |inits| inits[0])
    }

    /// Returns the settings of the parameters that `is_used` says are used, in the order of the
    /// card.
    pub(super) fn into_configs(mut self, is_used: impl Fn(&str) -> bool) -> Vec<ParameterConfig> {
        let order = std::mem::take(&mut self.order);
        order.iter().filter(|name| is_used(name)).filter_map(|name| self.known.remove(name)).collect()
    }

    fn systematic(&mut self, name: &str, kind: &SystematicKind, effects: &[super::card::Effect]) {
        let declared = |start, range, term| Declared { name, start, range, term };
        match *kind {
            SystematicKind::LogNormal => self.add(&declared(0.0, [-7.0, 7.0], None)),
            SystematicKind::LogUniform => {
                self.add(&declared(0.0, [-1.0, 1.0], Some((ConstraintTerm::Flat, None))));
            }
            SystematicKind::Shape(shape) => self.shape(name, shape),
            SystematicKind::TruncatedGaussian => {
                let range = truncated(effects);
                self.add(&declared(0.0, range, Some((ConstraintTerm::Gaussian { sigma: 1.0 }, Some(0.0)))));
            }
            SystematicKind::Uniform(range) => {
                self.add(&declared(0.5 * (range[0] + range[1]), range, Some((ConstraintTerm::Flat, None))));
            }
            SystematicKind::GammaCount(events) => {
                let term = (ConstraintTerm::Poisson { tau: 1.0 }, Some(events));
                self.add(&declared(events + 1.0, count_range(events), Some(term)));
            }
            SystematicKind::GammaMultiplier => self.multiplier(name, effects),
            SystematicKind::Parameter(term) => {
                let [sigma_lo, sigma_hi] = term.sigmas;
                let constraint = if sigma_lo == sigma_hi {
                    ConstraintTerm::Gaussian { sigma: sigma_lo }
                } else {
                    ConstraintTerm::AsymmetricGaussian { sigma_lo, sigma_hi }
                };
                self.add(&declared(term.mean, term.range, Some((constraint, Some(term.mean)))));
            }
        }
    }

    fn shape(&mut self, name: &str, shape: ShapeKind) {
        let term = shape.is_flat.then_some((ConstraintTerm::Flat, None));
        let is_plain = !shape.is_logarithmic && !shape.is_optional;
        let range = match (shape.is_flat, is_plain) {
            (true, _) => [-1.0, 1.0],
            (false, true) => [-4.0, 4.0],
            (false, false) => [-7.0, 7.0],
        };
        self.add(&Declared { name, start: 0.0, range, term });
    }

    /// Declares a factor with a gamma distribution of mean 1, whose relative width is the effect.
    fn multiplier(&mut self, name: &str, effects: &[super::card::Effect]) {
        let widths = effects.iter().filter_map(|effect| match effect {
            super::card::Effect::Value(width) => Some(*width),
            _ => None,
        });
        let width = widths.fold(0.0, f64::max);
        let square = width * width;
        let range = [(1.0 - 5.0 * width).max(0.01), 1.0 + 5.0 * width].map(six_decimals);
        let (shape, tau) = (six_digits(1.0 / square), 1.0 / six_digits(square));
        let term = Some((ConstraintTerm::Gamma { tau }, Some(shape - 1.0)));
        self.add(&Declared { name, start: 1.0, range, term });
    }

    fn free(&mut self, name: &str, start: f64, range: [f64; 2]) {
        self.add(&Declared { name, start, range, term: None });
    }

    fn fix_if(&mut self, name: &str, is_fixed: bool) {
        if let Some(config) = self.known.get_mut(name).filter(|_| is_fixed) {
            config.fixed = Some(true);
        }
    }

    fn add(&mut self, declared: &Declared<'_>) {
        if self.known.contains_key(declared.name) {
            return;
        }
        let config = ParameterConfig {
            name: declared.name.to_owned(),
            inits: Some(vec![declared.start]),
            bounds: Some(vec![declared.range]),
            constraints: declared.term.map(|(term, _)| vec![term]),
            auxdata: declared.term.and_then(|(_, datum)| datum).map(|datum| vec![datum]),
            ..ParameterConfig::default()
        };
        self.order.push(declared.name.to_owned());
        self.known.insert(declared.name.to_owned(), config);
    }
}

fn wide(start: f64) -> [f64; 2] {
    let end = WIDE * start.abs().max(1.0);
    [-end, end]
}

/// Returns the range of a parameter of `trG`, in which no factor is negative.
fn truncated(effects: &[super::card::Effect]) -> [f64; 2] {
    let mut range = [-7.0, 7.0];
    for effect in effects {
        let super::card::Effect::Value(value) = *effect else { continue };
        if value > 0.0 && 1.0 + range[0] * value < 0.0 {
            range[0] = -1.0 / value;
        }
        if value < 0.0 && 1.0 + range[1] * value < 0.0 {
            range[1] = -1.0 / value;
        }
    }
    range
}

/// Returns the range of the mean of a Poisson distribution of which `events` were seen: Combine
/// steps away from them until the probability is below 10⁻¹².
fn count_range(events: f64) -> [f64; 2] {
    const SMALL: f64 = 1e-12;
    let factorial: f64 =
        if events < 1e6 { (1..=events as u64).map(|k| (k as f64).ln()).sum() } else { events * (events.ln() - 1.0) };
    let probability = |mean: f64| (events * mean.ln() - mean - factorial).exp();
    let mut low = if events > 0.0 { events + 1.0 } else { 0.0 };
    while low > 0.0 && probability(low) > SMALL {
        low *= 0.8;
    }
    let mut high = events + 1.0;
    while probability(high) > SMALL {
        high *= 1.2;
    }
    [low, high]
}
