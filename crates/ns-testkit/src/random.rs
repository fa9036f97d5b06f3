//! Makes random workspaces with every modifier, the same for the same seed.

use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use ns_core::{Model, Parameters};

/// A small pseudo-random generator (SplitMix64): tests need repeatable numbers, not good ones.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number between `low` and `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an integer below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % n as u64) as usize
    }

    /// Returns `true` once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The size and the content of random workspaces.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The largest number of channels.
    pub channels: usize,
    /// The largest number of bins of a channel.
    pub bins: usize,
    /// The largest number of samples of a channel.
    pub samples: usize,
    /// The number of nuisance parameters shared between samples.
    pub systematics: usize,
    /// Whether there are shapefactors shared between channels, lumi, and empty bins.
    pub oddities: bool,
    /// Whether systematics have a hundredth of the usual size, so that there is one minimum.
    pub gentle: bool,
    /// Whether some parameters have constraint terms that pyhf's documents cannot give them.
    pub terms: bool,
    /// Whether some modifiers have an interpolation of their own.
    pub rules: bool,
    /// Whether templates are clipped, normalised or scaled, sums uncertain, and yields clipped.
    pub yield_rules: bool,
}

impl Shape {
    /// Small enough for second-order dual numbers.
    pub const SMALL: Self = Self {
        channels: 3,
        bins: 5,
        samples: 3,
        systematics: 4,
        oddities: true,
        gentle: false,
        terms: true,
        rules: true,
        yield_rules: false,
    };

    /// As [`Self::SMALL`], with rules of yields.
    pub const YIELD_RULES: Self = Self { yield_rules: true, ..Self::SMALL };

    /// As [`Self::SMALL`], with nothing that pyhf's documents cannot have.
    pub const PYHF: Self = Self { terms: false, rules: false, ..Self::SMALL };

    /// Returns the factor of a systematic, of the usual size or of a hundredth of it.
    fn factor(self, factor: f64) -> f64 {
        if self.gentle { 1.0 + 0.01 * (factor - 1.0) } else { factor }
    }
}

/// Makes the random numbers of interpolation rules others than those of workspaces.
const RULES: u64 = 0x005e_ed0f_0b5e_55ed;
const YIELD_RULES: u64 = 0x0071_e1d5_0000_0001;

/// Returns a random workspace with signal strength `mu` and every kind of modifier.
#[must_use]
pub fn workspace(seed: u64, shape: Shape) -> Workspace {
    let mut random = Random::new(seed);
    let n_channels = 1 + random.below(shape.channels);
    let shared_bins = 1 + random.below(shape.bins);
    let mut channels: Vec<Channel> = (0..n_channels).map(|c| channel(&mut random, shape, c, shared_bins)).collect();
    if shape.rules {
        crate::rules::set(&mut Random::new(seed ^ RULES), &mut channels);
    }
    let clip = match shape.yield_rules {
        true => crate::yield_rules::set(&mut Random::new(seed ^ YIELD_RULES), &mut channels),
        false => ns_core::spec::Clipping::default(),
    };
    let observations = channels.iter().map(|c| observation(&mut random, c)).collect();
    let lumi = ParameterConfig {
        name: "lumi".to_owned(),
        inits: Some(vec![1.0]),
        bounds: Some(vec![[0.5, 1.5]]),
        auxdata: Some(vec![1.0]),
        sigmas: Some(vec![0.02]),
        ..ParameterConfig::default()
    };
    let mut parameters = vec![lumi];
    if shape.terms {
        parameters.extend(crate::terms::settings(&mut Random::new(!seed), &channels, shape.oddities));
    }
    let measurement = Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters, clip };
    Workspace { channels, observations, measurements: vec![measurement] }
}

fn channel(random: &mut Random, shape: Shape, c: usize, shared_bins: usize) -> Channel {
    let n_bins = if random.one_in(2) { shared_bins } else { 1 + random.below(shape.bins) };
    let n_samples = 1 + random.below(shape.samples);
    let staterror = random.one_in(2);
    let mut samples = vec![signal(random, shape, n_bins)];
    for s in 0..n_samples {
        let mut sample = background(random, shape, (c, s), n_bins);
        if staterror && !random.one_in(4) {
            let errors = sample.data.iter().map(|y| y * random.between(0.02, 0.2)).collect();
            sample.modifiers.push(modifier(format!("stat_{c}"), ModifierData::StatError(errors)));
        }
        if shape.oddities && s == 0 && n_bins == shared_bins {
            sample.modifiers.push(modifier("shape".to_owned(), ModifierData::ShapeFactor));
        }
        samples.push(sample);
    }
    // Names in an order that sorting changes.
    Channel { name: format!("channel_{}", (c * 7 + 3) % 10), samples }
}

