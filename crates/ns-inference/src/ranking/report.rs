//! From refits and covariance to a ranking: formulas, sums, order, and what has to be said about
//! them.

use super::impacts::{Plan, Work};
use super::{
    GroupImpact, Impact, Impacts, Ranking, RankingEntry, RankingPoi, UncertaintyBreakdown, frozen_uncertainty,
};
use crate::minimize::Outcome;
use crate::profile::Profiler;
use crate::pulls::{prefit_center, prefit_width};
use ns_core::DataLikelihood;

pub(super) fn assemble<L: DataLikelihood>(
    plan: &Plan<'_>,
    works: Vec<Option<Work>>,
    profiler: &mut Profiler<'_, L>,
) -> Ranking {
    let poi = plan.options.poi;
    let names = &plan.model.parameters.names;
    let nuisances = &plan.covariance.nuisances;
    profiler.note_cut_short(works.iter().flatten().any(|work| work.is_cut_short));
    let mut entries: Vec<(usize, RankingEntry)> = Vec::with_capacity(works.len());
    for (k, work) in works.into_iter().enumerate() {
        entries.extend(work.map(|work| (nuisances[k], entry(plan, k, work))));
    }
    let is_complete = plan.best.converged && entries.len() == nuisances.len();
    let (groups, breakdown) = if plan.best.converged {
        (groups(plan, &entries, profiler), breakdown(plan, &entries, is_complete, profiler))
    } else {
        (Vec::new(), UncertaintyBreakdown::default())
    };
    let mut entries: Vec<RankingEntry> = entries.into_iter().map(|(_, entry)| entry).collect();
    entries.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.parameter.cmp(&b.parameter)));
    let mut ranking = Ranking {
        poi: RankingPoi {
            name: names[poi].clone(),
            index: poi,
            bestfit: plan.best.converged.then(|| plan.best.params[poi]),
            uncertainty: plan.best.uncertainties[poi].filter(|_| plan.best.converged),
        },
        entries,
        groups,
        breakdown,
        best: plan.best.clone(),
        is_complete,
        converged: plan.best.converged,
        warnings: Vec::new(),
    };
    let refits: Vec<Impact> = ranking.entries.iter().flat_map(sides).collect();
    ranking.warnings = warnings(&ranking, &refits, nuisances.len(), profiler.has_several_minima());
    ranking.warnings.extend(profiler.search_warnings());
    ranking.converged &= n_failed(&refits) == 0;
    ranking
}

fn entry(plan: &Plan<'_>, k: usize, work: Work) -> RankingEntry {
    let (i, poi) = (plan.covariance.nuisances[k], plan.options.poi);
    let (center, width) = (prefit_center(plan.model, plan.data, i), prefit_width(plan.model, plan.data, i));
    let sigma = plan.best.uncertainties[i];
    // Without an uncertainty of both there is no covariance to speak of.
    let shared = plan.best.uncertainties[poi].and(sigma).map(|_| plan.covariance.columns[k][poi]);
    let wanted = |is_wanted: bool| shared.filter(|_| is_wanted);
    let methods = plan.options.methods;
    let over = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let at_best = plan.model.parameters.constraint[i].map(|c| c.width(plan.best.params[i]));
    RankingEntry {
        parameter: plan.model.parameters.names[i].clone(),
        bestfit: plan.best.params[i],
        uncertainty: sigma,
        minos: work.minos,
        prefit_uncertainty: width,
        pull: center
            .zip(plan.model.parameters.constraint[i])
            .map(|(center, term)| term.pull(center, plan.best.params[i])),
        constraint: over(sigma, width),
        prefit: work.prefit,
        postfit: work.postfit,
        global: work.global,
        global_linear: over(wanted(methods.global), at_best),
        covariance_prefit: over(wanted(methods.covariance), sigma).zip(over(width, sigma)).map(|(a, b)| a * b),
        covariance_postfit: over(wanted(methods.covariance), sigma),
    }
}

/// Returns what the order of a ranking goes by; parameters without any number come last.
pub(super) fn size(entry: &RankingEntry) -> f64 {
    let larger = |impacts: &Impacts| {
        let sides = [impacts.down, impacts.up].into_iter().filter_map(|side| side.impact);
        sides.map(f64::abs).reduce(f64::max)
    };
    let classic = entry.postfit.as_ref().and_then(larger);
    let linear = entry.covariance_postfit.map(f64::abs);
    classic.or(linear).or_else(|| entry.global.as_ref().and_then(larger)).unwrap_or(-1.0)
}

/// Returns the square of a global impact, its sides counted half each.
fn square(impacts: &Impacts) -> Option<f64> {
    let (down, up) = (impacts.down.impact?, impacts.up.impact?);
    Some(0.5 * (down * down + up * up))
}

