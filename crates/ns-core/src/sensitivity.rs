//! First derivatives of the yields of a template, and of their sum, with respect to the parameters
//! that act on it.
//!
//! A yield is (nominal + Σ shifts) · Π factors (`expected`), and its derivative with respect to one
//! factor is the product of everything else: products from the left and from the right, no
//! division, so that the derivative is right for a factor of zero too.

use crate::derived::{DerivativeOrder, DerivedPoint};
use crate::expected::{shift, template_yields};
use crate::interpolate::{Jet, NormSysFactor};
use crate::model::{Model, TemplateShifts};
use crate::shape::{Shape, ShapePoint};
use crate::yield_rules::{McStat, TemplateErrors};
use std::ops::Range;

/// The parameters of the columns of a matrix of derivatives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DerivativeColumns {
    /// Parameters that act on all bins, ascending: the first columns.
    pub shared: Vec<u32>,
    /// First parameters of the per-bin modifiers, ascending: the other columns; in bin i
    /// their parameter is this one plus i.
    pub per_bin: Vec<u32>,
}

impl DerivativeColumns {
    /// Returns the parameters that act on any of `templates`, each once.
    #[must_use]
    pub fn of(model: &Model, templates: Range<usize>) -> Self {
        let layout = &model.layout;
        let mut columns = Self::default();
        for template in templates {
            for (starts, params) in [
                (layout.template_scale, layout.scale_param),
                (layout.template_normsys, layout.normsys_param),
                (layout.template_histosys, layout.histosys_param),
                (layout.template_morphing, layout.morphing_param),
            ] {
                let indices = &model.table(params)[model.part(starts, template)];
                columns.shared.extend(indices.iter().flat_map(|&index| model.parameters_of(index)));
            }
            columns.shared.extend(model.rules.scaling_params(template));
            let mut mc_stats = model.rules.mc_stats.iter();
            let is_of = |mc: &&McStat| mc.errors.iter().any(|part| part.template == template);
            columns.per_bin.extend(mc_stats.by_ref().filter(is_of).map(|mc| mc.first_param));
            let firsts = model.part(layout.template_bin_factor, template);
            columns.per_bin.extend(&model.table(layout.bin_factor_param)[firsts]);
        }
        for list in [&mut columns.shared, &mut columns.per_bin] {
            list.sort_unstable();
            list.dedup();
        }
        columns
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len() + self.per_bin.len()
    }

    /// Returns `true` if no parameter acts on the templates.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the parameter of column `column` in bin `bin`.
    #[must_use]
    pub fn param(&self, column: usize, bin: usize) -> usize {
        match column.checked_sub(self.shared.len()) {
            None => self.shared[column] as usize,
            Some(k) => self.per_bin[k] as usize + bin,
        }
    }

    fn of_shared(&self, param: u32) -> usize {
        self.shared.binary_search(&param).expect("the columns are those of the template")
    }

    fn of_per_bin(&self, first: u32) -> usize {
        self.shared.len() + self.per_bin.binary_search(&first).expect("the columns are those of the template")
    }
}

/// Writes the yields of template `template` at `params` (P) to `yields` (its bins), and their
/// derivatives to `out` (columns × bins, one column after the other).
///
/// `columns` must have those of the template and may have more, which are zero. Where an
/// interpolation rule is kinked at α = 0 the derivative is the mean of both sides', as a variation
/// by the same amount up and down gives it.
///
/// # Panics
/// If `columns` lacks a parameter of the template, or a slice has another length.
pub fn derivatives(
    model: &Model,
    template: usize,
    params: &[f64],
    columns: &DerivativeColumns,
    yields: &mut [f64],
    out: &mut [f64],
) {
    let chain = Chain::of(model, template, params);
    let params = &chain.at.extended[..];
    let n_bins = yields.len();
    assert_eq!(out.len(), columns.len() * n_bins);
    out.fill(0.0);
    yields.copy_from_slice(&model.values(model.layout.nominal)[model.part(model.layout.template_cell, template)]);
    let shape = shape_derivatives(model, template, params);
    match &shape {
        Some((_, at)) => yields.copy_from_slice(&at.values[..n_bins]),
        None => shift(model, template, params, yields),
    }
    let factors = ScalarFactors::of(model, template, params);
    let firsts = &model.table(model.layout.bin_factor_param)[model.part(model.layout.template_bin_factor, template)];
    let bin_factors = BinFactors { firsts, params };
    let gammas: Vec<f64> = (0..n_bins).map(|bin| bin_factors.each(bin).product()).collect();
    for (param, derivative, others) in factors.each() {
        chain.each(param, |argument, rate| {
            let column = &mut out[columns.of_shared(argument) * n_bins..][..n_bins];
            for bin in 0..n_bins {
                column[bin] += yields[bin] * gammas[bin] * (derivative * rate * others);
            }
        });
    }
    for (k, &first) in firsts.iter().enumerate() {
        let column = &mut out[columns.of_per_bin(first) * n_bins..][..n_bins];
        for bin in 0..n_bins {
            column[bin] += yields[bin] * factors.product * bin_factors.others(k, bin);
        }
    }
    let mut add = |param, bin: usize, derivative: f64| {
        chain.each(param, |argument, rate| {
            out[columns.of_shared(argument) * n_bins + bin] += derivative * rate * factors.product * gammas[bin];
        });
    };
    match &shape {
        Some((shape, at)) => add_shape_derivatives(shape, at, n_bins, &mut add),
        None => add_shift_derivatives(model, template, params, &mut add),
    }
    for (bin, y) in yields.iter_mut().enumerate() {
        *y *= bin_factors.each(bin).fold(factors.product, |product, gamma| product * gamma);
    }
    clip(model.rules.clip_samples, yields, out);
}

