//! The factor of a sample where all parameters start, which decides on its statistical parameters.

use std::collections::HashMap;

use ns_core::formula::{Argument, Formula, Tape};
use ns_core::spec::{Expression, ModifierData, Sample};

use super::build::NamedFormula;
use super::parameters::Parameters;

/// Values of factors where the parameters start.
#[derive(Clone, Copy)]
pub(super) struct Coefficients<'c> {
    pub(super) parameters: &'c Parameters,
    pub(super) formulas: &'c HashMap<String, NamedFormula>,
}

impl Coefficients<'_> {
    /// Returns the product of the factors of `sample`. Those of `lnN` and `shape` are 1.
    pub(super) fn of(&self, sample: &Sample) -> f64 {
        let factor = |modifier: &ns_core::spec::Modifier| match &modifier.data {
            ModifierData::NormFactor => self.parameters.start(&modifier.name),
            ModifierData::Formula(expression) => self.formula(expression),
            _ => 1.0,
        };
        sample.modifiers.iter().map(factor).product()
    }

    /// Returns the value of a formula, or 1 for one that cannot be computed: the compiler says why.
    fn formula(&self, expression: &Expression) -> f64 {
        let arguments = expression.parameters.as_deref().unwrap_or_default();
        let Ok(formula) = Formula::parse(&expression.text, arguments) else { return 1.0 };
        let names = self.parameters.names();
        let starts: Vec<f64> = names.iter().map(|name| self.parameters.start(name)).chain([1.0]).collect();
        let index: HashMap<&str, u32> = names.iter().zip(0..).map(|(name, index)| (name.as_str(), index)).collect();
        let unknown = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let resolve = |name: &str| match self.formulas.get(name) {
            Some(inner) => Argument::Formula(&inner.parsed),
            None => Argument::Parameter(index.get(name).copied().unwrap_or(unknown)),
        };
        Tape::new(&formula, &resolve).map_or(1.0, |tape| tape.evaluate(&starts))
    }
}
