//! Which elements of an arrowhead matrix can differ from zero.
//!
//! In a model that joins analyses, most global parameters of one analysis never meet those of
//! another one. [`Sparsity`] says which pairs of parameters do, and in which order to eliminate
//! them so that a Cholesky factor has few elements.

use super::{Arrowhead, Partition};

/// The elements of the lower triangle of an [`Arrowhead`] matrix that can differ from zero, column
/// by column. Rows and columns are positions: the G globals, then the L locals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sparsity {
    /// First element of each column (P), and the number of elements at the end.
    pub column_start: Vec<usize>,
    /// The row of each element, ascending in each column; the diagonal comes first.
    pub rows: Vec<usize>,
    /// The position that is eliminated first, second, … (P).
    pub order: Vec<usize>,
}

/// Parameters that all meet each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clique<'a> {
    /// Positions of global parameters, ascending.
    pub global: &'a [u32],
    /// Blocks of local parameters, each of which meets these and itself.
    pub blocks: std::ops::Range<usize>,
}

/// Sets of positions of global parameters as bits: those that each of them meets (G).
struct Neighbours {
    n_words: usize,
    words: Vec<u64>,
}

impl Neighbours {
    fn of(n_global: usize, cliques: &[Clique<'_>]) -> Self {
        let n_words = n_global.div_ceil(64);
        let mut words = vec![0; n_global * n_words];
        for clique in cliques {
            let mut members = vec![0; n_words];
            clique.global.iter().for_each(|&j| members[j as usize / 64] |= 1 << (j % 64));
            for &j in clique.global {
                let row = &mut words[j as usize * n_words..][..n_words];
                row.iter_mut().zip(&members).for_each(|(word, members)| *word |= members);
            }
        }
        for j in 0..n_global {
            words[j * n_words + j / 64] |= 1 << (j % 64);
        }
        Self { n_words, words }
    }

    fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Iterates over those that `j` meets, from `j` on.
    fn from(&self, j: usize) -> impl Iterator<Item = usize> {
        let row = &self.words[j * self.n_words..][..self.n_words];
        (j..self.n_words * 64).filter(move |i| row[i / 64] >> (i % 64) & 1 == 1)
    }
}

impl Sparsity {
    /// Returns the elements of a matrix of the shape `partition` whose parameters meet in
    /// `cliques`, to be eliminated in the order of positions; `None` if they are more than `most`.
    #[must_use]
    pub fn new(partition: &Partition, cliques: &[Clique<'_>], most: usize) -> Option<Self> {
        let (g, n) = (partition.n_global(), partition.n_params());
        let largest = cliques.iter().map(|clique| clique.global.len()).max().unwrap_or(0);
        if largest * (largest + 1) / 2 > most {
            return None;
        }
        let neighbours = Neighbours::of(g, cliques);
        let size = |block: usize| partition.block(block).len();
        let coupled = |clique: &Clique<'_>| clique.global.len() * clique.blocks.clone().map(size).sum::<usize>();
        let n_coupled: usize = cliques.iter().map(coupled).sum();
        let n_local: usize = (0..partition.n_blocks()).map(|block| size(block) * (size(block) + 1) / 2).sum();
        if (neighbours.count() + g) / 2 + n_coupled + n_local > most {
            return None;
        }
        let mut coupled: Vec<Vec<usize>> = vec![Vec::new(); g];
        for clique in cliques {
            let locals = || clique.blocks.clone().flat_map(|block| partition.block(block)).map(|local| g + local);
            clique.global.iter().for_each(|&j| coupled[j as usize].extend(locals()));
        }
        let (mut column_start, mut rows) = (vec![0], Vec::new());
        for (j, locals) in coupled.iter_mut().enumerate() {
            rows.extend(neighbours.from(j));
            locals.sort_unstable();
            locals.dedup();
            rows.append(locals);
            column_start.push(rows.len());
        }
        for block in 0..partition.n_blocks() {
            let range = partition.block(block);
            for local in range.clone() {
                rows.extend((local..range.end).map(|row| g + row));
                column_start.push(rows.len());
            }
        }
        Some(Self { column_start, rows, order: (0..n).collect() })
    }

    /// Returns the same, to be eliminated in `order`, which has every position (P) once.
    #[must_use]
    pub fn with_order(mut self, order: Vec<usize>) -> Self {
        self.order = order;
        self
    }

    /// Returns the positions of the rows of column `j`.
    #[must_use]
    pub fn column(&self, j: usize) -> &[usize] {
        &self.rows[self.column_start[j]..self.column_start[j + 1]]
    }

    /// Returns the same of global and of local parameters, of which the first `n_global` positions
    /// are global ones.
    fn parts(&self, j: usize, n_global: usize) -> (&[usize], &[usize]) {
        let column = self.column(j);
        column.split_at(column.partition_point(|&i| i < n_global))
    }
}

impl Arrowhead {
    /// Writes the elements that can differ from zero to `out`, in the order of `sparsity`.
    pub fn gather(&self, sparsity: &Sparsity, out: &mut Vec<f64>) {
        out.clear();
        let g = self.partition.n_global();
        for j in 0..g {
            let (global, local) = sparsity.parts(j, g);
            out.extend(global.iter().map(|i| self.global[j * g + i]));
            out.extend(local.iter().map(|i| self.coupling[(i - g) * g + j]));
        }
        for block in 0..self.partition.n_blocks() {
            let (m, offset) = (self.partition.block(block).len(), self.partition.block_offset[block]);
            out.extend((0..m).flat_map(|j| (j..m).map(move |i| offset + i * m + j)).map(|place| self.blocks[place]));
        }
    }

