//! Maximum-likelihood fits: free, conditional, from one or several starting points.
//!
//! [`fit`] minimises, takes the exact Hessian at the minimum for the uncertainties, and writes the
//! verdict. It knows a likelihood by the trait and the model for names, ranges and diagnosis.

use crate::hessian::Hessian;
use crate::minimize::{BoundSide, Domain, Minimum, Outcome};
use crate::minos::{self, MinosProfile, MinosRequest};
use crate::options::Uncertainties;
use crate::parabolic;
use crate::polish::polish;
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::result::{
    AtBound, FitResult, FlatDirection, LocalMinimum, MinosInterval, ONE_SIGMA, UNDETERMINED, UncertaintySplit,
};
use crate::search::{BasinPool, MOST_BASINS, Search, is_below, is_negligible};
use ns_core::likelihood::diagnose;
use ns_core::{Data, DataLikelihood, Model, Parameters, SearchLikelihood};

/// What is said where different starting points have ended in different minima.
pub(crate) const SEVERAL_MINIMA: &str =
    "the likelihood has several minima, and the lowest of those found was taken; multi-start looks for more";

/// Fits `model` to `data`, whose likelihood is `likelihood`.
///
/// Never fails: a fit that does not converge says so in its outcome, its warnings, and by leaving
/// out what it cannot know.
pub fn fit<L: DataLikelihood + ?Sized>(problem: &mut Problem<'_, L>) -> FitResult {
    let Problem { model, options, .. } = *problem;
    let mut profiler = Profiler::new(model, problem.likelihood, options);
    let mut best = profiler.best().clone();
    let pool = profiler.pool().clone();
    let search = profiler.search();
    let mut hessian = None;
    let mut not_parabolic = Vec::new();
    let mut intervals = Vec::new();
    if best.nll.is_finite() && (options.uncertainties != Uncertainties::None || !options.minos.is_empty()) {
        let mut at_best = Hessian::at(search.likelihood, &best.params, &search.domain);
        search.leave_saddle(&model.parameters, &mut best, &mut at_best);
        polish(search, &mut best, &mut at_best);
        let cls = if options.minos_cls.is_empty() { &[ONE_SIGMA][..] } else { &options.minos_cls };
        let request = MinosRequests { parameters: &model.parameters, wanted: &options.minos, cls, pool: &pool };
        intervals = profile_all(search, &request, &mut best, &mut at_best);
        if options.uncertainties != Uncertainties::None {
            not_parabolic = parabolic::check(search, model, &best, &mut at_best, &options.minos);
        }
        hessian = Some(at_best);
    }
    // What is reported is the cost of the whole search.
    let spent = search.spent();
    (best.iterations, best.evaluations) = (spent.iterations, spent.evaluations);
    let flat = hessian.as_ref().map(|h| h.flat_directions(search.likelihood, &best.params, &model.parameters));
    let ending = Ending { best: &best, hessian, flat: flat.unwrap_or_default() };
    let mut result = report(model, &search.domain, ending, options.uncertainties);
    if best.at_edge {
        result.warnings.extend(edge_warnings(model, search.likelihood.data(), &best.params));
    }
    result.warnings.extend(loose_warnings(model, &search.domain, &result));
    result.warnings.extend(profiler.search_warnings());
    result.minima = with_best(profiler.minima(&best, options.multi_start.is_some()), &best);
    let data = profiler.likelihood().data();
    let diagnosis = if best.nll.is_finite() { None } else { diagnose(model, data, &best.params) };
    finish(FitResult { minos: intervals, not_parabolic, not_finite: diagnosis, ..result })
}

/// The intervals of several parameters, and what they share.
struct MinosRequests<'a> {
    parameters: &'a Parameters,
    wanted: &'a [usize],
    /// Their confidence levels.
    cls: &'a [f64],
    pool: &'a BasinPool,
}

/// Returns the requested intervals. When one of them finds a lower minimum, all start again there.
fn profile_all<L: SearchLikelihood + ?Sized>(
    search: &mut Search<'_, L>,
    request: &MinosRequests<'_>,
    best: &mut Minimum,
    hessian: &mut Hessian,
) -> Vec<MinosInterval> {
    'again: for _ in 0..10 {
        let mut intervals = Vec::with_capacity(request.wanted.len());
        let wanted = request.wanted.iter().flat_map(|&i| request.cls.iter().map(move |&cl| (i, cl)));
        for (i, cl) in wanted {
            let around = MinosRequest { best, pool: request.pool, parameter: i, cl };
            match minos::interval(search, request.parameters, around, hessian) {
                MinosProfile::Interval(interval) => intervals.push(interval),
                MinosProfile::LowerMinimum(params) => {
                    let lower = search.run(&params);
                    if !lower.converged() || !is_below(lower.nll, best.nll) {
                        continue;
                    }
                    *best = lower;
                    *hessian = Hessian::at(search.likelihood, &best.params, &search.domain);
                    continue 'again;
                }
            }
        }
        return intervals;
    }
    Vec::new()
}

