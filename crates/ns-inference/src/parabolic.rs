//! Whether standard deviations describe -ln L: what it has really risen by, one of them away from
//! the minimum.
//!
//! Only parameters that may be far from a parabola are looked at: the parameter of interest,
//! nonlinear systematics, and badly known free scale factors. Two values of -ln L along the
//! covariance settle most cases, and a Newton step of the other parameters most of the rest. Where
//! a second step would go further, as beside nearly flat directions, a conditional fit decides.

use crate::hessian::Hessian;
use crate::minimize::Minimum;
use crate::result::NotParabolic;
use crate::search::{Search, Suspect, is_below};
use ns_core::{Model, SearchLikelihood};

/// A rise of 2·(-ln L) that differs from 1 by more than this is not a parabola's.
const TOLERANCE: f64 = 0.1;

/// A second Newton step that lowers -ln L by less than this has nothing left for a fit to find.
const SETTLED: f64 = 0.005;

/// Estimated distance in -ln L at which a conditional fit stops.
const ROUGH: f64 = 1e-6;

/// The largest number of parameters that are looked at, in a model of up to [`SMALL`] parameters
/// and in a larger one, where values of -ln L cost as much as the rest of the verdict: there it is
/// the parameter of interest.
const MOST: usize = 16;
const MOST_IN_LARGE: usize = 1;
const SMALL: usize = 100;

/// A free scale factor known better than this, relative to itself, is as good as Gaussian: the
/// skewness of Poisson terms is at most ⅔ of it.
const WELL_KNOWN: f64 = 0.1;

/// The largest number of parameters that a warning names.
const NAMED: usize = 5;

/// Returns the parameters whose standard deviations do not describe -ln L round the minimum `best`,
/// worst first, without those that have `asked` for intervals.
pub(crate) fn check<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    model: &Model,
    best: &Minimum,
    hessian: &mut Hessian,
    asked: &[usize],
) -> Vec<NotParabolic> {
    if !best.converged() || best.at_edge || !hessian.is_covariance() {
        return Vec::new();
    }
    let mut candidates = candidates(search, model, best, hessian);
    candidates.retain(|i| !asked.contains(i));
    let most = if best.params.len() > SMALL { MOST_IN_LARGE } else { MOST };
    let found = candidates.into_iter().take(most).filter_map(|i| {
        let [down, up] = rises(search, best, hessian, i)?;
        let parameter = model.parameters.names[i].clone();
        Some(NotParabolic { parameter, twice_delta_nll_down: down, twice_delta_nll_up: up })
    });
    let mut found: Vec<NotParabolic> = found.collect();
    found.sort_by(|a, b| deviation(b).total_cmp(&deviation(a)));
    found
}

/// Returns the parameter of interest, nonlinear systematics, most bent first, and badly known free
/// scale factors, as far as they have a variance.
fn candidates<L: ?Sized>(search: &Search<'_, L>, model: &Model, best: &Minimum, hessian: &mut Hessian) -> Vec<usize> {
    let is_bent = |suspect: &&Suspect| suspect.parameters.len() == 1 && suspect.bend > 0.0;
    let bent = search.candidates.suspects.iter().filter(is_bent).map(|suspect| suspect.parameters[0]);
    let mut found: Vec<usize> = model.poi().into_iter().chain(bent).collect();
    let scales = model.table(model.layout.scale_param).iter();
    for param in scales.flat_map(|&index| model.parameters_of(index)) {
        let i = param as usize;
        if model.parameters.constraint[i].is_none() && hessian.variance(i).sqrt() > WELL_KNOWN * best.params[i].abs() {
            found.push(i);
        }
    }
    let mut seen = vec![false; best.params.len()];
    found.retain(|&i| hessian.free[i] && hessian.determines(i) && !std::mem::replace(&mut seen[i], true));
    found
}

/// Returns the rise of 2·(-ln L) at -1σ and at +1σ of parameter `i`, if one of them is no
/// parabola's.
fn rises<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    best: &Minimum,
    hessian: &mut Hessian,
    i: usize,
) -> Option<[Option<f64>; 2]> {
    let mut column = vec![0.0; best.params.len()];
    hessian.covariance_column(i, &mut column);
    let sides = [-1.0, 1.0].map(|side| moved(search, best, &column, i, side));
    let straight = sides.each_ref().map(|at| at.as_ref().map(|at| 2.0 * (search.likelihood.nll(at) - best.nll)));
    if straight.iter().flatten().all(is_parabolic) {
        return None;
    }
    let mut stepped = sides.map(|at| at.map(|at| newton_step(search, hessian, &column, i, at)));
    let rise = |nll: f64| 2.0 * (nll - best.nll);
    if stepped.iter().flatten().all(|at| is_parabolic(&rise(at.nll))) {
        return None;
    }
    for at in stepped.iter_mut().flatten() {
        *at = newton_step(search, hessian, &column, i, std::mem::take(&mut at.params));
        // NaN settles nothing.
        if at.decrease.is_nan() || at.decrease.abs() >= SETTLED {
            at.nll = at.nll.min(conditional(search, i, &at.params));
        }
    }
    let profile = stepped.map(|at| at.map(|at| rise(at.nll)));
    profile.iter().flatten().any(|rise| !is_parabolic(rise)).then_some(profile)
}

