//! Adds formulas and morphing to random workspaces, and makes models of quadratic operators.

use crate::random::{Random, Shape, workspace};
use ns_core::spec::{
    Channel, Expression, Measurement, Modifier, ModifierData, MorphingTerm, Observation, ParameterConfig, Sample,
    Workspace,
};

/// Returns a setting that declares a free parameter.
#[must_use]
pub fn declared(name: &str, init: f64, bounds: [f64; 2]) -> ParameterConfig {
    ParameterConfig {
        name: name.to_owned(),
        inits: Some(vec![init]),
        bounds: Some(vec![bounds]),
        ..ParameterConfig::default()
    }
}

/// Returns a formula modifier.
#[must_use]
pub fn formula(name: &str, text: &str) -> Modifier {
    Modifier::new(name, ModifierData::Formula(Expression::new(text)))
}

/// Returns a morphing modifier, with a coefficient and a template for each term.
#[must_use]
pub fn morphing(name: &str, terms: Vec<(&str, Vec<f64>)>) -> Modifier {
    let term = |(text, data): (&str, Vec<f64>)| MorphingTerm { coefficient: Expression::new(text), data };
    Modifier::new(name, ModifierData::Morphing(terms.into_iter().map(term).collect()))
}

/// Returns the random workspace of `seed` with formulas of new and old parameters, one of them an
/// element of a vector if there is any, and with morphing terms.
#[must_use]
pub fn random_workspace(seed: u64, shape: Shape) -> Workspace {
    let mut workspace = workspace(seed, shape);
    let mut random = Random::new(seed ^ 0x0f0f);
    let element = vector_element(&workspace).unwrap_or_else(|| "mu".to_owned());
    let formulas = [
        formula("square", "1 + 0.2*c1 + 0.3*c1^2"),
        formula("product", "exp(0.1*c1*xs) * (1 + 0.1*sin(c2))"),
        formula("chained", "square + abs(c2)*0.1"),
        formula("element", &format!("0.5 + 0.5*sqrt({element} + 1)")),
        formula("alias", "c3"),
    ];
    for sample in workspace.channels.iter_mut().flat_map(|channel| &mut channel.samples) {
        sample.modifiers.extend(formulas.iter().filter(|_| random.one_in(3)).cloned());
        if random.one_in(2) {
            let mut term = |scale: f64| -> Vec<f64> {
                sample.data.iter().map(|y| scale * (y + 1.0) * random.between(-0.1, 0.3)).collect()
            };
            let terms = vec![
                ("c1", term(1.0)),
                ("c1*c2", term(0.5)),
                ("c1^2", term(0.5)),
                ("c2^2", term(0.3)),
                ("alias_mu", term(0.1)),
            ];
            sample.modifiers.push(morphing("eft", terms));
        }
    }
    // At least one of each, so that every parameter is used.
    let first = &mut workspace.channels[0].samples[0];
    let missing = |modifier: &&Modifier| !first.modifiers.iter().any(|known| known.name == modifier.name);
    let missing: Vec<Modifier> = formulas.iter().filter(missing).cloned().collect();
    first.modifiers.extend(missing);
    first.modifiers.push(formula("alias_mu", "mu"));
    let parameters = &mut workspace.measurements[0].parameters;
    parameters.extend([
        declared("c1", 0.3, [-3.0, 3.0]),
        declared("c2", -0.2, [-3.0, 3.0]),
        declared("c3", 1.0, [0.0, 5.0]),
    ]);
    workspace
}

/// Returns the first element of a vector of the workspace.
fn vector_element(workspace: &Workspace) -> Option<String> {
    let samples = workspace.channels.iter().flat_map(|channel| &channel.samples);
    let is_vector =
        |modifier: &&Modifier| matches!(modifier.data, ModifierData::StatError(_) | ModifierData::ShapeSys(_));
    let found = samples.flat_map(|sample| &sample.modifiers).find(is_vector)?;
    Some(format!("{}[0]", found.name))
}

/// The size of a model of quadratic operators.
#[derive(Debug, Clone, Copy)]
pub struct OperatorShape {
    /// The number of bins.
    pub bins: usize,
    /// Coefficients of operators.
    pub operators: usize,
    /// Nuisance parameters.
    pub nuisances: usize,
    /// Whether the background has a staterror.
    pub has_staterror: bool,
}

