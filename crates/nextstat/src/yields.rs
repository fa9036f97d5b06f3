//! Expected yields before and after a fit, and the report of one fit.

use crate::document::to_document;
use crate::fit::{FitRequest, Matrices};
use crate::{Analysis, Answer, Error};
use ns_inference::gof::{GoodnessOfFit, goodness_of_fit};
use ns_inference::yields::{ChannelPrediction, postfit, prefit};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties};
use serde_json::{Value, json};

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

/// One fit and everything that an analysis shows of it.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The fit and its yields.
    pub yields: Yields,
    /// How well it describes the data.
    pub goodness: GoodnessOfFit,
}

impl Analysis {
    /// Fits the data and computes the yields before and after.
    ///
    /// # Errors
    /// A device, which this does not use; too little memory.
    pub fn yields(&self) -> Result<Yields, Error> {
        self.require_cpu("a table of yields")?;
        let fit = self.fit(&FitRequest { uncertainties: Uncertainties::Covariance, minos: Vec::new() })?.diagnosed();
        let threads = self.threads();
        let options = self.with_covariance();
        let mut likelihood = self.likelihood()?;
        let mut problem = Problem::new(self.model(), &mut likelihood, &options);
        let (prefit, postfit) = (prefit(&problem, threads), postfit(&mut problem, &fit.result, threads));
        Ok(Yields { fit, prefit, postfit })
    }

    /// Fits the data and collects everything about the fit.
    ///
    /// # Errors
    /// As [`Analysis::yields`].
    pub fn report(&self) -> Result<Overview, Error> {
        let yields = self.yields()?;
        let (result, options) = (&yields.fit.result, self.with_covariance());
        let mut likelihood = self.likelihood()?;
        let goodness =
            goodness_of_fit(&mut Problem::new(self.model(), &mut likelihood, &options), result, self.threads());
        Ok(Overview { yields, goodness })
    }

    fn with_covariance(&self) -> FitOptions {
        FitOptions { uncertainties: Uncertainties::Covariance, ..self.options().clone() }
    }
}

impl Overview {
    /// Returns `{fit, pulls, goodness_of_fit, yields}`.
    #[must_use]
    pub fn document(&self) -> Value {
        let fit = &self.yields.fit;
        json!({
            "fit": fit.fields(Matrices { covariance: false, correlation: true }),
            "pulls": to_document(&fit.pulls()),
            "goodness_of_fit": to_document(&self.goodness),
            "yields": self.yields.document(),
        })
    }
}

impl Yields {
    /// Returns data and yields of every channel.
    #[must_use]
    pub fn document(&self) -> Value {
        let analysis = &self.fit.analysis;
        let prediction =
            |p: &ChannelPrediction| json!({"samples": to_document(&p.samples), "total": to_document(&p.total)});
        let channel = |(c, (prefit, postfit)): (usize, (&ChannelPrediction, &ChannelPrediction))| {
            json!({
                "channel": prefit.channel,
                "data": analysis.data().main[analysis.model().channel_bins(c)],
                "prefit": prediction(prefit),
                "postfit": prediction(postfit),
            })
        };
        self.prefit.iter().zip(&self.postfit).enumerate().map(channel).collect()
    }
}
