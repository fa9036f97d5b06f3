//! Searches exhaustively for the lowest minimum, as a reference for the default search: slow, and
//! without knowledge of the causes of several minima.
//!
//! Starts are drawn in several ways, and conditional fits warm-start each other along the parameter
//! of interest in both directions. A value found here is an upper bound of the global minimum, so
//! that a default result above it is wrong.

use crate::random::Random;
use ns_core::{DataLikelihood, Model, SearchLikelihood};
use ns_inference::FitOptions;
use ns_inference::minimize::Minimum;
use ns_inference::options::domain_and_start;
use ns_inference::search::{Candidates, Search};

/// The effort of the search.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The number of random starts of every fit.
    pub n_starts: usize,
    /// The number of values of the parameter of interest along which fits warm-start each other.
    pub n_values: usize,
    /// The seed of the starts.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { n_starts: 200, n_values: 12, seed: 1 }
    }
}

/// The lowest minima found.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowest {
    /// -ln L at the free minimum.
    pub free: Minimum,
    /// -ln L at the conditional minima at the requested values of the parameter of interest.
    pub conditional: Vec<Minimum>,
}

/// The minima to search for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The parameter of interest; without one only the free minimum is searched for.
    pub poi: Option<usize>,
    /// Its values for conditional minima.
    pub values: &'a [f64],
    /// Starting points (P each) beside the random ones.
    pub known: &'a [Vec<f64>],
}

/// Returns the lowest free minimum of `likelihood`, and the conditional ones with parameter `poi`
/// at each of `values`.
pub fn search<L: DataLikelihood>(
    model: &Model,
    likelihood: &mut L,
    poi: Option<usize>,
    values: &[f64],
    effort: Effort,
) -> Lowest {
    search_for(model, likelihood, Wanted { poi, values, known: &[] }, effort)
}

/// Returns the lowest free minimum of `likelihood`, and the conditional ones that are `wanted`.
pub fn search_for<L: DataLikelihood>(model: &Model, likelihood: &mut L, wanted: Wanted<'_>, effort: Effort) -> Lowest {
    let Wanted { poi, values, known } = wanted;
    let mut starts = starts(model, effort);
    starts.splice(0..0, known.iter().cloned());
    let free = lowest(model, likelihood, None, &starts);
    let Some(poi) = poi else { return Lowest { free, conditional: Vec::new() } };
    starts.insert(0, free.params.clone());
    let mut conditional: Vec<Minimum> =
        values.iter().map(|&value| lowest(model, likelihood, Some((poi, value)), &starts)).collect();
    let mut free =
        lower(free, Grid { model, poi, starts: &starts, effort }.lowered(likelihood, values, &mut conditional));
    // Free minima from the conditional ones, and the other way round.
    for at in &conditional {
        free = lower(free, run(model, likelihood, None, &at.params));
    }
    for (at, &value) in conditional.iter_mut().zip(values) {
        *at = lower(at.clone(), run(model, likelihood, Some((poi, value)), &free.params));
    }
    Lowest { free, conditional }
}

/// A grid of values of a parameter, over its range.
struct Grid<'a> {
    model: &'a Model,
    poi: usize,
    /// Starting points (P each), the most promising first.
    starts: &'a [Vec<f64>],
    effort: Effort,
}

