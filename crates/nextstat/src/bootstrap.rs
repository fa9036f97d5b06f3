//! Bootstrap replicas of histograms, checked before they are made: the weights and their generator
//! are described in [`ns_inference::bootstrap`].

use ns_inference::bootstrap::{BootstrapEvents, EventId};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::ExecutionContext;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The events of a histogram, as a caller has them.
#[derive(Debug, Clone)]
pub struct BootstrapRequest<'a> {
    /// The bin of each event (E), from 0; a negative number for an event in no bin.
    pub bins: &'a [i64],
    /// The number of each event in its run (E).
    pub events: &'a [u64],
    /// The run, or the simulated sample, of each event (E), or of all.
    pub runs: &'a [u32],
    /// The weight of each event (E); empty if all have weight 1.
    pub weights: &'a [f64],
    /// The number of bins (B).
    pub n_bins: usize,
    /// The seed. Replicas of different seeds are independent.
    pub seed: u64,
    /// The numbers of the replicas.
    pub replicas: Range<u32>,
}

/// Why there are no replicas of a histogram.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Columns of different lengths.
    #[error("`{column}` has {found} entries for {expected} events")]
    Length {
        /// The column.
        column: &'static str,
        /// Its number of entries.
        found: usize,
        /// The number of events.
        expected: usize,
    },
    /// A bin beyond the last.
    #[error("event {index} is in bin {bin}, and there are {n_bins} bins")]
    NoSuchBin {
        /// The place of the event in the list.
        index: usize,
        /// Its bin.
        bin: i64,
        /// The number of bins.
        n_bins: usize,
    },
    /// A weight that is not finite.
    #[error("event {index} has the weight {weight}, which is not finite")]
    Weight {
        /// The place of the event in the list.
        index: usize,
        /// Its weight.
        weight: f64,
    },
    /// Replicas that do not fit into memory.
    #[error("{n_replicas} replicas of {n_bins} bins do not fit into memory")]
    TooLarge {
        /// The number of replicas.
        n_replicas: usize,
        /// The number of bins.
        n_bins: usize,
    },
}

impl BootstrapError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchBin { .. } => Some("bins are counted from 0; -1 is an event in no bin".to_owned()),
            _ => None,
        }
    }
}

/// Returns histograms of the replicas (N × B), each event weighted with its Poisson(1) count in the
/// replica; `None` if `monitor` cancelled. The bits do not depend on the number of threads.
///
/// # Errors
/// [`BootstrapError`]
///
/// ```
/// use nextstat::NoMonitor;
/// use nextstat::bootstrap::{BootstrapRequest, bootstrap};
/// let events: Vec<u64> = (0..1000).collect();
/// let bins = vec![0; 1000];
/// let (runs, weights, replicas) = (&[1][..], &[][..], 0..100);
/// let request = BootstrapRequest { bins: &bins, events: &events, runs, weights, n_bins: 1, seed: 0, replicas };
/// let replicas = bootstrap(&request, std::num::NonZeroUsize::MIN, &NoMonitor)?.unwrap();
/// let mean = replicas.iter().sum::<f64>() / 100.0;
/// assert!((mean - 1000.0).abs() < 5.0 * (1000.0_f64 / 100.0).sqrt());
/// # Ok::<(), nextstat::bootstrap::BootstrapError>(())
/// ```
pub fn bootstrap(
    request: &BootstrapRequest<'_>,
    threads: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<f64>>, BootstrapError> {
    let &BootstrapRequest { events, runs, weights, n_bins, seed, ref replicas, .. } = request;
    let bins = request.checked_bins()?;
    let mut memory: Vec<f64> = Vec::new();
    let n_replicas = replicas.len();
    let n_values = n_replicas.checked_mul(n_bins).and_then(|n| n.checked_mul(2));
    n_values.and_then(|n| memory.try_reserve_exact(n).ok()).ok_or(BootstrapError::TooLarge { n_replicas, n_bins })?;
    drop(memory);
    let events = BootstrapEvents { bins: &bins, events, runs, weights };
    let execution = ExecutionContext::new(threads, monitor);
    Ok(ns_inference::bootstrap::bootstrap(&events, n_bins, seed, replicas.clone(), execution))
}

impl BootstrapRequest<'_> {
    fn checked_bins(&self) -> Result<Vec<Option<u32>>, BootstrapError> {
        let expected = self.events.len();
        require_length("bins", self.bins.len(), expected)?;
        if self.runs.len() != 1 {
            require_length("runs", self.runs.len(), expected)?;
        }
        if !self.weights.is_empty() {
            require_length("weights", self.weights.len(), expected)?;
        }
        if let Some(index) = self.weights.iter().position(|weight| !weight.is_finite()) {
            return Err(BootstrapError::Weight { index, weight: self.weights[index] });
        }
        let checked = |(index, &bin): (usize, &i64)| match u32::try_from(bin) {
            _ if bin < 0 => Ok(None),
            Ok(found) if (found as usize) < self.n_bins => Ok(Some(found)),
            _ => Err(BootstrapError::NoSuchBin { index, bin, n_bins: self.n_bins }),
        };
        self.bins.iter().enumerate().map(checked).collect()
    }
}

fn require_length(column: &'static str, found: usize, expected: usize) -> Result<(), BootstrapError> {
    if found == expected { Ok(()) } else { Err(BootstrapError::Length { column, found, expected }) }
}

/// Writes the weights of the replicas from `first` on to `out` (E × N), for the events of `events`
/// and `runs` (E, or one for all).
///
/// # Errors
/// [`BootstrapError::Length`]
pub fn bootstrap_weights(
    events: &[u64],
    runs: &[u32],
    seed: u64,
    first: u32,
    out: &mut [u8],
) -> Result<(), BootstrapError> {
    if runs.len() != 1 {
        require_length("runs", runs.len(), events.len())?;
    }
    let n_replicas = out.len().checked_div(events.len()).unwrap_or(0);
    for (i, row) in out.chunks_exact_mut(n_replicas.max(1)).enumerate() {
        let run = if let [run] = runs { *run } else { runs[i] };
        EventId { run, event: events[i] }.weights(seed, first, row);
    }
    Ok(())
}