fn modifier(name: String, data: ModifierData) -> Modifier {
    Modifier::new(name, data)
}

fn signal(random: &mut Random, shape: Shape, n_bins: usize) -> Sample {
    let data: Vec<f64> = (0..n_bins).map(|_| random.between(0.5, 10.0)).collect();
    let modifiers = vec![
        modifier("mu".to_owned(), ModifierData::NormFactor),
        modifier("xs".to_owned(), ModifierData::NormSys { lo: shape.factor(0.9), hi: shape.factor(1.15) }),
    ];
    Sample { name: "signal".to_owned(), data, modifiers, ..Default::default() }
}

fn background(random: &mut Random, shape: Shape, (c, s): (usize, usize), n_bins: usize) -> Sample {
    let empty = |random: &mut Random| shape.oddities && random.one_in(20);
    let data: Vec<f64> = (0..n_bins).map(|_| if empty(random) { 0.0 } else { random.between(5.0, 100.0) }).collect();
    let mut modifiers = Vec::new();
    let factor = |factor: f64| shape.factor(factor);
    for i in 0..shape.systematics {
        let name = format!("alpha_{i}");
        if random.one_in(2) {
            let (lo, hi) = (random.between(0.7, 1.0), random.between(1.0, 1.3));
            let (lo, hi) = if random.one_in(2) { (hi, lo) } else { (lo, hi) };
            let data = ModifierData::NormSys { lo: factor(lo), hi: factor(hi) };
            modifiers.push(modifier(name.clone(), data));
        }
        if random.one_in(2) {
            let hi_data = data.iter().map(|y| y * factor(random.between(0.9, 1.2))).collect();
            let lo_data = data.iter().map(|y| y * factor(random.between(0.8, 1.1))).collect();
            modifiers.push(modifier(name, ModifierData::HistoSys { lo_data, hi_data }));
        }
    }
    if random.one_in(3) {
        let errors = data.iter().map(|y| if random.one_in(10) { 0.0 } else { y * random.between(0.05, 0.3) }).collect();
        modifiers.push(modifier(format!("shapesys_{c}_{s}"), ModifierData::ShapeSys(errors)));
    }
    if shape.oddities && random.one_in(2) {
        modifiers.push(modifier("lumi".to_owned(), ModifierData::Lumi));
    }
    if random.one_in(3) {
        modifiers.push(modifier(format!("norm_{s}"), ModifierData::NormFactor));
    }
    Sample { name: format!("background_{}", (s * 3 + 1) % 7), data, modifiers, ..Default::default() }
}

fn observation(random: &mut Random, channel: &Channel) -> Observation {
    let total = |bin: usize| channel.samples.iter().map(|s| s.data[bin]).sum::<f64>();
    let n_bins = channel.samples[0].data.len();
    let data = (0..n_bins).map(|bin| (total(bin) * random.between(0.7, 1.3)).round()).collect();
    Observation { name: channel.name.clone(), data }
}

/// Returns a point inside the bounds of `parameters`, up to `spread` constraint widths from the
/// start; some free factors are exactly zero.
#[must_use]
pub fn point(parameters: &Parameters, random: &mut Random, spread: f64) -> Vec<f64> {
    let coordinate = |p: usize, random: &mut Random| {
        let (init, lower, upper) = (parameters.init[p], parameters.lower[p], parameters.upper[p]);
        let width = parameters.constraint[p].map_or(0.5, |c| c.width(init));
        if parameters.constraint[p].is_none() && lower == 0.0 && random.one_in(8) {
            return 0.0;
        }
        (init + width * random.between(-spread, spread)).clamp(lower, upper)
    };
    (0..parameters.len()).map(|p| coordinate(p, random)).collect()
}

/// Returns the compiled random workspace of `seed`.
///
/// # Panics
/// If the workspace does not compile, which would be a fault of this module.
#[must_use]
pub fn model(seed: u64, shape: Shape, interpolation: ns_core::interpolate::Interpolation) -> Model {
    let options = ns_core::CompileOptions { interpolation, ..Default::default() };
    ns_core::compile(&workspace(seed, shape), &options).expect("random workspaces are sound")
}
