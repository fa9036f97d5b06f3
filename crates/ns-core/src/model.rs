//! A compiled workspace: every check made, every name an index, every number in one of two flat
//! buffers.
//!
//! A [`Model`] is what evaluators read, on any device: `reals` (f64) and `indices` (u32) are
//! contiguous and their [`ModelLayout`] says where each table is; the variations of templates are
//! apart, in [`TemplateShifts`]. The only strings are the names
//! that reports need. [`crate::compile()`] makes it.
//!
//! Legend: C channels, B bins, T templates (a sample in a channel), K constrained parameters, P
//! parameters.

use crate::constraint::Constraint;
use crate::derived::DerivedQuantities;
use crate::interpolate::Interpolation;
use crate::nonlinearity::Nonlinearity;
use crate::parameters::Parameters;
use crate::response::{HistoSysResponse, NormSysResponse, Responses};
use crate::yield_rules::YieldRules;
use std::sync::Arc;

/// The place of a table in one of the flat buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableSpan {
    /// Offset of the first element.
    pub start: usize,
    /// Number of elements.
    pub len: usize,
}

impl TableSpan {
    /// Returns the span as a range of indices.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start..self.start + self.len
    }
}

/// The place of each table in [`Model::indices`] and [`Model::reals`]. Templates are sorted by
/// channel, then by sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelLayout {
    // -- u32 tables --
    /// First bin of each channel, and B at the end (C + 1).
    pub channel_bin: TableSpan,
    /// First template of each channel, and T at the end (C + 1).
    pub channel_template: TableSpan,
    /// The sample of each template, an index into [`Model::samples`] (T).
    pub template_sample: TableSpan,
    /// First cell (template bin) of each template (T + 1).
    pub template_cell: TableSpan,
    /// First scale modifier (normfactor, lumi, formula) of each template (T + 1).
    pub template_scale: TableSpan,
    /// Factor of each scale modifier: a parameter, or P plus a derived quantity.
    pub scale_param: TableSpan,
    /// First normsys of each template (T + 1).
    pub template_normsys: TableSpan,
    /// Parameter of each normsys.
    pub normsys_param: TableSpan,
    /// Response of each normsys, an index into [`Model::responses`].
    pub normsys_response: TableSpan,
    /// First histosys of each template (T + 1).
    pub template_histosys: TableSpan,
    /// Parameter of each histosys.
    pub histosys_param: TableSpan,
    /// Response of each histosys, an index into [`Model::responses`].
    pub histosys_response: TableSpan,
    /// First cell of each histosys in [`Model::shifts`], and their number at the end.
    pub histosys_cell: TableSpan,
    /// First morphing term of each template (T + 1).
    pub template_morphing: TableSpan,
    /// Coefficient of each morphing term: a parameter, or P plus a derived quantity.
    pub morphing_param: TableSpan,
    /// First cell of each morphing term in the templates that are added, and their number at the
    /// end.
    pub morphing_cell: TableSpan,
    /// First per-bin modifier (shapefactor, shapesys, staterror) of each template (T + 1).
    pub template_bin_factor: TableSpan,
    /// Parameter of the channel's first bin, for each per-bin modifier; bin i of the channel has
    /// this plus i.
    pub bin_factor_param: TableSpan,
    /// Parameter of each constraint term, in the order of the auxiliary data (K).
    pub constraint_param: TableSpan,
    // -- f64 tables --
    /// Nominal yields, one per cell.
    pub nominal: TableSpan,
    /// Factors at +1σ, one per normsys.
    pub normsys_hi: TableSpan,
    /// Factors at -1σ, one per normsys.
    pub normsys_lo: TableSpan,
    /// What is added where the coefficient is 1, one per morphing cell.
    pub morphing: TableSpan,
}

/// What histosys add to nominal yields, by cell. Each histosys begins at a multiple of
/// [`TemplateShifts::PADDING`] cells, with zeros before it, so that vectors of cells can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TemplateShifts {
    /// Templates at +1σ minus nominal.
    pub up: Vec<f64>,
    /// Templates at -1σ minus nominal.
    pub down: Vec<f64>,
}

impl TemplateShifts {
    /// The cells of a histosys are padded to a multiple of this.
    pub const PADDING: usize = 4;

