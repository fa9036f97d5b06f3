//! What one does with a likelihood: fits, uncertainties, intervals.
