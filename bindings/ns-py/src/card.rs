//! How data cards of Combine are read, as Python passes it.

use ns_translate::CardOptions;
use pyo3::prelude::*;

/// What the reader of a data card is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenCardOptions {
    mass: Option<f64>,
    physics_model: Option<String>,
    model_options: Vec<String>,
    keywords: Vec<(String, String)>,
}

impl From<GivenCardOptions> for CardOptions {
    fn from(given: GivenCardOptions) -> Self {
        let GivenCardOptions { mass, physics_model, model_options, keywords } = given;
        Self { mass, physics_model, model_options, keywords }
    }
}
