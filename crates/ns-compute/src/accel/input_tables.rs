//! The tables of inputs for kernels: the kind and place of each input, and the inputs of each
//! histosys.

use super::layout::{DOWN_INPUT, HI_FACTOR_INPUT, LO_FACTOR_INPUT, NOMINAL_INPUT, NONE, UP_INPUT};
use super::tables::DeviceTables;
use crate::cpu::plan::ModelPlan;
use ns_core::templates::Inputs;
use ns_core::templates::choice::{TemplateInput, YieldSource};

/// The kind and place of an input.
#[derive(Debug, Clone, Copy)]
struct InputEntry {
    kind: u32,
    template: usize,
    place: usize,
    used_by: usize,
}

/// The tables of all inputs (M), of all histosys, and of their cells.
struct InputTables {
    places: Vec<InputEntry>,
    /// First input of the yields at +1 and at -1 of each histosys.
    ends: [Vec<u32>; 2],
    /// The yields that are not inputs.
    fixed: [Vec<f64>; 2],
}

impl DeviceTables {
    /// Adds the tables of `inputs`, after those that each set of templates has its own copy of.
    pub(super) fn add_inputs(&mut self, plan: &ModelPlan, inputs: &Inputs) {
        let nowhere = InputEntry { kind: NOMINAL_INPUT, template: 0, place: 0, used_by: 0 };
        let n_shifts = (self.layout.down - self.layout.up) as usize;
        let mut found = InputTables {
            places: vec![nowhere; inputs.len()],
            ends: std::array::from_fn(|_| vec![NONE; plan.histosys.len()]),
            fixed: std::array::from_fn(|_| vec![0.0; n_shifts]),
        };
        for channel in &plan.channels {
            for template in channel.templates.clone() {
                if let Some(input) = inputs.of_template(template) {
                    self.note_yields(input, channel.bins.len(), &mut found);
                    note_factors(plan, input, &mut found);
                }
            }
        }
        let InputTables { places, ends: [hi, lo], fixed: [up, down] } = found;
        self.layout.n_inputs = inputs.len() as u32;
        self.layout.input_kind = self.index(places.iter().map(|input| input.kind));
        self.layout.input_template = self.index(places.iter().map(|input| input.template as u32));
        self.layout.input_place = self.index(places.iter().map(|input| input.place as u32));
        self.layout.input_use = self.index(places.iter().map(|input| input.used_by as u32));
        self.layout.histosys_hi = self.index(hi);
        self.layout.histosys_lo = self.index(lo);
        self.layout.fixed_up = self.real(up);
        self.layout.fixed_down = self.real(down);
    }

    /// Records the nominal yields of a template, and those of its histosys.
    fn note_yields(&self, input: &TemplateInput, n_bins: usize, found: &mut InputTables) {
        let template = input.template;
        let first_cell = self.indices[self.layout.template_cell as usize + template] as usize;
        for bin in 0..n_bins {
            let place = InputEntry { kind: NOMINAL_INPUT, template, place: first_cell + bin, used_by: 0 };
            found.places[input.nominal + bin] = place;
        }
        for histosys in &input.histosys {
            let first_shift = self.indices[self.layout.histosys_cell as usize + histosys.entry] as usize;
            for (end, (yields, kind)) in [(&histosys.hi, UP_INPUT), (&histosys.lo, DOWN_INPUT)].into_iter().enumerate()
            {
                match yields {
                    YieldSource::Input(start) => {
                        found.ends[end][histosys.entry] = *start as u32;
                        for bin in 0..n_bins {
                            let place = InputEntry { kind, template, place: first_cell + bin, used_by: histosys.entry };
                            found.places[start + bin] = place;
                        }
                    }
                    YieldSource::Fixed(yields) => found.fixed[end][first_shift..][..n_bins].copy_from_slice(yields),
                }
            }
        }
    }
}

/// Records the factors of a template's normsys. Scalar modifiers are numbered by template, scales
/// before normsys.
fn note_factors(plan: &ModelPlan, input: &TemplateInput, found: &mut InputTables) {
    let template = &plan.templates[input.template];
    for normsys in &input.normsys {
        let used_by = template.scales.end + normsys.entry;
        for (at, kind) in [(normsys.hi, HI_FACTOR_INPUT), (normsys.hi + 1, LO_FACTOR_INPUT)] {
            found.places[at] = InputEntry { kind, template: input.template, place: normsys.entry, used_by };
        }
    }
}
