//! Options of pyhf that are accepted and have no effect.

use clap::Args;

const HEADING: &str = "Options of pyhf without effect";

/// Options that choose how pyhf computes, so that command lines written for pyhf work unchanged.
#[derive(Debug, Args)]
pub(crate) struct IgnoredArgs {
    /// Tensor library of pyhf
    #[arg(long, help_heading = HEADING, value_parser = ["numpy", "pytorch", "tensorflow", "jax", "np", "torch", "tf"], hide_possible_values = true)]
    backend: Option<String>,

    /// Minimiser of pyhf
    #[arg(long, help_heading = HEADING, value_parser = ["scipy", "minuit"], hide_possible_values = true)]
    optimizer: Option<String>,

    /// Option of pyhf's minimiser
    #[arg(long, help_heading = HEADING, value_name = "NAME=VALUE")]
    optconf: Vec<String>,
}

impl IgnoredArgs {
    /// Returns warnings about options that may be expected to have an effect. `numpy` computes in
    /// double precision on the processor, as nextstat does, so it needs none.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(backend) = self.backend.as_ref().filter(|name| !["numpy", "np"].contains(&name.as_str())) {
            warnings.push(format!("`--backend {backend}` has no effect: nextstat has one engine"));
        }
        if let Some(optimizer) = &self.optimizer {
            warnings.push(format!("`--optimizer {optimizer}` has no effect: nextstat has one minimiser"));
        }
        if !self.optconf.is_empty() {
            let options = self.optconf.join("`, `");
            warnings.push(format!("`--optconf` has no effect: the minimiser has no option `{options}`"));
        }
        warnings
    }
}
