//! Counts the operations and the memory traffic of one iteration of a fit from the sizes of the
//! model, as a lower bound for measured times.
//!
//! Counted are the sums and products of the loops of `kernels/*.h`, and the numbers that they load
//! and store outside of registers. Caches are ignored, so the traffic is between lanes and L1. An
//! iteration is one evaluation, its derivatives with the exact Hessian, and one step without a
//! parameter at a bound.

use crate::cpu::plan::ModelPlan;

/// Floating-point operations, and bytes in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IterationCost {
    /// The operations.
    pub flops: f64,
    /// The bytes.
    pub bytes: f64,
}

/// Returns the parts of an iteration, each with its cost.
pub(super) fn of_iteration(plan: &ModelPlan, n_entries: usize) -> Vec<(&'static str, IterationCost)> {
    let (mut evaluate, mut derivatives, mut locals, mut products) =
        (IterationCost::default(), IterationCost::default(), IterationCost::default(), IterationCost::default());
    let entries_per_column =
        n_entries as f64 / plan.channels.iter().map(|c| c.columns.len()).sum::<usize>().max(1) as f64;
    for channel in &plan.channels {
        let (bins, templates) = (channel.bins.len() as f64, channel.templates.len() as f64);
        let (columns, slots) = (channel.columns.len() as f64, channel.n_slots as f64);
        let shifts: usize = plan.templates[channel.templates.clone()].iter().map(|t| t.histosys.len()).sum();
        let entries = entries_per_column * columns;
        evaluate
            .add(bins * (4.0 * shifts as f64 + 4.0 * templates + 30.0), bins * (4.0 * shifts as f64 + 4.0 * templates));
        // Every entry of a column in every bin, for the Jacobian and again for the coupling of each
        // local parameter.
        derivatives.add(bins * (entries * 2.0 + columns * 5.0), bins * (entries * 3.0 + columns * 3.0));
        derivatives.add(
            entries * 8.0 + 2.0 * shifts as f64 * bins,
            entries * 6.0 + 2.0 * templates * columns + 3.0 * shifts as f64 * bins,
        );
        locals.add(
            bins * slots * (entries * 2.0 + columns * (3.0 + slots)),
            bins * slots * (entries * 3.0 + columns * 4.0),
        );
        // Tiles of 4 x 4 of a triangle: 32 operations and 8 loads for each pair of rows.
        let tiles = (columns / 4.0).ceil() * ((columns / 4.0).ceil() + 1.0) / 2.0;
        let rows = bins * (1.0 + slots) + 2.0 * templates;
        products.add(tiles * rows * 32.0, tiles * (rows * 8.0 + 32.0));
    }
    let global = plan.partition.n_global() as f64;
    let mut cholesky = IterationCost::default();
    cholesky
        .add(global.powi(3) / 3.0 + 2.0 * global * global, global.powi(3) / 3.0 / 32.0 * 8.0 + 3.0 * global * global);
    vec![
        ("evaluation", evaluate),
        ("derivatives", derivatives),
        ("local parameters", locals),
        ("products of rows", products),
        ("Cholesky", cholesky),
    ]
}

impl IterationCost {
    fn add(&mut self, flops: f64, numbers: f64) {
        self.flops += flops;
        self.bytes += 8.0 * numbers;
    }
}
