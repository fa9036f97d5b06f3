//! Selects the numbers of a model that are inputs: by the names of samples and channels, resolved
//! to places in its tables.

use crate::interpolate::NormSysFactor;
use crate::model::Model;
use crate::similar_name;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// Which variations of a chosen template are inputs too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TemplateVariations {
    /// Nominal yields only.
    #[default]
    None,
    /// All of its histosys, normsys and morphing terms.
    All,
    /// Those of the parameters with these names, and the morphing terms with these coefficients.
    Named(Vec<String>),
}

/// Selects templates as inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSelection {
    /// The sample's name.
    pub sample: String,
    /// The channel's name; `None` for all channels that have the sample.
    pub channel: Option<String>,
    /// The variations of each template that are inputs beside its nominal yields.
    pub variations: TemplateVariations,
}

/// The meaning of the numbers of an input block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// Nominal yields.
    Nominal,
    /// Yields of a histosys at +1σ of the parameter.
    HistoSysHi(String),
    /// Yields of a histosys at -1σ of the parameter.
    HistoSysLo(String),
    /// The factor of a normsys at +1σ of the parameter.
    NormSysHi(String),
    /// The factor of a normsys at -1σ of the parameter.
    NormSysLo(String),
    /// The yields that a morphing term adds where its coefficient is 1.
    Morphing(String),
}

/// A named group of inputs: a histogram, or a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputBlock {
    /// The channel's name.
    pub channel: String,
    /// The sample's name.
    pub sample: String,
    /// Their meaning.
    pub kind: InputKind,
    /// Their indices among the inputs.
    pub range: Range<usize>,
    /// The block's name, which no other block has: `channel/sample`, for variations with
    /// `/parameter/hi` or `/parameter/lo`, for morphing terms with `/coefficient`. What would have
    /// the name of an earlier block ends with its kind, ` (normsys)`, or with a number, ` (2)`.
    pub name: String,
}

impl InputKind {
    /// Returns the name of a block of this kind, which another block may have too.
    fn block_name(&self, channel: &str, sample: &str) -> String {
        match self {
            Self::Nominal => format!("{channel}/{sample}"),
            Self::HistoSysHi(parameter) | Self::NormSysHi(parameter) => format!("{channel}/{sample}/{parameter}/hi"),
            Self::HistoSysLo(parameter) | Self::NormSysLo(parameter) => format!("{channel}/{sample}/{parameter}/lo"),
            Self::Morphing(coefficient) => format!("{channel}/{sample}/{coefficient}"),
        }
    }

    fn is_normsys(&self) -> bool {
        matches!(self, Self::NormSysHi(_) | Self::NormSysLo(_))
    }
}

/// Makes the names of `blocks` different.
fn distinguish(blocks: &mut [InputBlock]) {
    let mut known = HashSet::new();
    for InputBlock { name, kind, .. } in blocks {
        let plain = name.clone();
        if known.contains(name) && kind.is_normsys() {
            *name = format!("{plain} (normsys)");
        }
        let mut number = 1;
        while !known.insert(name.clone()) {
            number += 1;
            *name = format!("{plain} ({number})");
        }
    }
}

