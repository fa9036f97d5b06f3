//! Compares a device with the CPU on a small model, before it is used for anything else.
//!
//! The model has every kind of modifier. Values, gradients (also by templates) and one fit must
//! agree within the precision of the device. The fit of a second model, whose matrix is larger than
//! one panel of the factor, must end in its minimum.

use super::error::AccelError;
use super::session::template_batch::DeviceInput;
use super::session::{BatchPoints, DeviceSession};
use super::tables::PANEL;
use crate::cpu::{CpuLikelihood, DifferentiableSession};
use ns_core::batch::{BatchData, BatchFixed, BatchTask};
use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Observation, ParameterConfig, Sample, Workspace};
use ns_core::templates::{TemplateSelection, TemplateVariations};
use ns_core::{CompileOptions, Inputs, Likelihood, Model, TemplateLikelihood, compile};
use ns_device::{Backend, Device, Precision};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The results of the test in this process: `None` for devices that passed. Other errors are not
/// kept.
type Verdicts = HashMap<(Backend, usize, Precision), Option<AccelError>>;
static VERDICTS: LazyLock<Mutex<Verdicts>> = LazyLock::new(Mutex::default);

/// Compares `device` with the CPU on a small model, once per device and process.
///
/// # Errors
/// The first wrong result, or the error of the device.
pub fn self_test(device: &Device) -> Result<(), AccelError> {
    let key = (device.backend(), device.index(), device.precision());
    let verdicts = || VERDICTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = verdicts().get(&key).cloned() {
        return known.map_or(Ok(()), Err);
    }
    let found = run(device);
    match &found {
        Ok(()) => verdicts().insert(key, None),
        Err(wrong @ AccelError::SelfTest { .. }) => verdicts().insert(key, Some(wrong.clone())),
        Err(_) => None,
    };
    found
}

fn run(device: &Device) -> Result<(), AccelError> {
    let Ok(model) = compile(&workspace(), &CompileOptions::default()) else {
        return Err(AccelError::SelfTest { what: "the model of the test", value: f64::NAN, expected: 0.0 });
    };
    let mut session = DeviceSession::untested(device, &model)?;
    let mut cpu = CpuLikelihood::new(&model);
    compare_values(&mut session, &mut cpu, &model)?;
    compare_fit(&mut session, &mut cpu, &model)?;
    compare_inputs(device, &model)?;
    compare_large_fit(device)
}

/// Returns the tolerance of a number, relative to the larger of 1 and its size.
fn tolerance(device: &Device) -> f64 {
    match device.precision() {
        Precision::Double => 1e-10,
        Precision::Single => 1e-3,
    }
}

fn check(device: &Device, what: &'static str, value: f64, expected: f64) -> Result<(), AccelError> {
    let is_right = (value - expected).abs() <= tolerance(device) * expected.abs().max(1.0);
    if is_right { Ok(()) } else { Err(AccelError::SelfTest { what, value, expected }) }
}

/// Returns a point at some distance from the start (P).
fn moved_start(model: &Model) -> Vec<f64> {
    let init = &model.parameters.init;
    let moved = |(i, &x): (usize, &f64)| x + [0.3, -0.7, 0.05, 1.4, -1.2][i % 5] * if x == 0.0 { 1.0 } else { 0.1 };
    init.iter().enumerate().map(moved).collect()
}

fn compare_values(session: &mut DeviceSession, cpu: &mut CpuLikelihood, model: &Model) -> Result<(), AccelError> {
    let device = session.device().clone();
    let point = moved_start(model);
    let items = BatchPoints { data: BatchData::Shared(&model.observed), points: &point };
    let (values, gradients) = session.nll_and_grad(&items)?;
    let mut gradient = vec![0.0; point.len()];
    let value = cpu.nll_and_grad(&point, &mut gradient);
    check(&device, "-ln L", values[0], value)?;
    check(&device, "-ln L alone", session.nll(&items)?[0], value)?;
    for (found, expected) in gradients.iter().zip(&gradient) {
        check(&device, "the gradient", *found, *expected)?;
    }
    Ok(())
}

