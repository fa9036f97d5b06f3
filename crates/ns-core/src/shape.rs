//! A template with a [`ShapeRule`] at a point, with exact derivatives.
//!
//! With A = nominal + Σ shifts, R = Π f and P = A R in each bin, C is P or the limit that replaces
//! it, and S = C N / Σ C or C. Where C is not a limit, ∂P/∂i = R A_i + P l_i with l = Σ f'/f over
//! the factors of a parameter, and ∂²P/∂i∂j = R (A_i l_j + A_j l_i) + P l_i l_j, on the diagonal
//! plus R A_ii + P Σ (f''/f - (f'/f)²). With s = N / Σ C and σ_i = Σ C_i / Σ C the derivatives of S
//! are s (C_i - C σ_i), and Σ_b v_b ∂²S_b/∂i∂j = Σ_b u_b ∂²C_b/∂i∂j - s (σ_i g_j + σ_j g_i - 2 σ_i
//! σ_j V) with V = Σ v C, g_i = Σ v C_i and u = s (v - V / Σ C).
//!
//! Legend: n parameters of the template, in the order of [`Shape::params`]; w bins, padded.

use crate::interpolate::{Jet, NormSysFactor};
use crate::model::Model;
use crate::response::{HistoSysResponse, NormSysResponse};
use crate::yield_rules::ShapeRule;

/// Replaces a factor of exactly zero where a derivative divides by it.
const TINY: f64 = 1e-100;

/// A template with a rule, laid out for evaluation.
#[derive(Debug, Clone)]
pub struct Shape {
    /// What it depends on (n): indices of an extended point, ascending.
    pub params: Vec<u32>,
    /// w, a multiple of four.
    width: usize,
    n_bins: usize,
    nominal: Vec<f64>,
    shifts: Vec<Shift>,
    terms: Vec<Term>,
    scalings: Vec<Scaling>,
    clip: Option<f64>,
    total: Option<f64>,
}

#[derive(Debug, Clone)]
struct Shift {
    slot: usize,
    response: HistoSysResponse,
    up: Vec<f64>,
    down: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Term {
    slot: usize,
    data: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Scaling {
    slot: usize,
    response: NormSysResponse,
    factors: Vec<NormSysFactor>,
}

/// A [`Shape`] at a point.
#[derive(Debug, Clone)]
pub struct ShapePoint {
    /// S (w), zero in bins of the padding.
    pub values: Vec<f64>,
    /// ∂S/∂i (n × w), row by row.
    pub jacobian: Vec<f64>,
    /// C, and 1 where it is no limit or 0.
    clipped: Vec<f64>,
    is_free: Vec<f64>,
    /// P (w), if there is a limit.
    unlimited: Vec<f64>,
    /// ∂C/∂i (n × w).
    derivatives: Vec<f64>,
    /// R A_i and l_i (n × w); the latter are empty without factors.
    shifted: Vec<f64>,
    logarithmic: Vec<f64>,
    /// R A_ii + P Σ (f''/f - (f'/f)²) (n × w).
    diagonal: Vec<f64>,
    product: Vec<f64>,
    /// s, Σ C and σ_i (n).
    scale: f64,
    sum: f64,
    relative: Vec<f64>,
}

/// A bin of a template near its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearLimit {
    /// The bin, counted inside the channel.
    pub bin: usize,
    /// P less the limit.
    pub value: f64,
    /// C less the limit: the same where it is positive, and else 0.
    pub excess: f64,
}

/// Memory for [`Shape::each_second`].
#[derive(Debug, Clone, Default)]
pub struct ShapeScratch {
    /// u (bins) and g_i (n).
    weights: Vec<f64>,
    moments: Vec<f64>,
}

impl Shape {
    /// Lays out the template of `rule`.
    #[must_use]
    pub fn of(model: &Model, rule: &ShapeRule) -> Self {
        let (layout, t) = (&model.layout, rule.template);
        let (histosys, morphing) = (model.part(layout.template_histosys, t), model.part(layout.template_morphing, t));
        let (histosys_params, coefficients) = (model.table(layout.histosys_param), model.table(layout.morphing_param));
        let mut params = [&histosys_params[histosys.clone()], &coefficients[morphing.clone()]].concat();
        params.extend(rule.scaling.iter().map(|scaling| scaling.param));
        params.sort_unstable();
        params.dedup();
        let slot = |param: u32| params.partition_point(|&other| other < param);
        let nominal = model.values(layout.nominal)[model.part(layout.template_cell, t)].to_vec();
        let shifts = histosys.map(|entry| {
            let cells = model.histosys_cells(entry, nominal.len());
            Shift {
                slot: slot(histosys_params[entry]),
                response: model.histosys_response(entry),
                up: model.shifts.up[cells.clone()].to_vec(),
                down: model.shifts.down[cells].to_vec(),
            }
        });
        let terms = morphing.map(|entry| {
            let data = model.values(layout.morphing)[model.part(layout.morphing_cell, entry)].to_vec();
            Term { slot: slot(coefficients[entry]), data }
        });
        let scalings = rule.scaling.iter().map(|scaling| Scaling {
            slot: slot(scaling.param),
            response: scaling.response,
            factors: scaling.factors.clone(),
        });
        Self {
            width: nominal.len().next_multiple_of(4),
            n_bins: nominal.len(),
            shifts: shifts.collect(),
            terms: terms.collect(),
            scalings: scalings.collect(),
            clip: rule.clip,
            total: rule.total,
            nominal,
            params,
        }
    }

