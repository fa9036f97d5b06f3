//! Data sets of a caller, checked against a model: N rows of event counts, or of event counts and
//! auxiliary data.

use crate::number::significant;
use ns_core::Model;
use ns_core::model::BinPlace;
use ns_translate::NumberTable;
use std::sync::Arc;

/// A number of a data set that is not valid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidNumber {
    /// An event count that is negative or not finite.
    #[error("{place}: {} is not a valid number of events", significant(*.value, 6))]
    Count {
        /// The bin.
        place: BinPlace,
        /// The number.
        value: f64,
    },
    /// An auxiliary datum that is not finite.
    #[error("the auxiliary datum of `{parameter}` is {value}")]
    Auxiliary {
        /// The parameter that it constrains.
        parameter: String,
        /// The number.
        value: f64,
    },
}

impl InvalidNumber {
    /// Returns `true` for a missing event count, which masked bins may have.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Count { value, .. } if value.is_nan())
    }
}

/// Returns the first number that is not valid among the event counts `main` (B) and the auxiliary
/// data `aux` (K, or none) of `model`. In bins that are `masked` (B), NaN stands for no data.
#[must_use]
pub fn invalid_number(model: &Model, main: &[f64], aux: &[f64], masked: Option<&[bool]>) -> Option<InvalidNumber> {
    let is_masked = |bin: usize| masked.is_some_and(|masked| masked[bin]);
    let is_valid = |bin: usize, n: f64| (n.is_finite() && n >= 0.0) || (n.is_nan() && is_masked(bin));
    if let Some(bin) = (0..main.len()).find(|&bin| !is_valid(bin, main[bin])) {
        return Some(InvalidNumber::Count { place: model.place(bin), value: main[bin] });
    }
    let k = aux.iter().position(|a| !a.is_finite())?;
    let param = model.table(model.layout.constraint_param)[k] as usize;
    Some(InvalidNumber::Auxiliary { parameter: model.parameters.names[param].clone(), value: aux[k] })
}

/// N data sets of a model. Clones share the numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DataSets {
    table: Arc<NumberTable>,
    n_bins: usize,
}

impl DataSets {
    /// Checks the data sets in the rows of `table` (N × B or N × (B + K)) against `model`, of which
    /// no bin is left out. Rows without auxiliary data get those of the nominal data; fits do not
    /// use the bins that are `masked` (B).
    ///
    /// # Errors
    /// [`DataSetsError`], with the place of the first number that is not valid.
    pub(crate) fn new(model: &Model, table: &Arc<NumberTable>, masked: Option<&[bool]>) -> Result<Self, DataSetsError> {
        let (n_bins, n_aux) = (model.n_bins(), model.n_aux());
        if table.n_rows == 0 {
            return Err(DataSetsError::Empty);
        }
        if table.n_columns != n_bins && table.n_columns != n_bins + n_aux {
            let channel = |c: usize| (model.channels[c].clone(), model.channel_bins(c).len());
            let channels = (0..model.channels.len()).map(channel).collect();
            let NumberTable { n_rows, n_columns, .. } = **table;
            return Err(DataSetsError::Columns { n_columns, n_rows, n_bins, n_aux, channels });
        }
        for (data_set, row) in table.values.chunks_exact(table.n_columns.max(1)).enumerate() {
            let (main, aux) = row.split_at(n_bins);
            if let Some(problem) = invalid_number(model, main, aux, masked) {
                return Err(DataSetsError::Number { data_set, problem });
            }
        }
        Ok(Self { table: Arc::clone(table), n_bins })
    }

    /// Returns the number of data sets (N).
    pub(crate) fn n_sets(&self) -> u64 {
        self.table.n_rows as u64
    }

    /// Returns the numbers, row by row.
    pub(crate) fn table(&self) -> &NumberTable {
        &self.table
    }

    /// Returns the number of bins of a data set (B).
    pub(crate) fn n_bins(&self) -> usize {
        self.n_bins
    }
}

/// Why a table does not have data sets of a model.
///
/// ```
/// use nextstat::fits::FitsRequest;
/// use nextstat::{Analysis, CompiledModel, NumberTable, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let table = NumberTable { values: vec![57.0, 63.0, 51.0, -1.0], n_rows: 2, n_columns: 2 };
/// let error = Analysis::new(&model, &Settings::default())?.fits(&FitsRequest::new(table)).unwrap_err();
/// let message = "data set 1, channel `singlechannel`, bin 1: -1 is not a valid number of events";
/// assert_eq!(error.to_string(), message);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataSetsError {
    /// A table without rows.
    #[error("there are no data sets: the table has no rows")]
    Empty,
    /// Rows of another length than the model's data.
    #[error(
        "a row has {n_columns} number{}, but the model has {n_bins} bins and {n_aux} auxiliary data: each data set is a row of the bins, or of both",
        if *n_columns == 1 { "" } else { "s" }
    )]
    Columns {
        /// The number of columns.
        n_columns: usize,
        /// The number of rows.
        n_rows: usize,
        /// The number of bins (B).
        n_bins: usize,
        /// The number of auxiliary data (K).
        n_aux: usize,
        /// The channels in the order of the model, with their number of bins.
        channels: Vec<(String, usize)>,
    },
    /// A number that is not valid.
    #[error(
        "data set {data_set}{} {problem}",
        if matches!(problem, InvalidNumber::Count { .. }) { "," } else { ":" }
    )]
    Number {
        /// The row, from 0.
        data_set: usize,
        /// The problem.
        problem: InvalidNumber,
    },
}

impl DataSetsError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Columns { n_columns, n_rows, n_bins, n_aux, .. }
                if n_columns != n_rows && (n_rows == n_bins || *n_rows == n_bins + n_aux) =>
            {
                Some("a data set is a row; this table has a column for each: transpose it".to_owned())
            }
            Self::Columns { channels, .. } => {
                const SHOWN: usize = 8;
                let each = channels.iter().take(SHOWN).map(|(name, n_bins)| format!("`{name}` ({n_bins})"));
                let more = channels.len().saturating_sub(SHOWN);
                let more = (more > 0).then(|| format!("and {more} more channels"));
                let all: Vec<String> = each.chain(more).collect();
                Some(format!("columns are the bins of the channels in the order of the model: {}", all.join(", ")))
            }
            _ => None,
        }
    }
}
