//! Makes small models by hand, for tests that know the results.

use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use ns_core::{CompileOptions, Model, compile};

/// Returns a sample with its modifiers, each with its name.
#[must_use]
pub fn sample(name: &str, data: &[f64], modifiers: &[(&str, ModifierData)]) -> Sample {
    let modifier = |(name, data): &(&str, ModifierData)| Modifier::new(*name, data.clone());
    Sample {
        name: name.to_owned(),
        data: data.to_vec(),
        modifiers: modifiers.iter().map(modifier).collect(),
        ..Default::default()
    }
}

/// A channel with its observed data.
#[derive(Debug, Clone)]
pub struct Region {
    channel: Channel,
    observation: Observation,
}

/// Returns the channel `name` of `samples` with the observed data.
#[must_use]
pub fn region(name: &str, samples: Vec<Sample>, observed: &[f64]) -> Region {
    Region {
        channel: Channel { name: name.to_owned(), samples },
        observation: Observation { name: name.to_owned(), data: observed.to_vec() },
    }
}

/// Returns the model of `regions` with parameter of interest `mu` and the settings `parameters`.
///
/// # Panics
/// If the workspace does not compile.
#[must_use]
pub fn model(regions: Vec<Region>, parameters: Vec<ParameterConfig>) -> Model {
    let (channels, observations) = regions.into_iter().map(|region| (region.channel, region.observation)).unzip();
    let measurement =
        Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters, ..Default::default() };
    let workspace = Workspace { channels, observations, measurements: vec![measurement] };
    compile(&workspace, &CompileOptions::default()).expect("a sound workspace")
}

/// Returns the model of a single channel, likewise.
#[must_use]
pub fn one_channel(samples: Vec<Sample>, observed: &[f64]) -> Model {
    model(vec![region("channel", samples, observed)], Vec::new())
}
