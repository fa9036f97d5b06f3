//! Records of toys: fits and test statistics to bytes and back.

use std::path::Path;

use ns_inference::minimize::Outcome;
use ns_inference::toys::{HypothesisToy, ToyFit, ToyTest};
use ns_translate::toys::{ColumnKind, RecordLayout, ToyRunIdentity};

/// Whether a path names a NumPy file.
pub(crate) fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

/// The words for how a fit ended, by the number that stands for it in files.
pub(crate) const STATUS: [&str; 5] = ["converged", "iteration_limit", "stalled", "saddle", "not_finite"];

fn status(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Converged => 0,
        Outcome::IterationLimit => 1,
        Outcome::Stalled => 2,
        Outcome::Saddle => 3,
        Outcome::NotFinite => 4,
    }
}

/// A fit as it stands in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenFit {
    pub(crate) toy: u64,
    pub(crate) status: u8,
    pub(crate) nll: f64,
    /// Absent if it was not asked for.
    pub(crate) poi_uncertainty: Option<f64>,
    pub(crate) parameters: Vec<f64>,
}

/// The layout of the records of fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FitRecord {
    n_parameters: usize,
    has_uncertainty: bool,
}

impl FitRecord {
    pub(super) fn layout(n_parameters: usize, has_uncertainty: bool) -> RecordLayout {
        let mut columns = vec![("toy", ColumnKind::U64), ("status", ColumnKind::U8), ("nll", ColumnKind::F64)];
        if has_uncertainty {
            columns.push(("poi_uncertainty", ColumnKind::F64));
        }
        columns.push(("parameters", ColumnKind::F64s(n_parameters)));
        RecordLayout::new(&columns)
    }

    pub(crate) fn of(identity: &ToyRunIdentity) -> Self {
        let n_parameters = identity.layout.range("parameters").map_or(0, |range| range.len() / 8);
        Self { n_parameters, has_uncertainty: identity.layout.range("poi_uncertainty").is_some() }
    }

    pub(crate) fn bytes(self) -> usize {
        17 + 8 * (usize::from(self.has_uncertainty) + self.n_parameters)
    }

    /// Appends `fit` to `out`, of its parameters those in `written`.
    pub(super) fn write(self, fit: &ToyFit, written: &[usize], out: &mut Vec<u8>) {
        out.extend(fit.toy.to_le_bytes());
        out.push(status(fit.outcome));
        out.extend(fit.nll.to_le_bytes());
        if self.has_uncertainty {
            out.extend(fit.uncertainty.unwrap_or(f64::NAN).to_le_bytes());
        }
        written.iter().for_each(|&i| out.extend(fit.params[i].to_le_bytes()));
    }

    /// Whether a record is that of toy `toy`.
    pub(super) fn is_of(self, bytes: &[u8], toy: u64) -> bool {
        bytes[..8] == toy.to_le_bytes() && usize::from(bytes[8]) < STATUS.len()
    }

    pub(crate) fn read(self, bytes: &[u8]) -> WrittenFit {
        let start = 17 + 8 * usize::from(self.has_uncertainty);
        WrittenFit {
            toy: u64::from_le_bytes(eight(&bytes[..8])),
            status: bytes[8].min(STATUS.len() as u8 - 1),
            nll: number(&bytes[9..17]),
            poi_uncertainty: self.has_uncertainty.then(|| number(&bytes[17..25])),
            parameters: bytes[start..].chunks_exact(8).map(number).collect(),
        }
    }
}

/// A test statistic as it stands in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TestRecord {
    pub(crate) unit: HypothesisToy,
    pub(crate) value: Option<f64>,
}

impl TestRecord {
    pub(super) fn layout() -> RecordLayout {
        RecordLayout::new(&[
            ("toy", ColumnKind::U64),
            ("hypothesis", ColumnKind::U8),
            ("status", ColumnKind::U8),
            ("statistic", ColumnKind::F64),
            ("mu_hat", ColumnKind::F64),
        ])
    }

    pub(crate) fn write(test: &ToyTest, out: &mut Vec<u8>) {
        out.extend(test.unit.toy.to_le_bytes());
        out.push(test.unit.which as u8);
        out.push(u8::from(test.value.is_none()));
        out.extend(test.value.unwrap_or(f64::NAN).to_le_bytes());
        out.extend(test.mu_hat.to_le_bytes());
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let unit = HypothesisToy { toy: u64::from_le_bytes(eight(&bytes[..8])), which: usize::from(bytes[8].min(1)) };
        Self { unit, value: (bytes[9] == 0).then(|| number(&bytes[10..18])) }
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(bytes);
    eight
}

fn number(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(eight(bytes))
}