/// The factors of single bins that a template has.
struct BinFactors<'a> {
    /// The first parameter of each vector.
    firsts: &'a [u32],
    params: &'a [f64],
}

impl BinFactors<'_> {
    /// Returns the factors of a bin.
    fn each(&self, bin: usize) -> impl Iterator<Item = f64> {
        self.firsts.iter().map(move |&first| self.params[first as usize + bin])
    }

    /// Returns the product of the factors of a bin without the `k`-th.
    fn others(&self, k: usize, bin: usize) -> f64 {
        self.each(bin).enumerate().filter(|(i, _)| *i != k).map(|(_, gamma)| gamma).product()
    }
}

/// Replaces yields below `limit` by it, and their derivatives in `out` (columns × bins) by zero.
fn clip(limit: Option<f64>, yields: &mut [f64], out: &mut [f64]) {
    let (Some(limit), n_bins) = (limit, yields.len()) else { return };
    for (bin, y) in yields.iter_mut().enumerate().filter(|(_, y)| **y < limit) {
        *y = limit;
        out.iter_mut().skip(bin).step_by(n_bins).for_each(|derivative| *derivative = 0.0);
    }
}

/// Returns the shape of `template` at the extended point `params`, if it has a rule; where a rule
/// is kinked at zero, its derivatives are the means of both sides'.
fn shape_derivatives(model: &Model, template: usize, params: &[f64]) -> Option<(Shape, ShapePoint)> {
    let shape = Shape::of(model, model.rules.shape(template)?);
    let mut above = ShapePoint::new(&shape);
    let mut below = above.clone();
    let signed = |zero: f64| params.iter().map(|&x| if x == 0.0 { zero } else { x }).collect::<Vec<f64>>();
    shape.evaluate::<true>(&signed(0.0), &mut above);
    shape.evaluate::<true>(&signed(-0.0), &mut below);
    above.jacobian.iter_mut().zip(&below.jacobian).for_each(|(a, b)| *a = 0.5 * (*a + b));
    Some((shape, above))
}

/// Calls `add` with each parameter of `shape`, each bin, and the derivative there.
fn add_shape_derivatives(shape: &Shape, at: &ShapePoint, n_bins: usize, add: &mut dyn FnMut(u32, usize, f64)) {
    for (slot, &param) in shape.params.iter().enumerate() {
        let row = &shape.row(&at.jacobian, slot)[..n_bins];
        row.iter().enumerate().for_each(|(bin, derivative)| add(param, bin, *derivative));
    }
}

/// Completes the sum of all templates of `channel` at `params` (P): adds the statistical
/// uncertainties to `total` (its bins) and their derivatives to `out` (columns × bins), and
/// replaces sums below the lowest.
///
/// # Panics
/// If `columns` lacks a parameter of the channel, or a slice has another length.
pub fn complete_sum(
    model: &Model,
    channel: usize,
    params: &[f64],
    columns: &DerivativeColumns,
    sum: &mut SumDerivatives<'_>,
) {
    for mc_stat in model.rules.mc_stats_of(channel) {
        add_mc_stat(model, mc_stat, params, columns, sum);
    }
    clip(model.rules.clip_bins, sum.total, sum.derivatives);
}

