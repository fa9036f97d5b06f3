//! Expected yields before and after a fit, and the report of one fit.

use crate::answer::Document;
use crate::comparison::Comparison;
use crate::document::to_document;
use crate::fit::{FitRequest, Matrices, fields};
use crate::number::measured;
use crate::{Analysis, Answer, Error};
use ns_inference::gof::{GoodnessOfFit, goodness_of_fit};
use ns_inference::yields::{ChannelPrediction, PredictionRequest, postfit, prefit};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties};
use serde_json::{Value, json};

/// The warning that a fit used data that its result hides.
const FITS_HIDDEN: &str = "the fit uses data that are hidden, so its parameters and post-fit yields show what they are; \
                           only a blinded fit without them does not";

/// A fit with the expected yields of every channel before and after it.
#[derive(Debug, Clone)]
pub struct Yields {
    /// The fit, with its covariance and all its warnings.
    pub fit: Answer<FitResult>,
    /// The yields before the fit.
    pub prefit: Vec<ChannelPrediction>,
    /// The yields after it.
    pub postfit: Vec<ChannelPrediction>,
}

/// One fit with its yields and its goodness of fit.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The fit and its yields.
    pub yields: Yields,
    /// The goodness of the fit; `None` if the fit used data that are hidden, which it would give
    /// away, or if it is a stored one.
    pub goodness: Option<GoodnessOfFit>,
    /// How well a stored fit predicts the data; `None` for a new fit.
    pub comparison: Option<Comparison>,
}

impl Analysis {
    /// Fits the data and computes the yields before and after.
    ///
    /// # Errors
    /// A device, which this does not use; too little memory.
    pub fn yields(&self) -> Result<Answer<Yields>, Error> {
        let yields = self.compute_yields()?;
        self.answer(yields)
    }

    fn compute_yields(&self) -> Result<Yields, Error> {
        self.require_cpu("a table of yields")?;
        let mut fit =
            self.fit(&FitRequest { uncertainties: Uncertainties::Covariance, ..FitRequest::default() })?.diagnosed();
        fit.result.warnings.extend(self.loose_signals(&fit.result));
        let options = self.with_covariance();
        let mut likelihood = self.likelihood()?;
        let mut problem = Problem::new(self.model(), &mut likelihood, &options);
        let request = self.prediction_request();
        let (prefit, postfit) = (prefit(&problem, request), postfit(&mut problem, &fit.result, request));
        Ok(Yields { fit: self.without_hidden(fit), prefit, postfit })
    }

    /// Returns warnings of parameters of interest that the data which are not hidden hardly
    /// determine: 0 is within one standard deviation of the nominal value, and the prediction of
    /// hidden bins has as much signal as the fit happened to find.
    fn loose_signals(&self, fit: &FitResult) -> Vec<String> {
        if self.fits_hidden() || !self.hidden_bins().is_some_and(|hidden| hidden.contains(&true)) {
            return Vec::new();
        }
        let parameters = &self.model().parameters;
        let warning = |&i: &usize| {
            let (width, nominal) = (fit.uncertainties[i]?, parameters.init[i]);
            (width > nominal.abs() && nominal != 0.0 && parameters.constraint[i].is_none()).then(|| {
                format!(
                    "the data that are not hidden hardly determine `{}`, {}, and the prediction has that much signal: \
                     fix it for one without, or with the nominal signal",
                    parameters.names[i],
                    measured(fit.bestfit[i], Some(width))
                )
            })
        };
        self.model().pois.iter().filter_map(warning).collect()
    }

    /// Removes from `fit` the values of the likelihood, which give hidden data away if the fit used
    /// them, and warns of what its parameters do.
    fn without_hidden(&self, mut fit: Answer<FitResult>) -> Answer<FitResult> {
        if self.fits_hidden() {
            let result = &mut fit.result;
            (result.nll, result.twice_nll) = (f64::NAN, f64::NAN);
            result.minima.iter_mut().for_each(|minimum| minimum.twice_nll = f64::NAN);
            if result.not_finite.take().is_some() {
                // Its warnings name the bin with its count.
                result.warnings = vec!["the fit did not converge: -ln L is not finite at its start".to_owned()];
            }
            result.warnings.push(FITS_HIDDEN.to_owned());
        }
        fit
    }

