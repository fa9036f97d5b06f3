//! The records of files of toys: fits and test statistics to bytes and back.
//!
//! A record is packed and little-endian, with the columns of its layout. Numbers that are absent
//! are NaN in files and `None` here.

use super::{ColumnKind, RecordLayout, ToyRunIdentity};

/// How the fit of a toy ended. Files hold the code, JSON documents the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToyFitStatus {
    /// The fit converged.
    Converged,
    /// It ran out of iterations.
    IterationLimit,
    /// It stalled before the minimum.
    Stalled,
    /// It ended at a saddle point.
    Saddle,
    /// -ln L was not finite.
    NotFinite,
}

impl ToyFitStatus {
    /// Every status, in the order of the codes.
    pub const ALL: [Self; 5] = [Self::Converged, Self::IterationLimit, Self::Stalled, Self::Saddle, Self::NotFinite];

    /// Returns the word for the status in JSON documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::IterationLimit => "iteration_limit",
            Self::Stalled => "stalled",
            Self::Saddle => "saddle",
            Self::NotFinite => "not_finite",
        }
    }

    /// Returns the number for the status in files, its index in [`Self::ALL`].
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Converged => 0,
            Self::IterationLimit => 1,
            Self::Stalled => 2,
            Self::Saddle => 3,
            Self::NotFinite => 4,
        }
    }

    /// Returns the status with this code, or `None` if there is none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The fit of a toy as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToyFitRecord {
    /// The index of the toy in the whole run.
    pub toy: u64,
    /// How its fit ended.
    pub status: ToyFitStatus,
    /// -ln L at the minimum.
    pub nll: f64,
    /// The uncertainty of the parameter of interest; `None` if it was not computed.
    pub poi_uncertainty: Option<f64>,
    /// The parameters that the file holds, in the order of the model.
    pub parameters: Vec<f64>,
}

/// The layout of the records of fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitRecordFormat {
    /// The number of parameters of a record.
    pub n_parameters: usize,
    /// Whether records have the uncertainty of the parameter of interest.
    pub has_poi_uncertainty: bool,
}

impl FitRecordFormat {
    /// Returns the format of the records of a file.
    #[must_use]
    pub fn of(identity: &ToyRunIdentity) -> Self {
        let n_parameters = identity.layout.range("parameters").map_or(0, |range| range.len() / 8);
        Self { n_parameters, has_poi_uncertainty: identity.layout.range("poi_uncertainty").is_some() }
    }

    /// Returns the columns of a record.
    #[must_use]
    pub fn layout(self) -> RecordLayout {
        let mut columns = vec![("toy", ColumnKind::U64), ("status", ColumnKind::U8), ("nll", ColumnKind::F64)];
        if self.has_poi_uncertainty {
            columns.push(("poi_uncertainty", ColumnKind::F64));
        }
        columns.push(("parameters", ColumnKind::F64s(self.n_parameters)));
        RecordLayout::new(&columns)
    }

    /// Returns the number of bytes of a record.
    #[must_use]
    pub fn record_bytes(self) -> usize {
        17 + 8 * (usize::from(self.has_poi_uncertainty) + self.n_parameters)
    }

    /// Appends the bytes of `fit` to `out`.
    ///
    /// # Panics
    /// If `fit` has another number of parameters than the format.
    pub fn encode(self, fit: &ToyFitRecord, out: &mut Vec<u8>) {
        assert_eq!(fit.parameters.len(), self.n_parameters, "parameters of a record");
        out.extend(fit.toy.to_le_bytes());
        out.push(fit.status.code());
        out.extend(fit.nll.to_le_bytes());
        if self.has_poi_uncertainty {
            out.extend(fit.poi_uncertainty.unwrap_or(f64::NAN).to_le_bytes());
        }
        fit.parameters.iter().for_each(|value| out.extend(value.to_le_bytes()));
    }

