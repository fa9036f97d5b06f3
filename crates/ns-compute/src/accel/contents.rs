//! Refuses models that kernels cannot evaluate.

use super::error::AccelError;
use ns_core::{Constraint, Model};
use ns_device::Precision;

/// A Poisson constraint of a larger rate is narrower than single precision can resolve.
const LARGEST_SINGLE_RATE: f64 = 1e8;

/// Returns an error that names the first parameter with an interpolation or a constraint term that
/// kernels do not have, or with one that is too narrow for `precision`.
pub(super) fn check_contents(model: &Model, precision: Precision) -> Result<(), AccelError> {
    if !model.responses.are_standard() {
        return Err(AccelError::OwnInterpolation { parameter: own_interpolation(model).to_owned() });
    }
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

/// Returns the first parameter with a modifier that does not follow the model's rule.
fn own_interpolation(model: &Model) -> &str {
    let layout = &model.layout;
    let tables = [(layout.normsys_param, layout.normsys_response), (layout.histosys_param, layout.histosys_response)];
    let own = tables.iter().find_map(|&(params, responses)| {
        let entry = model.table(responses).iter().position(|&response| response != 0)?;
        Some(model.table(params)[entry] as usize)
    });
    own.map_or("", |param| &model.parameters.names[param])
}
