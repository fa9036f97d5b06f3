//! Exclusion contours of a grid of signals in the plane of two of its labels, such as two masses.
//!
//! The input is the document of `hypotest` or `limit` for every patch of a set
//! ([`GridAnswer::document`](crate::patchsets::GridAnswer::document)); nothing is fitted. Each
//! signal gets a value v that grows with the strength of its exclusion, and is excluded where
//! v > v₀:
//!
//! | document | v | v₀ |
//! |---|---|---|
//! | `hypotest` | Φ⁻¹(1 - CLs) | Φ⁻¹(cl) |
//! | `limit` | -ln μ_up | 0 |
//!
//! v is interpolated linearly on the Delaunay triangulation of the points, and the contour is where
//! it is v₀. CLs spans decades, and its normal quantile is smooth. CLs of 0 and 1 have no quantile:
//! CLs is kept within 2⁻⁵³ and 1 - 2⁻⁵³ (|v| < 8.3), and limits above 2⁻⁵³. What is read is in
//! `grid`, what is interpolated in `surface`, the triangulation and its contours in `mesh`.

mod error;
mod grid;
mod mesh;
mod surface;

pub use error::ExclusionError;
pub use mesh::{Contour, ExclusionCurve};

use crate::document::{VERSION, about, to_document};
use crate::provenance::label_of;
use grid::{Grid, Selection};
use mesh::Mesh;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::array;
use surface::{Notes, Surface, places};

/// Names of the curves in warnings, at -2 … +2 standard deviations.
const EXPECTED: [&str; 5] = ["expected -2σ", "expected -1σ", "expected", "expected +1σ", "expected +2σ"];

/// Which plane of the grid, and which confidence level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExclusionRequest {
    /// The labels of the axes. What is not given is the first label in alphabetical order whose
    /// values are numbers and differ between patches.
    pub x: Option<String>,
    /// See `x`.
    pub y: Option<String>,
    /// Patches with these values alone: label and value as text, compared as numbers where both are
    /// numbers.
    pub at: Vec<(String, String)>,
    /// The confidence level; 0.95 if not given. Limits have their own.
    pub cl: Option<f64>,
    /// Whether to triangulate in x and the splitting x - y instead of x and y: for compressed
    /// spectra, where results depend on the splitting much more than on the masses.
    pub mass_splitting: bool,
}

/// What the grid has for each signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Quantity {
    /// CLs of a test, with the exclusion below 1 - cl.
    #[serde(rename = "CLs")]
    Cls,
    /// An upper limit on the signal strength, with the exclusion below 1.
    #[serde(rename = "limit")]
    Limit,
}

/// Returns the region where `excess` (N), interpolated linearly between `points` (N × 2), is
/// positive; `None` for points that span no plane.
pub(crate) fn region_of(points: &[[f64; 2]], excess: &[f64]) -> Option<ExclusionCurve> {
    Mesh::new(points, false).ok().map(|mesh| mesh.curve(excess))
}

/// One signal of the grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExclusionPoint {
    /// The name of its patch.
    pub patch: String,
    /// Its place, in the units of the labels.
    pub x: f64,
    /// See `x`.
    pub y: f64,
    /// Observed CLs or limit.
    pub observed: Option<f64>,
    /// Expected CLs or limits at -2 … +2 standard deviations of the background.
    pub expected: [Option<f64>; 5],
    /// Whether it is excluded by the observation; `None` where there is no value.
    pub excluded: Option<bool>,
    /// Whether it is expected to be excluded.
    pub excluded_expected: Option<bool>,
}

/// A signal without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The name of its patch.
    pub patch: String,
    /// Why it has none.
    pub reason: String,
}

