//! Reads the tolerances of devices against the CPU from `testdata/parity.json`, which gives a
//! reason for each.

use serde_json::Value;

/// The tolerances of one precision.
#[derive(Debug, Clone, Copy)]
pub struct Parity {
    /// -ln L at a point.
    pub nll: f64,
    /// Its gradient.
    pub gradient: f64,
    /// A Newton step.
    pub newton_step: f64,
    /// -2 ln L of a fit, above the CPU's.
    pub twice_nll_of_fit: f64,
    /// The parameters of a fit.
    pub parameters: f64,
    /// The parameters of a fit that the CPU continued.
    pub polished_parameters: f64,
    /// A variance at a minimum.
    pub variance: f64,
}

impl Parity {
    /// Returns the tolerances of double precision.
    #[must_use]
    pub fn double() -> Self {
        Self::of("double")
    }

    /// Returns the tolerances of single precision.
    #[must_use]
    pub fn single() -> Self {
        Self::of("single")
    }

    fn of(precision: &str) -> Self {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/parity.json"));
        let file: Value = serde_json::from_str(text).expect("JSON");
        let tolerance = |what: &str| file[precision][what]["tolerance"].as_f64().expect("a tolerance for everything");
        Self {
            nll: tolerance("nll"),
            gradient: tolerance("gradient"),
            newton_step: tolerance("newton_step"),
            twice_nll_of_fit: tolerance("twice_nll_of_fit"),
            parameters: tolerance("parameters"),
            polished_parameters: tolerance("polished_parameters"),
            variance: tolerance("variance"),
        }
    }
}
