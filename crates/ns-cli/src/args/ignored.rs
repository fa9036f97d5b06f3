//! Options that are taken because pyhf has them, and change nothing.

use clap::Args;

const HEADING: &str = "Options of pyhf that change nothing here";

/// How pyhf is to compute. Command lines written for it can stay as they are.
#[derive(Debug, Args)]
pub(crate) struct IgnoredArgs {
    /// pyhf's tensor library
    #[arg(long, help_heading = HEADING, value_parser = ["numpy", "pytorch", "tensorflow", "jax", "np", "torch", "tf"], hide_possible_values = true)]
    backend: Option<String>,

    /// pyhf's minimiser
    #[arg(long, help_heading = HEADING, value_parser = ["scipy", "minuit"], hide_possible_values = true)]
    optimizer: Option<String>,

    /// An option of pyhf's minimiser
    #[arg(long, help_heading = HEADING, value_name = "NAME=VALUE")]
    optconf: Vec<String>,
}

impl IgnoredArgs {
    /// What to say of the options that somebody may have hopes in. `numpy` computes in double precision on the processor, as we do.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(backend) = self.backend.as_ref().filter(|name| !["numpy", "np"].contains(&name.as_str())) {
            warnings.push(format!("`--backend {backend}` is taken and changes nothing: there is one engine"));
        }
        if let Some(optimizer) = &self.optimizer {
            warnings.push(format!("`--optimizer {optimizer}` is taken and changes nothing: there is one minimiser"));
        }
        if !self.optconf.is_empty() {
            let options = self.optconf.join("`, `");
            warnings.push(format!("`--optconf` is taken and changes nothing: the minimiser has no `{options}`"));
        }
        warnings
    }
}
