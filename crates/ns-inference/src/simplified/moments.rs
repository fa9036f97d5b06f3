//! Moments of yields whose parameters are normal, by their exact first and second derivatives.

use crate::memory::{MemoryShortage, require_bytes};
use crate::propagate::Propagator;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use ns_core::Model;
use ns_core::expected::expected_of_channel;
use ns_core::scalar::HyperDual;
use ns_core::sensitivity::DerivativeColumns;

/// Why yields have no moments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMoments {
    /// A parameter acts on the yields, and nothing determines it.
    #[error("parameter {param} is not determined")]
    Undetermined {
        /// Its index.
        param: usize,
    },
    /// A yield, its derivatives or its moments are not finite.
    #[error("the yield in bin {bin} or one of its derivatives is not finite")]
    NotFinite {
        /// The bin, counted over all channels.
        bin: usize,
    },
    /// The second derivatives do not fit into memory.
    #[error("for the second derivatives of the yields {0}")]
    TooLarge(#[from] MemoryShortage),
}

/// Moments of the yields of K bins.
#[derive(Debug, Clone, PartialEq)]
pub struct YieldMoments {
    /// The parameters that act on the yields, ascending.
    pub params: Vec<usize>,
    /// The yields at the point of expansion (K).
    pub yields: Vec<f64>,
    /// Their covariance to first order (K × K, by rows).
    pub linear_covariance: Vec<f64>,
    /// The means of the yields to second order (K).
    pub means: Vec<f64>,
    /// The covariance of the yields to second order (K × K, by rows).
    pub covariance: Vec<f64>,
    /// Their third central moments (K).
    pub third_moments: Vec<f64>,
}

/// The expansion of the yield of one bin to second order, in the parameters of its channel.
struct Expansion<'a> {
    /// Where the channel's parameters are among those of all channels (n).
    columns: &'a [usize],
    value: f64,
    /// First derivatives (n).
    gradient: Vec<f64>,
    /// Second derivatives (n × n).
    hessian: Mat<f64>,
    /// Second derivatives times the covariance: n rows, a column for each parameter of all
    /// channels.
    product: Mat<f64>,
}

impl YieldMoments {
    /// Returns the moments of the yields in `channels` of `model`, in their order, where the
    /// parameters are normal around `params` (P) with the covariance of `propagator`.
    ///
    /// With gradient g and Hessian H of a yield, and covariance C, the mean is λ + ½ tr(HC), the
    /// covariance gᵀCg' + ½ tr(HCH'C), and the third central moment 3 gᵀCHCg + tr((HC)³).
    ///
    /// # Errors
    /// A parameter that acts on a yield and whose variance is not known; a yield that is not
    /// finite; too little memory.
    pub fn of(model: &Model, channels: &[usize], params: &[f64], propagator: &Propagator) -> Result<Self, NoMoments> {
        let of_channels: Vec<Vec<usize>> = channels.iter().map(|&channel| acting_on(model, channel)).collect();
        let mut all: Vec<usize> = of_channels.concat();
        all.sort_unstable();
        all.dedup();
        require_bytes(needed(model, channels, &of_channels, all.len()))?;
        let known = propagator.covariance(&all).map_err(|param| NoMoments::Undetermined { param })?;
        let covariance = Mat::from_fn(all.len(), all.len(), |i, j| known[i * all.len() + j]);
        let place = |param: &usize| all.binary_search(param).unwrap_or_default();
        let columns: Vec<Vec<usize>> = of_channels.iter().map(|params| params.iter().map(place).collect()).collect();
        let bins: Vec<Expansion<'_>> = channels
            .iter()
            .zip(of_channels.iter().zip(&columns))
            .flat_map(|(&channel, (acting, columns))| expand(model, channel, params, acting, columns, &covariance))
            .collect();
        let found = Self::of_expansions(&bins, &covariance);
        match found.not_finite() {
            Some(bin) => Err(NoMoments::NotFinite { bin }),
            None => Ok(Self { params: all, ..found }),
        }
    }

    /// Returns the first bin with a moment that is not finite.
    fn not_finite(&self) -> Option<usize> {
        let n = self.yields.len();
        let is_finite = |bin: usize| {
            let row = bin * n..(bin + 1) * n;
            let matrices = [&self.linear_covariance[row.clone()], &self.covariance[row]];
            let own = [self.yields[bin], self.means[bin], self.third_moments[bin]];
            matrices.concat().into_iter().chain(own).all(f64::is_finite)
        };
        (0..n).find(|&bin| !is_finite(bin))
    }

    fn of_expansions(bins: &[Expansion<'_>], covariance: &Mat<f64>) -> Self {
        let n = bins.len();
        let moved: Vec<Vec<f64>> = bins.iter().map(|bin| bin.moved(covariance)).collect();
        let mut linear_covariance = vec![0.0; n * n];
        let mut second_order = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let first = bins[i].along(&moved[j]);
                let both = first + 0.5 * bins[i].trace_with(&bins[j]);
                for at in [i * n + j, j * n + i] {
                    (linear_covariance[at], second_order[at]) = (first, both);
                }
            }
        }
        Self {
            params: Vec::new(),
            yields: bins.iter().map(|bin| bin.value).collect(),
            linear_covariance,
            means: bins.iter().map(|bin| bin.value + 0.5 * bin.trace()).collect(),
            covariance: second_order,
            third_moments: bins.iter().zip(&moved).map(|(bin, moved)| bin.third_moment(moved)).collect(),
        }
    }
}