/// Compares -ln L and both its gradients with replaced templates.
fn compare_inputs(device: &Device, model: &Model) -> Result<(), AccelError> {
    let all = |sample: &String| TemplateSelection {
        sample: sample.clone(),
        channel: None,
        variations: TemplateVariations::All,
    };
    let Ok(inputs) = Inputs::new(model, &model.samples.iter().map(all).collect::<Vec<_>>()) else {
        return Err(AccelError::SelfTest { what: "the inputs of the test", value: f64::NAN, expected: 0.0 });
    };
    let values: Vec<f64> = inputs.values(model).iter().enumerate().map(|(i, x)| x * [1.1, 0.95, 1.02][i % 3]).collect();
    let mut cpu = DifferentiableSession::new(model, inputs.clone());
    cpu.set_inputs(&values);
    let mut session = DeviceSession::untested_with_inputs(device, model, inputs)?;
    session.set_input_batch(DeviceInput::Host(&values))?;
    let point = moved_start(model);
    let found = session.nll_and_gradients(&model.observed, DeviceInput::Host(&point), 1)?;
    let (mut by_params, mut by_inputs) = (vec![0.0; point.len()], vec![0.0; values.len()]);
    let value = cpu.nll_and_gradients(&point, &mut by_params, &mut by_inputs);
    check(device, "-ln L with replaced templates", found.values[0], value)?;
    for (found, expected) in found.by_params.iter().zip(&by_params) {
        check(device, "the gradient with replaced templates", *found, *expected)?;
    }
    for (found, expected) in found.by_inputs.iter().zip(&by_inputs) {
        check(device, "the gradient by templates", *found, *expected)?;
    }
    Ok(())
}

/// -ln L at the minimum of the test model, to 1e-9, as a test of `ns-compute` confirms.
const MINIMUM: f64 = 22.589_454_332_67;

/// Compares the fit of the device with the known minimum.
fn compare_fit(session: &mut DeviceSession, cpu: &mut CpuLikelihood, model: &Model) -> Result<(), AccelError> {
    let device = session.device().clone();
    let fits = session.fit(&task_of(model, &model.parameters.init))?;
    let fit = &fits[0];
    check(&device, "whether the fit converged", f64::from(fit.converged), 1.0)?;
    check(&device, "-ln L of the fit", fit.nll, MINIMUM)?;
    check(&device, "-ln L on the CPU where the device's fit ended", cpu.nll(&fit.params), MINIMUM)
}

/// Compares the fit of a model whose matrix has two panels and a part of a third. It may be no
/// further from the minimum than its precision explains: with a wrong matrix it would converge too,
/// slowly, and end before it is there.
fn compare_large_fit(device: &Device) -> Result<(), AccelError> {
    let Ok(model) = compile(&workspace_of_many(2 * PANEL + 6), &CompileOptions::default()) else {
        return Err(AccelError::SelfTest { what: "the large model of the test", value: f64::NAN, expected: 0.0 });
    };
    let mut session = DeviceSession::untested(device, &model)?;
    let fits = session.fit(&task_of(&model, &model.parameters.init))?;
    let fit = &fits[0];
    check(device, "whether the fit of a large model converged", f64::from(fit.converged), 1.0)?;
    let step = session.newton_steps(&task_of(&model, &fit.params), true)?;
    let mut gradient = vec![0.0; step.len()];
    CpuLikelihood::new(&model).nll_and_grad(&fit.params, &mut gradient);
    let squared: f64 = gradient.iter().zip(&step).map(|(derivative, x)| derivative * x).sum();
    let (value, expected) = (squared.abs().sqrt(), 0.0);
    let allowed = if device.precision() == Precision::Double { 1e-6 } else { 1e-3 };
    let what = "the distance of a large model's fit from the minimum in standard deviations";
    if value <= allowed { Ok(()) } else { Err(AccelError::SelfTest { what, value, expected }) }
}

/// Returns the task of one fit, or one step, of the observed data from `start`.
fn task_of<'a>(model: &'a Model, start: &'a [f64]) -> BatchTask<'a> {
    BatchTask {
        data: BatchData::Shared(&model.observed),
        starts: start,
        lower: &model.parameters.lower,
        upper: &model.parameters.upper,
        fixed: BatchFixed::Shared(&model.parameters.fixed),
        kinked: &[],
        variance_of: None,
    }
}