/// Why inputs cannot be selected or replaced.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// The model has rules of yields, which the derivatives by templates do not know.
    #[error("templates of models with {what} cannot be inputs")]
    YieldRules {
        /// The rules.
        what: &'static str,
    },
    /// No channel has the sample.
    #[error("the model has no sample `{sample}`")]
    UnknownSample {
        /// The requested sample.
        sample: String,
        /// A sample of the model with a similar name.
        similar: Option<String>,
    },
    /// The channel does not exist or does not have the sample.
    #[error("the model has no sample `{sample}` in a channel `{channel}`")]
    UnknownTemplate {
        /// The requested sample.
        sample: String,
        /// The requested channel.
        channel: String,
        /// Channels that have the sample.
        channels: Vec<String>,
    },
    /// No chosen template is moved by the parameter or coefficient.
    #[error("no chosen template has a histosys, normsys or morphing term of `{parameter}`")]
    UnknownVariation {
        /// The requested parameter or coefficient.
        parameter: String,
        /// A parameter or coefficient with a similar name.
        similar: Option<String>,
    },
    /// A modifier that does not follow the model's interpolation rule.
    #[error("`{parameter}` has an interpolation of its own on sample `{sample}` in channel `{channel}`")]
    OwnInterpolation {
        /// The sample.
        sample: String,
        /// The channel.
        channel: String,
        /// The parameter.
        parameter: String,
    },
    /// A template was chosen twice.
    #[error("sample `{sample}` in channel `{channel}` is chosen twice")]
    Twice {
        /// The sample.
        sample: String,
        /// The channel.
        channel: String,
    },
    /// Nothing was chosen.
    #[error("no templates are chosen")]
    Nothing,
    /// The number of values is not the number of inputs.
    #[error("{found} values for {wanted} inputs")]
    Length {
        /// The number of values.
        found: usize,
        /// The number of inputs.
        wanted: usize,
    },
    /// A value that is not valid for a template.
    #[error("{value} is not a valid value for `{block}` (element {element})")]
    Value {
        /// The block's name.
        block: String,
        /// The element in it.
        element: usize,
        /// The value.
        value: f64,
    },
    /// The same for a value that only a device has read.
    #[error("the device found an invalid value for `{block}` (element {element})")]
    Refused {
        /// The block's name.
        block: String,
        /// The element in it.
        element: usize,
    },
}

impl InputError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownSample { similar, .. } | Self::UnknownVariation { similar, .. } => {
                similar.as_ref().map(|similar| format!("names are case sensitive; did you mean `{similar}`?"))
            }
            Self::UnknownTemplate { channels, .. } if channels.is_empty() => None,
            Self::UnknownTemplate { channels, .. } => Some(format!("it is in `{}`", channels.join("`, `"))),
            Self::Value { .. } | Self::Refused { .. } => {
                Some("yields are finite, factors of a normsys positive".to_owned())
            }
            _ => None,
        }
    }
}

/// The source of the yields of a histosys at +1σ or at -1σ.
#[derive(Debug, Clone, PartialEq)]
pub enum YieldSource {
    /// They are inputs, the first of which has this index.
    Input(usize),
    /// They keep the compiled values.
    Fixed(Vec<f64>),
}

/// A histosys of a chosen template. Its yields are absolute, so their differences from the nominal
/// yields change with these.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoSysInput {
    /// Entry among the model's histosys.
    pub entry: usize,
    /// Yields at +1σ.
    pub hi: YieldSource,
    /// Yields at -1σ.
    pub lo: YieldSource,
}

/// A normsys of a chosen template whose factors are inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormSysInput {
    /// Entry among the model's normsys.
    pub entry: usize,
    /// The input that is the factor at +1σ; the factor at -1σ is the next input.
    pub hi: usize,
}

/// A morphing term of a chosen template whose yields are inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MorphingInput {
    /// Entry among the model's morphing terms.
    pub entry: usize,
    /// The input that is the yield of its first bin.
    pub start: usize,
}

/// A chosen template.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateInput {
    /// The template.
    pub template: usize,
    /// The input that is the nominal yield of its first bin.
    pub nominal: usize,
    /// All histosys of the template.
    pub histosys: Vec<HistoSysInput>,
    /// The normsys whose factors are inputs.
    pub normsys: Vec<NormSysInput>,
    /// The morphing terms whose yields are inputs.
    pub morphing: Vec<MorphingInput>,
}

/// The M inputs of a model.
///
/// Templates are in the order of the model. Each contributes its nominal yields, then for each
/// histosys the yields at +1σ and at -1σ, then for each normsys the factors at +1σ and at -1σ, then
/// for each morphing term its yields.
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    blocks: Vec<InputBlock>,
    templates: Vec<TemplateInput>,
    /// The input of each template, if it is chosen (T).
    of_template: Vec<Option<u32>>,
    len: usize,
}

