//! Leaves out of a workspace what its model has: the templates of histosys, most of the numbers of
//! a large model.
//!
//! A model has hi - nominal and lo - nominal. Where adding the nominal yields gives the written
//! templates back to the bit, as it does for variations of less than half, the workspace need not
//! keep them.

use super::responses::scaling_response;
use crate::model::{Model, TemplateShifts};
use crate::spec::{Modifier, ModifierData, Workspace};
use std::ops::Range;

/// The workspace of a model, without the templates that the model has.
#[derive(Debug, Clone)]
pub struct WorkspaceOutline {
    workspace: Workspace,
    /// Whether any template was left out.
    is_incomplete: bool,
}

impl WorkspaceOutline {
    /// Returns the outline of `workspace`, of which `model` was compiled.
    #[must_use]
    pub fn new(mut workspace: Workspace, model: &Model) -> Self {
        let mut is_incomplete = false;
        each_histosys(&mut workspace, model, |variation, nominal, cells| {
            let Variation { lo, hi } = variation;
            let TemplateShifts { up, down } = &*model.shifts;
            if gives(hi, nominal, &up[cells.clone()]) && gives(lo, nominal, &down[cells]) {
                (*hi, *lo) = (Vec::new(), Vec::new());
                is_incomplete = true;
            }
        });
        Self { workspace, is_incomplete }
    }

    /// Returns the workspace without the templates that were left out: channels, samples, names and
    /// measurements are complete.
    #[must_use]
    pub fn incomplete(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the workspace as it was; `model` is the model that it was compiled to.
    #[must_use]
    pub fn complete(&self, model: &Model) -> Workspace {
        let mut workspace = self.workspace.clone();
        if self.is_incomplete {
            each_histosys(&mut workspace, model, |Variation { lo, hi }, nominal, cells| {
                if hi.is_empty() {
                    let TemplateShifts { up, down } = &*model.shifts;
                    (*hi, *lo) = (sum(nominal, &up[cells.clone()]), sum(nominal, &down[cells]));
                }
            });
        }
        workspace
    }
}

/// The templates of a histosys.
struct Variation<'a> {
    lo: &'a mut Vec<f64>,
    hi: &'a mut Vec<f64>,
}

/// Calls `visit` with the templates of every histosys of `workspace` that adds to its sample, the
/// nominal yields of the sample, and its cells in the shifts of `model`.
fn each_histosys(workspace: &mut Workspace, model: &Model, mut visit: impl FnMut(Variation<'_>, &[f64], Range<usize>)) {
    for c in 0..model.channels.len() {
        let Some(channel) = workspace.channels.iter_mut().find(|channel| channel.name == model.channels[c]) else {
            continue;
        };
        for template in model.channel_templates(c) {
            let name = &model.samples[model.table(model.layout.template_sample)[template] as usize];
            let Some(sample) = channel.samples.iter_mut().find(|sample| sample.name == *name) else { continue };
            // In the order in which the model has them.
            let mut sorted: Vec<&mut Modifier> = sample.modifiers.iter_mut().collect();
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            let mut entries = model.part(model.layout.template_histosys, template);
            for modifier in sorted {
                let is_scaling = scaling_response(modifier.interpolation).is_some();
                let ModifierData::HistoSys { lo_data, hi_data } = &mut modifier.data else { continue };
                if is_scaling {
                    continue;
                }
                let Some(entry) = entries.next() else { continue };
                let variation = Variation { lo: lo_data, hi: hi_data };
                visit(variation, &sample.data, model.histosys_cells(entry, sample.data.len()));
            }
        }
    }
}

/// Returns `true` if the template is `nominal` plus `shifts` to the bit.
fn gives(template: &[f64], nominal: &[f64], shifts: &[f64]) -> bool {
    template.iter().zip(nominal).zip(shifts).all(|((y, n), shift)| (n + shift).to_bits() == y.to_bits())
}

fn sum(nominal: &[f64], shifts: &[f64]) -> Vec<f64> {
    nominal.iter().zip(shifts).map(|(n, shift)| n + shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::spec::{Channel, Measurement, Observation, Sample};

    fn histosys(name: &str, lo: &[f64], hi: &[f64]) -> Modifier {
        let data = ModifierData::HistoSys { lo_data: lo.to_vec(), hi_data: hi.to_vec() };
        Modifier { name: name.to_owned(), data, interpolation: Default::default() }
    }

    fn sample(name: &str, data: &[f64], modifiers: Vec<Modifier>) -> Sample {
        Sample { name: name.to_owned(), data: data.to_vec(), modifiers, ..Sample::default() }
    }

    /// Returns two channels whose samples and modifiers are not in the order of their names.
    fn workspace() -> Workspace {
        let first = vec![
            sample("z", &[0.3, 7.1, 1e-3], vec![histosys("b", &[0.2, 7.3, 2e-3], &[0.9, 6.9, 3e-3])]),
            sample(
                "a",
                &[10.1, 0.7, 3.3],
                vec![
                    histosys("b", &[9.9, 0.8, 3.1], &[10.4, 0.6, 3.7]),
                    histosys("a", &[9.0, 0.5, 3.0], &[11.0, 1.0, 4.0]),
                ],
            ),
        ];
        let second = vec![sample("a", &[2.2], vec![histosys("a", &[-0.0], &[2.3])])];
        let channel = |name: &str, samples| Channel { name: name.to_owned(), samples };
        let observation = |name: &str, data: &[f64]| Observation { name: name.to_owned(), data: data.to_vec() };
        Workspace {
            channels: vec![channel("y", first), channel("x", second)],
            observations: vec![observation("x", &[2.0]), observation("y", &[10.0, 8.0, 3.0])],
            measurements: vec![Measurement { name: "m".to_owned(), ..Measurement::default() }],
        }
    }

    #[test]
    fn a_workspace_is_completed_to_the_bit() {
        let whole = workspace();
        let model = compile(&whole, &CompileOptions::default()).expect("a model");
        let outline = WorkspaceOutline::new(whole.clone(), &model);
        let lengths = |workspace: &Workspace| -> Vec<usize> {
            let samples = workspace.channels.iter().flat_map(|channel| &channel.samples);
            let data = samples.flat_map(|sample| &sample.modifiers).map(|modifier| &modifier.data);
            data.map(|data| if let ModifierData::HistoSys { hi_data, .. } = data { hi_data.len() } else { 0 }).collect()
        };
        // A sum gives neither 0.9 of the first back, from 0.3, nor -0 of the last.
        assert_eq!(lengths(outline.incomplete()), [3, 0, 0, 1]);
        let complete = outline.complete(&model);
        assert_eq!(complete, whole);
        let text = |workspace: &Workspace| format!("{workspace:?}");
        assert_eq!(text(&complete), text(&whole), "the sign of zero");
    }
}
