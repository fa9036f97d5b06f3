//! A model that stays on a device, shared between procedures.

use super::session::DeviceSession;
use ns_core::batch::{BatchError, BatchFit, BatchMinimizer, BatchTask};
use ns_device::Device;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`DeviceSession`] that several procedures share, one at a time. Clones are the same session.
#[derive(Debug, Clone)]
pub struct GpuSession {
    device: Device,
    batch_size: usize,
    is_exact: bool,
    session: Arc<Mutex<DeviceSession>>,
}

impl GpuSession {
    /// Shares `session`.
    #[must_use]
    pub fn new(session: DeviceSession) -> Self {
        let device = session.device().clone();
        let (batch_size, is_exact) = (session.batch_size(), session.is_exact());
        Self { device, batch_size, is_exact, session: Arc::new(Mutex::new(session)) }
    }

    /// Returns the device, without waiting for the session.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Locks the session, after waiting for other users.
    pub fn lock(&self) -> MutexGuard<'_, DeviceSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchMinimizer for GpuSession {
    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn minimize(&mut self, task: &BatchTask<'_>) -> Result<Vec<BatchFit>, BatchError> {
        self.lock().minimize(task)
    }
}