impl Inputs {
    /// Returns the inputs that `selections` name.
    ///
    /// # Errors
    /// A model with rules of yields, a name that it does not have, or a template that is selected
    /// twice.
    pub fn new(model: &Model, selections: &[TemplateSelection]) -> Result<Self, InputError> {
        if let Some(what) = model.rules.name() {
            return Err(InputError::YieldRules { what });
        }
        let mut chosen: Vec<Option<&TemplateVariations>> = vec![None; model.n_templates()];
        for selection in selections {
            for template in named(model, selection)? {
                if chosen[template].replace(&selection.variations).is_some() {
                    let (channel, sample) = names(model, template);
                    return Err(InputError::Twice { sample, channel });
                }
            }
        }
        check_variations(model, selections, &chosen)?;
        let mut inputs =
            Self { blocks: Vec::new(), templates: Vec::new(), of_template: vec![None; model.n_templates()], len: 0 };
        for (template, variations) in chosen.into_iter().enumerate() {
            if let Some(variations) = variations {
                inputs.add(model, template, variations)?;
            }
        }
        distinguish(&mut inputs.blocks);
        if inputs.len == 0 { Err(InputError::Nothing) } else { Ok(inputs) }
    }

    fn add(&mut self, model: &Model, template: usize, variations: &TemplateVariations) -> Result<(), InputError> {
        let layout = &model.layout;
        let n_bins = model.part(layout.template_cell, template).len();
        let is_wanted = |parameter: &str| match variations {
            TemplateVariations::None => false,
            TemplateVariations::All => true,
            TemplateVariations::Named(names) => names.iter().any(|name| name == parameter),
        };
        let nominal = self.block(model, template, InputKind::Nominal, n_bins);
        let yields = &model.values(layout.nominal)[model.part(layout.template_cell, template)];
        let mut input =
            TemplateInput { template, nominal, histosys: Vec::new(), normsys: Vec::new(), morphing: Vec::new() };
        for entry in model.part(layout.template_histosys, template) {
            let parameter = &model.parameters.names[model.table(layout.histosys_param)[entry] as usize];
            let cells = model.histosys_cells(entry, n_bins);
            let fixed = |shifts: &[f64]| {
                YieldSource::Fixed(shifts[cells.clone()].iter().zip(yields).map(|(d, n)| d + n).collect())
            };
            let (hi, lo) = if is_wanted(parameter) {
                let hi = self.block(model, template, InputKind::HistoSysHi(parameter.clone()), n_bins);
                let lo = self.block(model, template, InputKind::HistoSysLo(parameter.clone()), n_bins);
                (YieldSource::Input(hi), YieldSource::Input(lo))
            } else {
                (fixed(&model.shifts.up), fixed(&model.shifts.down))
            };
            input.histosys.push(HistoSysInput { entry, hi, lo });
        }
        for entry in model.part(layout.template_normsys, template) {
            let parameter = &model.parameters.names[model.table(layout.normsys_param)[entry] as usize];
            if is_wanted(parameter) {
                if model.normsys_response(entry) != model.responses.normsys[0] {
                    let (channel, sample) = names(model, template);
                    return Err(InputError::OwnInterpolation { sample, channel, parameter: parameter.clone() });
                }
                let hi = self.block(model, template, InputKind::NormSysHi(parameter.clone()), 1);
                self.block(model, template, InputKind::NormSysLo(parameter.clone()), 1);
                input.normsys.push(NormSysInput { entry, hi });
            }
        }
        for entry in model.part(layout.template_morphing, template) {
            let coefficient = model.coefficients[entry].as_str();
            if is_wanted(coefficient) {
                let start = self.block(model, template, InputKind::Morphing(coefficient.to_owned()), n_bins);
                input.morphing.push(MorphingInput { entry, start });
            }
        }
        self.of_template[template] = Some(u32::try_from(self.templates.len()).expect("templates are numbered by u32"));
        self.templates.push(input);
        Ok(())
    }

    fn block(&mut self, model: &Model, template: usize, kind: InputKind, len: usize) -> usize {
        let (channel, sample) = names(model, template);
        let start = self.len;
        self.len += len;
        let name = kind.block_name(&channel, &sample);
        self.blocks.push(InputBlock { channel, sample, kind, range: start..self.len, name });
        start
    }

