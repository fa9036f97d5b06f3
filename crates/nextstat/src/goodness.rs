//! Goodness of fit by the saturated model, with p-values by formula and by toys.

use crate::answer::Document;
use crate::document::to_document;
use crate::number::significant;
use crate::toys::FIXED_AUX;
use crate::{Analysis, Answer, Error};
use ns_inference::gof::{GoodnessOfFit, goodness_of_fit, saturated_deviance};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{
    AuxTreatment, Ensemble, GoodnessToys, RunStatus, ToySampler, ToySource, ToysError, goodness_toys,
};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties, fit};
use serde::Serialize;
use serde_json::{Value, json};

/// Toys for p-values.
///
/// ```
/// use nextstat::goodness::GoodnessRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let goodness = analysis.goodness(&GoodnessRequest::default(), &NoMonitor)?;
/// assert_eq!(goodness.result.goodness.n_dof, 1);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoodnessRequest {
    /// How many; `None` for no p-value by toys.
    pub n_toys: Option<u64>,
    /// What happens to auxiliary data.
    pub aux: AuxTreatment,
}

impl Default for GoodnessRequest {
    fn default() -> Self {
        Self { n_toys: None, aux: AuxTreatment::Fluctuated }
    }
}

/// The goodness of one fit.
#[derive(Debug, Clone)]
pub struct Goodness {
    /// The fit.
    pub fit: FitResult,
    /// The statistic with its p-value by formula.
    pub goodness: GoodnessOfFit,
    /// The p-values by toys; `None` without toys, or if the fit did not converge.
    pub toys: Option<GoodnessByToys>,
}

impl Goodness {
    /// Returns the warnings about the statistic, then those about the toys.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        [&self.goodness.warnings[..], &self.toys.as_ref().map(GoodnessByToys::warnings).unwrap_or_default()].concat()
    }
}

/// p-values by toys, and how the toys were made.
#[derive(Debug, Clone, Serialize)]
pub struct GoodnessByToys {
    /// Toys asked for.
    pub n_toys_wanted: u64,
    /// Their seed.
    pub seed: u64,
    /// What happened to auxiliary data.
    pub aux: AuxTreatment,
    /// The p-values.
    #[serde(flatten)]
    pub p_values: GoodnessToys,
    /// Whether all toys were thrown.
    #[serde(skip)]
    pub ended: RunStatus,
}

impl GoodnessByToys {
    /// Returns what a reader should know before using the p-values.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let GoodnessToys { total, n_failed, .. } = &self.p_values;
        let (n_done, n_wanted) = (total.n_toys + n_failed, self.n_toys_wanted);
        let interrupted = (n_done < n_wanted).then(|| format!("interrupted after {n_done} of {n_wanted} toys"));
        let fixed = (self.aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned());
        let failed = (*n_failed > 0).then(|| {
            let [low, high] = [total.low, total.high].map(|p| significant(p, 3));
            format!("the fits of {n_failed} of {n_done} toys did not converge: the p-value is between {low} and {high}")
        });
        [interrupted, fixed, failed].into_iter().flatten().collect()
    }
}

impl Analysis {
    /// Fits the data, compares the fit with the saturated model, and throws toys if the request
    /// asks for them.
    ///
    /// # Errors
    /// A device without toys; a best fit at which no toys can be thrown; too little memory.
    pub fn goodness(&self, request: &GoodnessRequest, monitor: &dyn Monitor) -> Result<Answer<Goodness>, Error> {
        if request.n_toys.is_none() {
            self.require_cpu("goodness of fit without toys")?;
        }
        self.device()?;
        let mut likelihood = self.likelihood()?;
        // Uncertainties need the exact Hessian, so the fit ends at the exact minimum.
        let options = FitOptions { uncertainties: Uncertainties::Hessian, ..self.options().clone() };
        let mut problem = Problem::new(self.model(), &mut likelihood, &options);
        let fit = fit(&mut problem);
        let goodness = goodness_of_fit(&mut problem, &fit, self.threads());
        let n_toys = request.n_toys.filter(|_| fit.converged);
        let toys = n_toys.map(|n_toys| self.goodness_by_toys(&fit, n_toys, request.aux, monitor)).transpose()?;
        self.answer(Goodness { fit, goodness, toys })
    }

    fn goodness_by_toys(
        &self,
        fit: &FitResult,
        n_toys: u64,
        aux: AuxTreatment,
        monitor: &dyn Monitor,
    ) -> Result<GoodnessByToys, Error> {
        let (model, data) = (self.model(), self.data());
        let source = ToySource { seed: self.seed(), ensemble: Ensemble::Goodness, aux };
        let sampler = ToySampler::new(model, data, &fit.bestfit, source).map_err(ToysError::from)?;
        let observed = saturated_deviance(model, data, &fit.bestfit, &self.domain().fixed);
        let mut likelihood = self.likelihood()?;
        let problem = self.problem(&mut likelihood);
        let (p_values, ended) = goodness_toys(&problem, &sampler, 0..n_toys, &self.run(monitor)?, &observed);
        Ok(GoodnessByToys { n_toys_wanted: n_toys, seed: self.seed(), aux, p_values, ended })
    }
}

/// Returns what tells whether to trust the fit, without its parameters.
fn verdict(result: &FitResult) -> Value {
    json!({
        "converged": result.converged,
        "outcome": result.outcome,
        "edm": result.edm,
        "twice_nll": result.twice_nll,
        "at_bounds": result.at_bounds,
        "flat_directions": result.flat_directions,
        "not_finite": result.not_finite,
        "warnings": result.warnings,
    })
}

impl Document for Goodness {
    const SCHEMA: &'static str = "gof";

    fn fields(answer: &Answer<Self>) -> Value {
        let goodness = &answer.result;
        let mut document = to_document(&goodness.goodness);
        document["fit"] = verdict(&goodness.fit);
        document["toys"] = to_document(&goodness.toys);
        document["warnings"] = json!(goodness.warnings());
        document["converged"] = json!(goodness.fit.converged);
        document
    }
}