    /// Fits the data and computes yields, pulls, correlations and the goodness of the fit.
    ///
    /// # Errors
    /// As [`Analysis::yields`].
    pub fn report(&self) -> Result<Answer<Overview>, Error> {
        let yields = self.compute_yields()?;
        let (result, options) = (&yields.fit.result, self.with_covariance());
        let mut likelihood = self.likelihood()?;
        let mut problem = Problem::new(self.model(), &mut likelihood, &options);
        let goodness = (!self.fits_hidden()).then(|| goodness_of_fit(&mut problem, result, self.threads()));
        self.answer(Overview { yields, goodness, comparison: None })
    }

    /// Returns what is predicted: every channel, and the groups of the settings. Masked bins are
    /// not fitted, but predicted.
    pub(crate) fn prediction_request(&self) -> PredictionRequest<'_> {
        PredictionRequest {
            model: self.whole_model(),
            groups: self.sample_groups(),
            propagation: self.settings().propagation,
            threads: self.threads(),
        }
    }

    fn with_covariance(&self) -> FitOptions {
        FitOptions { uncertainties: Uncertainties::Covariance, ..self.options().clone() }
    }
}

impl Document for Overview {
    const SCHEMA: &'static str = "report";

    /// Returns `{fit, pulls, goodness_of_fit, yields: {channels}, converged, warnings}`, and of a
    /// stored fit `unmatched` and `unused`.
    fn fields(answer: &Answer<Self>) -> Value {
        let Self { yields, goodness, comparison } = &answer.result;
        let mut document = json!({
            "fit": fields(&yields.fit, Matrices { covariance: false, correlation: true }),
            "pulls": to_document(&yields.fit.pulls()),
            "goodness_of_fit": to_document(goodness),
            "yields": {"channels": yields.channels()},
            "converged": yields.fit.result.converged,
            "warnings": answer.result.warnings(),
        });
        if let Some(comparison) = comparison {
            document["goodness_of_fit"] = comparison.fields();
            document["unmatched"] = json!(comparison.unmatched);
            document["unused"] = json!(comparison.unused);
        }
        document
    }
}

impl Document for Yields {
    const SCHEMA: &'static str = "yields";

    /// Returns `{converged, warnings, channels}`.
    fn fields(answer: &Answer<Self>) -> Value {
        let fit = &answer.result.fit.result;
        json!({"converged": fit.converged, "warnings": fit.warnings, "channels": answer.result.channels()})
    }
}

impl Overview {
    /// Returns the warnings about the fit, then those about its goodness.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let of_goodness = self.goodness.iter().flat_map(|goodness| &goodness.warnings);
        let of_comparison = self.comparison.iter().flat_map(|comparison| &comparison.warnings);
        let mut warnings = self.yields.fit.result.warnings.clone();
        for warning in of_goodness.chain(of_comparison) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        warnings
    }
}

impl Yields {
    fn channels(&self) -> Value {
        channels(&self.fit.analysis, &self.prefit, &self.postfit)
    }
}

/// Returns the data and the yields of every channel.
pub(crate) fn channels(analysis: &Analysis, prefit: &[ChannelPrediction], postfit: &[ChannelPrediction]) -> Value {
    let prediction = |p: &ChannelPrediction| {
        let mut found = json!({"samples": to_document(&p.samples), "total": to_document(&p.total)});
        if !p.groups.is_empty() {
            found["groups"] = to_document(&p.groups);
        }
        found
    };
    let channel = |(c, (prefit, postfit)): (usize, (&ChannelPrediction, &ChannelPrediction))| {
        json!({
            "channel": prefit.channel,
            // NaN, where the data are hidden, is `null`.
            "data": analysis.shown_data().main[analysis.whole_model().channel_bins(c)],
            "prefit": prediction(prefit),
            "postfit": prediction(postfit),
        })
    };
    prefit.iter().zip(postfit).enumerate().map(channel).collect()
}