    /// Returns the fit whose record is `bytes`; an unknown code is [`ToyFitStatus::NotFinite`].
    ///
    /// # Panics
    /// If `bytes` is not one record long.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> ToyFitRecord {
        assert_eq!(bytes.len(), self.record_bytes(), "bytes of a record");
        let start = 17 + 8 * usize::from(self.has_poi_uncertainty);
        ToyFitRecord {
            toy: u64::from_le_bytes(eight(bytes)),
            status: ToyFitStatus::from_code(bytes[8]).unwrap_or(ToyFitStatus::NotFinite),
            nll: number(&bytes[9..]),
            poi_uncertainty: self.has_poi_uncertainty.then(|| number(&bytes[17..])),
            parameters: bytes[start..].chunks_exact(8).map(number).collect(),
        }
    }

    /// Returns whether a record is a sound one of toy `toy`: what follows a torn write is not.
    #[must_use]
    pub fn is_of(self, bytes: &[u8], toy: u64) -> bool {
        bytes.starts_with(&toy.to_le_bytes())
            && bytes.get(8).is_some_and(|&code| ToyFitStatus::from_code(code).is_some())
    }
}

/// The fit of a data set of the caller as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSetRecord {
    /// The row of the data set.
    pub data_set: u64,
    /// How its fit ended.
    pub status: ToyFitStatus,
    /// 2·(-ln L) at the minimum; NaN if the fit did not converge.
    pub twice_nll: f64,
    /// The parameters that the file holds, in the order of the model.
    pub bestfit: Vec<f64>,
    /// Their uncertainties; `None` if they were not computed.
    pub uncertainties: Option<Vec<f64>>,
}

/// The layout of the records of fits of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSetRecordFormat {
    /// The number of parameters of a record.
    pub n_parameters: usize,
    /// Whether records have uncertainties.
    pub has_uncertainties: bool,
}

impl DataSetRecordFormat {
    /// Returns the format of the records of a file.
    #[must_use]
    pub fn of(identity: &ToyRunIdentity) -> Self {
        let n_parameters = identity.layout.range("bestfit").map_or(0, |range| range.len() / 8);
        Self { n_parameters, has_uncertainties: identity.layout.range("uncertainties").is_some() }
    }

    /// Returns the columns of a record.
    #[must_use]
    pub fn layout(self) -> RecordLayout {
        let parameters = ColumnKind::F64s(self.n_parameters);
        let mut columns = vec![
            ("data_set", ColumnKind::U64),
            ("status", ColumnKind::U8),
            ("twice_nll", ColumnKind::F64),
            ("bestfit", parameters),
        ];
        columns.extend(self.has_uncertainties.then_some(("uncertainties", parameters)));
        RecordLayout::new(&columns)
    }

    /// Returns the number of bytes of a record.
    #[must_use]
    pub fn record_bytes(self) -> usize {
        17 + 8 * self.n_parameters * (1 + usize::from(self.has_uncertainties))
    }

    /// Appends the bytes of `fit` to `out`.
    ///
    /// # Panics
    /// If `fit` has another number of parameters than the format.
    pub fn encode(self, fit: &DataSetRecord, out: &mut Vec<u8>) {
        assert_eq!(fit.bestfit.len(), self.n_parameters, "parameters of a record");
        out.extend(fit.data_set.to_le_bytes());
        out.push(fit.status.code());
        let uncertainties = fit.uncertainties.iter().flatten().filter(|_| self.has_uncertainties);
        let numbers = [fit.twice_nll].into_iter().chain(fit.bestfit.iter().copied()).chain(uncertainties.copied());
        numbers.for_each(|number| out.extend(number.to_le_bytes()));
    }

    /// Returns the fit whose record is `bytes`; an unknown code is [`ToyFitStatus::NotFinite`].
    ///
    /// # Panics
    /// If `bytes` is not one record long.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> DataSetRecord {
        assert_eq!(bytes.len(), self.record_bytes(), "bytes of a record");
        let (bestfit, uncertainties) = bytes[17..].split_at(8 * self.n_parameters);
        let numbers = |bytes: &[u8]| bytes.chunks_exact(8).map(number).collect();
        DataSetRecord {
            data_set: u64::from_le_bytes(eight(bytes)),
            status: ToyFitStatus::from_code(bytes[8]).unwrap_or(ToyFitStatus::NotFinite),
            twice_nll: number(&bytes[9..]),
            bestfit: numbers(bestfit),
            uncertainties: self.has_uncertainties.then(|| numbers(uncertainties)),
        }
    }

    /// Returns whether a record is a sound one of data set `data_set`: what follows a torn write is
    /// not.
    #[must_use]
    pub fn is_of(self, bytes: &[u8], data_set: u64) -> bool {
        let begins = FitRecordFormat { n_parameters: 0, has_poi_uncertainty: false };
        begins.is_of(bytes, data_set)
    }
}

