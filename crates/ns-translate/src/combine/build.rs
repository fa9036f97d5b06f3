//! Makes a workspace of a card: channels, samples and modifiers, then the parameters that they use.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use ns_core::formula::Formula;
use ns_core::spec::{
    Channel, Clipping, Expression, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace,
};

use super::card::{Card, RateValue};
use super::coefficients::Coefficients;
use super::error::{CardError, CardProblem};
use super::mc_stats::{Contribution, bin_parameters};
use super::morph::LOWEST;
use super::numbers::six_decimals;
use super::options::CardOptions;
use super::parameters::Parameters;
use super::physics::{ModelFormula, Physics, YieldScale};
use super::samples::{BuiltSample, SampleBuilder};
use super::templates::{TemplatePlace, TemplateReader, TemplateRequest};
use super::words::CardPlace;
use crate::source::DocumentSource;

/// The name of the measurement.
const MEASUREMENT: &str = "combine";

/// A workspace made of a card.
pub(super) struct BuiltWorkspace {
    pub(super) workspace: Workspace,
    pub(super) files: Vec<PathBuf>,
    pub(super) warnings: Vec<String>,
}

/// Makes the workspace of `card`, whose parts are `origins`.
pub(super) fn build(
    card: &Card,
    options: &CardOptions,
    origins: Vec<DocumentSource>,
) -> Result<BuiltWorkspace, CardError> {
    let physics = Physics::new(card, options)?;
    let parameters = Parameters::new(card, &physics, options);
    let formulas = formulas(card, &physics.formulas);
    let coefficients = Coefficients { parameters: &parameters, formulas: &formulas };
    let mut builder = Builder {
        card,
        rates: card.rates_by_column(),
        templates: TemplateReader::new(card, options, origins),
        coefficients,
        physics: &physics,
        workspace: Workspace::default(),
        bin_settings: Vec::new(),
        warnings: Vec::new(),
    };
    for (channel, columns) in card.columns_by_channel().into_iter().enumerate() {
        builder.channel(channel, &columns)?;
    }
    let Builder { templates, mut workspace, bin_settings, mut warnings, .. } = builder;
    let files = templates.into_files();
    let used = used_names(&workspace, &formulas);
    require_known(card, &parameters, &formulas, &used)?;
    let ignored = parameters.names().iter().filter(|name| !used.contains(*name) && *name != "MH");
    warnings.extend(ignored.map(|name| format!("the parameter `{name}` has no effect on any process: it is left out")));
    let (pois, unused_pois): (Vec<&str>, Vec<&str>) = physics.pois().partition(|poi| used.contains(*poi));
    let has_bin_stats = card.channels.iter().any(|channel| channel.mc_stats.is_some());
    // A parameter of interest without an effect keeps its settings, so that a check reports it.
    let mut settings = parameters.into_configs(|name| used.contains(name) || unused_pois.contains(&name));
    let groups = card.groups_by_member();
    for config in &mut settings {
        config.is_poi = pois.iter().skip(1).any(|poi| *poi == config.name);
        config.groups = groups.get(config.name.as_str()).cloned().unwrap_or_default();
    }
    settings.extend(bin_settings);
    workspace.measurements = vec![Measurement {
        name: MEASUREMENT.to_owned(),
        poi: pois.first().map(|poi| (*poi).to_owned()),
        parameters: settings,
        clip: Clipping { bins: has_bin_stats.then_some(LOWEST), ..Clipping::default() },
    }];
    Ok(BuiltWorkspace { workspace, files, warnings })
}

struct Builder<'c> {
    card: &'c Card,
    /// The names of the factors of each column by `rateParam`.
    rates: Vec<Vec<&'c str>>,
    templates: TemplateReader<'c>,
    coefficients: Coefficients<'c>,
    physics: &'c Physics,
    workspace: Workspace,
    bin_settings: Vec<ParameterConfig>,
    warnings: Vec<String>,
}