/// The point at which a fit ended, and what is known about -ln L there.
struct Ending<'a> {
    best: &'a Minimum,
    hessian: Option<Hessian>,
    flat: Vec<FlatDirection>,
}

fn report(model: &Model, domain: &Domain, ending: Ending<'_>, wanted: Uncertainties) -> FitResult {
    let Ending { best, mut hessian, flat } = ending;
    let n = best.params.len();
    let uncertainties = hessian.as_ref().map_or(vec![None; n], |h| h.uncertainties(&flat, &model.parameters));
    let covariance = hessian.as_mut().filter(|_| wanted == Uncertainties::Covariance).and_then(Hessian::covariance);
    let splits = hessian.as_mut().map(|h| split(model, h, &best.params, &uncertainties)).unwrap_or_default();
    let indefinite = hessian.as_ref().is_some_and(|h| !h.is_positive_definite()) && flat.is_empty();
    let mut result = FitResult {
        par_names: model.parameters.names.clone(),
        bestfit: best.params.clone(),
        uncertainties,
        splits,
        covariance,
        n_free: domain.fixed.iter().filter(|fixed| !**fixed).count(),
        twice_nll: 2.0 * best.nll,
        nll: best.nll,
        converged: best.converged(),
        outcome: best.outcome,
        edm: best.edm,
        projected_gradient: projected_gradient(best, domain),
        n_iterations: best.iterations,
        n_evaluations: best.evaluations,
        at_bounds: at_bounds(model, domain, best),
        flat_directions: flat,
        not_parabolic: Vec::new(),
        not_finite: None,
        minos: Vec::new(),
        minima: Vec::new(),
        warnings: Vec::new(),
    };
    if indefinite {
        result
            .warnings
            .push("the Hessian at the end of the fit is not positive definite, so this is not a minimum".to_owned());
    }
    result
}

/// Returns the parts of the uncertainties of the parameters of interest at `params` (P), of which
/// `uncertainties` (P) are those of all parameters.
fn split(model: &Model, hessian: &mut Hessian, params: &[f64], uncertainties: &[Option<f64>]) -> Vec<UncertaintySplit> {
    let parameters = &model.parameters;
    let mut column = vec![0.0; params.len()];
    let mut of = |poi: usize| {
        let total = uncertainties[poi];
        let systematic = total.map(|total| {
            hessian.covariance_column(poi, &mut column);
            let share = |(k, covariance): (usize, &f64)| {
                let width = parameters.constraint[k].filter(|_| uncertainties[k].is_some())?.width(params[k]);
                Some((covariance / width).powi(2))
            };
            // No part is larger than the whole but for rounding.
            column.iter().enumerate().filter_map(share).sum::<f64>().sqrt().min(total)
        });
        let statistical = total.zip(systematic).map(|(total, part)| (total.powi(2) - part.powi(2)).max(0.0).sqrt());
        UncertaintySplit { parameter: parameters.names[poi].clone(), statistical, systematic }
    };
    model.pois.iter().map(|&poi| of(poi)).collect()
}

/// Warns, with the bins that are to blame, of a minimum at the edge of the domain, where the
/// likelihood is not a parabola.
fn edge_warnings(model: &Model, data: &Data, params: &[f64]) -> Vec<String> {
    let expected = ns_core::expected::expected_main(model, params);
    // Bins that expect nothing where the fit starts are empty whatever it finds.
    let at_start = ns_core::expected::expected_main(model, &model.parameters.init);
    let empty = (0..model.n_bins()).filter(|&b| data.main[b] == 0.0 && expected[b] < 1e-5 && at_start[b] >= 1e-5);
    let warning = |bin| {
        let place = model.place(bin);
        format!(
            "the minimum is where {place} expects nothing, and the likelihood ends there; uncertainties do not describe that side"
        )
    };
    empty.map(warning).collect()
}

/// Returns a warning of free normalisations whose uncertainty is larger than half of their range:
/// the range then decides more than the data. Elements of a vector, one for each bin, are often so.
fn loose_warnings(model: &Model, domain: &Domain, result: &FitResult) -> Vec<String> {
    let warning = |i: usize| {
        let parameters = &model.parameters;
        let is_scalar = parameters.sets.iter().any(|set| set.is_scalar && set.range().contains(&i));
        let width = result.uncertainties[i].filter(|_| is_scalar && parameters.constraint[i].is_none())?;
        let (lower, upper) = (domain.lower[i], domain.upper[i]);
        (width > 0.5 * (upper - lower)).then(|| {
            let name = &parameters.names[i];
            format!(
                "the data hardly determine `{name}`: its uncertainty {width:.3} is larger than half of its range, {lower} to {upper}"
            )
        })
    };
    (0..model.n_params()).filter(|&i| !domain.fixed[i]).filter_map(warning).collect()
}