/// Returns √(a² - b²), if that is a number.
pub(super) fn rest(total: Option<f64>, part: Option<f64>) -> Option<f64> {
    let difference = total?.powi(2) - part?.powi(2);
    // Equal to rounding means that nothing is left.
    let noise = 1e-12 * total?.powi(2);
    (difference >= -noise).then(|| difference.max(0.0).sqrt())
}

fn groups<L: DataLikelihood>(
    plan: &Plan<'_>,
    entries: &[(usize, RankingEntry)],
    profiler: &mut Profiler<'_, L>,
) -> Vec<GroupImpact> {
    let poi = plan.options.poi;
    let total = plan.best.uncertainties[poi];
    let is_free = |i: &usize| !plan.domain.fixed[*i] && *i != poi;
    let mut impacts = Vec::with_capacity(plan.options.groups.len());
    for group in &plan.options.groups {
        let members: Vec<usize> = group.members.iter().copied().filter(is_free).collect();
        let remaining = frozen_uncertainty(profiler, &plan.domain, poi, |i| members.contains(&i));
        let of_member = |i: &usize| entries.iter().find(|(index, _)| index == i).map(|(_, entry)| entry);
        let is_done = plan.options.methods.global && members.iter().all(|i| of_member(i).is_some());
        let shifted = members.iter().filter_map(|i| of_member(i).and_then(|entry| entry.global.as_ref()));
        impacts.push(GroupImpact {
            group: group.name.clone(),
            members: members.iter().map(|&i| plan.model.parameters.names[i].clone()).collect(),
            frozen: rest(total, remaining),
            global: if is_done { shifted.map(square).sum::<Option<f64>>().map(f64::sqrt) } else { None },
        });
    }
    impacts
}

fn breakdown<L: DataLikelihood>(
    plan: &Plan<'_>,
    entries: &[(usize, RankingEntry)],
    is_complete: bool,
    profiler: &mut Profiler<'_, L>,
) -> UncertaintyBreakdown {
    let poi = plan.options.poi;
    let total = plan.best.uncertainties[poi];
    let constraint = &plan.model.parameters.constraint;
    let squares = entries.iter().filter_map(|(_, entry)| entry.global.as_ref()).map(square).sum::<Option<f64>>();
    let systematic = squares.filter(|_| is_complete && plan.options.methods.global).map(f64::sqrt);
    let frozen =
        total.and_then(|_| frozen_uncertainty(profiler, &plan.domain, poi, |i| i != poi && constraint[i].is_some()));
    UncertaintyBreakdown {
        total,
        global_systematic: systematic,
        global_statistical: rest(total, systematic),
        frozen_statistical: frozen,
        frozen_systematic: rest(total, frozen),
    }
}

/// Returns every refit of a parameter.
fn sides(entry: &RankingEntry) -> Vec<Impact> {
    [&entry.prefit, &entry.postfit, &entry.global].into_iter().flatten().flat_map(|i| [i.down, i.up]).collect()
}

fn n_failed(refits: &[Impact]) -> usize {
    refits.iter().filter(|refit| refit.outcome != Outcome::Converged).count()
}

fn warnings(ranking: &Ranking, refits: &[Impact], n: usize, has_several: bool) -> Vec<String> {
    let poi = &ranking.poi.name;
    if !ranking.converged {
        return vec!["the free fit did not converge, so there is nothing to rank".to_owned()];
    }
    let failed = n_failed(refits);
    let clipped = refits.iter().filter(|refit| refit.clipped).count();
    let mut warnings = Vec::new();
    if ranking.entries.len() < n {
        warnings
            .push(format!("stopped after {} of {n} parameters; sums over all of them are null", ranking.entries.len()));
    }
    if ranking.poi.uncertainty.is_none() {
        warnings.push(format!("`{poi}` has no uncertainty, so nothing that is made of the covariance is known"));
    }
    if failed > 0 {
        warnings.push(format!("{failed} of {} refits did not converge; their impacts are null", refits.len()));
    }
    if clipped > 0 {
        warnings.push(format!(
            "{clipped} of {} shifts end at the end of a range, before one standard deviation",
            refits.len()
        ));
    }
    let breakdown = &ranking.breakdown;
    if let (Some(total), Some(systematic), None) =
        (breakdown.total, breakdown.global_systematic, breakdown.global_statistical)
    {
        warnings.push(format!(
            "the global impacts add up to {systematic:.4}, more than the uncertainty {total:.4} of `{poi}`, so no statistical part is given"
        ));
    }
    if has_several {
        warnings.push("several minima were found; the lowest was taken".to_owned());
    }
    warnings
}
