//! What a user must be told of a result without reading its warnings: the command writes it to
//! standard error, and Python warns of it.

use crate::Answer;
use crate::curves::Curves;
use crate::exclusion::Exclusion;
use crate::fits::FitsSummary;
use crate::full_report::FullReport;
use crate::goodness::{Goodness, GoodnessByToys};
use crate::intervals::Region;
use crate::limit_scan::LimitScan;
use crate::pois::PoiResults;
use crate::toy_tests::ToyTestResult;
use crate::toys::ToysSummary;
use crate::yields::{Overview, Yields};
use ns_inference::FitResult;
use ns_inference::contour::Contours;
use ns_inference::hypotest::{HypotestResult, SignificanceResult};
use ns_inference::limit::LimitResult;
use ns_inference::ranking::Ranking;
use ns_inference::toys::{Coverage, ToyInterval, ToyLimit, ToySignificanceResult};
use std::collections::HashSet;

/// A result that may not be used without reading its warnings.
pub trait Alarm {
    /// Returns its warnings in one line, or `None` if the numbers can be used without them.
    fn alarm(&self) -> Option<String>;
}

/// Joins `warnings` to one line if `is_bad`.
fn joined<'a>(is_bad: bool, warnings: impl IntoIterator<Item = &'a String>) -> Option<String> {
    is_bad.then(|| warnings.into_iter().map(String::as_str).collect::<Vec<_>>().join("; "))
}

impl Alarm for Answer<FitResult> {
    fn alarm(&self) -> Option<String> {
        let is_bad = !self.result.converged;
        joined(is_bad, &if is_bad { self.warnings() } else { Vec::new() })
    }
}

/// Implements [`Alarm`] for results each of whose warnings is a reason not to use the number as it
/// is.
macro_rules! alarms_of_warnings {
    ($($result:ty),+ $(,)?) => {$(
        impl Alarm for $result {
            fn alarm(&self) -> Option<String> {
                joined(!self.converged || !self.warnings.is_empty(), &self.warnings)
            }
        }
    )+};
}

alarms_of_warnings!(
    HypotestResult,
    SignificanceResult,
    LimitResult,
    ToyInterval,
    ToyLimit,
    ToySignificanceResult,
    Coverage
);

impl Alarm for Region {
    fn alarm(&self) -> Option<String> {
        joined(!self.toys.converged || !self.toys.warnings.is_empty(), &self.toys.warnings)
    }
}

impl Alarm for Exclusion {
    fn alarm(&self) -> Option<String> {
        joined(!self.warnings.is_empty(), &self.warnings)
    }
}

impl Alarm for Curves {
    fn alarm(&self) -> Option<String> {
        joined(!self.is_converged() || !self.is_complete() || self.leaves_range, self.warnings())
    }
}

impl Alarm for LimitScan {
    fn alarm(&self) -> Option<String> {
        joined(!self.is_converged() || !self.is_complete() || !self.warnings.is_empty(), &self.warnings)
    }
}

impl<T: Alarm> Alarm for PoiResults<T> {
    fn alarm(&self) -> Option<String> {
        let alarms = self.answers.iter().filter_map(|answer| Some(self.attributed(answer, &answer.result.alarm()?)));
        let alarms: Vec<String> = alarms.collect();
        joined(!alarms.is_empty(), &alarms)
    }
}

impl Alarm for Contours {
    fn alarm(&self) -> Option<String> {
        joined(!self.converged, &self.warnings)
    }
}

impl Alarm for Ranking {
    fn alarm(&self) -> Option<String> {
        joined(!self.converged || !self.is_complete, &self.warnings)
    }
}

impl Alarm for Goodness {
    fn alarm(&self) -> Option<String> {
        let of_fit = if self.fit.converged { &[][..] } else { &self.fit.warnings };
        let said = [of_fit, &self.toys.as_ref().map(GoodnessByToys::warnings).unwrap_or_default()].concat();
        joined(!said.is_empty(), &said)
    }
}

impl Alarm for ToysSummary {
    fn alarm(&self) -> Option<String> {
        let warnings = self.warnings();
        joined(!warnings.is_empty(), &warnings)
    }
}

impl Alarm for FitsSummary {
    fn alarm(&self) -> Option<String> {
        let warnings = self.warnings();
        joined(!warnings.is_empty(), &warnings)
    }
}

impl Alarm for ToyTestResult {
    fn alarm(&self) -> Option<String> {
        joined(!self.test.warnings.is_empty(), &self.test.warnings)
    }
}

impl Alarm for Yields {
    fn alarm(&self) -> Option<String> {
        let fits_hidden = self.fit.analysis.fits_hidden().then_some(&self.fit.result.warnings);
        self.fit.alarm().or_else(|| joined(true, fits_hidden?))
    }
}

impl FullReport {
    /// Returns what a reader must know of the rankings, scans and limits.
    #[must_use]
    pub fn alarms_of_parts(&self) -> Vec<String> {
        let rankings = self.rankings.iter().flatten().filter_map(|answer| answer.result.alarm());
        let scans = self.scans.iter().flatten().filter_map(|answer| answer.result.alarm());
        let limits = self.limits.iter().flatten().filter_map(|answer| answer.result.alarm());
        let mut alarms: Vec<String> = rankings.chain(scans).chain(limits).collect();
        let mut seen = HashSet::new();
        alarms.retain(|alarm| seen.insert(alarm.clone()));
        alarms
    }
}

impl Alarm for FullReport {
    fn alarm(&self) -> Option<String> {
        let alarms: Vec<String> = self.overview.result.alarm().into_iter().chain(self.alarms_of_parts()).collect();
        joined(!alarms.is_empty(), &alarms)
    }
}

impl Alarm for Overview {
    fn alarm(&self) -> Option<String> {
        self.yields.alarm()
    }
}
