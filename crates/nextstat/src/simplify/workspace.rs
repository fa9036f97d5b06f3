//! The workspace of a simplified model.

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
    /// Returns the workspace of the simplified background `yields`, with a `signal` (K) if one is
    /// given.
    pub(super) fn workspace(
        &self,
        yields: &SimplifiedYields,
        form: SimplifiedForm,
        signal: Option<&[f64]>,
    ) -> Workspace {
        let data = self.data();
        let channels = self.channels();
        let poi = self.strength();
        let variables = Variables::beside(poi.as_deref());
        let channel = |(name, bins): &(&str, Range<usize>)| {
            let modifiers = match form {
                SimplifiedForm::Linear => shifts(yields, bins, variables),
                SimplifiedForm::ThirdMoments => vec![polynomials(yields, name, bins, variables)],
            };
            let background = Sample {
                name: "background".to_owned(),
                data: yields.constants[bins.clone()].to_vec(),
                modifiers,
                ..Sample::default()
            };
            let signal = signal.zip(poi.as_ref()).map(|(signal, poi)| Sample {
                name: "signal".to_owned(),
                data: signal[bins.clone()].to_vec(),
                modifiers: vec![Modifier::new(poi.as_str(), ModifierData::NormFactor)],
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
            measurements: vec![self.measurement(yields.n_variables, form, signal.is_some())],
        }
    }

    /// Returns the name of the strength of signals.
    fn strength(&self) -> Option<String> {
        let named = self.poi().map(|poi| self.analysis().whole_model().parameters.names[poi].clone());
        named.or_else(|| self.analysis().compiled().measurement().and_then(|measurement| measurement.poi.clone()))
    }

    fn measurement(&self, n_variables: usize, form: SimplifiedForm, has_signal: bool) -> Measurement {
        let poi = self.strength();
        let variables = Variables::beside(poi.as_deref());
        let mut parameters = Vec::new();
        if let (true, Some(poi), Some(i)) = (has_signal, &poi, self.poi()) {
            let domain = self.analysis().domain();
            let init = self.analysis().whole_model().parameters.init[i];
            let bounds = Some(vec![[domain.lower[i], domain.upper[i]]]);
            parameters.push(ParameterConfig {
                name: poi.clone(),
                inits: Some(vec![init]),
                bounds,
                ..ParameterConfig::default()
            });
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
        Measurement { name, poi, parameters, ..Measurement::default() }
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

/// Returns the quadratic yields in `bins` of `channel`: a polynomial for each bin.
fn polynomials(yields: &SimplifiedYields, channel: &str, bins: &Range<usize>, variables: Variables) -> Modifier {
    let term = |bin: usize| {
        let mut theta = String::new();
        for (k, factor) in yields.row(bin).iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            let _ = write!(theta, "{}({factor:?})*{}", if theta.is_empty() { "" } else { " + " }, variables.name(k));
        }
        let (b, c) = (yields.linear[bin], yields.quadratic[bin]);
        let coefficient = match theta.is_empty() {
            true => "0".to_owned(),
            false => format!("({b:?})*({theta}) + ({c:?})*({theta})^2"),
        };
        let data = bins.clone().map(|other| f64::from(u8::from(other == bin))).collect();
        MorphingTerm { coefficient: Expression::new(coefficient), data }
    };
    let terms = bins.clone().filter(|&bin| yields.row(bin).iter().any(|factor| *factor != 0.0)).map(term).collect();
    Modifier::new(format!("simplified_yields_{channel}"), ModifierData::Morphing(terms))
}
