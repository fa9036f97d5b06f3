//! A model on a device whose templates are replaced between fits: its tables are made and uploaded anew, which is a few kilobytes for most models.

use super::gpu_session::GpuSession;
use super::session::Session;
use ns_core::batch::{BatchError, TemplateMinimizer};
use ns_core::model::Model;

impl TemplateMinimizer for Session {
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError> {
        *self = Self::untested(&self.device().clone(), model)?;
        Ok(())
    }
}

impl TemplateMinimizer for GpuSession {
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError> {
        self.lock().replace_templates(model)
    }
}