    /// Returns row `slot` of a matrix of n × w.
    #[must_use]
    pub fn row<'a>(&self, matrix: &'a [f64], slot: usize) -> &'a [f64] {
        &matrix[slot * self.width..][..self.width]
    }

    fn row_mut<'a>(&self, matrix: &'a mut [f64], slot: usize) -> &'a mut [f64] {
        &mut matrix[slot * self.width..][..self.n_bins]
    }

    /// Computes S at the extended point `params`, with `DERIVATIVES` what the other methods need.
    pub fn evaluate<const DERIVATIVES: bool>(&self, params: &[f64], out: &mut ShapePoint) {
        if DERIVATIVES {
            out.clear();
        }
        self.shift::<DERIVATIVES>(params, out);
        self.multiply::<DERIVATIVES>(params, out);
        if DERIVATIVES {
            self.complete(out);
        }
        self.limit::<DERIVATIVES>(out);
        self.normalise::<DERIVATIVES>(out);
    }

    /// Sets `values` to A, `shifted` to A_i and `diagonal` to A_ii.
    fn shift<const DERIVATIVES: bool>(&self, params: &[f64], out: &mut ShapePoint) {
        out.values[..self.n_bins].copy_from_slice(&self.nominal);
        for Shift { slot, response, up, down } in &self.shifts {
            let (p, q) = response.weights(params[self.params[*slot] as usize]);
            let add = |to: &mut [f64], p: f64, q: f64| {
                to.iter_mut().zip(up.iter().zip(down)).for_each(|(to, (up, down))| *to += p * up + q * down);
            };
            add(&mut out.values[..self.n_bins], p.value, q.value);
            if DERIVATIVES {
                add(self.row_mut(&mut out.shifted, *slot), p.first, q.first);
                add(self.row_mut(&mut out.diagonal, *slot), p.second, q.second);
            }
        }
        for Term { slot, data } in &self.terms {
            let coefficient = params[self.params[*slot] as usize];
            out.values.iter_mut().zip(data).for_each(|(value, term)| *value += coefficient * term);
            if DERIVATIVES {
                let row = self.row_mut(&mut out.shifted, *slot);
                row.iter_mut().zip(data).for_each(|(rate, term)| *rate += term);
            }
        }
    }

    /// Multiplies `values` by R; sets `product` to R, `logarithmic` to l, and adds
    /// A Σ (f''/f - (f'/f)²) to `diagonal`.
    fn multiply<const DERIVATIVES: bool>(&self, params: &[f64], out: &mut ShapePoint) {
        if self.scalings.is_empty() {
            return;
        }
        out.product[..self.n_bins].fill(1.0);
        for Scaling { slot, response, factors } in &self.scalings {
            let param = params[self.params[*slot] as usize];
            for (bin, factor) in factors.iter().enumerate() {
                let Jet { value, first, second } = response.at(factor, param);
                let value = if DERIVATIVES && value == 0.0 { TINY } else { value };
                out.product[bin] *= value;
                if DERIVATIVES {
                    let cell = slot * self.width + bin;
                    let rate = first / value;
                    out.logarithmic[cell] += rate;
                    out.diagonal[cell] += out.values[bin] * (second / value - rate * rate);
                }
            }
        }
        out.values.iter_mut().zip(&out.product).for_each(|(value, product)| *value *= product);
    }

    /// Multiplies the derivatives of A by R, and sets `derivatives` to those of P.
    fn complete(&self, out: &mut ShapePoint) {
        if self.scalings.is_empty() {
            return out.derivatives.copy_from_slice(&out.shifted);
        }
        for slot in 0..self.params.len() {
            for bin in 0..self.n_bins {
                let cell = slot * self.width + bin;
                out.shifted[cell] *= out.product[bin];
                out.diagonal[cell] *= out.product[bin];
                out.derivatives[cell] = out.shifted[cell] + out.values[bin] * out.logarithmic[cell];
            }
        }
    }

    fn limit<const DERIVATIVES: bool>(&self, out: &mut ShapePoint) {
        let Some(limit) = self.clip else { return };
        if DERIVATIVES {
            out.unlimited.copy_from_slice(&out.values);
        }
        for bin in 0..self.n_bins {
            if out.values[bin] < limit {
                out.values[bin] = limit;
                if DERIVATIVES {
                    out.is_free[bin] = 0.0;
                    out.derivatives.iter_mut().skip(bin).step_by(self.width).for_each(|rate| *rate = 0.0);
                }
            }
        }
    }

    fn normalise<const DERIVATIVES: bool>(&self, out: &mut ShapePoint) {
        out.sum = out.values[..self.n_bins].iter().sum();
        out.scale = match self.total {
            Some(total) if out.sum > 0.0 => total / out.sum,
            _ => 1.0,
        };
        if DERIVATIVES {
            out.clipped.copy_from_slice(&out.values);
            for slot in 0..self.params.len() {
                let rates = self.row(&out.derivatives, slot);
                let relative = if self.is_scaled(out) { rates.iter().sum::<f64>() / out.sum } else { 0.0 };
                let row = &mut out.jacobian[slot * self.width..][..self.width];
                for (rate, (derivative, value)) in row.iter_mut().zip(rates.iter().zip(&out.clipped)) {
                    *rate = out.scale * (derivative - value * relative);
                }
                out.relative[slot] = relative;
            }
        }
        if self.is_scaled(out) {
            out.values.iter_mut().for_each(|value| *value *= out.scale);
        }
    }

    fn is_scaled(&self, at: &ShapePoint) -> bool {
        self.total.is_some() && at.sum > 0.0
    }

    /// Calls `add` with each pair i ≥ j of parameters, as slots, and Σ_b v_b ∂²S_b/∂i∂j at the
    /// point `at`, which was evaluated with derivatives; `weights` is v, one for each bin.
    pub fn each_second(
        &self,
        at: &ShapePoint,
        weights: &[f64],
        scratch: &mut ShapeScratch,
        mut add: impl FnMut(usize, usize, f64),
    ) {
        let n = self.params.len();
        let dot = |a: &[f64]| weights.iter().zip(a).map(|(v, x)| v * x).sum::<f64>();
        let (is_scaled, sum) = (self.is_scaled(at), dot(&at.clipped));
        let ShapeScratch { weights: contracted, moments } = scratch;
        moments.clear();
        moments.extend((0..n).map(|slot| dot(self.row(&at.derivatives, slot))));
        let offset = if is_scaled { sum / at.sum } else { 0.0 };
        contracted.clear();
        contracted.extend(weights.iter().zip(&at.is_free).map(|(v, is_free)| at.scale * (v - offset) * is_free));
        for i in 0..n {
            for j in 0..=i {
                let (a, b) = (at.relative[i], at.relative[j]);
                let scaling = at.scale * (2.0 * a * b * sum - a * moments[j] - b * moments[i]);
                add(i, j, self.second(at, contracted, i, j) + if is_scaled { scaling } else { 0.0 });
            }
        }
    }

    /// Returns `true` if a limit may replace the values of bins.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.clip.is_some()
    }

    /// Calls `visit` with each bin whose P is near its limit at the point `at`, which was evaluated
    /// with derivatives: a change of all parameters by `reach` may take it there.
    pub fn each_near_limit(&self, at: &ShapePoint, reach: f64, mut visit: impl FnMut(NearLimit)) {
        let Some(limit) = self.clip else { return };
        for bin in 0..self.n_bins {
            let value = at.unlimited[bin] - limit;
            let speed: f64 = (0..self.params.len()).map(|slot| self.unlimited_rate(at, slot, bin).abs()).sum();
            if value.abs() <= reach * speed {
                visit(NearLimit { bin, value, excess: at.clipped[bin] - limit });
            }
        }
    }

    /// Returns ∂P/∂i in a bin, also where C is a limit.
    #[must_use]
    pub fn unlimited_rate(&self, at: &ShapePoint, slot: usize, bin: usize) -> f64 {
        let cell = slot * self.width + bin;
        let relative = at.logarithmic.get(cell).map_or(0.0, |rate| at.unlimited[bin] * rate);
        at.shifted[cell] + relative
    }

    /// Returns s, and V / Σ C, which is zero without a sum to keep: Σ_b v_b S_b changes by s (v_b -
    /// V / Σ C) with C of a bin. `weights` is v, one for each bin.
    #[must_use]
    pub fn scale_and_mean(&self, at: &ShapePoint, weights: &[f64]) -> [f64; 2] {
        let sum = || weights.iter().zip(&at.clipped).map(|(v, c)| v * c).sum::<f64>();
        [at.scale, if self.is_scaled(at) { sum() / at.sum } else { 0.0 }]
    }

    /// Returns Σ_b u_b ∂²P_b/∂i∂j; u is zero where C is a limit.
    fn second(&self, at: &ShapePoint, u: &[f64], i: usize, j: usize) -> f64 {
        let mut sum = 0.0;
        if i == j {
            sum += u.iter().zip(self.row(&at.diagonal, i)).map(|(u, curve)| u * curve).sum::<f64>();
        }
        if self.scalings.is_empty() {
            return sum;
        }
        let [(a, l), (b, m)] = [i, j].map(|slot| (self.row(&at.shifted, slot), self.row(&at.logarithmic, slot)));
        for (bin, u) in u.iter().enumerate() {
            sum += u * (a[bin] * m[bin] + b[bin] * l[bin] + at.clipped[bin] * l[bin] * m[bin]);
        }
        sum
    }
}

impl ShapePoint {
    /// Returns memory for `shape`.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let (n, width) = (shape.params.len(), shape.width);
        let (row, matrix) = (vec![0.0; width], vec![0.0; n * width]);
        Self {
            values: row.clone(),
            jacobian: matrix.clone(),
            clipped: row.clone(),
            is_free: row.clone(),
            unlimited: if shape.clip.is_some() { row.clone() } else { Vec::new() },
            derivatives: matrix.clone(),
            shifted: matrix.clone(),
            logarithmic: if shape.scalings.is_empty() { Vec::new() } else { matrix.clone() },
            diagonal: matrix,
            product: row,
            scale: 1.0,
            sum: 0.0,
            relative: vec![0.0; n],
        }
    }

    fn clear(&mut self) {
        self.is_free.fill(1.0);
        self.shifted.fill(0.0);
        self.logarithmic.fill(0.0);
        self.diagonal.fill(0.0);
    }
}