/// The test statistic of a toy as a file has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToyTestRecord {
    /// The index of the toy in its ensemble.
    pub toy: u64,
    /// The hypothesis that it was thrown under, 0 or 1.
    pub hypothesis: u8,
    /// The statistic; `None` if a fit failed.
    pub value: Option<f64>,
    /// The best-fit parameter of interest.
    pub mu_hat: f64,
}

impl ToyTestRecord {
    /// The number of bytes of a record.
    pub const BYTES: usize = 26;

    /// Returns the columns of a record.
    #[must_use]
    pub fn layout() -> RecordLayout {
        RecordLayout::new(&[
            ("toy", ColumnKind::U64),
            ("hypothesis", ColumnKind::U8),
            ("status", ColumnKind::U8),
            ("statistic", ColumnKind::F64),
            ("mu_hat", ColumnKind::F64),
        ])
    }

    /// Appends its bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.toy.to_le_bytes());
        out.push(self.hypothesis);
        out.push(u8::from(self.value.is_none()));
        out.extend(self.value.unwrap_or(f64::NAN).to_le_bytes());
        out.extend(self.mu_hat.to_le_bytes());
    }

    /// Returns the test whose record is `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than a record.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        Self {
            toy: u64::from_le_bytes(eight(bytes)),
            hypothesis: bytes[8].min(1),
            value: (bytes[9] == 0).then(|| number(&bytes[10..])),
            mu_hat: number(&bytes[18..]),
        }
    }
}

/// Returns the first eight bytes.
fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    eight
}

/// Returns the number in the first eight bytes.
fn number(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(eight(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_are_decoded_as_they_were_encoded() {
        for poi_uncertainty in [None, Some(0.25)] {
            let format = FitRecordFormat { n_parameters: 2, has_poi_uncertainty: poi_uncertainty.is_some() };
            for status in ToyFitStatus::ALL {
                let fit = ToyFitRecord { toy: 7, status, nll: -1.5, poi_uncertainty, parameters: vec![1.0, -2.0] };
                let mut bytes = Vec::new();
                format.encode(&fit, &mut bytes);
                assert_eq!(bytes.len(), format.record_bytes());
                assert_eq!(bytes.len(), format.layout().record_bytes());
                assert_eq!(format.decode(&bytes), fit);
                assert!(format.is_of(&bytes, 7) && !format.is_of(&bytes, 8));
            }
        }
    }

    #[test]
    fn fits_of_data_sets_are_decoded_as_they_were_encoded() {
        for uncertainties in [None, Some(vec![0.1, 0.2])] {
            let format = DataSetRecordFormat { n_parameters: 2, has_uncertainties: uncertainties.is_some() };
            let status = ToyFitStatus::Converged;
            let fit = DataSetRecord { data_set: 7, status, twice_nll: -1.5, bestfit: vec![1.0, -2.0], uncertainties };
            let mut bytes = Vec::new();
            format.encode(&fit, &mut bytes);
            assert_eq!((bytes.len(), format.layout().record_bytes()), (format.record_bytes(), format.record_bytes()));
            assert_eq!(format.decode(&bytes), fit);
            assert!(format.is_of(&bytes, 7) && !format.is_of(&bytes, 8));
        }
    }

    #[test]
    fn torn_records_belong_to_no_toy() {
        let format = FitRecordFormat { n_parameters: 0, has_poi_uncertainty: false };
        let mut bytes = 7_u64.to_le_bytes().to_vec();
        assert!(!format.is_of(&bytes, 7));
        bytes.push(ToyFitStatus::ALL.len() as u8);
        assert!(!format.is_of(&bytes, 7));
    }

    #[test]
    fn status_codes_are_indices() {
        for (index, status) in ToyFitStatus::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(status.code()), index);
            assert_eq!(ToyFitStatus::from_code(status.code()), Some(status));
        }
    }

    #[test]
    fn tests_are_decoded_as_they_were_encoded() {
        for value in [None, Some(2.5)] {
            let test = ToyTestRecord { toy: 3, hypothesis: 1, value, mu_hat: 0.5 };
            let mut bytes = Vec::new();
            test.encode(&mut bytes);
            assert_eq!((bytes.len(), bytes.len()), (ToyTestRecord::BYTES, ToyTestRecord::layout().record_bytes()));
            assert_eq!(ToyTestRecord::decode(&bytes), test);
        }
    }
}
