//! Everything about one fit: its report, and the procedures that a reader asks for next.

use crate::curves::{AxisRequest, Curves, ScanRequest};
use crate::error::Face;
use crate::hypothesis::LimitRequest;
use crate::ranking::RankingRequest;
use crate::stored::StoredFit;
use crate::yields::Overview;
use crate::{Analysis, Answer, Error};
use ns_core::check::Finding;
use ns_core::summary::{WorkspaceSummary, summarize};
use ns_inference::limit::LimitResult;
use ns_inference::monitor::Monitor;
use ns_inference::ranking::{Ranking, RankingMethods};
use ns_inference::scan::ScanValues;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to put into a full report.
///
/// ```
/// use nextstat::full_report::FullReportRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let report = analysis.full_report(&FullReportRequest::default(), &NoMonitor)?.result;
/// assert_eq!((report.summary.channels.len(), report.limits.unwrap().len()), (2, 1));
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FullReportRequest {
    /// A stored fit to report instead of a new one.
    pub fit: Option<Arc<StoredFit>>,
    /// Points of the scan of each parameter of interest.
    pub n_scan_points: usize,
    /// The interface that words why a part is absent.
    pub face: Face,
}

impl Default for FullReportRequest {
    fn default() -> Self {
        Self { fit: None, n_scan_points: 41, face: Face::Library }
    }
}

/// Refuses the name of a page for a browser that ends as that of another kind of file.
///
/// ```
/// use nextstat::full_report::require_page;
/// use std::path::Path;
/// assert!(require_page(Path::new("fit.html")).is_ok());
/// let error = require_page(Path::new("fit.pdf")).unwrap_err();
/// assert_eq!(error.to_string(), "the page for a browser is HTML, and `fit.pdf` does not end in `.html`");
/// assert_eq!(error.hint(), "`fit.html` is the name of a page, and browsers print it as PDF");
/// ```
///
/// # Errors
/// An ending other than `.html` and `.htm`; a name without an ending is a page, too.
pub fn require_page(path: &Path) -> Result<(), NotAPage> {
    let is_page = |ending: &OsStr| ["html", "htm"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    if path.extension().is_none_or(is_page) { Ok(()) } else { Err(NotAPage { path: path.to_owned() }) }
}

/// The name of a file that is not a page for a browser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the page for a browser is HTML, and `{}` does not end in `.html`", .path.display())]
pub struct NotAPage {
    path: PathBuf,
}

impl NotAPage {
    /// Returns one line of advice.
    #[must_use]
    pub fn hint(&self) -> String {
        let page = self.path.with_extension("html");
        format!("`{}` is the name of a page, and browsers print it as PDF", page.display())
    }
}

/// One answer for each parameter of interest, or why there are none.
pub type ReportPart<T> = Result<Vec<Answer<T>>, String>;

/// A fit with its yields and goodness, and what else there is to know about it.
#[derive(Debug, Clone)]
pub struct FullReport {
    /// The fit.
    pub overview: Answer<Overview>,
    /// The contents of the workspace.
    pub summary: WorkspaceSummary,
    /// Suspicious parts of the model, without those that tell hidden data.
    pub findings: Vec<Finding>,
    /// The ranking of nuisance parameters.
    pub rankings: ReportPart<Ranking>,
    /// The profile scan.
    pub scans: ReportPart<Curves>,
    /// The upper limits.
    pub limits: ReportPart<LimitResult>,
}

impl FullReport {
    /// Returns `true` if every fit of the report converged and every limit that was computed
    /// exists; parts that the model does not have say why in the report.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.overview.result.yields.fit.result.converged
            && self.rankings.iter().flatten().all(|ranking| ranking.result.converged)
            && self.scans.iter().flatten().all(|scan| scan.result.is_converged())
            && self.limits.iter().flatten().all(|limit| limit.result.converged)
    }

    /// Returns `true` unless the monitor cancelled a ranking or a scan.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.rankings.iter().flatten().all(|ranking| ranking.result.is_complete)
            && self.scans.iter().flatten().all(|scan| scan.result.is_complete())
    }
}

impl Analysis {
    /// Reports one fit with everything that follows from it.
    ///
    /// Rankings, scans and limits are left out, with the reason, if the model has no parameter of
    /// interest, if the fit did not converge, if it used data that are hidden, or if it is a stored
    /// one (which is ranked by its covariance). Scans and limits are left out if data are hidden.
    ///
    /// # Errors
    /// As [`Analysis::report`].
    pub fn full_report(&self, request: &FullReportRequest, monitor: &dyn Monitor) -> Result<Answer<FullReport>, Error> {
        let overview = match &request.fit {
            None => self.report()?,
            Some(fit) => self.report_from(fit)?,
        };
        let summary = summarize(self.whole_compiled().workspace_outline(), Some(&self.model().measurement))?;
        let findings = self.check(None)?;
        let rankings = self.part(request, self.no_ranking(&overview), |analysis| {
            let methods = if request.fit.is_some() { RankingMethods::COVARIANCE } else { RankingMethods::ALL };
            analysis
                .ranking(&RankingRequest { methods, fit: request.fit.clone(), ..RankingRequest::default() }, monitor)
        })?;
        let scans = self.part(request, self.no_test(&overview), |analysis| {
            let axis = AxisRequest { parameter: None, values: ScanValues::Automatic(request.n_scan_points) };
            analysis.scan(&ScanRequest { axes: vec![axis], ..ScanRequest::default() }, monitor)
        })?;
        let limits =
            self.part(request, self.no_test(&overview), |analysis| analysis.limit(&LimitRequest::default()))?;
        self.answer(FullReport { overview, summary, findings, rankings, scans, limits })
    }

    /// Asks `question` for every parameter of interest, unless there is a reason not to.
    fn part<T: Send>(
        &self,
        request: &FullReportRequest,
        absent: Option<&str>,
        question: impl Fn(&Self) -> Result<Answer<T>, Error> + Sync,
    ) -> Result<ReportPart<T>, Error> {
        if let Some(reason) = absent {
            return Ok(Err(reason.to_owned()));
        }
        match self.every_poi(NonZeroUsize::MIN, question) {
            Ok(answer) => Ok(Ok(answer.result.answers)),
            // The parameter is fixed, or only masked bins depend on it.
            Err(Error::Settings(error)) => Ok(Err(error.message(request.face))),
            Err(error) => Err(error),
        }
    }

    fn no_ranking(&self, overview: &Answer<Overview>) -> Option<&'static str> {
        match () {
            () if self.model().pois.is_empty() => Some("the model has no parameter of interest"),
            () if !overview.result.yields.fit.result.converged => Some("the fit did not converge"),
            () if self.fits_hidden() => Some("the fit uses data that are hidden"),
            () => None,
        }
    }

    fn no_test(&self, overview: &Answer<Overview>) -> Option<&'static str> {
        let is_stored = overview.result.comparison.is_some();
        self.no_ranking(overview).or(match () {
            () if is_stored => Some("a stored fit is reported, without its likelihood"),
            () if self.hidden_bins().is_some_and(|hidden| hidden.contains(&true)) => Some("data are hidden"),
            () => None,
        })
    }
}
