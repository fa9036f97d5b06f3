//! Simplified models: the background of a few channels as a polynomial of a few normal variables,
//! and how far its results are from those of the full model.
//!
//! The background is fitted to the other channels, without signal. The moments of the yields that
//! this fit predicts make a small workspace, which has one sample of background, one of signal, and
//! no parameter of the full model but the strength of the signal
//! ([`ns_inference::simplified`] has the formulas). Where every channel is simplified, nothing is
//! fitted, and the parameters have the widths of their constraint terms.
//!
//! ```
//! use nextstat::simplify::SimplifyRequest;
//! use nextstat::{Analysis, CompiledModel, DocumentSource, LoadRequest, Settings};
//!
//! let path = DocumentSource::Path("../../examples/shapes.json".into());
//! let model = CompiledModel::load(&LoadRequest::new(path), &Default::default())?;
//! let request = SimplifyRequest { channels: vec!["signal_region".to_owned()], ..SimplifyRequest::default() };
//! // Its control region does not determine this parameter.
//! let settings = Settings { fixed: vec![("norm_ttbar".to_owned(), 1.0)], ..Settings::default() };
//! let simplified = Analysis::new(&model, &settings)?.simplify(&request)?;
//! assert_eq!(simplified.workspace().channels[0].samples.len(), 2);
//! # Ok::<(), nextstat::Error>(())
//! ```

mod background;
mod comparison;
mod workspace;

pub use comparison::{ComparedTest, ComparedTests, SimplifiedComparison};
pub use ns_inference::simplified::SimplifiedForm;

use crate::document::headed;
use crate::error::{Procedure, SimplifyError};
use crate::patchsets::{GridRequest, SignalGrid};
use crate::{Analysis, Error};
use background::{Background, SignalInChannels};
use ns_core::spec::Workspace;
use ns_inference::parallel::ExecutionContext;
use ns_inference::simplified::{SimplifiedYields, YieldMoments};
use serde_json::{Value, json};

/// A covariance of the simplified yields that deviates by more than this from its moment, in units
/// of standard deviations, is warned of.
const DEVIATES: f64 = 0.01;

/// A fraction of the signal in other channels that is warned of if it is larger.
const NEGLIGIBLE: f64 = 1e-3;

/// A mean yield that is further than this from the yield at the best fit is warned of, in units of
/// the standard deviation to first order.
const SHIFTED: f64 = 1.0;

/// So is a standard deviation that is larger by more than this factor.
const WIDENED: f64 = 1.3;

/// What to simplify.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimplifyRequest {
    /// The channels that are simplified, by name or pattern.
    pub channels: Vec<String>,
    /// The form of their yields.
    pub form: SimplifiedForm,
    /// Whether CLs of the simplified and of the full model are compared.
    pub compare: bool,
}

/// The signal of a simplified model.
#[derive(Debug, Clone, PartialEq)]
pub struct SimplifiedSignal {
    /// Its yield in each bin at a strength of 1 (K).
    pub yields: Vec<f64>,
    /// The range of the strength.
    pub range: [f64; 2],
}

/// A simplified model.
#[derive(Debug, Clone)]
pub struct Simplified {
    /// The form of the yields.
    pub form: SimplifiedForm,
    /// The moments of the background's yields in the bins of the simplified channels (K).
    pub moments: YieldMoments,
    /// The yields that have these moments.
    pub yields: SimplifiedYields,
    /// The signal; `None` for a background alone.
    pub signal: Option<SimplifiedSignal>,
    /// The patches of the set whose background it is; `None` without a patch set.
    pub n_patches: Option<usize>,
    /// How its results compare with those of the full model, if that was asked for.
    pub comparison: Option<SimplifiedComparison>,
    /// What to know before using it.
    pub warnings: Vec<String>,
    background: Background,
    provenance: Value,
}

impl Analysis {
    /// Simplifies the model, with its signal if it has a parameter of interest.
    ///
    /// # Errors
    /// No channel, one that the model does not have or whose data are hidden; a background whose
    /// fit does not converge, or that does not determine the yields; yields that are not linear in
    /// the strength of the signal; a device, which this does not use.
    pub fn simplify(&self, request: &SimplifyRequest) -> Result<Simplified, Error> {
        if request.compare && self.whole_model().pois.is_empty() {
            return Err(SimplifyError::NoSignal.into());
        }
        let background = Background::of_model(self, &request.channels)?;
        let provenance = json!(background.analysis().provenance_of(self.provenance().workspace));
        let mut found = Simplified::new(background, request.form, provenance)?;
        if !self.whole_model().pois.is_empty() {
            let SignalInChannels { signal, left_out } = found.background.signal(self)?;
            if left_out > NEGLIGIBLE {
                let percent = 100.0 * left_out;
                found.warnings.push(format!("{percent:.1} % of the signal is in other channels, and is left out"));
            }
            if signal.yields.iter().all(|&events| events == 0.0) {
                found.warnings.push("there is no signal in the simplified channels".to_owned());
            }
            if request.compare {
                found.comparison = Some(SimplifiedComparison::of_model(found.compared(self, &signal)?));
            }
            found.signal = Some(signal);
        }
        Ok(found)
    }
}

impl Simplified {
    fn new(background: Background, form: SimplifiedForm, provenance: Value) -> Result<Self, Error> {
        let moments = background.moments()?;
        let yields = SimplifiedYields::of(&moments, form);
        let warnings = warnings(&background, form, &moments, &yields);
        Ok(Self {
            form,
            moments,
            yields,
            signal: None,
            n_patches: None,
            comparison: None,
            warnings,
            background,
            provenance,
        })
    }