impl Builder<'_> {
    fn channel(&mut self, index: usize, columns: &[usize]) -> Result<(), CardError> {
        let channel = &self.card.channels[index];
        let observed = self.observed(index)?;
        let mut built = Vec::new();
        let contributing: Vec<usize> = columns.iter().copied().filter(|&column| self.contributes(column)).collect();
        for column in contributing {
            let sample = self.sample(column, observed.len())?;
            built.push((column, sample));
        }
        if let Some(stats) = channel.mc_stats {
            if built.iter().all(|(_, sample)| sample.errors.is_some()) {
                self.require_errors(index, &built)?;
                self.bin_statistics(index, stats, &mut built);
            } else {
                let text =
                    format!("`autoMCStats` has no effect on the channel `{}`: it has no templates", channel.name);
                self.warnings.push(text);
            }
        }
        let samples: Vec<Sample> = built.into_iter().map(|(_, built)| built.sample).collect();
        self.workspace.channels.push(Channel { name: channel.name.clone(), samples });
        self.workspace.observations.push(Observation { name: channel.name.clone(), data: observed });
        Ok(())
    }

    fn contributes(&self, column: usize) -> bool {
        self.card.columns[column].rate != 0.0 && self.physics.scales[column] != YieldScale::Zero
    }

    fn sample(&mut self, column: usize, n_bins: usize) -> Result<BuiltSample, CardError> {
        let mut modifiers = Vec::new();
        if let YieldScale::Named(name) = &self.physics.scales[column] {
            modifiers.push(self.factor(name));
        }
        modifiers.extend(self.rates[column].iter().map(|name| self.factor(name)));
        SampleBuilder { card: self.card, templates: &mut self.templates, warnings: &mut self.warnings, column, n_bins }
            .build(modifiers)
    }

    /// Returns the modifier of a factor, which is a parameter or a formula.
    fn factor(&self, name: &str) -> Modifier {
        let data = match self.coefficients.formulas.get(name) {
            None => ModifierData::NormFactor,
            Some(formula) => ModifierData::Formula(formula.expression.clone()),
        };
        Modifier::new(name, data)
    }

    fn observed(&mut self, index: usize) -> Result<Vec<f64>, CardError> {
        let channel = &self.card.channels[index];
        if self.templates.place(index, None)? == TemplatePlace::Counting {
            if channel.observed < 0.0 {
                let what = format!("the number of observed events of `{}`, which has no template,", channel.name);
                return Err(CardProblem::Value { what, value: channel.observed }.at(channel.place));
            }
            return Ok(vec![six_decimals(channel.observed)]);
        }
        let request = TemplateRequest { channel: index, process: None, systematic: "", place: channel.place };
        let Some(template) = self.templates.need(request)? else { return Ok(vec![channel.observed]) };
        let (observed, sum) = (channel.observed, template.sum);
        // Combine allows a difference of half a per cent.
        let differs = (observed == 0.0 && sum > 0.01) || (observed > 0.0 && (sum / observed - 1.0).abs() > 0.005);
        if sum != 0.0 && differs {
            let (process, channel_name) = ("the data".to_owned(), channel.name.clone());
            let problem = CardProblem::Rate { process, channel: channel_name, rate: observed, sum };
            return Err(problem.at(channel.place));
        }
        Ok(template.values.clone())
    }

    /// Refuses statistical uncertainties that are no numbers.
    fn require_errors(&self, index: usize, built: &[(usize, BuiltSample)]) -> Result<(), CardError> {
        for (column, sample) in built {
            let errors = sample.errors.as_deref().unwrap_or_default();
            if let Some(bin) = errors.iter().position(|error| !error.is_finite()) {
                let what =
                    format!("the statistical uncertainty of `{}` in bin {bin}", self.card.column_name(*column).process);
                return Err(CardProblem::Value { what, value: errors[bin] }.at(self.card.channels[index].place));
            }
        }
        Ok(())
    }

    fn bin_statistics(&mut self, index: usize, stats: super::card::McStats, built: &mut [(usize, BuiltSample)]) {
        let contributions: Vec<Contribution> = built
            .iter()
            .map(|(column, sample)| Contribution {
                process: self.card.column_name(*column).process.to_owned(),
                is_signal: self.card.is_signal(*column),
                coefficient: self.coefficients.of(&sample.sample),
                values: sample.sample.data.iter().map(|value| value.max(LOWEST)).collect(),
                errors: sample.errors.clone().unwrap_or_default(),
            })
            .collect();
        let found = bin_parameters(&self.card.channels[index].name, stats, &contributions);
        for ((_, sample), modifiers) in built.iter_mut().zip(found.modifiers) {
            sample.sample.modifiers.extend(modifiers);
        }
        self.bin_settings.extend(found.settings);
    }
}

