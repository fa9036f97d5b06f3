//! Confidence intervals and regions by toys: Feldman-Cousins and other constructions of Neyman,
//! without asymptotic formulas.

use crate::answer::Document;
use crate::document::to_document;
use crate::error::{Procedure, Setting, SettingsError, ValuesProblem};
use crate::exclusion::{Contour, region_of};
use crate::settings::{index_of, require_probability};
use crate::toys::{FIXED_AUX, ToyOptions};
use crate::{Analysis, Answer, Error};
use ns_inference::monitor::Monitor;
use ns_inference::toys::{
    AuxTreatment, Construction, IntervalSettings, RegionPoint, RegionSettings, ToyInterval, ToyRegion, ToyRun,
    interval, region,
};
use serde::Serialize;
use serde_json::Value;

/// Which interval of the parameter of interest to find.
///
/// ```
/// use nextstat::intervals::IntervalRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let request = IntervalRequest { cl: 0.68, tolerance: 0.1, ..IntervalRequest::default() };
/// let found = analysis.interval(&request, &NoMonitor)?.result;
/// let upper = found.upper.unwrap();
/// assert!((upper.value.unwrap() - 1.2).abs() < 0.2 && upper.error.unwrap() < 0.1);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRequest {
    /// The construction.
    pub construction: Construction,
    /// The confidence level.
    pub cl: f64,
    /// The error at which an end is known well enough, in standard deviations of the parameter.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// How to make the toys. All of them are made: intervals have no shards.
    pub options: ToyOptions,
}

impl Default for IntervalRequest {
    fn default() -> Self {
        let (construction, options) = (Construction::FeldmanCousins, ToyOptions::default());
        Self { construction, cl: 0.95, tolerance: 0.02, max_toys: 200_000, options }
    }
}

impl Analysis {
    /// Finds a confidence interval of the parameter of interest by toys.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; a confidence level outside 0 to 1 or too near to
    /// 0; a tolerance that is not positive; a device that is not available or fails; fits to the
    /// data that do not converge; too little memory.
    pub fn interval(&self, request: &IntervalRequest, monitor: &dyn Monitor) -> Result<Answer<ToyInterval>, Error> {
        let IntervalRequest { construction, cl, tolerance, max_toys, .. } = *request;
        require_confidence(cl)?;
        if construction == Construction::Upper && cl <= 0.5 {
            return Err(SettingsError::LowConfidence { cl }.into());
        }
        require_tolerance(tolerance)?;
        let poi = self.varied(None, Procedure::Interval)?;
        let (seed, aux) = (self.seed(), request.options.aux);
        let settings = IntervalSettings { construction, poi, cl, tolerance, max_toys, seed, aux };
        let run = ToyRun { batch: request.options.batch, ..self.run(monitor)? };
        let mut likelihood = self.likelihood()?;
        let mut found = interval(&mut self.problem(&mut likelihood), settings, &run)?;
        let fixed = (aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned());
        found.warnings.extend(fixed.into_iter().chain(self.first_of_several()));
        self.answer(found)
    }
}

/// Which region of two parameters to find.
///
/// ```
/// use nextstat::intervals::RegionRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, ScanValues, Settings};
///
/// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let axis = |name: &str, from: f64, step: f64| (name.to_owned(), (0..4).map(|i| from + step * f64::from(i)).collect());
/// let axes = [axis("mu", 0.0, 1.0), axis("norm_ttbar", 0.85, 0.1)];
/// let request = RegionRequest { cls: vec![0.68], tolerance: 0.3, ..RegionRequest::new(axes) };
/// let found = Analysis::new(&model, &Settings::default())?.region(&request, &NoMonitor)?.result;
/// assert_eq!((found.toys.points.len(), found.contours.len()), (16, 1));
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RegionRequest {
    /// The parameters and their values, ascending.
    pub axes: [(String, Vec<f64>); 2],
    /// The confidence levels of the contours.
    pub cls: Vec<f64>,
    /// The error at which a point next to a contour is known well enough, in standard deviations.
    pub tolerance: f64,
    /// The largest number of toys.
    pub max_toys: u64,
    /// How to make the toys.
    pub options: ToyOptions,
}

impl RegionRequest {
    /// Asks for the contours at 68 % and 95 % confidence level on the grid of `axes`.
    #[must_use]
    pub fn new(axes: [(String, Vec<f64>); 2]) -> Self {
        Self { axes, cls: vec![0.68, 0.95], tolerance: 0.05, max_toys: 2_000_000, options: ToyOptions::default() }
    }
}

/// A region of two parameters by toys, with its contours.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The p-values on the grid.
    pub toys: ToyRegion,
    /// The contours of each confidence level.
    pub contours: Vec<RegionContours>,
}

