//! Systematics that change nothing, move the yield to one side only, are kinked, or are larger than the yield.

use super::finding::{Finding, FindingKind, FindingPlace};
use crate::spec::{Channel, Modifier, ModifierData, Sample, Workspace};

/// Shifts below this, relative to nominal, are no effect.
const NO_EFFECT: f64 = 1e-9;
/// Shifts below this are not worth a remark about their shape.
const SMALL: f64 = 0.01;
/// A variation this much smaller than its partner makes a kink.
const KINK: f64 = 0.1;
/// Shifts above this are very large.
const LARGE: f64 = 1.0;

pub(super) fn look(workspace: &Workspace, findings: &mut Vec<Finding>) {
    for (c, channel) in workspace.channels.iter().enumerate() {
        for (s, sample) in channel.samples.iter().enumerate() {
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                let at = |bin| place((c, s, m), channel, sample, modifier, bin);
                findings
                    .extend(judge(sample, modifier).into_iter().map(|(problem, bin)| Finding { problem, at: at(bin) }));
            }
        }
    }
}

fn place(
    (c, s, m): (usize, usize, usize),
    channel: &Channel,
    sample: &Sample,
    modifier: &Modifier,
    bin: Option<usize>,
) -> FindingPlace {
    FindingPlace {
        pointer: Some(format!("/channels/{c}/samples/{s}/modifiers/{m}")),
        channel: Some(channel.name.clone()),
        sample: Some(sample.name.clone()),
        modifier: Some(modifier.name.clone()),
        bin,
        parameter: None,
    }
}

/// Relative shifts at -1σ and +1σ, with the bin where there is one.
#[derive(Clone, Copy)]
struct Shift {
    down: f64,
    up: f64,
    bin: Option<usize>,
}

impl Shift {
    fn size(self) -> f64 {
        self.down.abs().max(self.up.abs())
    }

    fn smaller(self) -> f64 {
        self.down.abs().min(self.up.abs())
    }

    fn is_kinked(self) -> bool {
        self.size() > SMALL && self.smaller() < KINK * self.size()
    }

    fn is_one_sided(self) -> bool {
        self.size() > SMALL && !self.is_kinked() && self.down * self.up > 0.0
    }
}

/// The problems of one modifier and their bins.
fn judge(sample: &Sample, modifier: &Modifier) -> Vec<(FindingKind, Option<usize>)> {
    let kind = modifier.kind();
    // The shifts of single bins, and that of the whole sample.
    let (shifts, whole, changes_something) = match &modifier.data {
        ModifierData::NormSys { lo, hi } => {
            let shift = Shift { down: lo - 1.0, up: hi - 1.0, bin: None };
            (vec![shift], shift, shift.size() > NO_EFFECT)
        }
        ModifierData::HistoSys { lo_data, hi_data } => histosys_shifts(&sample.data, lo_data, hi_data),
        _ => return Vec::new(),
    };
    if !changes_something {
        return vec![(FindingKind::NoEffect { kind }, None)];
    }
    if shifts.iter().all(|shift| shift.down == shift.up) {
        return vec![(FindingKind::EqualVariations { kind, up: whole.up }, None)];
    }
    let mut problems = Vec::new();
    if let Some((Shift { down, up, bin }, n_bins)) = worst(&shifts, Shift::is_one_sided) {
        problems.push((FindingKind::OneSided { kind, down, up, n_bins }, bin));
    }
    if let Some((Shift { down, up, bin }, n_bins)) = worst(&shifts, Shift::is_kinked) {
        problems.push((FindingKind::Kinked { kind, down, up, n_bins }, bin));
    }
    if whole.size() > LARGE {
        problems.push((FindingKind::LargeEffect { kind, down: whole.down, up: whole.up }, None));
    }
    problems
}

/// Shifts of the bins that have a nominal yield, the shift of their sum, and whether anything changes anywhere.
fn histosys_shifts(nominal: &[f64], lo: &[f64], hi: &[f64]) -> (Vec<Shift>, Shift, bool) {
    let relative = |varied: f64, nominal: f64| (varied - nominal) / nominal;
    let bins = || nominal.iter().zip(lo).zip(hi).enumerate();
    let shifts: Vec<Shift> = bins()
        .filter(|(_, ((nominal, _), _))| **nominal != 0.0)
        .map(|(bin, ((&n, &lo), &hi))| Shift { down: relative(lo, n), up: relative(hi, n), bin: Some(bin) })
        .collect();
    let fills_empty_bins = bins().any(|(_, ((&n, &lo), &hi))| n == 0.0 && (lo != 0.0 || hi != 0.0));
    let changes_something = fills_empty_bins || shifts.iter().any(|shift| shift.size() > NO_EFFECT);
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let total = sum(nominal);
    let whole = if total == 0.0 {
        Shift { down: 0.0, up: 0.0, bin: None }
    } else {
        Shift { down: relative(sum(lo), total), up: relative(sum(hi), total), bin: None }
    };
    (shifts, whole, changes_something)
}

/// The largest of the shifts that `is_bad`, and how many there are.
fn worst(shifts: &[Shift], is_bad: fn(Shift) -> bool) -> Option<(Shift, usize)> {
    let bad = || shifts.iter().copied().filter(|shift| is_bad(*shift));
    let largest = bad().max_by(|a, b| a.size().total_cmp(&b.size()))?;
    Some((largest, bad().count()))
}