    /// Returns M, the number of inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no inputs, which [`Inputs::new`] excludes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the groups of inputs, in order.
    #[must_use]
    pub fn blocks(&self) -> &[InputBlock] {
        &self.blocks
    }

    /// Returns the chosen templates, in the model's order.
    #[must_use]
    pub fn templates(&self) -> &[TemplateInput] {
        &self.templates
    }

    /// Returns the inputs of template `template`, or `None` if it is not chosen.
    #[must_use]
    #[inline]
    pub fn of_template(&self, template: usize) -> Option<&TemplateInput> {
        self.of_template[template].map(|i| &self.templates[i as usize])
    }

    /// Returns the values (M) of the inputs in `model`.
    #[must_use]
    pub fn values(&self, model: &Model) -> Vec<f64> {
        let layout = &model.layout;
        let mut values = vec![0.0; self.len];
        for input in &self.templates {
            let nominal = &model.values(layout.nominal)[model.part(layout.template_cell, input.template)];
            values[input.nominal..input.nominal + nominal.len()].copy_from_slice(nominal);
            for histosys in &input.histosys {
                let cells = model.histosys_cells(histosys.entry, nominal.len());
                for (end, shifts) in [(&histosys.hi, &model.shifts.up), (&histosys.lo, &model.shifts.down)] {
                    if let YieldSource::Input(start) = *end {
                        for (bin, cell) in cells.clone().enumerate() {
                            values[start + bin] = nominal[bin] + shifts[cell];
                        }
                    }
                }
            }
            for normsys in &input.normsys {
                values[normsys.hi] = model.values(layout.normsys_hi)[normsys.entry];
                values[normsys.hi + 1] = model.values(layout.normsys_lo)[normsys.entry];
            }
            for morphing in &input.morphing {
                let term = &model.values(layout.morphing)[model.part(layout.morphing_cell, morphing.entry)];
                values[morphing.start..morphing.start + term.len()].copy_from_slice(term);
            }
        }
        values
    }

    /// Checks that `values` are valid inputs: M of them, finite, and factors of normsys positive.
    ///
    /// # Errors
    /// The first invalid value, or their wrong number.
    pub fn check(&self, values: &[f64]) -> Result<(), InputError> {
        if values.len() != self.len {
            return Err(InputError::Length { found: values.len(), wanted: self.len });
        }
        for block in &self.blocks {
            for (element, &value) in values[block.range.clone()].iter().enumerate() {
                if !value.is_finite() || (value <= 0.0 && block.kind.is_normsys()) {
                    return Err(InputError::Value { block: block.name.clone(), element, value });
                }
            }
        }
        Ok(())
    }

    /// Returns the name of the block of input `input`, and its element in the block.
    #[must_use]
    pub fn place(&self, input: usize) -> (String, usize) {
        let block = &self.blocks[self.blocks.partition_point(|block| block.range.end <= input)];
        (block.name.clone(), input - block.range.start)
    }

    /// Writes `values` (M) into the tables of `model`.
    pub fn apply(&self, values: &[f64], model: &mut Model) {
        let layout = model.layout;
        let mut shared = std::mem::take(&mut model.reals);
        let reals = Arc::make_mut(&mut shared);
        let mut shared_shifts = std::mem::take(&mut model.shifts);
        let shifts = Arc::make_mut(&mut shared_shifts);
        for input in &self.templates {
            let cells = model.part(layout.template_cell, input.template);
            let nominal = &values[input.nominal..input.nominal + cells.len()];
            reals[layout.nominal.start..][cells].copy_from_slice(nominal);
            for histosys in &input.histosys {
                let cells = model.histosys_cells(histosys.entry, nominal.len());
                for (end, shifts) in [(&histosys.hi, &mut shifts.up), (&histosys.lo, &mut shifts.down)] {
                    end.differences(values, nominal, &mut shifts[cells.clone()]);
                }
            }
            for normsys in &input.normsys {
                reals[layout.normsys_hi.start + normsys.entry] = values[normsys.hi];
                reals[layout.normsys_lo.start + normsys.entry] = values[normsys.hi + 1];
            }
            for morphing in &input.morphing {
                let cells = model.part(layout.morphing_cell, morphing.entry);
                let term = &values[morphing.start..morphing.start + cells.len()];
                reals[layout.morphing.start..][cells].copy_from_slice(term);
            }
        }
        model.reals = shared;
        model.shifts = shared_shifts;
    }

