//! The score of an event: one number of an output of its own, or of several.

use crate::encoder::Encoder;
use crate::encoder::graph::Port;
use crate::encoder::run::{EncoderOutput, OutputValues};
use crate::error::{Error, HistogramProblem, InputProblem};

/// Which number of a model's outputs is the score of an event.
///
/// An output has C numbers x₀ … x₍C₋₁₎ of every event, its columns: all its numbers in order, if it
/// has several axes behind that of events.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// The output; None for the only one.
    pub output: Option<String>,
    /// The column c, from 0.
    pub column: usize,
    /// What is computed of it.
    pub transform: ScoreTransform,
}

/// What is computed of an output's columns x, in double precision; c is the score's column.
#[derive(Debug, Clone, Default)]
pub enum ScoreTransform {
    /// x_c.
    #[default]
    Number,
    /// exp x_c / Σₖ exp xₖ, for outputs that are logits.
    Softmax,
    /// x_c - ln Σₖ fₖ exp xₖ over other classes k with fractions fₖ, for outputs that are logits:
    /// the logarithm of a ratio of probabilities.
    LogRatio(Vec<ClassFraction>),
    /// ln x_c - ln Σₖ fₖ xₖ, for outputs that are probabilities.
    LogRatioOfProbabilities(Vec<ClassFraction>),
}

/// A class that the score's one is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassFraction {
    /// Its column.
    pub column: usize,
    /// Its fraction of the events that the score's class is compared with; above 0.
    pub fraction: f64,
}

impl ScoreTransform {
    fn classes(&self) -> Option<&[ClassFraction]> {
        match self {
            ScoreTransform::LogRatio(classes) | ScoreTransform::LogRatioOfProbabilities(classes) => Some(classes),
            ScoreTransform::Number | ScoreTransform::Softmax => None,
        }
    }
}

/// A score whose output is known.
#[derive(Debug)]
pub(super) struct CheckedScore<'a> {
    score: &'a Score,
    /// The output's place among those of the model.
    pub(super) output: usize,
    largest_column: usize,
}

impl<'a> CheckedScore<'a> {
    /// Finds the output of a model.
    pub(super) fn new(score: &'a Score, encoder: &Encoder) -> Result<Self, HistogramProblem> {
        let known = || encoder.graph.outputs.iter().map(|port| port.name.clone()).collect();
        let output = match &score.output {
            Some(name) => {
                let place = encoder.graph.outputs.iter().position(|port| port.name == *name);
                place.ok_or_else(|| HistogramProblem::UnknownOutput { name: name.clone(), known: known() })?
            }
            None if encoder.graph.outputs.len() == 1 => 0,
            None => return Err(HistogramProblem::SeveralOutputs { known: known() }),
        };
        let classes = score.transform.classes();
        if classes.is_some_and(<[_]>::is_empty) {
            return Err(HistogramProblem::NoClasses);
        }
        let mut largest_column = score.column;
        for &ClassFraction { column, fraction } in classes.unwrap_or_default() {
            if !(fraction > 0.0 && fraction.is_finite()) {
                return Err(HistogramProblem::Fraction { column, fraction });
            }
            largest_column = largest_column.max(column);
        }
        Ok(CheckedScore { score, output, largest_column })
    }

