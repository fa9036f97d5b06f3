//! The likelihood kernels on the emulated device against the CPU, in double and in single
//! precision, within `testdata/parity.json`.
//!
//! `NEXTSTAT_TEST_DEVICE=cuda` (or `metal`, or `opencl`), in a build with that feature, tries a
//! real one instead, in every precision that it has the kernels in, or in that which
//! `NEXTSTAT_TEST_PRECISION` names.

mod ensembles;
mod fits;
mod launches;
mod models;
mod published;
mod steps;
mod templates;
mod values;

use ns_compute::CpuLikelihood;
use ns_compute::accel::DeviceSession;
use ns_core::curvature::{Arrowhead, Curvature};
use ns_core::poisson::log_normaliser;
use ns_core::{Data, DataLikelihood, Likelihood, Model};
use ns_device::{Backend, Device, EmulationOptions, OpenOptions, Precision};
use ns_testkit::parity::Parity;

/// A device with the tolerances of its precision.
struct TestDevice {
    device: Device,
    parity: Parity,
}

impl TestDevice {
    fn is_single(&self) -> bool {
        self.device.precision() == Precision::Single
    }

    /// `x` as the device has it.
    fn rounded(&self, x: f64) -> f64 {
        if self.is_single() { f64::from(x as f32) } else { x }
    }

    fn all_rounded(&self, numbers: &[f64]) -> Vec<f64> {
        numbers.iter().map(|&x| self.rounded(x)).collect()
    }

    fn session(&self, model: &Model) -> DeviceSession {
        DeviceSession::new(&self.device, model).expect("the model fits on the device")
    }
}

fn open(precision: Precision, emulation: EmulationOptions) -> Device {
    let options = OpenOptions { precision: Some(precision), emulation, ..OpenOptions::default() };
    Device::open_with(Backend::Emulated, 0, &options).expect("the emulated device opens")
}

/// The emulated device in both precisions, or the real one that the environment names.
fn devices() -> Vec<TestDevice> {
    let tested = |device: Device| {
        let parity = if device.precision() == Precision::Single { Parity::single() } else { Parity::double() };
        TestDevice { device, parity }
    };
    let Ok(real) = std::env::var("NEXTSTAT_TEST_DEVICE") else {
        let emulated = |precision| open(precision, EmulationOptions::default());
        return vec![tested(emulated(Precision::Double)), tested(emulated(Precision::Single))];
    };
    let real = real.parse::<Backend>().unwrap_or_else(|error| panic!("NEXTSTAT_TEST_DEVICE: {error}"));
    // CUDA's kernels are compiled in double precision only, and Metal has none.
    let precisions = match std::env::var("NEXTSTAT_TEST_PRECISION") {
        Ok(name) if name == "f32" => &[Some(Precision::Single)][..],
        Err(_) if real == Backend::OpenCl => &[None, Some(Precision::Single)],
        _ => &[None],
    };
    let opened = |&precision: &Option<Precision>| {
        let options = OpenOptions { precision, ..OpenOptions::default() };
        Device::open_with(real, 0, &options).unwrap_or_else(|error| panic!("{error}"))
    };
    precisions.iter().map(opened).map(tested).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The part of -ln L that depends on the data alone.
fn constants(model: &Model, data: &Data) -> f64 {
    let main: f64 = data.main.iter().map(|&n| log_normaliser(n)).sum();
    let constraints = model.parameters.constraint.iter().flatten();
    main + constraints.zip(&data.aux).map(|(&constraint, &aux)| constraint.normaliser(aux)).sum::<f64>()
}

/// -ln L, its gradient (P) and the exact Hessian or the Gauss-Newton matrix (P × P) of the CPU.
struct Expansion {
    value: f64,
    gradient: Vec<f64>,
    matrix: Vec<f64>,
}

fn expansion(likelihood: &mut CpuLikelihood, data: &Data, point: &[f64], exact: bool) -> Expansion {
    likelihood.set_data(data);
    let matrix = Arrowhead::zeros(likelihood.structure().partition);
    let mut curvature = if exact { Curvature::Exact(matrix) } else { Curvature::GaussNewtonProduct(matrix) };
    let mut gradient = vec![0.0; point.len()];
    let value = likelihood.nll_and_curvature(point, &mut gradient, &mut curvature);
    let (Curvature::Exact(matrix) | Curvature::GaussNewtonProduct(matrix)) = curvature else { unreachable!() };
    Expansion { value, gradient, matrix: matrix.to_dense() }
}

/// √(xᵀMx): a length in standard deviations.
fn length(matrix: &[f64], x: &[f64]) -> f64 {
    let row = |i: usize| (0..x.len()).map(|j| matrix[i * x.len() + j] * x[j]).sum::<f64>();
    (0..x.len()).map(|i| x[i] * row(i)).sum::<f64>().max(0.0).sqrt()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// L of the rows and columns that are not tested, and the ratio of its largest to its smallest
/// pivot; `None` if it is not positive definite.
fn cholesky(matrix: &[f64], free: &[usize], n: usize) -> Option<(Vec<f64>, f64)> {
    let m = free.len();
    let mut factor = vec![0.0; m * m];
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for i in 0..m {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| factor[i * m + k] * factor[j * m + k]).sum();
            let scale = (matrix[free[i] * n + free[i]] * matrix[free[j] * n + free[j]]).sqrt();
            let value = matrix[free[i] * n + free[j]] - sum;
            if i == j {
                if value.is_nan() || value <= 0.0 {
                    return None;
                }
                (least, most) = (least.min(value / scale), most.max(value / scale));
                factor[i * m + i] = value.sqrt();
            } else {
                factor[i * m + j] = value / factor[j * m + j];
            }
        }
    }
    Some((factor, if m == 0 { 1.0 } else { most / least }))
}