/// Returns a workspace of one channel whose signal is |SM + Σ c_i O_i|², summed over bins with
/// amplitudes that depend on `seed`, with a background, nuisance parameters on both, and the counts
/// that are expected at `truth` (one number per operator), rounded.
#[must_use]
pub fn operators(seed: u64, shape: OperatorShape, truth: &[f64]) -> Workspace {
    let mut random = Random::new(seed);
    let OperatorShape { bins, operators, nuisances, has_staterror } = shape;
    let names: Vec<String> = (0..operators).map(|i| format!("c{i}")).collect();
    let sm: Vec<f64> = (0..bins).map(|b| 40.0 * (-(b as f64) / bins as f64).exp() + 4.0).collect();
    let amplitude =
        |random: &mut Random| (0..bins).map(|b| random.between(-0.6, 1.0) * (1.0 + b as f64 / bins as f64)).collect();
    let amplitudes: Vec<Vec<f64>> = (0..operators).map(|_| amplitude(&mut random)).collect();
    let mut terms: Vec<(String, Vec<f64>)> = Vec::new();
    for i in 0..operators {
        terms.push((names[i].clone(), (0..bins).map(|b| 0.6 * sm[b] * amplitudes[i][b]).collect()));
        for j in 0..=i {
            let twice = if i == j { 1.0 } else { 2.0 };
            let data = (0..bins).map(|b| 0.3 * twice * sm[b] * amplitudes[i][b] * amplitudes[j][b]).collect();
            terms.push((format!("{}*{}", names[j], names[i]), data));
        }
    }
    let at_truth = |b: usize| {
        let value =
            |name: &str| name.split('*').map(|c| truth[c[1..].parse::<usize>().expect("an index")]).product::<f64>();
        sm[b] + terms.iter().map(|(name, data)| value(name) * data[b]).sum::<f64>()
    };
    let background: Vec<f64> = (0..bins).map(|b| 30.0 + 20.0 * (b as f64 * 0.1).sin().abs()).collect();
    let counts: Vec<f64> = (0..bins).map(|b| (at_truth(b) + background[b]).round()).collect();
    let nuisance = |random: &mut Random, i: usize| {
        let shift = random.between(0.005, 0.03);
        Modifier::new(format!("alpha_{i}"), ModifierData::NormSys { lo: 1.0 - shift, hi: 1.0 + 1.1 * shift })
    };
    let shape_of = |random: &mut Random, i: usize| {
        let (size, waves, phase) = (random.between(0.005, 0.03), random.between(0.01, 0.4), random.between(0.0, 6.0));
        let varied = |sign: f64| -> Vec<f64> {
            background
                .iter()
                .enumerate()
                .map(|(b, y)| y * (1.0 + sign * size * (b as f64 * waves + phase).sin()))
                .collect()
        };
        let (lo_data, hi_data) = (varied(-1.0), varied(1.0));
        Modifier::new(format!("alpha_{i}"), ModifierData::HistoSys { lo_data, hi_data })
    };
    let mut signal =
        Sample { name: "signal".to_owned(), data: sm.clone(), modifiers: Vec::new(), ..Default::default() };
    signal.modifiers.push(morphing("eft", terms.iter().map(|(name, data)| (name.as_str(), data.clone())).collect()));
    let mut other =
        Sample { name: "background".to_owned(), data: background.clone(), modifiers: Vec::new(), ..Default::default() };
    for i in 0..nuisances {
        // Most shapes are different ones: many rates of one sample would be nearly degenerate.
        match i % 20 {
            0 => signal.modifiers.push(nuisance(&mut random, i)),
            1 => other.modifiers.push(nuisance(&mut random, i)),
            _ => other.modifiers.push(shape_of(&mut random, i)),
        }
    }
    if has_staterror {
        other
            .modifiers
            .push(Modifier::new("stat", ModifierData::StatError(background.iter().map(|y| 0.05 * y).collect())));
    }
    let parameters = names.iter().map(|name| declared(name, 0.0, [-5.0, 5.0])).collect();
    Workspace {
        channels: vec![Channel { name: "SR".to_owned(), samples: vec![signal, other] }],
        observations: vec![Observation { name: "SR".to_owned(), data: counts }],
        measurements: vec![Measurement {
            name: "m".to_owned(),
            poi: names.first().cloned(),
            parameters,
            ..Measurement::default()
        }],
    }
}