fn projected_gradient(best: &Minimum, domain: &Domain) -> f64 {
    let inwards = |i: usize| {
        let (x, g) = (best.params[i], best.gradient[i]);
        let is_blocked = domain.fixed[i] || (x <= domain.lower[i] && g > 0.0) || (x >= domain.upper[i] && g < 0.0);
        let on_kink = x == 0.0 && domain.kinked.get(i).copied().unwrap_or(false);
        if is_blocked || on_kink { 0.0 } else { g.abs() }
    };
    (0..best.params.len()).map(inwards).fold(0.0, f64::max)
}

fn at_bounds(model: &Model, domain: &Domain, best: &Minimum) -> Vec<AtBound> {
    let bound = |i: usize| {
        let side = domain.bound_at(i, best.params[i])?;
        let bound = if side == BoundSide::Lower { domain.lower[i] } else { domain.upper[i] };
        Some(AtBound { parameter: model.parameters.names[i].clone(), side, bound })
    };
    (0..best.params.len()).filter(|&i| !domain.fixed[i]).filter_map(bound).collect()
}

/// Returns `minima` with the one nearest to `best`, which the last step has moved, exactly there
/// and first.
fn with_best(mut minima: Vec<LocalMinimum>, best: &Minimum) -> Vec<LocalMinimum> {
    let distance = |m: &LocalMinimum| m.params.iter().zip(&best.params).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let is_as_low = |k: &usize| is_negligible(minima[*k].depth);
    let nearest =
        (0..minima.len()).filter(is_as_low).min_by(|&a, &b| distance(&minima[a]).total_cmp(&distance(&minima[b])));
    if let Some(nearest) = nearest {
        minima[..=nearest].rotate_right(1);
        let first = &mut minima[0];
        (first.twice_nll, first.depth) = (2.0 * best.nll, 0.0);
        first.params.clone_from(&best.params);
        if let Some(poi) = &mut first.poi {
            poi.bestfit = Some(best.params[poi.index]);
        }
    }
    minima
}

/// Returns a warning where there is more than one minimum.
fn several_minima(minima: &[LocalMinimum]) -> Option<String> {
    let (lowest, second) = (minima.first()?, minima.get(1)?);
    let n = if minima.len() == MOST_BASINS { format!("{MOST_BASINS} or more") } else { minima.len().to_string() };
    let rise = second.twice_nll - lowest.twice_nll;
    Some(if is_negligible(0.5 * rise.abs()) {
        format!("{n} distinct minima were found, and the two lowest are equally deep: the data do not tell them apart")
    } else {
        format!("{n} distinct minima were found; the second one is {rise:.4} higher in 2NLL")
    })
}

/// Adds the warnings that follow from the other fields.
fn finish(mut result: FitResult) -> FitResult {
    let verdict = match result.outcome {
        Outcome::Converged => None,
        Outcome::IterationLimit => Some("the fit did not converge: its iterations ran out".to_owned()),
        Outcome::Stalled => Some(format!("the fit did not converge: no step makes progress (EDM {:.1e})", result.edm)),
        Outcome::Saddle => Some("the fit did not converge: it ended at a saddle point, not at a minimum".to_owned()),
        Outcome::NotFinite => {
            Some("the fit could not start: the likelihood is not finite at the starting point".to_owned())
        }
    };
    let cause = result.not_finite.as_ref().map(ToString::to_string);
    let bounds = result.at_bounds.iter().map(|b| {
        let side = if b.side == BoundSide::Lower { "lower" } else { "upper" };
        format!(
            "`{}` is at its {side} bound {}; its uncertainty is not defined, its MINOS interval is",
            b.parameter, b.bound
        )
    });
    let undetermined: Vec<&str> = result
        .flat_directions
        .iter()
        .filter(|d| d.curvature < UNDETERMINED)
        .flat_map(|d| d.parameters.iter().map(|(name, _)| name.as_str()))
        .collect();
    result.not_parabolic.retain(|bent| !undetermined.contains(&bent.parameter.as_str()));
    let flat = result.flat_directions.iter().map(FlatDirection::warning);
    let bent = parabolic::warning(&result.not_parabolic);
    let several = several_minima(&result.minima);
    let more: Vec<String> =
        verdict.into_iter().chain(cause).chain(bounds).chain(flat).chain(bent).chain(several).collect();
    result.warnings.splice(0..0, more);
    result
}
