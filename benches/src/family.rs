//! A family of models of any size, alike in everything but the size.
//!
//! Channels of up to 20 bins; in each a signal, scaled by `mu`, and backgrounds (three if nothing
//! else is asked for), the largest with a free factor. Shared systematics, each a normsys and a
//! histosys of every fourth sample; for [`Kind::Gammas`], a staterror in every bin as well.

use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, Sample, Workspace};
use ns_testkit::random::Random;

/// Bins of a full channel.
const CHANNEL: usize = 20;

/// What most parameters of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Shared systematics, each of which acts on bins all over the model
    Systematics,
    /// One staterror gamma per bin
    Gammas,
}

/// A workspace with `n_params` parameters and `n_bins` bins. For [`Kind::Gammas`], `n_params` must
/// be more than `n_bins` + 2.
pub(crate) fn workspace(kind: Kind, n_params: usize, n_bins: usize) -> Workspace {
    workspace_of_samples(kind, n_params, n_bins, 4)
}

/// The same with `n_samples` samples in each channel.
pub(crate) fn workspace_of_samples(kind: Kind, n_params: usize, n_bins: usize, n_samples: usize) -> Workspace {
    let gammas = if kind == Kind::Gammas { n_bins } else { 0 };
    let n_systematics = n_params.saturating_sub(gammas + 2);
    let mut random = Random::new(1);
    let n_channels = n_bins.div_ceil(CHANNEL);
    let channels: Vec<Channel> = (0..n_channels)
        .map(|c| {
            let width = CHANNEL.min(n_bins - c * CHANNEL);
            let shape = ChannelShape { index: c, width, n_systematics, n_samples, has_gammas: gammas > 0 };
            channel(&mut random, &shape)
        })
        .collect();
    let observations = channels.iter().map(|channel| observation(&mut random, channel)).collect();
    let measurement =
        Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters: Vec::new(), ..Default::default() };
    Workspace { channels, observations, measurements: vec![measurement] }
}

/// What a channel consists of.
struct ChannelShape {
    index: usize,
    width: usize,
    n_systematics: usize,
    n_samples: usize,
    has_gammas: bool,
}

fn channel(random: &mut Random, shape: &ChannelShape) -> Channel {
    let &ChannelShape { index: c, width, n_systematics, n_samples, has_gammas } = shape;
    let sample = |random: &mut Random, s: usize| {
        let scale = [8.0, 200.0, 60.0].get(s).copied().unwrap_or(20.0);
        let data: Vec<f64> = (0..width).map(|_| scale * random.between(0.5, 1.5)).collect();
        let mut modifiers: Vec<Modifier> = Vec::new();
        let mut add = |name: &str, data| modifiers.push(Modifier::new(name, data));
        match s {
            0 => add("mu", ModifierData::NormFactor),
            1 => add("k", ModifierData::NormFactor),
            _ => {}
        }
        for i in (0..n_systematics).filter(|i| (i + c + s).is_multiple_of(4)) {
            // Many systematics are each small, as in real models.
            let size = 0.3 / (n_systematics as f64).sqrt();
            let name = format!("alpha_{i}");
            add(
                &name,
                ModifierData::NormSys {
                    lo: 1.0 - size * random.between(0.2, 1.0),
                    hi: 1.0 + size * random.between(0.2, 1.0),
                },
            );
            let tilt = size * random.between(-1.0, 1.0);
            let tilted = |sign: f64| {
                data.iter()
                    .enumerate()
                    .map(|(b, y)| y * (1.0 + sign * tilt * (b as f64 / width as f64 - 0.5)))
                    .collect()
            };
            add(&name, ModifierData::HistoSys { lo_data: tilted(-1.0), hi_data: tilted(1.0) });
        }
        if has_gammas && s > 0 {
            add(&format!("stat_{c}"), ModifierData::StatError(data.iter().map(|y| (0.3 * y).sqrt()).collect()));
        }
        let name =
            ["signal", "large", "medium", "small"].get(s).map_or_else(|| format!("small_{s}"), |&s| s.to_owned());
        Sample { name, data, modifiers, ..Default::default() }
    };
    Channel { name: format!("channel_{c:04}"), samples: (0..n_samples).map(|s| sample(random, s)).collect() }
}

fn observation(random: &mut Random, channel: &Channel) -> Observation {
    let n_bins = channel.samples[0].data.len();
    let total = |bin: usize| channel.samples.iter().map(|s| s.data[bin]).sum::<f64>();
    let data = (0..n_bins).map(|bin| (total(bin) + total(bin).sqrt() * random.between(-1.7, 1.7)).round()).collect();
    Observation { name: channel.name.clone(), data }
}
