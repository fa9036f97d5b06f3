//! Lists devices with their problems, and the reasons why backends have none.

use crate::{Backend, Device, DeviceError, DeviceProperties, cuda, emulated, metal, opencl, self_test};
use std::fmt;

/// A device, or a backend that has none.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbedDevice {
    /// The backend.
    pub backend: Backend,
    /// Its number; 0 for a backend without devices.
    pub index: usize,
    /// Its properties; `None` for a backend without devices.
    pub properties: Option<DeviceProperties>,
    /// Why it cannot be used, if so.
    pub problem: Option<DeviceError>,
}

impl ProbedDevice {
    /// Returns `true` if it exists and was not refused.
    pub fn is_available(&self) -> bool {
        self.problem.is_none()
    }

    /// Opens the device, which runs its self-test once per process, and records a failure.
    pub fn tested(mut self) -> ProbedDevice {
        if self.is_available() {
            self.problem = Device::open(self.backend, self.index).err();
        }
        self
    }
}

impl fmt::Display for ProbedDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(properties) = &self.properties else {
            return match &self.problem {
                Some(problem) => write!(formatter, "{}: {problem}", self.backend),
                None => write!(formatter, "{}: no device was found", self.backend),
            };
        };
        let precisions: Vec<String> = properties.precisions.iter().map(ToString::to_string).collect();
        let gib = properties.memory_bytes as f64 / f64::from(1 << 30);
        write!(
            formatter,
            "{} {}: {}, {gib:.1} GiB, {}",
            self.backend,
            self.index,
            properties.name,
            precisions.join(" and ")
        )?;
        if let Some((major, minor)) = properties.compute_capability {
            write!(formatter, ", compute capability {major}.{minor}")?;
        }
        match &self.problem {
            Some(problem) => write!(formatter, ": {problem}"),
            None => Ok(()),
        }
    }
}

/// Returns every device of every backend, and one line for each backend that has none. Runs no
/// self-test; the result of an earlier one in this process is remembered.
pub fn probe() -> Vec<ProbedDevice> {
    Backend::ALL.into_iter().flat_map(of_backend).collect()
}

fn of_backend(backend: Backend) -> Vec<ProbedDevice> {
    let found = match backend {
        Backend::Cuda => cuda::found(),
        Backend::Metal => metal::found(),
        Backend::OpenCl => opencl::found(),
        Backend::Emulated => emulated::found(),
    };
    let nothing = |problem| vec![ProbedDevice { backend, index: 0, properties: None, problem: Some(problem) }];
    match found {
        Err(problem) => nothing(problem),
        Ok(devices) if devices.is_empty() => nothing(DeviceError::NoDevice { backend, index: 0, n_devices: 0 }),
        Ok(devices) => {
            let with_index = devices.into_iter().enumerate();
            with_index
                .map(|(index, properties)| {
                    let problem = cuda::too_old(index, &properties).or_else(|| self_test::refusal(backend, index));
                    ProbedDevice { backend, index, properties: Some(properties), problem }
                })
                .collect()
        }
    }
}