    /// Returns what the model says of the output.
    pub(super) fn port<'b>(&self, encoder: &'b Encoder) -> &'b Port {
        &encoder.graph.outputs[self.output]
    }

    /// Refuses an output of `n_columns` numbers of an event that does not have a column.
    pub(super) fn check_columns(&self, name: &str, n_columns: usize) -> Result<(), HistogramProblem> {
        if self.largest_column < n_columns {
            return Ok(());
        }
        Err(HistogramProblem::Column { output: name.to_owned(), column: self.largest_column, n_columns })
    }

    /// Returns the scores of `n_events` events of the model's outputs.
    pub(super) fn of(&self, outputs: &[EncoderOutput], n_events: usize) -> Result<Vec<f64>, Error> {
        let output = &outputs[self.output];
        let found = output.shape.first().copied().unwrap_or(0);
        if found != n_events {
            let (name, expected) = (output.name.clone(), n_events);
            return Err(Error::EncoderInput { name, problem: InputProblem::Events { found, expected } });
        }
        let n_columns = output.shape.iter().skip(1).product();
        self.check_columns(&output.name, n_columns)?;
        Ok(match &output.values {
            OutputValues::F32(values) => self.of_rows(values, n_columns, f64::from),
            OutputValues::F64(values) => self.of_rows(values, n_columns, |value| value),
            OutputValues::I64(values) => self.of_rows(values, n_columns, |value| value as f64),
        })
    }

    fn of_rows<T: Copy>(&self, values: &[T], n_columns: usize, convert: impl Fn(T) -> f64) -> Vec<f64> {
        let mut row = vec![0.0; n_columns];
        let rows = values.chunks_exact(n_columns);
        rows.map(|values| {
            row.iter_mut().zip(values).for_each(|(to, from)| *to = convert(*from));
            self.of_row(&row)
        })
        .collect()
    }

    fn of_row(&self, x: &[f64]) -> f64 {
        let number = x[self.score.column];
        let greatest = |columns: &mut dyn Iterator<Item = f64>| columns.fold(f64::NEG_INFINITY, f64::max);
        match &self.score.transform {
            ScoreTransform::Number => number,
            ScoreTransform::Softmax => {
                let greatest = greatest(&mut x.iter().copied());
                (number - greatest).exp() / x.iter().map(|x| (x - greatest).exp()).sum::<f64>()
            }
            ScoreTransform::LogRatio(classes) => {
                let greatest = greatest(&mut classes.iter().map(|class| x[class.column]));
                let terms = classes.iter().map(|class| class.fraction * (x[class.column] - greatest).exp());
                number - greatest - terms.sum::<f64>().ln()
            }
            ScoreTransform::LogRatioOfProbabilities(classes) => {
                number.ln() - classes.iter().map(|class| class.fraction * x[class.column]).sum::<f64>().ln()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(transform: ScoreTransform, x: &[f64]) -> f64 {
        let score = Score { output: None, column: 1, transform };
        CheckedScore { score: &score, output: 0, largest_column: x.len() - 1 }.of_row(x)
    }

    fn classes(fractions: [(usize, f64); 2]) -> Vec<ClassFraction> {
        fractions.map(|(column, fraction)| ClassFraction { column, fraction }).to_vec()
    }

    #[test]
    fn transforms_are_their_formulas() {
        let p: [f64; 3] = [0.7, 0.2, 0.1];
        // Logits are logarithms of probabilities and any constant.
        for constant in [0.0, 700.0, -900.0] {
            let logits = p.map(|p| p.ln() + constant);
            assert!((score(ScoreTransform::Softmax, &logits) - 0.2).abs() < 1e-12);
            let ratio = score(ScoreTransform::LogRatio(classes([(0, 0.9), (2, 0.1)])), &logits);
            assert!((ratio - (0.2_f64 / (0.9 * 0.7 + 0.1 * 0.1)).ln()).abs() < 1e-12);
        }
        let ratio = score(ScoreTransform::LogRatioOfProbabilities(classes([(0, 0.9), (2, 0.1)])), &p);
        assert!((ratio - (0.2_f64 / 0.64).ln()).abs() < 1e-15);
        assert_eq!(score(ScoreTransform::Number, &p), 0.2);
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for transform in
            [ScoreTransform::Number, ScoreTransform::Softmax, ScoreTransform::LogRatio(classes([(0, 0.5), (1, 0.5)]))]
        {
            assert!(score(transform, &[0.0, f64::NAN]).is_nan());
        }
        assert!(score(ScoreTransform::Softmax, &[f64::NAN, 0.0]).is_nan());
    }
}
