//! Whether this machine can hold the matrices of a fit, asked before they are allocated: an
//! allocation that fails ends the process.
//!
//! A fit holds dense matrices over the global parameters, so its memory grows with the square of
//! their number.

use ns_core::curvature::{Arrowhead, CurvatureStructure};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Less than this is not compared with the memory that is available: asking takes as long as a
/// small fit.
const NEGLIGIBLE: u64 = 64 << 20;

/// A model whose matrices do not fit into memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fit of {n_params} parameters needs at least {} of memory, and {}", in_units(*.needed), granted(*.available))]
pub struct ModelTooLarge {
    /// P, the number of parameters.
    pub n_params: usize,
    /// Bytes that a fit needs at least.
    pub needed: u64,
    /// Bytes that are available; None if there are enough, and a limit of this process forbids
    /// them.
    pub available: Option<u64>,
}

/// More memory than there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at least {} of memory are needed, and {}", in_units(*.needed), granted(*.available))]
pub struct MemoryShortage {
    /// Bytes that are needed at least.
    pub needed: u64,
    /// As in [`ModelTooLarge`].
    pub available: Option<u64>,
}

fn granted(available: Option<u64>) -> String {
    match available {
        Some(bytes) => format!("{} is available", in_units(bytes)),
        None => "the system does not grant it to this process".to_owned(),
    }
}

/// Returns how many bytes the matrices of one fit take at least: both approximations of the
/// Hessian, and a factor.
#[must_use]
pub fn needed(structure: &CurvatureStructure) -> u64 {
    let arrowhead = Arrowhead::bytes(&structure.partition);
    let rows = (structure.n_rows as u64).saturating_mul(8).saturating_mul(structure.partition.n_params() as u64);
    arrowhead.saturating_mul(2).saturating_add(rows.min(arrowhead))
}

/// Finds out whether there is memory for a fit of this structure.
///
/// # Errors
/// [`ModelTooLarge`] if the system would not grant the memory, or has less of it.
pub fn require(structure: &CurvatureStructure) -> Result<(), ModelTooLarge> {
    let (needed, n_params) = (needed(structure), structure.partition.n_params());
    require_bytes(needed).map_err(|MemoryShortage { needed, available }| ModelTooLarge { n_params, needed, available })
}

/// Finds out whether `needed` bytes of memory can be had.
///
/// # Errors
/// [`MemoryShortage`] if the system would not grant them, or has less.
pub fn require_bytes(needed: u64) -> Result<(), MemoryShortage> {
    let is_granted = is_granted(needed);
    if is_granted && needed <= NEGLIGIBLE {
        return Ok(());
    }
    let available = available();
    if is_granted && needed <= available {
        return Ok(());
    }
    Err(MemoryShortage { needed, available: Some(available).filter(|available| *available < needed) })
}

/// Returns `true` if the system grants `bytes` bytes of addresses, as limits of the process and of
/// the machine allow.
fn is_granted(bytes: u64) -> bool {
    let mut trial = Vec::<u8>::new();
    let granted = usize::try_from(bytes).is_ok_and(|bytes| trial.try_reserve_exact(bytes).is_ok());
    // Without this, the compiler may leave the unused allocation out.
    std::hint::black_box(&trial);
    granted
}

/// Returns how many bytes of memory this process can have, swap included, within the limits of its
/// container.
fn available() -> u64 {
    let system = System::new_with_specifics(RefreshKind::nothing().with_memory(MemoryRefreshKind::everything()));
    let machine = system.available_memory().saturating_add(system.free_swap());
    let container = system
        .cgroup_limits()
        // Files that the kernel keeps in memory count as used, and are given up when memory is
        // needed.
        .map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss).saturating_add(limits.free_swap));
    machine.min(container)
}

/// Formats bytes in the unit that makes the number easy to read.
fn in_units(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["MiB", "GiB", "TiB", "PiB"];
    let mut number = bytes as f64 / f64::from(1 << 20);
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::curvature::Partition;
    use std::sync::Arc;

    fn dense(n_params: usize) -> CurvatureStructure {
        CurvatureStructure { partition: Arc::new(Partition::new(n_params, &[])), n_rows: 1 }
    }

    #[test]
    fn matrices_beyond_any_memory_are_refused() {
        assert_eq!(require(&dense(300)), Ok(()));
        let error = require(&dense(10_000_000)).expect_err("1.6 PB");
        assert_eq!(error.n_params, 10_000_000);
        assert!(
            error.to_string().starts_with("a fit of 10000000 parameters needs at least 1.4 PiB of memory"),
            "{error}"
        );
    }

    #[test]
    fn local_parameters_cost_their_coupling_only() {
        let blocks: Vec<Vec<u32>> = (1..1000).map(|i| vec![i]).collect();
        let structure = CurvatureStructure { partition: Arc::new(Partition::new(1000, &blocks)), n_rows: 1000 };
        assert!(needed(&structure) < 1 << 20);
        assert!(needed(&dense(1000)) > 1 << 23);
    }
}
