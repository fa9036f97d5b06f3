//! Makes random models whose likelihoods tend to have several minima, each kind with one cause.
//!
//! Data are drawn at a point where the nuisance parameters in question are pulled, so that minima
//! away from the starting values are often the lower ones.

use crate::random::Random;
use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
use ns_core::{CompileOptions, Model, compile, expected};

/// The cause of several minima.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A normsys with very large variations on a sample that expects next to nothing.
    HugeNormsys,
    /// Histosys whose lower variation is the nominal yield, in different directions in different
    /// bins.
    OneSided,
    /// Same-sign systematics: normsys and histosys that move a yield in one direction at -1σ and
    /// +1σ.
    SameSign,
    /// Pairs of systematics with nearly the same effect, which bends.
    NearDegenerate,
    /// Systematics with equal variations up and down: every minimum has a mirror image.
    Mirrored,
    /// Histosys as large as the yield, so that the likelihood's domain ends inside the ranges.
    LargeShapes,
    /// Any of the above, in one model.
    Mixed,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 7] = [
        Self::HugeNormsys,
        Self::OneSided,
        Self::SameSign,
        Self::NearDegenerate,
        Self::Mirrored,
        Self::LargeShapes,
        Self::Mixed,
    ];

    /// Returns a short name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HugeNormsys => "huge normsys",
            Self::OneSided => "one-sided",
            Self::SameSign => "same-sign",
            Self::NearDegenerate => "near-degenerate",
            Self::Mirrored => "mirrored",
            Self::LargeShapes => "large shapes",
            Self::Mixed => "mixed",
        }
    }
}

/// Returns the model number `seed` of `cause`.
///
/// # Panics
/// If a random workspace does not compile, which would be a fault of this module.
#[must_use]
pub fn model(cause: Cause, seed: u64) -> Model {
    compile(&workspace(cause, seed), &CompileOptions::default()).expect("random workspaces are sound")
}

/// Returns the workspace number `seed` of `cause`, with signal strength `mu`.
///
/// # Panics
/// If a random workspace does not compile, which would be a fault of this module.
#[must_use]
pub fn workspace(cause: Cause, seed: u64) -> Workspace {
    let mut random = Random::new(seed.wrapping_mul(16).wrapping_add(cause as u64));
    let n_channels = 1 + random.below(3);
    let channels: Vec<Channel> = (0..n_channels).map(|c| channel(&mut random, cause, c)).collect();
    let observations = channels.iter().map(nominal).collect();
    let measurement =
        Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters: Vec::new(), ..Default::default() };
    let mut workspace = Workspace { channels, observations, measurements: vec![measurement] };
    draw_data(&mut random, &mut workspace);
    workspace
}

/// The number of ordinary systematics of [`crowded`] models.
const CROWD: usize = 40;

/// Returns the model number `seed` of `cause` among 40 ordinary systematics: too many parameters
/// for a search that tries everything. Samples that expect next to nothing also get what simulation
/// of few events gives: large statistical uncertainties, and shapes larger than their yields.
///
/// # Panics
/// If a random workspace does not compile, which would be a fault of this module.
#[must_use]
pub fn crowded(cause: Cause, seed: u64) -> Model {
    let mut workspace = workspace(cause, seed);
    let mut random = Random::new(!seed.wrapping_mul(16).wrapping_add(cause as u64));
    for channel in &mut workspace.channels {
        let samples = channel.samples.iter_mut().filter(|sample| sample.name != "signal");
        for sample in samples {
            for i in 0..CROWD {
                if random.one_in(2) {
                    let (down, up) = (random.between(-0.08, 0.08), random.between(-0.08, 0.08));
                    let data = ModifierData::NormSys { lo: 1.0 - down, hi: 1.0 + up };
                    sample.modifiers.push(named(&format!("crowd_{i}"), data));
                }
            }
            if sample.name == "c_tiny" {
                let varied = |random: &mut Random| vary(random, &sample.data, |random| random.between(-1.5, 1.5));
                let shape = ModifierData::HistoSys { lo_data: varied(&mut random), hi_data: varied(&mut random) };
                let errors = sample.data.iter().map(|y| y * random.between(0.5, 3.0)).collect();
                sample.modifiers.push(named("few_events_shape", shape));
                sample.modifiers.push(named(&format!("few_events_{}", channel.name), ModifierData::ShapeSys(errors)));
            }
        }
    }
    compile(&workspace, &CompileOptions::default()).expect("random workspaces are sound")
}

