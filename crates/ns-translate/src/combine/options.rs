//! What a card does not say itself: the mass, the physics model, and the values of keywords.

/// How a Combine card is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CardOptions {
    /// The mass that `$MASS` stands for, and the value of the parameter `MH`: Combine's `-m`.
    pub mass: Option<f64>,
    /// The physics model, Combine's `-P`: `multiSignalModel` or `floatingXSHiggs`, also as
    /// `MODULE:NAME`; `None` for a signal strength `r` of all signals.
    pub physics_model: Option<String>,
    /// Options of the physics model, Combine's `--PO`, such as `map=.*/ggH:r_ggH[1,0,10]`.
    pub model_options: Vec<String>,
    /// Words and what they stand for in names of files and templates: `WORD=VALUE` for `$WORD`,
    /// Combine's `--keyword-value`.
    pub keywords: Vec<(String, String)>,
}

impl CardOptions {
    /// Returns whether nothing is chosen, so that the options suit every document.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the mass as names of templates have it: 125, 125.5.
    pub(super) fn mass_text(&self) -> Option<String> {
        self.mass.map(|mass| mass.to_string())
    }
}
