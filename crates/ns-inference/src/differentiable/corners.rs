//! Which parameters on a kink stay there when templates change a little: those in a corner, from which -ln L rises with a derivative on either side.
//!
//! Where it has no derivative on either side, as for Asimov data that were made there, nothing holds a parameter: only its curvature differs from side to side.

use crate::minimize::Domain;
use ns_core::SearchLikelihood;

/// Slopes of -ln L per standard deviation that are smaller than this are none: fits end with smaller ones.
const NO_DERIVATIVE: f64 = 1e-6;

/// Holds, in `domain`, what is in a corner at `params` (P).
///
/// # Errors
/// A parameter with a derivative on one side only.
pub(super) fn status<L: SearchLikelihood + ?Sized>(
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
    // The sign of a zero says which side is meant.
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