fn nominal(channel: &Channel) -> Observation {
    let n_bins = channel.samples[0].data.len();
    let total = |bin: usize| channel.samples.iter().map(|s| s.data[bin]).sum::<f64>().round();
    Observation { name: channel.name.clone(), data: (0..n_bins).map(total).collect() }
}

/// Replaces the observations by counts near what a random point expects.
fn draw_data(random: &mut Random, workspace: &mut Workspace) {
    let model = compile(workspace, &CompileOptions::default()).expect("random workspaces are sound");
    let parameters = &model.parameters;
    let spread = [0.0, 1.0, 1.5, 2.5][random.below(4)];
    let truth: Vec<f64> = (0..parameters.len())
        .map(|i| {
            let init = parameters.init[i];
            let moved = match parameters.constraint[i] {
                Some(constraint) => init + constraint.width(init) * random.between(-spread, spread),
                None => random.between(0.0, 2.0),
            };
            moved.clamp(parameters.lower[i], parameters.upper[i])
        })
        .collect();
    let mut lambda = expected::expected_main(&model, &truth).into_iter();
    // Channels and samples of a model are sorted by name, as those here are.
    for observation in &mut workspace.observations {
        for count in &mut observation.data {
            let mean = lambda.next().expect("a bin for each count").max(0.0);
            let noise: f64 = (0..6).map(|_| random.between(-0.5, 0.5)).sum::<f64>() * 2.0_f64.sqrt();
            *count = (mean + mean.sqrt() * noise).round().max(0.0);
        }
    }
}

fn channel(random: &mut Random, cause: Cause, c: usize) -> Channel {
    let n_bins = 1 + random.below(5);
    let scale = [3.0, 10.0, 40.0, 200.0][random.below(4)];
    let mut yields = |low: f64, high: f64| (0..n_bins).map(|_| scale * random.between(low, high)).collect::<Vec<f64>>();
    let (signal, main, second) = (yields(0.05, 0.6), yields(0.5, 2.0), yields(0.05, 0.7));
    let signal = sample("signal", signal, vec![named("mu", ModifierData::NormFactor)]);
    let mut samples = vec![background(random, "a_main", main), background(random, "b_second", second)];
    afflict(random, cause, &mut samples);
    if cause == Cause::HugeNormsys || (cause == Cause::Mixed && random.one_in(2)) {
        samples.push(tiny(random, n_bins));
    }
    samples.push(signal);
    if random.one_in(2) {
        let main = &mut samples[0];
        let errors = main.data.iter().map(|y| y * random.between(0.02, 0.3)).collect();
        main.modifiers.push(named(&format!("stat_{c}"), ModifierData::StatError(errors)));
    }
    Channel { name: format!("channel_{c}"), samples }
}

fn named(name: &str, data: ModifierData) -> Modifier {
    Modifier::new(name, data)
}

fn sample(name: &str, data: Vec<f64>, modifiers: Vec<Modifier>) -> Sample {
    Sample { name: name.to_owned(), data, modifiers, ..Default::default() }
}

/// Returns a background with two ordinary systematics, shared between samples and channels.
fn background(random: &mut Random, name: &str, data: Vec<f64>) -> Sample {
    let mut modifiers = Vec::new();
    for i in 0..2 {
        let (down, up) = (random.between(0.02, 0.2), random.between(0.02, 0.2));
        let sign = if random.one_in(2) { 1.0 } else { -1.0 };
        let data = ModifierData::NormSys { lo: 1.0 - sign * down, hi: 1.0 + sign * up };
        modifiers.push(named(&format!("plain_{i}"), data));
    }
    sample(name, data, modifiers)
}

