//! Finds the parameters on a kink that stay there when templates change slightly: those in a
//! corner, where -ln L rises with a nonzero derivative on either side.
//!
//! Where both one-sided derivatives are zero, as for Asimov data made at the kink, the parameter is
//! free to move, and only the second derivative differs between the sides.

use crate::minimize::Domain;
use ns_core::SearchLikelihood;

/// Derivatives of -ln L per standard deviation below this are zero: fits stop with smaller ones.
const NO_DERIVATIVE: f64 = 1e-6;

/// Fixes, in `domain`, the parameters that are in a corner at `params` (P).
///
/// # Errors
/// Returns the index of a parameter with a nonzero derivative on one side only.
pub(super) fn fix_cornered<L: SearchLikelihood + ?Sized>(
    likelihood: &mut L,
    params: &[f64],
    domain: &mut Domain,
) -> Result<(), usize> {
    let is_inside = |i: usize| !domain.fixed[i] && domain.bound_at(i, params[i]).is_none();
    let on_kink = |i: &usize| params[*i] == 0.0 && domain.kinked.get(*i) == Some(&true) && is_inside(*i);
    let on_kink: Vec<usize> = (0..params.len()).filter(on_kink).collect();
    if on_kink.is_empty() {
        return Ok(());
    }
    // The sign of zero selects the side.
    let [above, below] = [0.0, -0.0].map(|zero| {
        let mut at = params.to_vec();
        on_kink.iter().for_each(|&i| at[i] = zero);
        let mut gradient = vec![0.0; params.len()];
        likelihood.nll_and_grad(&at, &mut gradient);
        gradient
    });
    for i in on_kink {
        match (below[i] < -NO_DERIVATIVE, above[i] > NO_DERIVATIVE) {
            (true, true) => domain.fixed[i] = true,
            (false, false) => {}
            _ => return Err(i),
        }
    }
    Ok(())
}