/// The contours of one confidence level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionContours {
    /// The confidence level.
    pub cl: f64,
    /// Its contours, with the accepted side on the left.
    pub contours: Vec<Contour>,
    /// The accepted region: closed rings of vertices, which follow the edge of the grid where
    /// contours end.
    pub region: Vec<Vec<[f64; 2]>>,
}

impl Analysis {
    /// Finds p-values on a grid of two parameters by toys, and the contours between them.
    ///
    /// # Errors
    /// Unknown or fixed parameters, or one of them twice; values that do not ascend, are not finite
    /// or are outside the range of their parameter; a confidence level outside 0 to 1; a tolerance
    /// that is not positive; a device that is not available or fails; a free fit that does not
    /// converge; too little memory.
    pub fn region(&self, request: &RegionRequest, monitor: &dyn Monitor) -> Result<Answer<Region>, Error> {
        let RegionRequest { axes, cls, tolerance, max_toys, options } = request;
        cls.iter().try_for_each(|cl| require_confidence(*cl))?;
        require_tolerance(*tolerance)?;
        let [a, b] = axes.each_ref().map(|(name, values)| self.axis(name, values));
        let parameters = [a?, b?];
        if parameters[0] == parameters[1] {
            return Err(SettingsError::SetTwice { setting: Setting::Grid, name: axes[0].0.clone() }.into());
        }
        let settings = RegionSettings {
            parameters,
            values: axes.each_ref().map(|(_, values)| values.clone()),
            cls: cls.clone(),
            tolerance: *tolerance,
            max_toys: *max_toys,
            seed: self.seed(),
            aux: options.aux,
        };
        let run = ToyRun { batch: options.batch, ..self.run(monitor)? };
        let mut likelihood = self.likelihood()?;
        let mut toys = region(&mut self.problem(&mut likelihood), &settings, &run)?;
        toys.warnings.extend((options.aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned()));
        let contours = cls.iter().map(|cl| contours_of(&toys.points, *cl)).collect();
        self.answer(Region { toys, contours })
    }
}

impl Analysis {
    /// Returns the index of the parameter `name` of a grid, after a check of its values.
    fn axis(&self, name: &str, values: &[f64]) -> Result<usize, SettingsError> {
        let index = index_of(&self.model().parameters, Setting::Grid, name)?;
        self.varied(Some(name), Procedure::Interval)?;
        if values.len() < 2 || !values.is_sorted_by(|a, b| a < b) || !values.iter().all(|v| v.is_finite()) {
            return Err(SettingsError::BadValues { problem: ValuesProblem::NotAscending });
        }
        self.require_inside(Setting::Grid, index, values)?;
        Ok(index)
    }
}

/// Returns the contours at `cl` between `points`: where r = √(-2 ln p) is that of the level, which
/// for large counts is linear in the distance to the best fit.
fn contours_of(points: &[RegionPoint], cl: f64) -> RegionContours {
    let radius = |p: f64| (-2.0 * p.ln()).max(0.0).sqrt();
    let edge = radius(1.0 - cl);
    let excess = |point: &RegionPoint| {
        let t = point.t?;
        let tested = point.p_value.filter(|p| p.n_toys > 0);
        // A p-value of 0 is only known to be small, and untested points are far outside.
        let r = tested.map(|p| radius((p.n_extreme as f64 + 0.5) / (p.n_toys as f64 + 1.0)));
        Some((point.values, edge - r.unwrap_or_else(|| t.sqrt().max(edge + 1.0))))
    };
    let (places, excess): (Vec<[f64; 2]>, Vec<f64>) = points.iter().filter_map(excess).unzip();
    let found = region_of(&places, &excess).unwrap_or_default();
    RegionContours { cl, contours: found.contours, region: found.region }
}

impl Document for Region {
    const SCHEMA: &'static str = "region";

    fn fields(answer: &Answer<Self>) -> Value {
        let mut document = to_document(&answer.result.toys);
        document["contours"] = to_document(&answer.result.contours);
        document
    }
}

/// Refuses a confidence level that is not one, or that no number of toys tells from 0.
pub(crate) fn require_confidence(cl: f64) -> Result<(), SettingsError> {
    require_probability(Setting::Cl, cl)?;
    if 1.0 - cl == 1.0 { Err(SettingsError::NegligibleConfidence { cl }) } else { Ok(()) }
}

/// Refuses a tolerance that no number of toys reaches.
pub(crate) fn require_tolerance(tolerance: f64) -> Result<(), SettingsError> {
    if tolerance.is_finite() && tolerance > 0.0 { Ok(()) } else { Err(SettingsError::BadTolerance { tolerance }) }
}

impl Document for ToyInterval {
    const SCHEMA: &'static str = "interval";

    fn fields(answer: &Answer<Self>) -> Value {
        to_document(&answer.result)
    }
}
