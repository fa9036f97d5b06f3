//! Published cases whose smallest sample gets a huge normsys, with data that it may explain.

use super::published::Minima;
use super::{Effort, KINDS, MinimaArgs, TOLERANCE, is_of_minima};
use ns_core::spec::{Modifier, ModifierData, Sample, Workspace};
use ns_core::{Model, compile};
use ns_testkit::published::{self, PublishedCase};
use ns_testkit::random::Random;
use std::error::Error;

/// What the sample expects in all bins of its channel together.
const YIELD: f64 = 0.04;

/// What the normsys makes of it.
const HUGE: ModifierData = ModifierData::NormSys { lo: 0.01, hi: 40.0 };

pub(super) fn run(arguments: &MinimaArgs) -> Result<(), Box<dyn Error>> {
    let mut cases = published::cases_in(&arguments.data);
    cases.retain(|case| arguments.case.is_empty() || arguments.case.contains(&case.name));
    cases.retain(|case| case.model.poi().is_some());
    cases.sort_by_key(|case| case.model.n_params());
    let (mut n, mut wrong, mut unwarned) = (0, 0, 0);
    for seed in arguments.first..arguments.first + arguments.models {
        for case in &cases {
            let Some((model, what)) = injected(case, seed) else { continue };
            let effort = Effort { n_starts: arguments.starts, n_values: 4, ..Effort::default() };
            let (above, warnings) = Minima::exhaustive(&model, effort).default_above(&model);
            let is_wrong = above.iter().any(|&above| above.is_nan() || above > TOLERANCE);
            let is_warned = warnings.iter().any(|warning| is_of_minima(warning));
            n += 1;
            wrong += usize::from(is_wrong);
            unwarned += usize::from(is_wrong && !is_warned);
            let verdict = if is_wrong { "above" } else { "fine" };
            let each: Vec<String> =
                KINDS.iter().zip(above).map(|(kind, above)| format!("{kind} {above:.1e}")).collect();
            println!("{verdict} {} seed {seed} ({what}): {} warned: {is_warned}", case.name, each.join(", "));
        }
    }
    println!(
        "{n} models: {wrong} with a default result above the exhaustive one, {unwarned} of them without a warning"
    );
    Ok(())
}

/// `case` with a huge normsys, and where it is; `None` if no channel has a sample to give it to.
fn injected(case: &PublishedCase, seed: u64) -> Option<(Model, String)> {
    let mut random = Random::new(seed);
    let mut workspace = case.workspace.clone();
    let what = inject(&mut workspace, &mut random)?;
    let model = compile(&workspace, &case.options).unwrap_or_else(|error| panic!("{} {seed}: {error}", case.name));
    Some((model, what))
}

/// Scales the smallest background of a channel down, gives it the normsys, as a systematic of its
/// own or of the analysis, and adds one to three events to that channel's data. Returns what was
/// done.
fn inject(workspace: &mut Workspace, random: &mut Random) -> Option<String> {
    let is_candidate = |sample: &Sample| {
        let is_scaled = |modifier: &Modifier| matches!(modifier.data, ModifierData::NormFactor);
        sample.data.iter().sum::<f64>() > 0.0 && !sample.modifiers.iter().any(is_scaled)
    };
    let has_candidate: Vec<usize> =
        (0..workspace.channels.len()).filter(|&c| workspace.channels[c].samples.iter().any(is_candidate)).collect();
    if has_candidate.is_empty() {
        return None;
    }
    let channel = &mut workspace.channels[has_candidate[random.below(has_candidate.len())]];
    let total = |sample: &Sample| sample.data.iter().sum::<f64>();
    let candidates = channel.samples.iter_mut().filter(|sample| is_candidate(sample));
    let sample = candidates.min_by(|a, b| total(a).total_cmp(&total(b)))?;
    scale(sample, YIELD / total(sample));
    let is_normsys = |modifier: &&mut Modifier| matches!(modifier.data, ModifierData::NormSys { .. });
    let mut normsys: Vec<&mut Modifier> = sample.modifiers.iter_mut().filter(is_normsys).collect();
    let name = if normsys.is_empty() || random.one_in(2) {
        let name = "huge".to_owned();
        sample.modifiers.push(Modifier::new(name.clone(), HUGE));
        name
    } else {
        let k = random.below(normsys.len());
        normsys[k].data = HUGE;
        normsys[k].name.clone()
    };
    let what = format!("`{name}` of `{}` in `{}`", sample.name, channel.name);
    let data = &mut workspace.observations.iter_mut().find(|o| o.name == channel.name)?.data;
    let n_more = 1 + random.below(3);
    for _ in 0..n_more {
        let bin = random.below(data.len());
        data[bin] += 1.0;
    }
    Some(format!("{what}, {n_more} more events"))
}

/// Multiplies all yields of `sample` by `factor`.
fn scale(sample: &mut Sample, factor: f64) {
    let by = |data: &mut Vec<f64>| data.iter_mut().for_each(|y| *y *= factor);
    by(&mut sample.data);
    for modifier in &mut sample.modifiers {
        match &mut modifier.data {
            ModifierData::HistoSys { lo_data, hi_data } => {
                by(lo_data);
                by(hi_data);
            }
            ModifierData::ShapeSys(errors) | ModifierData::StatError(errors) => by(errors),
            _ => {}
        }
    }
}