    /// Sets the elements that can differ from zero to zero.
    pub(super) fn clear_sparse(&mut self, sparsity: &Sparsity) {
        let g = self.partition.n_global();
        for j in 0..g {
            let (global, local) = sparsity.parts(j, g);
            global.iter().for_each(|i| self.global[j * g + i] = 0.0);
            local.iter().for_each(|i| self.coupling[(i - g) * g + j] = 0.0);
        }
        self.blocks.fill(0.0);
    }

    /// Adds to `out` the product of the columns of global parameters, below the diagonal and above
    /// it, with `x` (both P, in parameter order).
    pub(super) fn multiply_sparse(&self, sparsity: &Sparsity, x: &[f64], out: &mut [f64]) {
        let partition = &*self.partition;
        let g = partition.n_global();
        for (j, &pj) in partition.global.iter().enumerate() {
            let (global, local) = sparsity.parts(j, g);
            let mut sum = self.global[j * (g + 1)] * x[pj as usize];
            for &i in &global[1..] {
                let (h, pi) = (self.global[j * g + i], partition.global[i] as usize);
                out[pi] += h * x[pj as usize];
                sum += h * x[pi];
            }
            for &i in local {
                let (h, pi) = (self.coupling[(i - g) * g + j], partition.local[i - g] as usize);
                out[pi] += h * x[pj as usize];
                sum += h * x[pi];
            }
            out[pj as usize] += sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Returns two analyses of two global parameters each, 0 and 1, 3 and 4, with parameter 2 in
    /// common, and a local parameter in each.
    fn joint() -> (Partition, Sparsity) {
        let partition = Partition::new(7, &[vec![5], vec![6]]);
        let cliques = [Clique { global: &[0, 1, 2], blocks: 0..1 }, Clique { global: &[2, 3, 4], blocks: 1..2 }];
        let sparsity = Sparsity::new(&partition, &cliques, usize::MAX).expect("there are few elements");
        (partition, sparsity)
    }

    #[test]
    fn only_parameters_that_meet_have_elements() {
        let (partition, sparsity) = joint();
        let columns: Vec<&[usize]> = (0..7).map(|j| sparsity.column(j)).collect();
        let expected: [&[usize]; 7] = [&[0, 1, 2, 5], &[1, 2, 5], &[2, 3, 4, 5, 6], &[3, 4, 6], &[4, 6], &[5], &[6]];
        assert_eq!(columns, expected);
        let cliques = [Clique { global: &[0, 1, 2, 3, 4], blocks: 0..2 }];
        assert_eq!(Sparsity::new(&partition, &cliques, 26), None, "all 27 elements differ from zero");
        assert!(Sparsity::new(&partition, &cliques, 27).is_some());
    }

    #[test]
    fn sparse_matrices_are_multiplied_and_cleared_like_dense_ones() {
        let (dense, sparsity) = joint();
        let partition = Partition { sparsity: Some(sparsity.clone()), ..dense.clone() };
        let mut matrix = Arrowhead::zeros(Arc::new(partition));
        for j in 0..7 {
            for (k, &i) in sparsity.column(j).iter().enumerate() {
                let value = (1 + 10 * j + k) as f64;
                match (i < 5, j < 5) {
                    (true, _) => matrix.global[j * 5 + i] = value,
                    (false, true) => matrix.coupling[(i - 5) * 5 + j] = value,
                    (false, false) => matrix.blocks[j - 5] = value,
                }
            }
        }
        let mut elements = Vec::new();
        matrix.gather(&sparsity, &mut elements);
        assert_eq!(elements[..5], [1.0, 2.0, 3.0, 4.0, 11.0]);
        let copy = Arrowhead { partition: Arc::new(dense), ..matrix.clone() };
        assert_eq!(matrix.to_dense(), copy.to_dense());
        matrix.clear();
        assert!(matrix.global.iter().chain(&matrix.coupling).chain(&matrix.blocks).all(|element| *element == 0.0));
    }
}