    /// Appends a histosys and returns its first cell; `up` and `down` have one number per bin.
    pub(crate) fn push(&mut self, up: impl Iterator<Item = f64>, down: impl Iterator<Item = f64>) -> usize {
        let start = self.up.len();
        self.up.extend(up);
        self.down.extend(down);
        let end = self.up.len().next_multiple_of(Self::PADDING);
        self.up.resize(end, 0.0);
        self.down.resize(end, 0.0);
        start
    }
}

/// One data set: the observed counts, or those of a toy or of an Asimov data set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Data {
    /// Event counts (B), channels in model order.
    pub main: Vec<f64>,
    /// Auxiliary data (K), in the order of the constrained parameters.
    pub aux: Vec<f64>,
}

/// A compiled model with its observed data.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Channel names, sorted (C); a piece of a partly masked channel has its bins in the name
    /// (`SR[2:5]`).
    pub channels: Vec<String>,
    /// The first bin of each channel (C): its bin 0 or, of a piece, the bin of the channel that the
    /// piece was made of.
    pub channel_origins: Vec<BinPlace>,
    /// Sample names, sorted.
    pub samples: Vec<String>,
    /// The parameters (P).
    pub parameters: Parameters,
    /// Indices of the parameters of interest; the first one is *the* parameter of interest.
    pub pois: Vec<usize>,
    /// Name of the measurement it was compiled for.
    pub measurement: String,
    /// Interpolation rules of modifiers without their own.
    pub interpolation: Interpolation,
    /// How modifiers follow their parameters, the rules above first.
    pub responses: Responses,
    /// The observed data.
    pub observed: Data,
    /// Tables of indices, back to back. Copies of a model share them.
    pub indices: Arc<[u32]>,
    /// Tables of numbers, back to back; shared too.
    pub reals: Arc<[f64]>,
    /// The variations of histosys, most of the numbers of a large model; shared too, also with
    /// evaluators.
    pub shifts: Arc<TemplateShifts>,
    /// The place of each table.
    pub layout: ModelLayout,
    /// The coefficient of each morphing term as the workspace writes it, with names in place of
    /// positions.
    pub coefficients: Vec<String>,
    /// Quantities that formulas derive from the parameters.
    pub derived: DerivedQuantities,
    /// What becomes of yields beyond shifts and factors.
    pub rules: YieldRules,
    /// How nonlinear the effect of each parameter is.
    pub nonlinearity: Nonlinearity,
}

/// A bin of a channel, for messages.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BinPlace {
    /// The channel's name.
    pub channel: String,
    /// The bin, counted from 0 inside the channel.
    pub bin: usize,
}

impl std::fmt::Display for BinPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "channel `{}`, bin {}", self.channel, self.bin)
    }
}

impl Model {
    /// Returns one table of indices.
    #[must_use]
    pub fn table(&self, span: TableSpan) -> &[u32] {
        &self.indices[span.range()]
    }

    /// Returns one table of numbers.
    #[must_use]
    pub fn values(&self, span: TableSpan) -> &[f64] {
        &self.reals[span.range()]
    }

    /// Returns part `i` of a table of starts: `starts[i]..starts[i + 1]`.
    #[must_use]
    pub fn part(&self, starts: TableSpan, i: usize) -> std::ops::Range<usize> {
        let table = self.table(starts);
        table[i] as usize..table[i + 1] as usize
    }

    /// Returns the cells of histosys `entry`, of a template of `n_bins` bins, in
    /// [`Model::shifts`].
    #[must_use]
    pub fn histosys_cells(&self, entry: usize, n_bins: usize) -> std::ops::Range<usize> {
        let start = self.table(self.layout.histosys_cell)[entry] as usize;
        start..start + n_bins
    }