/// Exclusion contours, observed and expected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exclusion {
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The selected values of other labels.
    pub at: Map<String, Value>,
    /// The coordinates of the triangulation.
    pub coordinates: [String; 2],
    /// The confidence level.
    pub cl: f64,
    /// What the values of points are.
    pub quantity: Quantity,
    /// The tested signal strength, of CLs.
    pub mu: Option<f64>,
    /// The signals by place, first by x.
    pub points: Vec<ExclusionPoint>,
    /// The observed exclusion.
    pub observed: ExclusionCurve,
    /// The expected ones at -2 … +2 standard deviations of the background; the first is the
    /// largest.
    pub expected: [ExclusionCurve; 5],
    /// The signals that are left out, by name.
    pub left_out: Vec<LeftOut>,
    /// Whether every signal of the plane has a result.
    pub converged: bool,
    /// What to know before using the contours.
    pub warnings: Vec<String>,
    #[serde(skip)]
    measurement: Value,
    #[serde(skip)]
    provenance: Value,
}

impl Exclusion {
    /// Finds the contours of a grid of signals, in the text of its document.
    ///
    /// ```
    /// use nextstat::exclusion::{Exclusion, ExclusionRequest};
    /// use serde_json::json;
    ///
    /// let patch = |name: &str, x: f64, y: f64, cls: f64| {
    ///     let result = json!({"CLs_obs": cls, "CLs_exp": [cls, cls, cls, cls, cls]});
    ///     json!({"patch": name, "values": {"m1": x, "m2": y}, "result": result})
    /// };
    /// let patches = [patch("a", 0.0, 0.0, 0.01), patch("b", 1.0, 0.0, 0.2), patch("c", 0.0, 1.0, 0.01)];
    /// let grid = json!({"patches": patches}).to_string();
    /// let found = Exclusion::from_json(grid.as_bytes(), &ExclusionRequest::default())?;
    /// // Φ⁻¹ of 0.99, 0.95 and 0.8 is 2.326, 1.645 and 0.842: the crossing is at 0.459.
    /// let [x, y] = found.observed.contours[0].vertices[0];
    /// assert!((x - 0.459).abs() < 1e-3 && y == 0.0);
    /// # Ok::<(), nextstat::exclusion::ExclusionError>(())
    /// ```
    ///
    /// # Errors
    /// A document that is not a grid of tests or limits; labels that do not span a plane; fewer
    /// than three signals, or signals on one line; a confidence level that does not fit.
    pub fn from_json(grid: &[u8], request: &ExclusionRequest) -> Result<Self, ExclusionError> {
        let grid = serde_json::from_slice(grid).map_err(|e| ExclusionError::NotJson { reason: e.to_string() })?;
        Self::of(&grid, request)
    }

    /// Returns the provenance of the grid.
    #[must_use]
    pub fn grid_provenance(&self) -> &Value {
        &self.provenance["grid"]
    }

    /// Finds the contours of a grid of signals, in its document.
    ///
    /// # Errors
    /// See [`Self::from_json`].
    pub fn of(grid: &Value, request: &ExclusionRequest) -> Result<Self, ExclusionError> {
        let grid = Grid::read(grid)?;
        let cl = grid.level(request.cl)?;
        let Selection { axes: [x, y], at, mut points, left_out, is_converged, mut warnings } = grid.select(request)?;
        Mesh::new(&places(&points), request.mass_splitting)?;
        let surface = Surface { quantity: grid.quantity, cl, mass_splitting: request.mass_splitting };
        surface.classify(&mut points);
        let mut notes = Notes::default();
        let observed = surface.curve(label_of(&grid.provenance), &points, |point| point.observed, &mut notes);
        let expected = array::from_fn(|i| surface.curve(EXPECTED[i], &points, |point| point.expected[i], &mut notes));
        warnings.extend(notes.lines());
        let second = if request.mass_splitting { format!("{x} - {y}") } else { y.clone() };
        Ok(Self {
            coordinates: [x.clone(), second],
            x,
            y,
            at,
            cl,
            quantity: grid.quantity,
            mu: grid.mu,
            points,
            observed,
            expected,
            converged: left_out.is_empty() && grid.is_complete && is_converged,
            left_out,
            warnings,
            measurement: grid.measurement,
            provenance: json!({"nextstat_version": VERSION, "grid": grid.provenance}),
        })
    }

    /// Returns the result with the name of the file that the grid was read from in its provenance.
    #[must_use]
    pub fn from_file(mut self, name: &str) -> Self {
        self.provenance["file"] = json!(name);
        self
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        about("exclusion", &self.measurement, self.provenance.clone(), to_document(self))
    }
}