/// A point near the profile.
struct Stepped {
    params: Vec<f64>,
    nll: f64,
    /// How far -ln L came down.
    decrease: f64,
}

/// Takes a Newton step of the other parameters from `at` (P) with parameter `i` fixed, unless it
/// does not lower -ln L: nearly the profile, and never below it. `column` (P) is that of `i` in the
/// covariance.
fn newton_step<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    hessian: &mut Hessian,
    column: &[f64],
    i: usize,
    at: Vec<f64>,
) -> Stepped {
    let n = at.len();
    let (mut gradient, mut step) = (vec![0.0; n], vec![0.0; n]);
    let before = search.likelihood.nll_and_grad(&at, &mut gradient);
    if !before.is_finite() {
        return Stepped { params: at, nll: before, decrease: f64::INFINITY };
    }
    gradient.iter_mut().zip(&hessian.free).for_each(|(g, &free)| *g = if free { -*g } else { 0.0 });
    hessian.solve(&gradient, &mut step);
    let back = step[i] / column[i];
    let mut after = at.clone();
    for j in (0..n).filter(|&j| j != i && hessian.free[j]) {
        after[j] = (at[j] + step[j] - back * column[j]).clamp(search.domain.lower[j], search.domain.upper[j]);
    }
    // Infinite where the step leaves the domain.
    let nll = search.likelihood.nll(&after);
    let is_lower = is_below(nll, before);
    Stepped { params: if is_lower { after } else { at }, nll: nll.min(before), decrease: before - nll }
}

/// Returns the minimum of -ln L that a fit from `at` (P) finds with parameter `i` fixed.
fn conditional<L: SearchLikelihood + ?Sized>(search: &mut Search<'_, L>, i: usize, at: &[f64]) -> f64 {
    let was_fixed = std::mem::replace(&mut search.domain.fixed[i], true);
    let tolerance = std::mem::replace(&mut search.options.tolerance, ROUGH);
    let minimum = search.run(at);
    search.options.tolerance = tolerance;
    search.domain.fixed[i] = was_fixed;
    minimum.nll
}

/// Returns the minimum moved by one standard deviation of parameter `i` to that `side`, along
/// column `i` of the covariance; `None` where its range ends before.
fn moved<L: ?Sized>(search: &Search<'_, L>, best: &Minimum, column: &[f64], i: usize, side: f64) -> Option<Vec<f64>> {
    let domain = &search.domain;
    let step = side / column[i].sqrt();
    let mut at: Vec<f64> = best.params.iter().zip(column).map(|(x, c)| x + step * c).collect();
    if !(domain.lower[i]..=domain.upper[i]).contains(&at[i]) {
        return None;
    }
    for j in (0..at.len()).filter(|&j| column[j] != 0.0) {
        at[j] = at[j].clamp(domain.lower[j], domain.upper[j]);
    }
    Some(at)
}

fn is_parabolic(rise: &f64) -> bool {
    (rise - 1.0).abs() <= TOLERANCE
}

fn deviation(found: &NotParabolic) -> f64 {
    let both = [found.twice_delta_nll_down, found.twice_delta_nll_up];
    both.into_iter().flatten().map(|rise| (rise - 1.0).abs()).fold(0.0, f64::max)
}

/// Returns a warning about them.
pub(crate) fn warning(found: &[NotParabolic]) -> Option<String> {
    let advice = "MINOS gives asymmetric intervals";
    if let [only] = found {
        return Some(format!(
            "the uncertainty of `{}` is not parabolic: 2ΔNLL is {}; {advice}",
            only.parameter,
            describe(only)
        ));
    }
    let each = found.iter().take(NAMED).map(|one| format!("of `{}` is {}", one.parameter, describe(one)));
    let named = each.collect::<Vec<_>>().join(", ");
    let more = if found.len() > NAMED { format!(", and {} more", found.len() - NAMED) } else { String::new() };
    (!found.is_empty()).then(|| {
        format!("the uncertainties of {} parameters are not parabolic: 2ΔNLL {named}{more}; {advice}", found.len())
    })
}

fn describe(found: &NotParabolic) -> String {
    let side = |rise: Option<f64>, sign: &str| match rise {
        Some(rise) if rise.is_finite() => Some(format!("{rise:.2} at {sign}1σ")),
        Some(_) => Some(format!("infinite at {sign}1σ")),
        None => None,
    };
    let sides = [side(found.twice_delta_nll_down, "-"), side(found.twice_delta_nll_up, "+")];
    sides.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}