/// The sum of the templates of a channel, with its derivatives.
#[derive(Debug)]
pub struct SumDerivatives<'a> {
    /// The sum in each bin.
    pub total: &'a mut [f64],
    /// Its derivatives (columns × bins).
    pub derivatives: &'a mut [f64],
}

/// Adds ν √Σ(c e)² and its derivatives.
fn add_mc_stat(model: &Model, mc: &McStat, params: &[f64], columns: &DerivativeColumns, sum: &mut SumDerivatives<'_>) {
    let n_bins = sum.total.len();
    let (mut variances, mut halves) = (vec![0.0; n_bins], vec![0.0; columns.shared.len() * n_bins]);
    for TemplateErrors { template, errors } in &mc.errors {
        let chain = Chain::of(model, *template, params);
        let factors = ScalarFactors::of(model, *template, &chain.at.extended);
        variances.iter_mut().zip(errors).for_each(|(sum, error)| *sum += (factors.product * error).powi(2));
        for (param, derivative, others) in factors.each() {
            chain.each(param, |argument, rate| {
                let row = &mut halves[columns.of_shared(argument) * n_bins..][..n_bins];
                let derivative = factors.product * derivative * others * rate;
                row.iter_mut().zip(errors).for_each(|(half, error)| *half += derivative * error * error);
            });
        }
    }
    for bin in (0..n_bins).filter(|&bin| variances[bin] > 0.0) {
        let (root, nu) = (variances[bin].sqrt(), params[mc.first_param as usize + bin]);
        sum.total[bin] += nu * root;
        sum.derivatives[columns.of_per_bin(mc.first_param) * n_bins + bin] += root;
        for (column, row) in halves.chunks_exact(n_bins).enumerate() {
            sum.derivatives[column * n_bins + bin] += nu * row[bin] / root;
        }
    }
}

/// A point θ and how far each of its parameters is varied.
#[derive(Debug, Clone, Copy)]
pub struct Variations<'a> {
    /// The point (P).
    pub params: &'a [f64],
    /// Standard deviations (P).
    pub widths: &'a [Option<f64>],
}

/// Replaces the derivatives of template `template` in `out`, as [`derivatives`] writes them, by
/// half differences: (y(θ + σ) - y(θ - σ)) / 2σ for each parameter that the yields are not linear
/// in and whose standard deviation σ is known.
///
/// # Panics
/// If `columns` lacks a parameter of the template, or a slice has another length.
pub fn half_differences(
    model: &Model,
    template: usize,
    at: Variations<'_>,
    columns: &DerivativeColumns,
    out: &mut [f64],
) {
    let Variations { params, widths } = at;
    let mut moved = params.to_vec();
    for param in nonlinear_parameters(model, template) {
        let (i, Some(width)) = (param as usize, widths[param as usize].filter(|width| *width > 0.0)) else { continue };
        let [up, down] = [width, -width].map(|step| {
            moved[i] = params[i] + step;
            template_yields(model, template, &moved)
        });
        moved[i] = params[i];
        let column = &mut out[columns.of_shared(param) * up.len()..][..up.len()];
        column
            .iter_mut()
            .zip(up.iter().zip(&down))
            .for_each(|(derivative, (up, down))| *derivative = (up - down) / (2.0 * width));
    }
}

/// Returns the parameters that interpolate the yields of `template`, each once.
fn nonlinear_parameters(model: &Model, template: usize) -> Vec<u32> {
    let layout = &model.layout;
    let of = |starts, params| model.table(params)[model.part(starts, template)].iter().copied();
    let normsys = of(layout.template_normsys, layout.normsys_param);
    let scales = of(layout.template_scale, layout.scale_param);
    let coefficients = scales.chain(of(layout.template_morphing, layout.morphing_param));
    let derived = coefficients.filter(|&index| index as usize >= model.n_params());
    let mut found: Vec<u32> = normsys.chain(of(layout.template_histosys, layout.histosys_param)).collect();
    found.extend(model.rules.scaling_params(template));
    found.extend(derived.flat_map(|index| model.parameters_of(index)));
    found.sort_unstable();
    found.dedup();
    found
}

/// The extended point of a template, with the derivatives of the derived quantities that it uses.
struct Chain<'a> {
    model: &'a Model,
    at: DerivedPoint,
}

