//! What is not to be seen: which data a result hides, and the measure of a signal that decides it.

use std::fmt;
use std::str::FromStr;

/// Bins whose data are neither fitted nor shown.
///
/// ```
/// use nextstat::blinding::Blinding;
/// use nextstat::{Analysis, CompiledModel, Settings};
///
/// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let blind = Blinding { bins: vec!["signal_region[2:]".to_owned()], ..Blinding::default() };
/// let analysis = Analysis::new(&model, &Settings { blind, ..Settings::default() })?;
/// let document = analysis.yields()?.document();
/// assert_eq!(document["channels"][1]["data"], serde_json::json!([76.0, 55.0, null, null]));
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blinding {
    /// Channels and bins: names, patterns such as `SR_*`, and bins such as `SR[3]` or `SR[2:5]`
    /// (bins 2 to 4).
    pub bins: Vec<String>,
    /// Every bin with as much signal as this, too.
    pub above: Option<BlindingThreshold>,
    /// Whether fits use the hidden data. Yields and reports warn that their parameters then show
    /// what the data are.
    pub is_fitted: bool,
    /// Whether all data may be hidden, because only [`Analysis::project`](crate::Analysis::project)
    /// or [`Analysis::report_from`](crate::Analysis::report_from) is asked for, which fit none.
    pub may_hide_all: bool,
}

/// The signal of a bin that hides its data.
///
/// Signal s and background b are expected yields before the fit: s is what the parameters of
/// interest add when they go from 0 to 1, b what is expected with them at 0. So s has the samples
/// that they scale, and no data decide what is hidden.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlindingThreshold {
    /// The least value of the measure.
    pub value: f64,
    /// The measure.
    pub measure: SignalMeasure,
}

/// A measure of the signal s in a bin over the background b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignalMeasure {
    /// s/b
    #[default]
    OverBackground,
    /// s/(s + b)
    OverTotal,
    /// s/√b
    OverRootBackground,
    /// s/√(s + b)
    OverRootTotal,
}

/// A text that names no measure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a measure of the signal: choose one of `s/b`, `s/(s+b)`, `s/sqrt(b)`, `s/sqrt(s+b)`")]
pub struct UnknownMeasure {
    text: String,
}

impl SignalMeasure {
    /// All of them, with their names here and in TRExFitter.
    const NAMES: [(Self, [&'static str; 2]); 4] = [
        (Self::OverBackground, ["s/b", "soverb"]),
        (Self::OverTotal, ["s/(s+b)", "soversplusb"]),
        (Self::OverRootBackground, ["s/sqrt(b)", "soversqrtb"]),
        (Self::OverRootTotal, ["s/sqrt(s+b)", "soversqrtsplusb"]),
    ];

    /// Returns the measure of `signal` over `background`; the size of a negative signal counts.
    /// Infinite for a signal without background, 0 without a signal.
    ///
    /// ```
    /// use nextstat::blinding::SignalMeasure;
    /// assert_eq!(SignalMeasure::OverBackground.of(3.0, 9.0), 3.0 / 9.0);
    /// assert_eq!(SignalMeasure::OverRootTotal.of(7.0, 9.0), 7.0 / 4.0);
    /// assert_eq!("SOVERSQRTB".parse(), Ok(SignalMeasure::OverRootBackground));
    /// ```
    #[must_use]
    pub fn of(self, signal: f64, background: f64) -> f64 {
        let signal = signal.abs();
        if signal == 0.0 {
            return 0.0;
        }
        let background = background.max(0.0);
        signal
            / match self {
                Self::OverBackground => background,
                Self::OverTotal => signal + background,
                Self::OverRootBackground => background.sqrt(),
                Self::OverRootTotal => (signal + background).sqrt(),
            }
    }
}

impl fmt::Display for SignalMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(measure, _)| measure == self).map_or("", |(_, [name, _])| name);
        f.write_str(name)
    }
}

impl FromStr for SignalMeasure {
    type Err = UnknownMeasure;

    /// Reads `s/b`, `s/(s+b)`, `s/sqrt(b)` or `s/sqrt(s+b)`, or TRExFitter's name for it.
    fn from_str(text: &str) -> Result<Self, UnknownMeasure> {
        let wanted: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        let is_named = |(_, names): &&(Self, [&str; 2])| names.contains(&wanted.as_str());
        let found = Self::NAMES.iter().find(is_named).map(|(measure, _)| *measure);
        found.ok_or_else(|| UnknownMeasure { text: text.to_owned() })
    }
}
