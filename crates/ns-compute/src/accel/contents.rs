//! Refuses models that kernels cannot evaluate.

use super::error::AccelError;
use ns_core::{Constraint, Model};
use ns_device::Precision;

/// A Poisson constraint of a larger rate is narrower than single precision can resolve.
const LARGEST_SINGLE_RATE: f64 = 1e8;

/// Returns an error that names the first parameter whose constraint term kernels do not have, or
/// that is too narrow for `precision`.
pub(super) fn check_contents(model: &Model, precision: Precision) -> Result<(), AccelError> {
    for (constraint, name) in model.parameters.constraint.iter().zip(&model.parameters.names) {
        match *constraint {
            None | Some(Constraint::Gaussian { .. }) => {}
            Some(Constraint::Poisson { tau }) => {
                if precision == Precision::Single && tau > LARGEST_SINGLE_RATE {
                    return Err(AccelError::TooPrecise { parameter: name.clone(), tau });
                }
            }
            Some(other) => return Err(AccelError::Term { parameter: name.clone(), term: other.name() }),
        }
    }
    Ok(())
}