/// Returns a sample that expects next to nothing, with a very large normsys.
fn tiny(random: &mut Random, n_bins: usize) -> Sample {
    let data = (0..n_bins).map(|_| random.between(0.005, 0.2)).collect();
    let n = 1 + random.below(2);
    let huge = |random: &mut Random| {
        let (hi, lo) = (random.between(8.0, 60.0), random.between(0.005, 0.3));
        let (lo, hi) = if random.one_in(4) { (hi, lo) } else { (lo, hi) };
        ModifierData::NormSys { lo, hi }
    };
    let modifiers = (0..n).map(|i| named(&format!("huge_{i}"), huge(random))).collect();
    sample("c_tiny", data, modifiers)
}

/// Gives `samples` the systematics of `cause`.
fn afflict(random: &mut Random, cause: Cause, samples: &mut [Sample]) {
    let n = 1 + random.below(3);
    for i in 0..n {
        let kind = match cause {
            Cause::Mixed => Cause::ALL[1 + random.below(5)],
            cause => cause,
        };
        for sample in samples.iter_mut() {
            if !random.one_in(3) {
                let modifiers = systematic(random, kind, i, &sample.data);
                sample.modifiers.extend(modifiers);
            }
        }
    }
}

/// Returns systematic number `i` of a sample, or the pair of that number.
fn systematic(random: &mut Random, cause: Cause, i: usize, data: &[f64]) -> Vec<Modifier> {
    let name = format!("{}_{i}", cause.name().replace([' ', '-'], "_"));
    match cause {
        Cause::HugeNormsys | Cause::Mixed => Vec::new(),
        Cause::OneSided => {
            let hi_data = vary(random, data, |random| random.between(-0.6, 1.0));
            vec![named(&name, ModifierData::HistoSys { lo_data: data.to_vec(), hi_data })]
        }
        Cause::SameSign if random.one_in(2) => {
            let (lo, hi) = (random.between(1.02, 1.6), random.between(1.02, 1.6));
            let (lo, hi) = if random.one_in(2) { (lo, hi) } else { (2.0 - lo, 2.0 - hi) };
            vec![named(&name, ModifierData::NormSys { lo, hi })]
        }
        Cause::SameSign => {
            let factors: Vec<[f64; 2]> = data
                .iter()
                .map(|_| {
                    let sign = if random.one_in(2) { 1.0 } else { -1.0 };
                    [1.0 + sign * random.between(0.01, 0.5), 1.0 + sign * random.between(0.01, 0.5)]
                })
                .collect();
            let varied = |side: usize| data.iter().zip(&factors).map(|(y, f)| y * f[side]).collect();
            vec![named(&name, ModifierData::HistoSys { lo_data: varied(0), hi_data: varied(1) })]
        }
        Cause::NearDegenerate => {
            let (lo, hi) = (random.between(0.3, 0.9), random.between(1.05, 2.5));
            let nearly = |random: &mut Random, x: f64| x * random.between(0.97, 1.03);
            let copy = ModifierData::NormSys { lo: nearly(random, lo), hi: nearly(random, hi) };
            vec![named(&name, ModifierData::NormSys { lo, hi }), named(&format!("{name}_copy"), copy)]
        }
        Cause::Mirrored if random.one_in(2) => {
            let size = random.between(0.5, 1.8);
            vec![named(&name, ModifierData::NormSys { lo: size, hi: size })]
        }
        Cause::Mirrored => {
            let varied = vary(random, data, |random| random.between(-0.4, 0.6));
            vec![named(&name, ModifierData::HistoSys { lo_data: varied.clone(), hi_data: varied })]
        }
        Cause::LargeShapes => {
            let hi_data = vary(random, data, |random| random.between(-1.0, 1.5));
            let lo_data = vary(random, data, |random| random.between(-1.0, 1.5));
            vec![named(&name, ModifierData::HistoSys { lo_data, hi_data })]
        }
    }
}

fn vary(random: &mut Random, data: &[f64], by: impl Fn(&mut Random) -> f64) -> Vec<f64> {
    data.iter().map(|y| y * (1.0 + by(random))).collect()
}