impl Expansion<'_> {
    /// Returns the covariance times the gradient, one entry for each parameter of all channels.
    fn moved(&self, covariance: &Mat<f64>) -> Vec<f64> {
        let entry = |i: usize| self.columns.iter().zip(&self.gradient).map(|(&j, g)| covariance[(i, j)] * g).sum();
        (0..covariance.nrows()).map(entry).collect()
    }

    /// Returns the derivative along `direction`, which has an entry for each parameter of all
    /// channels.
    fn along(&self, direction: &[f64]) -> f64 {
        self.columns.iter().zip(&self.gradient).map(|(&i, g)| direction[i] * g).sum()
    }

    /// Returns tr(HC).
    fn trace(&self) -> f64 {
        self.columns.iter().enumerate().map(|(row, &column)| self.product[(row, column)]).sum()
    }

    /// Returns tr(HCH'C), H' being the Hessian of `other`.
    fn trace_with(&self, other: &Self) -> f64 {
        let mut sum = 0.0;
        for (a, &column) in self.columns.iter().enumerate() {
            for (b, &other_column) in other.columns.iter().enumerate() {
                sum += self.product[(a, other_column)] * other.product[(b, column)];
            }
        }
        sum
    }

    /// Returns 3 gᵀCHCg + tr((HC)³), `moved` being Cg.
    fn third_moment(&self, moved: &[f64]) -> f64 {
        let n = self.columns.len();
        let along: Vec<f64> = self.columns.iter().map(|&i| moved[i]).collect();
        let mut bend = 0.0;
        for i in 0..n {
            for j in 0..n {
                bend += along[i] * self.hessian[(i, j)] * along[j];
            }
        }
        let own = Mat::from_fn(n, n, |i, j| self.product[(i, self.columns[j])]);
        let mut squared = Mat::zeros(n, n);
        matmul(squared.as_mut(), Accum::Replace, own.as_ref(), own.as_ref(), 1.0, Par::Seq);
        let mut cubed = 0.0;
        for i in 0..n {
            for j in 0..n {
                cubed += squared[(i, j)] * own[(j, i)];
            }
        }
        3.0 * bend + cubed
    }
}

/// Returns how many bytes the expansions of the yields take at least, where the parameters
/// `of_channels` act on `channels`, `n` in all.
fn needed(model: &Model, channels: &[usize], of_channels: &[Vec<usize>], n: usize) -> u64 {
    let bytes = |(&channel, params): (&usize, &Vec<usize>)| {
        let (n_bins, own) = (model.channel_bins(channel).len() as u64, params.len() as u64);
        n_bins.saturating_mul(own).saturating_mul(2 * own + n as u64).saturating_mul(8)
    };
    channels.iter().zip(of_channels).map(bytes).fold(0, u64::saturating_add)
}

/// Returns the parameters that act on the yields of `channel`, ascending.
fn acting_on(model: &Model, channel: usize) -> Vec<usize> {
    let columns = DerivativeColumns::of(model, model.channel_templates(channel));
    let n_bins = model.channel_bins(channel).len();
    let mut params: Vec<usize> = (0..columns.len())
        .flat_map(|column| (0..n_bins).map(move |bin| (column, bin)))
        .map(|(column, bin)| columns.param(column, bin))
        .collect();
    params.sort_unstable();
    params.dedup();
    params
}

/// Returns the expansions of the yields of `channel` at `params` (P) in the parameters `acting`,
/// which are at `columns` among those of all channels, whose covariance is `covariance`.
fn expand<'a>(
    model: &Model,
    channel: usize,
    params: &[f64],
    acting: &[usize],
    columns: &'a [usize],
    covariance: &Mat<f64>,
) -> Vec<Expansion<'a>> {
    let n = acting.len();
    let mut point: Vec<HyperDual> = params.iter().map(|&value| HyperDual::from(value)).collect();
    let values: Vec<f64> = acting.iter().map(|&i| params[i]).collect();
    for (&i, variable) in acting.iter().zip(HyperDual::variables(&values)) {
        point[i] = variable;
    }
    let rows = Mat::from_fn(n, covariance.ncols(), |i, j| covariance[(columns[i], j)]);
    let expansion = |found: HyperDual| {
        let is_constant = found.gradient.is_empty();
        let gradient = if is_constant { vec![0.0; n] } else { found.gradient };
        let hessian = Mat::from_fn(n, n, |i, j| if is_constant { 0.0 } else { found.hessian[i * n + j] });
        let mut product = Mat::zeros(n, rows.ncols());
        matmul(product.as_mut(), Accum::Replace, hessian.as_ref(), rows.as_ref(), 1.0, Par::Seq);
        Expansion { columns, value: found.value, gradient, hessian, product }
    };
    expected_of_channel(model, channel, &point).into_iter().map(expansion).collect()
}