/// A formula by name.
pub(super) struct NamedFormula {
    pub(super) expression: Expression,
    pub(super) parsed: Formula,
    place: Option<CardPlace>,
}

/// Returns the formulas of a card and of its physics model; of several with one name the first.
fn formulas(card: &Card, of_model: &[ModelFormula]) -> HashMap<String, NamedFormula> {
    let mut found = HashMap::new();
    let of_model = of_model.iter().map(|formula| (&formula.name, &formula.text, &formula.arguments, None));
    let of_card = card.rates.iter().filter_map(|rate| match &rate.value {
        RateValue::Formula { text, arguments } => Some((&rate.name, text, arguments, Some(rate.place))),
        RateValue::Free { .. } => None,
    });
    for (name, text, arguments, place) in of_model.chain(of_card) {
        // They were parsed when they were read.
        let Ok(parsed) = Formula::parse(text, arguments) else { continue };
        let expression = Expression { text: text.clone(), parameters: Some(arguments.clone()) };
        found.entry(name.clone()).or_insert(NamedFormula { expression, parsed, place });
    }
    found
}

/// Returns the names of parameters and formulas that the samples use.
fn used_names(workspace: &Workspace, formulas: &HashMap<String, NamedFormula>) -> HashSet<String> {
    let samples = workspace.channels.iter().flat_map(|channel| &channel.samples);
    let mut used: HashSet<String> = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for modifier in samples.flat_map(|sample| &sample.modifiers) {
        match &modifier.data {
            ModifierData::Formula(expression) => {
                used.insert(modifier.name.clone());
                let parsed = Formula::parse(&expression.text, expression.parameters.as_deref().unwrap_or_default());
                open.extend(parsed.iter().flat_map(Formula::names).cloned());
            }
            _ => open.push(modifier.name.clone()),
        }
    }
    while let Some(name) = open.pop() {
        if let Some(formula) = formulas.get(&name).filter(|_| !used.contains(&name)) {
            open.extend(formula.parsed.names().iter().cloned());
        }
        used.insert(name);
    }
    used
}

/// Refuses formulas that name nothing, or a formula of a process that contributes nothing.
fn require_known(
    card: &Card,
    parameters: &Parameters,
    formulas: &HashMap<String, NamedFormula>,
    used: &HashSet<String>,
) -> Result<(), CardError> {
    for (name, formula) in formulas.iter().filter(|(name, _)| used.contains(*name)) {
        for inner in formula.parsed.names() {
            if !parameters.is_known(inner) && !formulas.contains_key(inner) {
                let known = parameters.names().to_vec();
                let place = formula.place.unwrap_or(CardPlace::start(0));
                let what = "parameter of a formula";
                return Err(CardProblem::Unknown { what, name: inner.clone(), known }.at(place));
            }
        }
        let is_anywhere = card.rates.iter().any(|rate| rate.name == *name && card.columns[rate.column].rate != 0.0);
        if let Some(place) = formula.place.filter(|_| !is_anywhere) {
            let reason = "another formula uses it, and its process has no events";
            return Err(CardProblem::Unsupported { kind: format!("rateParam {name}"), reason }.at(place));
        }
    }
    Ok(())
}
