//! The workspace of a simplified model.

use super::SimplifiedSignal;
use super::background::Background;
use ns_core::spec::{
    Channel, ConstraintTerm, Expression, Measurement, Modifier, ModifierData, MorphingTerm, Observation,
    ParameterConfig, Sample, Workspace,
};
use ns_inference::simplified::{SimplifiedForm, SimplifiedYields};
use std::fmt::Write as _;
use std::ops::Range;

/// The range of the variables, in standard deviations.
const RANGE: [f64; 2] = [-10.0, 10.0];

impl Background {
    /// Returns the workspace of the simplified background `yields`, with a `signal` if one is
    /// given.
    pub(super) fn workspace(
        &self,
        yields: &SimplifiedYields,
        form: SimplifiedForm,
        signal: Option<&SimplifiedSignal>,
    ) -> Workspace {
        let data = self.data();
        let channels = self.channels();
        let poi = self.strength();
        let variables = Variables::beside(poi);
        let channel = |(name, bins): &(&str, Range<usize>)| {
            let modifiers = match form {
                SimplifiedForm::Linear => shifts(yields, bins, variables),
                SimplifiedForm::ThirdMoments => polynomials(yields, name, bins, variables).into_iter().collect(),
            };
            let background = Sample {
                name: "background".to_owned(),
                data: yields.constants[bins.clone()].to_vec(),
                modifiers,
                ..Sample::default()
            };
            let signal = signal.zip(poi).map(|(signal, poi)| Sample {
                name: "signal".to_owned(),
                data: signal.yields[bins.clone()].to_vec(),
                modifiers: vec![Modifier::new(poi, ModifierData::NormFactor)],
                ..Sample::default()
            });
            Channel { name: (*name).to_owned(), samples: signal.into_iter().chain([background]).collect() }
        };
        let observation = |(name, bins): &(&str, Range<usize>)| Observation {
            name: (*name).to_owned(),
            data: data[bins.clone()].to_vec(),
        };
        Workspace {
            channels: channels.iter().map(channel).collect(),
            observations: channels.iter().map(observation).collect(),
            measurements: vec![self.measurement(yields.n_variables, form, signal)],
        }
    }

    fn measurement(&self, n_variables: usize, form: SimplifiedForm, signal: Option<&SimplifiedSignal>) -> Measurement {
        let poi = self.strength();
        let variables = Variables::beside(poi);
        let mut parameters = Vec::new();
        if let Some((&SimplifiedSignal { range: [lower, upper], .. }, poi)) = signal.zip(poi) {
            // JSON has no infinite numbers.
            let bounds = (lower.is_finite() && upper.is_finite()).then(|| vec![[lower, upper]]);
            let inits = Some(vec![1.0_f64.max(lower).min(upper)]);
            parameters.push(ParameterConfig { name: poi.to_owned(), inits, bounds, ..ParameterConfig::default() });
        }
        let constraint = match form {
            SimplifiedForm::Linear => None,
            SimplifiedForm::ThirdMoments => Some(vec![ConstraintTerm::Gaussian { sigma: 1.0 }]),
        };
        parameters.extend((0..n_variables).map(|k| ParameterConfig {
            name: variables.name(k),
            inits: Some(vec![0.0]),
            bounds: Some(vec![RANGE]),
            auxdata: constraint.as_ref().map(|_| vec![0.0]),
            constraints: constraint.clone(),
            ..ParameterConfig::default()
        }));
        let name = self
            .analysis()
            .compiled()
            .measurement()
            .map_or("simplified".to_owned(), |measurement| measurement.name.clone());
        Measurement { name, poi: poi.map(str::to_owned), parameters, ..Measurement::default() }
    }
}

/// Names the variables of the simplified yields.
#[derive(Debug, Clone, Copy)]
struct Variables(&'static str);

impl Variables {
    /// Returns names that are not that of the strength of signals.
    fn beside(strength: Option<&str>) -> Self {
        let is_taken = strength.is_some_and(|name| name.starts_with("simplified"));
        Self(if is_taken { "variation" } else { "simplified" })
    }

    /// Returns the name of variable `k`.
    fn name(self, k: usize) -> String {
        format!("{}_{k}", self.0)
    }
}

/// Returns the linear yields in `bins`: a symmetric histosys for each variable.
fn shifts(yields: &SimplifiedYields, bins: &Range<usize>, variables: Variables) -> Vec<Modifier> {
    let shifted = |k: usize, side: f64| {
        bins.clone().map(|bin| yields.constants[bin] + side * yields.linear[bin] * yields.row(bin)[k]).collect()
    };
    let modifier = |k: usize| {
        Modifier::new(variables.name(k), ModifierData::HistoSys { lo_data: shifted(k, -1.0), hi_data: shifted(k, 1.0) })
    };
    (0..yields.n_variables).map(modifier).collect()
}

/// Returns the quadratic yields in `bins` of `channel`: a polynomial for each bin that varies;
/// `None` if no bin does.
fn polynomials(
    yields: &SimplifiedYields,
    channel: &str,
    bins: &Range<usize>,
    variables: Variables,
) -> Option<Modifier> {
    let term = |bin: usize| {
        let mut theta = String::new();
        for (k, factor) in yields.row(bin).iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            let _ = write!(theta, "{}({factor:?})*{}", if theta.is_empty() { "" } else { " + " }, variables.name(k));
        }
        let (b, c) = (yields.linear[bin], yields.quadratic[bin]);
        let coefficient = format!("({b:?})*({theta}) + ({c:?})*({theta})^2");
        let data = bins.clone().map(|other| f64::from(u8::from(other == bin))).collect();
        MorphingTerm { coefficient: Expression::new(coefficient), data }
    };
    let varies = |bin: &usize| yields.row(*bin).iter().any(|factor| *factor != 0.0);
    let terms: Vec<MorphingTerm> = bins.clone().filter(varies).map(term).collect();
    let modifier = || Modifier::new(format!("simplified_yields_{channel}"), ModifierData::Morphing(terms.clone()));
    (!terms.is_empty()).then(modifier)
}
