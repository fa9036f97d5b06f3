//! Shared sessions whose templates are replaced between fits, or stay there as a batch.

use super::gpu_session::GpuSession;
use ns_core::batch::{BatchError, TemplateBatchMinimizer, TemplateMinimizer};
use ns_core::model::{Data, Model};

impl TemplateMinimizer for GpuSession {
    fn replace_templates(&mut self, model: &Model) -> Result<(), BatchError> {
        self.lock().replace_templates(model)
    }
}

impl TemplateBatchMinimizer for GpuSession {
    fn n_batch(&self) -> usize {
        self.lock().n_batch()
    }

    fn batch_gradients(&mut self, data: &Data, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), BatchError> {
        self.lock().batch_gradients(data, points)
    }
}
