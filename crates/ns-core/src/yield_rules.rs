//! What a model does with yields beyond shifts and factors: templates that are clipped, normalised
//! or scaled bin by bin, sums with a statistical uncertainty, and lowest yields.
//!
//! pyhf's models have none of these but the lowest yields. With t the nominal yields and their
//! shifts, in each bin of a channel:
//!
//! 1. t · Π f, the factors of multiplicative histosys ([`ScalingHistoSys`]);
//! 2. max(t, clip) and t · Σ nominal / Σ t ([`ShapeRule`]), the sums over the bins of the channel,
//!    if Σ t is positive;
//! 3. yield y = max(t · Π factors, [`YieldRules::clip_samples`]);
//! 4. λ = Σ y + ν √Σ(c e)² ([`McStat`]), c being the product of the factors of a sample that are
//!    the same in every bin;
//! 5. max(λ, [`YieldRules::clip_bins`]).
//!
//! Where a limit replaces a value, its derivatives are zero.

use crate::interpolate::NormSysFactor;
use crate::response::NormSysResponse;
use std::ops::Range;

/// The rules of a model; empty for most.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct YieldRules {
    /// The lowest yield of a sample in a bin.
    pub clip_samples: Option<f64>,
    /// The lowest expectation of a bin.
    pub clip_bins: Option<f64>,
    /// Templates that are not nominal plus shifts, ascending.
    pub shapes: Vec<ShapeRule>,
    /// Statistical uncertainties of sums, by channel.
    pub mc_stats: Vec<McStat>,
}

/// What becomes of a template after its shifts.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeRule {
    /// The template.
    pub template: usize,
    /// The histosys that scale each bin.
    pub scaling: Vec<ScalingHistoSys>,
    /// The lowest value of a bin.
    pub clip: Option<f64>,
    /// The sum of the nominal yields to which the template is scaled, if it is.
    pub total: Option<f64>,
}

/// A histosys of a multiplicative rule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingHistoSys {
    /// Its parameter.
    pub param: u32,
    /// How its factors follow the parameter.
    pub response: NormSysResponse,
    /// The factor of each bin.
    pub factors: Vec<NormSysFactor>,
}

/// A statistical uncertainty of the sum of some samples of a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct McStat {
    /// The channel.
    pub channel: usize,
    /// The parameter ν of the channel's first bin; bin i has this plus i.
    pub first_param: u32,
    /// The samples' contributions, by template.
    pub errors: Vec<TemplateErrors>,
}

/// The absolute statistical uncertainties of a template, one per bin.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateErrors {
    /// The template.
    pub template: usize,
    /// The uncertainties, before any factor.
    pub errors: Vec<f64>,
}

impl YieldRules {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clip_samples.is_none() && self.clip_bins.is_none() && self.shapes.is_empty() && self.mc_stats.is_empty()
    }

    /// Returns what a message calls the first of them, or `None` if there are none.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        let shape = self.shapes.first().map(|shape| match shape {
            ShapeRule { scaling, .. } if !scaling.is_empty() => "histosys that scale",
            ShapeRule { total: Some(_), .. } => "normalised templates",
            _ => "clipped yields",
        });
        let clips = self.clip_samples.is_some() || self.clip_bins.is_some();
        let mc_stat = (!self.mc_stats.is_empty()).then_some("mcstat modifiers");
        shape.or(mc_stat).or(clips.then_some("clipped yields"))
    }

    /// Returns the rule of `template`, if it has one.
    #[must_use]
    pub fn shape(&self, template: usize) -> Option<&ShapeRule> {
        let place = self.shapes.binary_search_by_key(&template, |shape| shape.template).ok()?;
        Some(&self.shapes[place])
    }

    /// Returns the statistical uncertainties of `channel`.
    pub fn mc_stats_of(&self, channel: usize) -> impl Iterator<Item = &McStat> {
        self.mc_stats.iter().filter(move |mc_stat| mc_stat.channel == channel)
    }

    /// Returns the parameters of the histosys that scale `template`.
    pub fn scaling_params(&self, template: usize) -> impl Iterator<Item = u32> {
        self.shape(template).into_iter().flat_map(|shape| shape.scaling.iter().map(|scaling| scaling.param))
    }
}

impl ShapeRule {
    /// Returns the rule of the bins `bins` of the template as template `template`.
    pub(crate) fn part(&self, template: usize, bins: &Range<usize>) -> Self {
        let scaling = self.scaling.iter().map(|scaling| {
            let factors = scaling.factors[bins.clone()].to_vec();
            ScalingHistoSys { factors, ..*scaling }
        });
        Self { template, scaling: scaling.collect(), clip: self.clip, total: self.total }
    }
}
