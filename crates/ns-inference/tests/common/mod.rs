//! Small models of one channel, for tests that know what should come out.

use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use ns_core::{CompileOptions, Model, compile};

/// A sample with its modifiers.
pub(crate) fn sample(name: &str, data: &[f64], modifiers: &[(&str, ModifierData)]) -> Sample {
    let modifier = |(name, data): &(&str, ModifierData)| Modifier { name: (*name).to_owned(), data: data.clone() };
    Sample { name: name.to_owned(), data: data.to_vec(), modifiers: modifiers.iter().map(modifier).collect() }
}

/// A model of one channel, with parameter of interest `mu`; a luminosity is known to 0.1%.
pub(crate) fn one_channel(samples: Vec<Sample>, observed: &[f64]) -> Model {
    let lumi = ParameterConfig {
        name: "lumi".to_owned(),
        inits: Some(vec![1.0]),
        bounds: Some(vec![[0.5, 1.5]]),
        auxdata: Some(vec![1.0]),
        sigmas: Some(vec![0.001]),
        ..ParameterConfig::default()
    };
    let has_lumi = samples.iter().flat_map(|sample| &sample.modifiers).any(|m| m.data == ModifierData::Lumi);
    let parameters = if has_lumi { vec![lumi] } else { Vec::new() };
    let workspace = Workspace {
        channels: vec![Channel { name: "channel".to_owned(), samples }],
        observations: vec![Observation { name: "channel".to_owned(), data: observed.to_vec() }],
        measurements: vec![Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters }],
        version: "1.0.0".to_owned(),
    };
    compile(&workspace, &CompileOptions::default()).expect("a sound workspace")
}
