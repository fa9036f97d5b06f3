//! Rankings by the covariance of a fit that was made earlier, without its likelihood.

use super::report::{rest, size};
use super::{GroupImpact, Ranking, RankingEntry, RankingOptions, RankingPoi, UncertaintyBreakdown};
use crate::linear::inverse_form;
use crate::minimize::Outcome;
use crate::pulls::{prefit_center, prefit_width};
use crate::result::BestFit;
use ns_core::{Data, Model};

/// A fit that was made earlier. P is the number of parameters.
#[derive(Debug, Clone, Copy)]
pub struct EarlierFit<'a> {
    /// Best-fit values (P).
    pub params: &'a [f64],
    /// Standard deviations (P); `None` for fixed parameters and those that the fit does not
    /// determine.
    pub uncertainties: &'a [Option<f64>],
    /// The covariance (P × P, by rows), NaN where it is not known.
    pub covariance: &'a [f64],
}

/// Returns the covariance impacts of `fit` on the parameter of interest, and what the uncertainty
/// is with groups of parameters fixed. No other method of `options` is possible.
///
/// With a group G fixed the variance of μ is C_μμ - C_μG C_GG⁻¹ C_Gμ.
#[must_use]
pub fn ranking_of_covariance(model: &Model, data: &Data, fit: EarlierFit<'_>, options: &RankingOptions) -> Ranking {
    let (names, poi) = (&model.parameters.names, options.poi);
    let total = fit.uncertainties[poi];
    let nuisances: Vec<usize> = (0..fit.params.len()).filter(|&i| i != poi && fit.uncertainties[i].is_some()).collect();
    let mut entries: Vec<RankingEntry> = nuisances.iter().map(|&i| entry(model, data, fit, [i, poi])).collect();
    entries.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.parameter.cmp(&b.parameter)));
    let group = |(name, members): (&str, Vec<usize>)| GroupImpact {
        group: name.to_owned(),
        members: members.iter().map(|&i| names[i].clone()).collect(),
        frozen: rest(total, remaining(fit, poi, &members)),
        global: None,
    };
    let of_group = |group: &[usize]| nuisances.iter().copied().filter(|i| group.contains(i)).collect();
    let groups = options.groups.iter().map(|g| group((&g.name, of_group(&g.members)))).collect();
    let constrained: Vec<usize> =
        nuisances.iter().copied().filter(|&i| model.parameters.constraint[i].is_some()).collect();
    let statistical = remaining(fit, poi, &constrained);
    let unknown = total.is_none().then(|| format!("the stored fit has no uncertainty of `{}`", names[poi]));
    Ranking {
        poi: RankingPoi { name: names[poi].clone(), index: poi, bestfit: Some(fit.params[poi]), uncertainty: total },
        entries,
        groups,
        breakdown: UncertaintyBreakdown {
            total,
            frozen_statistical: statistical,
            frozen_systematic: rest(total, statistical),
            ..UncertaintyBreakdown::default()
        },
        best: BestFit {
            params: fit.params.to_vec(),
            uncertainties: fit.uncertainties.to_vec(),
            twice_nll: f64::NAN,
            nll: f64::NAN,
            converged: true,
            outcome: Outcome::Converged,
        },
        is_complete: true,
        converged: true,
        warnings: unknown.into_iter().collect(),
    }
}

/// Returns the covariance impacts of a parameter on the parameter of interest.
fn entry(model: &Model, data: &Data, fit: EarlierFit<'_>, [i, poi]: [usize; 2]) -> RankingEntry {
    let (center, width) = (prefit_center(model, data, i), prefit_width(model, data, i));
    let sigma = fit.uncertainties[i];
    let shared = fit.covariance[i * fit.params.len() + poi];
    let shared = fit.uncertainties[poi].map(|_| shared).filter(|shared| shared.is_finite());
    let postfit = shared.zip(sigma).map(|(shared, sigma)| shared / sigma);
    let constraint = sigma.zip(width).map(|(sigma, width)| sigma / width);
    RankingEntry {
        parameter: model.parameters.names[i].clone(),
        bestfit: fit.params[i],
        uncertainty: sigma,
        minos: None,
        prefit_uncertainty: width,
        pull: center.zip(model.parameters.constraint[i]).map(|(center, term)| term.pull(center, fit.params[i])),
        constraint,
        prefit: None,
        postfit: None,
        global: None,
        global_linear: None,
        covariance_prefit: postfit.zip(constraint).map(|(impact, constraint)| impact / constraint),
        covariance_postfit: postfit,
    }
}

/// Returns the uncertainty of parameter `poi` with `members` fixed; `None` if the covariance does
/// not tell.
fn remaining(fit: EarlierFit<'_>, poi: usize, members: &[usize]) -> Option<f64> {
    let n = fit.params.len();
    let total = fit.uncertainties[poi]?;
    let at = |i: usize, j: usize| fit.covariance[i * n + j];
    // Correlations of the members, for a matrix of one scale.
    let widths: Vec<f64> = members.iter().map(|&i| at(i, i).sqrt()).collect();
    let entry = |a: usize, b: usize| at(members[a], members[b]) / (widths[a] * widths[b]);
    let k = members.len();
    let matrix: Vec<f64> = (0..k * k).map(|ab| entry(ab / k, ab % k)).collect();
    let shared: Vec<f64> = members.iter().zip(&widths).map(|(&i, width)| at(i, poi) / width).collect();
    let taken = inverse_form(&matrix, k, &shared)?;
    let left = total * total - taken;
    (left > 0.0).then(|| left.sqrt())
}