/// Returns a workspace of two bins with `n` systematics, of two signs and many sizes.
fn workspace_of_many(n: usize) -> Workspace {
    let size = |i: usize| 0.01 + 0.001 * (i * 7 % 13) as f64;
    let systematic = |i: usize| {
        let ends = if i.is_multiple_of(2) { (1.0 - size(i), 1.0 + size(i)) } else { (1.0 + size(i), 1.0 - size(i)) };
        Modifier::new(format!("systematic_{i}"), ModifierData::NormSys { lo: ends.0, hi: ends.1 })
    };
    let sample =
        |name: &str, data: Vec<f64>, modifiers| Sample { name: name.to_owned(), data, modifiers, ..Default::default() };
    let [first, second] = [0, 1].map(|part| (part..n).step_by(2).map(systematic).collect());
    Workspace {
        channels: vec![Channel {
            name: "one".to_owned(),
            samples: vec![
                sample("signal", vec![120.0, 300.0], vec![Modifier::new("mu", ModifierData::NormFactor)]),
                sample("background", vec![9000.0, 1500.0], first),
                sample("other", vec![600.0, 7000.0], second),
            ],
        }],
        observations: vec![Observation { name: "one".to_owned(), data: vec![9900.0, 8600.0] }],
        measurements: vec![Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), ..Default::default() }],
    }
}

/// Returns a workspace of two channels with all seven modifiers, among them a shapefactor that both
/// share.
fn workspace() -> Workspace {
    let modifier = |name: &str, data| Modifier::new(name, data);
    let signal = |data: Vec<f64>| Sample {
        name: "signal".to_owned(),
        data,
        modifiers: vec![modifier("mu", ModifierData::NormFactor), modifier("lumi", ModifierData::Lumi)],
        ..Default::default()
    };
    let shifted = |data: &[f64], factor: f64| data.iter().map(|y| y * factor).collect::<Vec<f64>>();
    let background = |data: Vec<f64>, channel: &str| Sample {
        name: "background".to_owned(),
        modifiers: vec![
            modifier("scale", ModifierData::NormSys { lo: 0.9, hi: 1.15 }),
            modifier("shape", ModifierData::HistoSys { lo_data: shifted(&data, 0.96), hi_data: shifted(&data, 1.08) }),
            modifier(&format!("stat_{channel}"), ModifierData::StatError(shifted(&data, 0.06))),
        ],
        data,
        ..Default::default()
    };
    let fake = |data: Vec<f64>, channel: &str| Sample {
        name: "fake".to_owned(),
        modifiers: vec![
            modifier(&format!("fake_{channel}"), ModifierData::ShapeSys(shifted(&data, 0.2))),
            modifier("common", ModifierData::ShapeFactor),
        ],
        data,
        ..Default::default()
    };
    let channel = |name: &str, signal: Sample, yields: [Vec<f64>; 2]| {
        let [first, second] = yields;
        Channel { name: name.to_owned(), samples: vec![signal, background(first, name), fake(second, name)] }
    };
    let observation = |name: &str, data: Vec<f64>| Observation { name: name.to_owned(), data };
    let lumi = ParameterConfig {
        name: "lumi".to_owned(),
        inits: Some(vec![1.0]),
        bounds: Some(vec![[0.5, 1.5]]),
        auxdata: Some(vec![1.0]),
        sigmas: Some(vec![0.02]),
        ..ParameterConfig::default()
    };
    Workspace {
        channels: vec![
            channel("one", signal(vec![3.0, 7.0, 11.0]), [vec![60.0, 45.0, 20.0], vec![10.0, 8.0, 6.0]]),
            channel("two", signal(vec![1.0, 1.0, 0.5]), [vec![300.0, 250.0, 150.0], vec![40.0, 30.0, 20.0]]),
        ],
        observations: vec![observation("one", vec![71.0, 60.0, 33.0]), observation("two", vec![352.0, 274.0, 175.0])],
        measurements: vec![Measurement {
            name: "m".to_owned(),
            poi: Some("mu".to_owned()),
            parameters: vec![lumi],
            ..Default::default()
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_inference::minimize::{MinimizeOptions, Minimizer};

    #[test]
    fn the_known_minimum_is_the_cpus() {
        let model = compile(&workspace(), &CompileOptions::default()).expect("a sound model");
        let mut cpu = CpuLikelihood::new(&model);
        let (domain, start) = ns_inference::options::domain_and_start(&model, &ns_inference::FitOptions::default());
        let found = Minimizer::new(&cpu.structure()).minimize(&mut cpu, &start, &domain, &MinimizeOptions::default());
        assert!(found.converged() && (found.nll - MINIMUM).abs() < 1e-9, "{}", found.nll);
    }
}
