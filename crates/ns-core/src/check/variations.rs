//! Finds systematics that change nothing, move the yield in one direction only, are kinked, or are
//! larger than the yield.

use super::finding::{Finding, FindingKind, FindingPlace};
use crate::spec::{Channel, Modifier, ModifierData, Sample, Workspace};

/// Shifts below this, relative to nominal, count as no effect.
const NO_EFFECT: f64 = 1e-9;
/// Shifts below this are not examined for their shape.
const SMALL: f64 = 0.01;
/// The ratio of the variations at -1σ and +1σ below which a systematic is kinked.
const KINK: f64 = 0.1;
/// Shifts above this count as very large.
const LARGE: f64 = 1.0;

pub(super) fn look(workspace: &Workspace, findings: &mut Vec<Finding>) {
    for (c, channel) in workspace.channels.iter().enumerate() {
        for (s, sample) in channel.samples.iter().enumerate() {
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                let pointer = format!("/channels/{c}/samples/{s}/modifiers/{m}");
                let at = |bin| place(pointer.clone(), channel, sample, modifier, bin);
                findings.extend(
                    findings_of(sample, modifier).into_iter().map(|(problem, bin)| Finding { problem, at: at(bin) }),
                );
            }
        }
    }
}

fn place(pointer: String, channel: &Channel, sample: &Sample, modifier: &Modifier, bin: Option<usize>) -> FindingPlace {
    FindingPlace {
        pointer: Some(pointer),
        channel: Some(channel.name.clone()),
        sample: Some(sample.name.clone()),
        modifier: Some(modifier.name.clone()),
        bin,
        parameter: None,
    }
}

/// The relative shifts at -1σ and +1σ, of one bin or of a whole sample.
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

/// Returns the problems of one modifier and their bins.
fn findings_of(sample: &Sample, modifier: &Modifier) -> Vec<(FindingKind, Option<usize>)> {
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

/// Returns the shifts of the bins that have a nominal yield, the shift of their sum, and whether
/// any bin changes.
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

/// Returns the largest of the shifts for which `is_bad` holds, and their number.
fn worst(shifts: &[Shift], is_bad: fn(Shift) -> bool) -> Option<(Shift, usize)> {
    let bad = || shifts.iter().copied().filter(|shift| is_bad(*shift));
    let largest = bad().max_by(|a, b| a.size().total_cmp(&b.size()))?;
    Some((largest, bad().count()))
}
