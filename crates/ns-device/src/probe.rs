//! Lists devices and says of each whether it can be used, and of each absent kind why.

use crate::{Backend, Device, DeviceError, Facts, cuda, emulated, metal, self_test};
use std::fmt;

/// A device, or a backend that has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// How it would be reached.
    pub backend: Backend,
    /// Its number; 0 where there is none.
    pub index: usize,
    /// What is known about it, if it is there.
    pub facts: Option<Facts>,
    /// Why it can't be used, if it can't.
    pub problem: Option<DeviceError>,
}

impl Found {
    /// Whether it is there and was not refused.
    pub fn is_available(&self) -> bool {
        self.problem.is_none()
    }

    /// Opens the device, which runs its self-test once per process, and notes a refusal.
    pub fn tested(mut self) -> Found {
        if self.is_available() {
            self.problem = Device::open(self.backend, self.index).err();
        }
        self
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(facts) = &self.facts else {
            return match &self.problem {
                Some(problem) => write!(formatter, "{}: {problem}", self.backend),
                None => write!(formatter, "{}: no device was found", self.backend),
            };
        };
        let precisions: Vec<String> = facts.precisions.iter().map(ToString::to_string).collect();
        let gib = facts.memory_bytes as f64 / f64::from(1 << 30);
        write!(
            formatter,
            "{} {}: {}, {gib:.1} GiB, {}",
            self.backend,
            self.index,
            facts.name,
            precisions.join(" and ")
        )?;
        if let Some((major, minor)) = facts.compute_capability {
            write!(formatter, ", compute capability {major}.{minor}")?;
        }
        match &self.problem {
            Some(problem) => write!(formatter, ": {problem}"),
            None => Ok(()),
        }
    }
}

/// Every device of every backend, and one line for each backend that has none. Computes nothing; a refusal earlier in this
/// process is remembered.
pub fn probe() -> Vec<Found> {
    Backend::ALL.into_iter().flat_map(of_backend).collect()
}

fn of_backend(backend: Backend) -> Vec<Found> {
    let found = match backend {
        Backend::Cuda => cuda::found(),
        Backend::Metal => metal::found(),
        Backend::Emulated => emulated::found(),
    };
    let nothing = |problem| vec![Found { backend, index: 0, facts: None, problem: Some(problem) }];
    match found {
        Err(problem) => nothing(problem),
        Ok(devices) if devices.is_empty() => nothing(DeviceError::NoDevice { backend, index: 0, n_devices: 0 }),
        Ok(devices) => {
            let with_index = devices.into_iter().enumerate();
            with_index
                .map(|(index, facts)| {
                    let problem = cuda::too_old(index, &facts).or_else(|| self_test::refusal(backend, index));
                    Found { backend, index, facts: Some(facts), problem }
                })
                .collect()
        }
    }
}