    /// Returns the simplified workspace, with a sample `signal` if the model has a signal.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        self.background.workspace(&self.yields, self.form, self.signal.as_ref())
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let k = self.moments.yields.len();
        let covariance = match self.form {
            SimplifiedForm::Linear => &self.moments.linear_covariance,
            SimplifiedForm::ThirdMoments => &self.moments.covariance,
        };
        let rows: Vec<&[f64]> = covariance.chunks(k.max(1)).collect();
        let fields = json!({
            "channels": self.channels(),
            "comparison": self.comparison.as_ref().map(SimplifiedComparison::document),
            "converged": self.comparison.as_ref().is_none_or(SimplifiedComparison::converged),
            "covariance": rows,
            "form": self.form.name(),
            "measurement": self.provenance.get("measurement"),
            "n_patches": self.n_patches,
            "n_variables": self.yields.n_variables,
            "provenance": self.provenance,
            "warnings": self.warnings,
        });
        headed("simplify", fields)
    }

    /// Returns the channels with the moments of their yields.
    fn channels(&self) -> Value {
        let of = |values: &[f64], bins: &std::ops::Range<usize>| json!(values[bins.clone()]);
        let k = self.moments.yields.len();
        let linear: Vec<f64> = (0..k).map(|i| self.moments.linear_covariance[i * k + i].sqrt()).collect();
        let widths: Vec<f64> = (0..k).map(|i| self.moments.covariance[i * k + i].sqrt()).collect();
        let skewness: Vec<f64> = self.moments.third_moments.iter().zip(&widths).map(|(m, s)| m / s.powi(3)).collect();
        let channel = |(name, bins): (&str, std::ops::Range<usize>)| {
            json!({
                "channel": name,
                "data": of(&self.background.data(), &bins),
                "linear_uncertainties": of(&linear, &bins),
                "means": of(&self.moments.means, &bins),
                "signal": self.signal.as_ref().map(|signal| of(&signal.yields, &bins)),
                "skewness": of(&skewness, &bins),
                "uncertainties": of(&widths, &bins),
                "yields": of(&self.moments.yields, &bins),
            })
        };
        self.background.channels().into_iter().map(channel).collect()
    }

    /// Returns the warnings in one line, if there are any.
    #[must_use]
    pub fn alarm(&self) -> Option<String> {
        let of_comparison = self.comparison.iter().filter_map(SimplifiedComparison::warning);
        let all: Vec<String> = self.warnings.iter().cloned().chain(of_comparison).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

impl SignalGrid {
    /// Simplifies the background of the set; compares the simplified and the full model for every
    /// signal if that is asked for.
    ///
    /// # Errors
    /// As [`Analysis::simplify`]. Errors of single signals are in the comparison.
    pub fn simplify(
        &self,
        request: &GridRequest<'_>,
        simplify: &SimplifyRequest,
        execution: ExecutionContext<'_>,
    ) -> Result<Simplified, Error> {
        let full = self.first_analysis(request, Procedure::Simplify)?;
        let (model, strength) = self.background(request.options)?;
        let background = Background::fit(&model, &full, strength, &simplify.channels)?;
        let provenance = background.analysis().provenance_of(self.workspace_provenance());
        let mut found = Simplified::new(background, simplify.form, self.with_patchset(Some(&provenance)))?;
        found.n_patches = Some(self.set().patches().len());
        if simplify.compare {
            found.comparison = Some(SimplifiedComparison::of_grid(&found, self, request, execution));
        }
        Ok(found)
    }
}

/// Returns what to know of the simplified `yields`.
fn warnings(
    background: &Background,
    form: SimplifiedForm,
    moments: &YieldMoments,
    yields: &SimplifiedYields,
) -> Vec<String> {
    let mut warnings = background.expansion_warnings(moments);
    let places = |bins: &[usize]| {
        let places: Vec<String> = bins.iter().map(|&bin| background.place(bin)).collect();
        places.join(", ")
    };
    let k = moments.yields.len();
    let is_far = |&bin: &usize| {
        let [linear, width] =
            [&moments.linear_covariance, &moments.covariance].map(|covariance| covariance[bin * k + bin].sqrt());
        (moments.means[bin] - moments.yields[bin]).abs() > SHIFTED * linear || width > WIDENED * linear
    };
    let far: Vec<usize> = (0..k).filter(is_far).collect();
    if form == SimplifiedForm::ThirdMoments && !far.is_empty() {
        warnings.push(format!(
            "second derivatives change the moments strongly, so the expansion is not reliable in {}; the linear form \
             does not use them",
            places(&far)
        ));
    }
    let mean = |bin: usize| yields.constants[bin] + yields.quadratic[bin];
    let negative: Vec<usize> = (0..k).filter(|&bin| mean(bin) < 0.0).collect();
    if !negative.is_empty() {
        warnings.push(format!("the mean yields are negative in {}", places(&negative)));
    }
    if !yields.too_skewed.is_empty() {
        let bins = places(&yields.too_skewed);
        warnings.push(format!("no quadratic yield is as skewed as those of {bins}: they are linear"));
    }
    if yields.largest_deviation > DEVIATES {
        warnings.push(format!(
            "covariances of the simplified yields deviate from those of the full model by up to {:.3} of the standard \
             deviations",
            yields.largest_deviation
        ));
    }
    warnings
}