impl<'a> Chain<'a> {
    fn of(model: &'a Model, template: usize, params: &[f64]) -> Self {
        let layout = &model.layout;
        let mut at = DerivedPoint::new(&model.derived);
        let is_derived = |span, starts| {
            model.table(span)[model.part(starts, template)].iter().any(|&index| index as usize >= model.n_params())
        };
        let are_used = is_derived(layout.scale_param, layout.template_scale)
            || is_derived(layout.morphing_param, layout.template_morphing);
        at.set(&model.derived, params, if are_used { DerivativeOrder::Gradients } else { DerivativeOrder::Values });
        Self { model, at }
    }

    /// Calls `visit` with each parameter that index `index` of the extended point depends on, and
    /// the derivative with respect to it.
    fn each(&self, index: u32, mut visit: impl FnMut(u32, f64)) {
        let Some(d) = (index as usize).checked_sub(self.model.n_params()) else { return visit(index, 1.0) };
        let arguments = self.model.derived.tapes[d].arguments();
        arguments.iter().zip(&self.at.expansions[d].gradient).for_each(|(&argument, &rate)| visit(argument, rate));
    }
}

/// Calls `add` with each histosys parameter and each coefficient of a morphing term, each bin, and
/// the derivative of the shift there.
fn add_shift_derivatives(model: &Model, template: usize, params: &[f64], add: &mut dyn FnMut(u32, usize, f64)) {
    let layout = &model.layout;
    let TemplateShifts { up, down } = &*model.shifts;
    let n_bins = model.part(layout.template_cell, template).len();
    for entry in model.part(layout.template_morphing, template) {
        let index = model.table(layout.morphing_param)[entry];
        let terms = &model.values(layout.morphing)[model.part(layout.morphing_cell, entry)];
        terms.iter().enumerate().for_each(|(bin, term)| add(index, bin, *term));
    }
    for entry in model.part(layout.template_histosys, template) {
        let param = model.table(layout.histosys_param)[entry];
        let first = model.table(layout.histosys_cell)[entry] as usize;
        let weights = |alpha: f64| model.histosys_response(entry).weights(alpha);
        let alpha = params[param as usize];
        let (p, q) = (derivative(alpha, |x| weights(x).0), derivative(alpha, |x| weights(x).1));
        for bin in 0..n_bins {
            add(param, bin, p * up[first + bin] + q * down[first + bin]);
        }
    }
}

/// Returns the derivative of `f` at `alpha`; at zero the mean of the two one-sided ones.
fn derivative(alpha: f64, f: impl Fn(f64) -> Jet) -> f64 {
    if alpha == 0.0 { 0.5 * (f(0.0).first + f(-0.0).first) } else { f(alpha).first }
}

/// The factors of a template that are the same in every bin.
struct ScalarFactors {
    /// Parameter of each factor, and the factor's derivative.
    derivatives: Vec<(u32, f64)>,
    /// For each factor, the product of all others.
    others: Vec<f64>,
    /// The product of all.
    product: f64,
}

impl ScalarFactors {
    fn of(model: &Model, template: usize, params: &[f64]) -> Self {
        let layout = &model.layout;
        let (mut derivatives, mut values) = (Vec::new(), Vec::new());
        for &param in &model.table(layout.scale_param)[model.part(layout.template_scale, template)] {
            derivatives.push((param, 1.0));
            values.push(params[param as usize]);
        }
        let (lo, hi) = (model.values(layout.normsys_lo), model.values(layout.normsys_hi));
        for entry in model.part(layout.template_normsys, template) {
            let param = model.table(layout.normsys_param)[entry];
            let factor = NormSysFactor::new(lo[entry], hi[entry]);
            let alpha = params[param as usize];
            let response = model.normsys_response(entry);
            derivatives.push((param, derivative(alpha, |x| response.at(&factor, x))));
            values.push(response.at(&factor, alpha).value);
        }
        let mut others = vec![1.0; values.len()];
        let mut product = 1.0;
        for (other, value) in others.iter_mut().zip(&values) {
            *other = product;
            product *= value;
        }
        let mut after = 1.0;
        for (other, value) in others.iter_mut().zip(&values).rev() {
            *other *= after;
            after *= value;
        }
        Self { derivatives, others, product }
    }

    /// Iterates over the parameter and the derivative of each factor, with the product of all
    /// others.
    fn each(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        self.derivatives.iter().zip(&self.others).map(|(&(param, derivative), &others)| (param, derivative, others))
    }
}
