//! Kinks of -ln L where a limit begins to replace a yield ([`crate::yield_rules`]).
//!
//! Such a yield follows the parameters where c(θ) > 0, c being its excess over the limit, and is
//! constant where c(θ) < 0. On the surface c = 0 the derivative of -ln L along ∇c is larger on the
//! upper side than on the lower one, by the weight w. Where w is positive the surface is the bottom
//! of a valley: a minimum may lie on it, at which neither side has a vanishing gradient.

/// The kinks near a point, as far as minima may lie on them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitKinks {
    values: Vec<f64>,
    weights: Vec<f64>,
    /// End of each kink's part of `params` and `rates`.
    ends: Vec<usize>,
    params: Vec<u32>,
    rates: Vec<f64>,
}

/// One kink, at the point that it is near to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitKink<'a> {
    /// c, the excess of the yield over its limit.
    pub value: f64,
    /// w, the jump of the derivative of -ln L along c; positive.
    pub weight: f64,
    /// The parameters that the yield depends on.
    pub params: &'a [u32],
    /// ∂c/∂θ for each of them.
    pub rates: &'a [f64],
}

impl LimitKinks {
    /// Returns the number of kinks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Forgets all kinks.
    pub fn clear(&mut self) {
        self.values.clear();
        self.weights.clear();
        self.ends.clear();
        self.params.clear();
        self.rates.clear();
    }

    /// Adds a kink with excess `value` and jump `weight`; `rates` are parameters and ∂c/∂θ.
    pub fn push(&mut self, value: f64, weight: f64, rates: impl IntoIterator<Item = (u32, f64)>) {
        self.values.push(value);
        self.weights.push(weight);
        for (param, rate) in rates {
            self.params.push(param);
            self.rates.push(rate);
        }
        self.ends.push(self.params.len());
    }

    /// Returns kink `k`.
    #[must_use]
    pub fn get(&self, k: usize) -> LimitKink<'_> {
        let part = if k == 0 { 0 } else { self.ends[k - 1] }..self.ends[k];
        LimitKink {
            value: self.values[k],
            weight: self.weights[k],
            params: &self.params[part.clone()],
            rates: &self.rates[part],
        }
    }

    /// Iterates over the kinks.
    pub fn iter(&self) -> impl Iterator<Item = LimitKink<'_>> {
        (0..self.len()).map(|k| self.get(k))
    }
}

impl LimitKink<'_> {
    /// Returns the change of c along `step` (P), to first order.
    #[must_use]
    pub fn change(&self, step: &[f64]) -> f64 {
        self.params.iter().zip(self.rates).map(|(&param, rate)| rate * step[param as usize]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinks_are_kept_one_after_the_other() {
        let mut kinks = LimitKinks::default();
        kinks.push(0.5, 1.0, [(0, 2.0), (2, -1.0)]);
        kinks.push(-1.0, 3.0, [(1, 4.0)]);
        let changes: Vec<f64> = kinks.iter().map(|kink| kink.value + kink.change(&[1.0, 0.5, 3.0])).collect();
        assert_eq!((changes, kinks.get(1).weight), (vec![-0.5, 1.0], 3.0));
        kinks.clear();
        assert!(kinks.is_empty());
    }
}