    /// Calls `set` with each normsys that is an input and its new factor.
    pub fn each_normsys(&self, values: &[f64], mut set: impl FnMut(usize, NormSysFactor)) {
        for normsys in self.templates.iter().flat_map(|input| &input.normsys) {
            set(normsys.entry, NormSysFactor::new(values[normsys.hi + 1], values[normsys.hi]));
        }
    }
}

impl YieldSource {
    /// Returns the index of the first input, or `None` if the yields are fixed.
    #[must_use]
    pub fn input(&self) -> Option<usize> {
        if let Self::Input(start) = *self { Some(start) } else { None }
    }

    /// Writes the yields minus the nominal ones to `out` (both the template's bins).
    pub fn differences(&self, values: &[f64], nominal: &[f64], out: &mut [f64]) {
        let absolute = match self {
            Self::Input(start) => &values[*start..*start + nominal.len()],
            Self::Fixed(yields) => yields,
        };
        for ((out, yields), nominal) in out.iter_mut().zip(absolute).zip(nominal) {
            *out = yields - nominal;
        }
    }
}

/// Returns the channel and the sample of a template.
fn names(model: &Model, template: usize) -> (String, String) {
    let starts = model.table(model.layout.channel_template);
    let channel = starts.partition_point(|&start| start as usize <= template) - 1;
    let sample = model.table(model.layout.template_sample)[template] as usize;
    (model.channels[channel].clone(), model.samples[sample].clone())
}

/// Returns the templates that `selection` names.
fn named(model: &Model, selection: &TemplateSelection) -> Result<Vec<usize>, InputError> {
    let TemplateSelection { sample, channel, .. } = selection;
    let of_sample: Vec<usize> = (0..model.n_templates()).filter(|&t| names(model, t).1 == *sample).collect();
    if of_sample.is_empty() {
        let similar = similar_name(sample, model.samples.iter().map(String::as_str)).map(str::to_owned);
        return Err(InputError::UnknownSample { sample: sample.clone(), similar });
    }
    let templates: Vec<usize> = match channel {
        None => of_sample,
        Some(channel) => {
            let found = of_sample.iter().copied().filter(|&t| names(model, t).0 == *channel).collect::<Vec<_>>();
            if found.is_empty() {
                let channels = of_sample.iter().map(|&t| names(model, t).0).collect();
                let (sample, channel) = (sample.clone(), channel.clone());
                return Err(InputError::UnknownTemplate { sample, channel, channels });
            }
            found
        }
    };
    Ok(templates)
}

/// Checks that each named variation belongs to a chosen template, though not to each of them.
fn check_variations(
    model: &Model,
    selections: &[TemplateSelection],
    chosen: &[Option<&TemplateVariations>],
) -> Result<(), InputError> {
    let templates = (0..chosen.len()).filter(|&template| chosen[template].is_some());
    let known: Vec<&str> = templates.flat_map(|template| movers(model, template)).collect();
    for selection in selections {
        let TemplateVariations::Named(wanted) = &selection.variations else { continue };
        if let Some(parameter) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            let similar = similar_name(parameter, known).map(str::to_owned);
            return Err(InputError::UnknownVariation { parameter: parameter.clone(), similar });
        }
    }
    Ok(())
}

/// Returns the names of the parameters of the histosys and normsys of a template, and of the
/// coefficients of its morphing terms.
fn movers(model: &Model, template: usize) -> Vec<&str> {
    let layout = &model.layout;
    let of = |starts, params| {
        let params = &model.table(params)[model.part(starts, template)];
        params.iter().map(|&param| model.parameters.names[param as usize].as_str()).collect::<Vec<_>>()
    };
    let mut found = of(layout.template_histosys, layout.histosys_param);
    found.extend(of(layout.template_normsys, layout.normsys_param));
    found.extend(model.part(layout.template_morphing, template).map(|entry| model.coefficients[entry].as_str()));
    found
}