    /// Returns P, the number of parameters.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.parameters.len()
    }

    /// Returns B, the number of bins.
    #[must_use]
    pub fn n_bins(&self) -> usize {
        self.observed.main.len()
    }

    /// Returns K, the number of auxiliary data.
    #[must_use]
    pub fn n_aux(&self) -> usize {
        self.observed.aux.len()
    }

    /// Returns T, the number of templates.
    #[must_use]
    pub fn n_templates(&self) -> usize {
        self.layout.template_sample.len
    }

    /// Returns the parameter of interest, if the model has one.
    #[must_use]
    pub fn poi(&self) -> Option<usize> {
        self.pois.first().copied()
    }

    /// Returns for each parameter (P) whether it has a kink at zero: an interpolation rule that is
    /// not differentiable there.
    #[must_use]
    pub fn kinked(&self) -> Vec<bool> {
        let mut kinked = vec![false; self.n_params()];
        for (entry, &param) in self.table(self.layout.normsys_param).iter().enumerate() {
            kinked[param as usize] |= self.normsys_response(entry).is_kinked();
        }
        for (entry, &param) in self.table(self.layout.histosys_param).iter().enumerate() {
            kinked[param as usize] |= self.histosys_response(entry).is_kinked();
        }
        for scaling in self.rules.shapes.iter().flat_map(|shape| &shape.scaling) {
            kinked[scaling.param as usize] |= scaling.response.is_kinked();
        }
        kinked
    }

    /// Returns for each parameter (P) whether it moves a yield in the same direction at -1σ and at
    /// +1σ: same-sign systematics, for which -ln L may have a minimum on either side of zero.
    #[must_use]
    pub fn same_sign(&self) -> Vec<bool> {
        let mut same_sign = vec![false; self.n_params()];
        let layout = self.layout;
        let (hi, lo) = (self.values(layout.normsys_hi), self.values(layout.normsys_lo));
        for (i, &param) in self.table(layout.normsys_param).iter().enumerate() {
            same_sign[param as usize] |= is_same_sign(lo[i] - 1.0, hi[i] - 1.0);
        }
        let TemplateShifts { up, down } = &*self.shifts;
        let cells = self.table(layout.histosys_cell).windows(2);
        for (cells, &param) in cells.zip(self.table(layout.histosys_param)) {
            let mut cells = cells[0] as usize..cells[1] as usize;
            same_sign[param as usize] =
                same_sign[param as usize] || cells.any(|cell| is_same_sign(down[cell], up[cell]));
        }
        for scaling in self.rules.shapes.iter().flat_map(|shape| &shape.scaling) {
            let mut factors = scaling.factors.iter();
            same_sign[scaling.param as usize] |=
                factors.any(|factor| is_same_sign(factor.ln_lo.exp_m1(), factor.ln_hi.exp_m1()));
        }
        same_sign
    }

    /// Returns how normsys `entry` follows its parameter.
    #[must_use]
    pub fn normsys_response(&self, entry: usize) -> NormSysResponse {
        self.responses.normsys[self.table(self.layout.normsys_response)[entry] as usize]
    }

    /// Returns how histosys `entry` follows its parameter.
    #[must_use]
    pub fn histosys_response(&self, entry: usize) -> HistoSysResponse {
        self.responses.histosys[self.table(self.layout.histosys_response)[entry] as usize]
    }

    /// Returns each constraint term with its parameter, in the order of the auxiliary data (K).
    pub fn constraint_terms(&self) -> impl Iterator<Item = (usize, Constraint)> + '_ {
        let params = self.table(self.layout.constraint_param).iter().map(|&param| param as usize);
        params.filter_map(|param| Some((param, self.parameters.constraint[param]?)))
    }

    /// Returns the bins of channel `channel`.
    #[must_use]
    pub fn channel_bins(&self, channel: usize) -> std::ops::Range<usize> {
        self.part(self.layout.channel_bin, channel)
    }

    /// Returns the templates of channel `channel`.
    #[must_use]
    pub fn channel_templates(&self, channel: usize) -> std::ops::Range<usize> {
        self.part(self.layout.channel_template, channel)
    }

    /// Returns the channel that has bin `bin` of the model.
    #[must_use]
    pub fn channel_of(&self, bin: usize) -> usize {
        self.table(self.layout.channel_bin).partition_point(|&start| start as usize <= bin) - 1
    }

    /// Returns the channel, and the bin inside it, of bin `bin` of the model.
    #[must_use]
    pub fn place(&self, bin: usize) -> BinPlace {
        let channel = self.channel_of(bin);
        self.place_in(channel, bin - self.channel_bins(channel).start)
    }

    /// Returns the name and the bin that messages have for bin `bin` of channel `channel`.
    #[must_use]
    pub fn place_in(&self, channel: usize, bin: usize) -> BinPlace {
        let origin = &self.channel_origins[channel];
        BinPlace { channel: origin.channel.clone(), bin: origin.bin + bin }
    }
}

/// Returns `true` if the effects at -1σ and +1σ have the same sign, and the smaller one is not
/// negligible.
fn is_same_sign(down: f64, up: f64) -> bool {
    const NEGLIGIBLE: f64 = 0.1;
    down * up > 0.0 && down.abs().min(up.abs()) > NEGLIGIBLE * down.abs().max(up.abs())
}
