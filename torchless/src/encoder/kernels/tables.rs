//! Tables whose rows are gathered by their numbers, such as those of embeddings, stored in fewer
//! bytes than single precision and widened row by row.

use super::movement;
use super::{Arg, OutOfRange};
use crate::encoder::storage::{self, OutOfStorage, WeightStorage};
use crate::weights::Matrix;

/// A constant table (rows, columns).
pub(in crate::encoder) struct Table {
    pub(in crate::encoder) columns: usize,
    /// Rows of bytes are filled up with zeros.
    stored: Matrix,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}×{} {}", self.stored.rows(), self.columns, self.stored.format())
    }
}

impl Table {
    /// Stores rows of `columns` numbers; None if there are none, or in single precision.
    pub(in crate::encoder) fn of(
        values: &[f32],
        columns: usize,
        storage: WeightStorage,
    ) -> Result<Option<Table>, OutOfStorage> {
        if columns == 0 {
            return Ok(None);
        }
        let stored = storage::store(storage, values.chunks_exact(columns).map(<[f32]>::to_vec), columns)?;
        Ok(stored.map(|stored| Table { columns, stored }))
    }

    pub(in crate::encoder) fn n_bytes(&self) -> usize {
        self.stored.n_bytes()
    }

    /// Writes the rows that `indices` name, which may count from the end, to `out`.
    pub(super) fn gather(&self, indices: Arg<'_>, out: &mut [f32]) -> Result<(), OutOfRange> {
        let (indices, view) = indices.int();
        let mut row = vec![0.0; self.stored.columns()];
        for (place, out) in view.places().zip(out.chunks_exact_mut(self.columns)) {
            let index = movement::named_index(indices, place, self.stored.rows())?;
            self.stored.row(index, &mut row);
            out.copy_from_slice(&row[..self.columns]);
        }
        Ok(())
    }
}