impl Grid<'_> {
    /// Fits over the grid and `values`, upwards and downwards, each fit with a warm start from the
    /// one before, until neither direction lowers a minimum. Lowers the minima `conditional` at
    /// `values`, and returns the lowest free minimum that the points lead to.
    fn lowered<L: DataLikelihood>(self, likelihood: &mut L, values: &[f64], conditional: &mut [Minimum]) -> Minimum {
        let Self { model, poi, starts, effort } = self;
        let (domain, _) = domain_and_start(model, &FitOptions::default());
        let (lower_end, upper_end) = (domain.lower[poi], domain.upper[poi]);
        let n = effort.n_values;
        let mut grid: Vec<(f64, Option<usize>)> =
            (0..=n).map(|k| (lower_end + (upper_end - lower_end) * (k as f64 / n as f64).powi(2), None)).collect();
        grid.extend(values.iter().enumerate().map(|(k, &value)| (value, Some(k))));
        grid.sort_by(|a, b| a.0.total_cmp(&b.0));
        let few = &starts[..starts.len().min(1 + effort.n_starts / 20)];
        let mut minima: Vec<Minimum> = grid
            .iter()
            .map(|&(value, known)| match known {
                Some(k) => conditional[k].clone(),
                None => lowest(model, likelihood, Some((poi, value)), few),
            })
            .collect();
        for _ in 0..3 {
            let before: f64 = minima.iter().map(|m| m.nll).filter(|nll| nll.is_finite()).sum();
            let order: Vec<usize> = (1..grid.len()).chain((0..grid.len() - 1).rev()).collect();
            for (step, k) in order.into_iter().enumerate() {
                let from = if step < grid.len() - 1 { k - 1 } else { k + 1 };
                let at = run(model, likelihood, Some((poi, grid[k].0)), &minima[from].params.clone());
                minima[k] = lower(minima[k].clone(), at);
            }
            let after: f64 = minima.iter().map(|m| m.nll).filter(|nll| nll.is_finite()).sum();
            if after >= before - 1e-9 {
                break;
            }
        }
        for (&(_, known), minimum) in grid.iter().zip(&minima) {
            if let Some(k) = known {
                conditional[k] = minimum.clone();
            }
        }
        let free = minima.iter().map(|m| m.params.clone()).collect::<Vec<_>>();
        lowest(model, likelihood, None, &free)
    }
}

fn lowest<L: SearchLikelihood>(
    model: &Model,
    likelihood: &mut L,
    fixed: Option<(usize, f64)>,
    starts: &[Vec<f64>],
) -> Minimum {
    let found = starts.iter().map(|start| run(model, likelihood, fixed, start));
    found.reduce(lower).expect("at least one start")
}

/// Returns the better of two results of one fit.
fn lower(a: Minimum, b: Minimum) -> Minimum {
    let is_better = match (a.converged(), b.converged()) {
        (true, true) => b.nll < a.nll,
        (a, b) => b && !a,
    };
    if is_better { b } else { a }
}

fn run<L: SearchLikelihood>(model: &Model, likelihood: &mut L, fixed: Option<(usize, f64)>, start: &[f64]) -> Minimum {
    let options = FitOptions { fixed: fixed.into_iter().collect(), ..FitOptions::default() };
    let (domain, _) = domain_and_start(model, &options);
    let mut start = start.to_vec();
    fixed.into_iter().for_each(|(i, value)| start[i] = value);
    Search::new(likelihood, domain, Candidates::default(), options.minimize).run(&start)
}

/// Returns the starting values, and random points: near and far, on sparse and on dense sets of
/// parameters.
fn starts(model: &Model, effort: Effort) -> Vec<Vec<f64>> {
    let (domain, start) = domain_and_start(model, &FitOptions::default());
    let mut random = Random::new(effort.seed);
    let mut all = vec![start.clone()];
    while all.len() < effort.n_starts + 1 {
        // One parameter of this many is moved.
        let sparse = [1, 1, 2, 5, 20][random.below(5)];
        let spread = [1.0, 2.0, 4.0][random.below(3)];
        let is_sign = random.one_in(3);
        let point: Vec<f64> = (0..start.len())
            .map(|i| {
                if domain.fixed[i] || !random.one_in(sparse) {
                    return start[i];
                }
                let (lower, upper) = (domain.lower[i], domain.upper[i]);
                let value = match model.parameters.constraint[i] {
                    Some(constraint) => {
                        let u = random.between(-1.0, 1.0);
                        let u = if is_sign { u.signum() } else { u };
                        start[i] + spread * u * constraint.width(start[i])
                    }
                    None => {
                        let reach = (3.0 * start[i].abs()).max(1.0);
                        random.between(lower.max(-reach), upper.min(reach))
                    }
                };
                value.clamp(lower, upper)
            })
            .collect();
        all.push(point);
    }
    all
}
