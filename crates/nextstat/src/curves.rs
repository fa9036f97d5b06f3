//! Profile-likelihood scans of one parameter, grids of two, and contours.

use crate::answer::Document;
use crate::document::DocumentParts;
use crate::document::to_document;
use crate::error::{NeedsPoi, Procedure, Setting, SettingsError, ValuesProblem};
use crate::number::significant;
use crate::settings::require_probability;
use crate::{Analysis, Answer, Error};
use ns_inference::contour::{self, ContourOptions, Contours};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::result::{BestFit, MinosInterval, ONE_SIGMA, TWO_SIGMA};
use ns_inference::scan::{self, GridPart, Scan, ScanAxis, ScanValues};
use ns_inference::search::is_lower;
use ns_inference::{FitOptions, Problem, Uncertainties};
use serde::Serialize;
use serde_json::{Value, json};

/// What to scan.
///
/// ```
/// use nextstat::curves::{AxisRequest, ScanRequest};
/// use nextstat::{Analysis, CompiledModel, NoMonitor, ScanValues, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let axis = AxisRequest { parameter: None, values: ScanValues::between(0.0, 2.0, 5) };
/// let request = ScanRequest { axes: vec![axis], ..ScanRequest::default() };
/// let scan = Analysis::new(&model, &Settings::default())?.scan(&request, &NoMonitor)?;
/// assert_eq!(scan.result.scan.values, [[0.0, 0.5, 1.0, 1.5, 2.0]]);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// One parameter or two different ones.
    pub axes: Vec<AxisRequest>,
    /// Contours around the minimum of a scan of two parameters.
    pub contours: Option<ContourLevels>,
    /// Parts of a grid that were computed elsewhere.
    pub parts: Vec<GridPart>,
    /// Whether the document lists the parameters of every conditional fit.
    pub has_params: bool,
}

/// One axis of a scan.
#[derive(Debug, Clone)]
pub struct AxisRequest {
    /// The parameter; the parameter of interest if `None`.
    pub parameter: Option<String>,
    /// Its values.
    pub values: ScanValues,
}

/// Which contours to draw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContourLevels {
    /// Confidence levels between 0 and 1.
    pub levels: Vec<f64>,
    /// Points of each contour.
    pub n_points: usize,
}

/// Contours of two parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContourRequest {
    /// The parameters.
    pub parameters: [String; 2],
    /// The contours.
    pub levels: ContourLevels,
}

/// A scan, with the contours around its minimum if the request asked for them.
#[derive(Debug, Clone)]
pub struct Curves {
    /// The scan or the grid.
    pub scan: Scan,
    /// What was scanned.
    pub axes: Vec<ScanAxis>,
    /// The contours.
    pub contours: Option<Contours>,
    /// Where the profile of a single parameter crosses one and two standard deviations; empty for
    /// two parameters, and without a minimum.
    pub intervals: Vec<MinosInterval>,
    /// Whether a value is outside the range of its parameter; there is a warning then.
    pub leaves_range: bool,
}

impl Analysis {
    /// Resolves what is scanned.
    ///
    /// # Errors
    /// Unknown or fixed parameters; none or more than two of them; no values, or values that are
    /// not finite.
    pub fn axes(&self, requests: &[AxisRequest]) -> Result<Vec<ScanAxis>, SettingsError> {
        let axis = |request: &AxisRequest| {
            let parameter = self.varied(request.parameter.as_deref(), Procedure::Scan)?;
            if let ScanValues::Given(values) = &request.values {
                check(values)?;
            }
            Ok(ScanAxis { parameter, values: request.values.clone() })
        };
        if requests.is_empty() {
            return Err(SettingsError::NoPoi(NeedsPoi::Procedure(Procedure::Scan)));
        }
        let axes = requests.iter().map(axis).collect::<Result<Vec<ScanAxis>, SettingsError>>()?;
        match axes.as_slice() {
            [_] => Ok(axes),
            [a, b] if a.parameter != b.parameter => Ok(axes),
            axes => Err(self.not_scannable(axes)),
        }
    }

    fn not_scannable(&self, axes: &[ScanAxis]) -> SettingsError {
        let name = |axis: &ScanAxis| self.model().parameters.names[axis.parameter].clone();
        SettingsError::NotScannable { names: axes.iter().map(name).collect() }
    }

    /// Scans one parameter or two; draws contours around the same minimum if the request asks for
    /// them.
    ///
    /// # Errors
    /// As [`Analysis::axes`]; a confidence level outside 0 to 1; contours of one parameter; a
    /// device that is not available or fails; too little memory.
    pub fn scan(&self, request: &ScanRequest, monitor: &dyn Monitor) -> Result<Answer<Curves>, Error> {
        let axes = self.axes(&request.axes)?;
        let wanted = request.contours.as_ref();
        wanted.map_or(Ok(()), ContourLevels::check)?;
        if wanted.is_some() && axes.len() != 2 {
            return Err(self.not_scannable(&axes).into());
        }
        let (model, options, execution) = (self.model(), self.options(), self.execution(monitor)?);
        let mut likelihood = self.likelihood()?;
        let mut scan = match axes.as_slice() {
            [a, b] => scan::grid_of_parts(&self.problem(&mut likelihood), [a, b], &request.parts, execution),
            _ => scan::scan(&mut self.problem(&mut likelihood), &axes[0], execution),
        };
        let contours = wanted.zip(<&[ScanAxis; 2]>::try_from(axes.as_slice()).ok()).map(|(wanted, [a, b])| {
            let wanted = wanted.options([a.parameter, b.parameter]);
            // Around the same minimum as the grid.
            let options = ns_inference::FitOptions { start: Some(scan.best.params.clone()), ..options.clone() };
            contour::contours(&Problem::new(model, &mut likelihood, &options), &wanted, execution)
        });
        let intervals = match axes.as_slice() {
            [axis] if scan.best.converged && scan.is_complete => self.crossings(axis.parameter, &scan.best)?,
            _ => Vec::new(),
        };
        let outside = self.outside_ranges(&axes, &scan);
        let leaves_range = !outside.is_empty();
        scan.warnings.extend(outside);
        if contours.as_ref().is_some_and(|contours| is_lower(contours.best.nll, scan.best.nll)) {
            scan.warnings.push("the contours surround a lower minimum than the one that the grid refers to".to_owned());
        }
        if !scan.best.nll.is_finite() {
            scan.warnings.extend(self.impossible_at(&scan.best.params));
        }
        let parts = DocumentParts { has_params: request.has_params, ..DocumentParts::default() };
        self.answer_with(Curves { scan, axes, contours, intervals, leaves_range }, parts)
    }

    /// Returns the intervals of one and two standard deviations of `parameter` around `best`.
    fn crossings(&self, parameter: usize, best: &BestFit) -> Result<Vec<MinosInterval>, Error> {
        let options = FitOptions {
            start: Some(best.params.clone()),
            uncertainties: Uncertainties::None,
            minos: vec![parameter],
            minos_cls: vec![ONE_SIGMA, TWO_SIGMA],
            multi_start: None,
            ..self.options().clone()
        };
        let mut likelihood = self.likelihood()?;
        Ok(ns_inference::fit(&mut Problem::new(self.model(), &mut likelihood, &options)).minos)
    }

    /// Returns a warning for each axis with values outside the range of its parameter.
    fn outside_ranges(&self, axes: &[ScanAxis], scan: &Scan) -> Vec<String> {
        let domain = self.domain();
        let warning = |(axis, values): (&ScanAxis, &Vec<f64>)| {
            let [lower, upper] = [&domain.lower, &domain.upper].map(|ends| ends[axis.parameter]);
            let n_outside = values.iter().filter(|value| !(lower..=upper).contains(*value)).count();
            let name = &self.model().parameters.names[axis.parameter];
            let [lower, upper] = [lower, upper].map(|end| significant(end, 6));
            let n_values = values.len();
            let warning =
                format!("values of `{name}` outside its range, {lower} to {upper}: {n_outside} of {n_values}");
            (n_outside > 0).then_some(warning)
        };
        axes.iter().zip(&scan.values).filter_map(warning).collect()
    }

    /// Computes part `part` of a grid, for [`ScanRequest::parts`].
    ///
    /// # Errors
    /// As [`Analysis::scan`]; another number of parameters than two; a device, which this does not
    /// use.
    pub fn grid_part(&self, request: &ScanRequest, part: WorkPart, monitor: &dyn Monitor) -> Result<GridPart, Error> {
        let axes = self.axes(&request.axes)?;
        let [a, b] = axes.as_slice() else {
            return Err(self.not_scannable(&axes).into());
        };
        self.require_cpu("a part of a grid")?;
        let execution = ExecutionContext::new(self.threads(), monitor);
        let mut likelihood = self.likelihood()?;
        Ok(scan::grid_part(&self.problem(&mut likelihood), [a, b], part, execution))
    }

    /// Draws contours of two parameters.
    ///
    /// # Errors
    /// Unknown or fixed parameters, or one of them twice; a confidence level outside 0 to 1; a
    /// device, which this does not use.
    pub fn contours(&self, request: &ContourRequest, monitor: &dyn Monitor) -> Result<Answer<Contours>, Error> {
        request.levels.check()?;
        let [a, b] = request.parameters.each_ref().map(|name| self.varied(Some(name), Procedure::Contours));
        let parameters = [a?, b?];
        if parameters[0] == parameters[1] {
            return Err(SettingsError::NotScannable { names: request.parameters.to_vec() }.into());
        }
        self.require_cpu("a contour without a grid")?;
        let (wanted, execution) = (request.levels.options(parameters), self.execution(monitor)?);
        let mut likelihood = self.likelihood()?;
        self.answer(contour::contours(&self.problem(&mut likelihood), &wanted, execution))
    }
}

/// Refuses no values, and values that are not finite.
fn check(values: &[f64]) -> Result<(), SettingsError> {
    let problem = match values.iter().find(|value| !value.is_finite()) {
        Some(&value) => ValuesProblem::NotFinite(value),
        None if values.is_empty() => ValuesProblem::Empty,
        None => return Ok(()),
    };
    Err(SettingsError::BadValues { problem })
}

impl ContourLevels {
    fn check(&self) -> Result<(), SettingsError> {
        self.levels.iter().try_for_each(|level| require_probability(Setting::ContourLevels, *level))
    }

    fn options(&self, parameters: [usize; 2]) -> ContourOptions {
        ContourOptions { parameters, levels: self.levels.clone(), n_points: self.n_points }
    }
}

impl Curves {
    /// Returns `true` if every fit converged.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.scan.converged && self.contours.as_ref().is_none_or(|contours| contours.converged)
    }

    /// Returns `true` if every point was computed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scan.is_complete && self.contours.as_ref().is_none_or(|contours| contours.is_complete)
    }

    /// Returns the warnings of the scan, then those of the contours.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.scan.warnings.iter().chain(self.contours.iter().flat_map(|contours| &contours.warnings))
    }
}

impl Document for Contours {
    const SCHEMA: &'static str = "contours";

    fn fields(answer: &Answer<Self>) -> Value {
        let mut document = to_document(&answer.result);
        document["par_names"] = json!(answer.model().parameters.names);
        document
    }
}

impl Document for Curves {
    const SCHEMA: &'static str = "scan";

    /// Lists over points for one parameter, rows over the values of the first for two.
    fn fields(answer: &Answer<Self>) -> Value {
        let Self { scan, axes, contours, .. } = &answer.result;
        let mut document = json!({
            "complete": answer.result.is_complete(),
            "converged": answer.result.is_converged(),
            "delta_nll": points(scan, &scan.delta_nll),
            "fit": scan.best,
            "outcomes": points(scan, &scan.outcomes),
            "par_names": answer.model().parameters.names,
            "twice_delta_nll": points(scan, &scan.twice_delta_nll),
            "warnings": answer.result.warnings().collect::<Vec<_>>(),
        });
        if answer.parts.has_params {
            document["conditional_bestfit"] = points(scan, &scan.params);
        }
        let best = axes.iter().map(|axis| scan.best.params.get(axis.parameter).filter(|_| scan.best.converged));
        let best = best.collect::<Vec<_>>();
        let widths = axes.iter().map(|axis| scan.best.uncertainties.get(axis.parameter).copied().flatten());
        let widths = widths.map(|width| width.filter(|_| scan.best.converged)).collect::<Vec<_>>();
        match (scan.parameters.as_slice(), scan.values.as_slice()) {
            ([parameter], [values]) => {
                document["parameter"] = json!(parameter);
                document["values"] = json!(values);
                document["bestfit"] = json!(best[0]);
                document["uncertainty"] = json!(widths[0]);
                document["intervals"] = json!(answer.result.intervals);
            }
            (parameters, values) => {
                document["parameters"] = json!(parameters);
                document["values"] = json!(values);
                document["bestfit"] = json!(best);
                document["uncertainties"] = json!(widths);
            }
        }
        if let Some(contours) = contours {
            document["contours"] = json!(contours.contours);
        }
        document
    }
}

/// Returns one entry per point: a list, or a row for each value of the first of two parameters.
fn points<T: Serialize>(scan: &Scan, list: &[T]) -> Value {
    match scan.values.as_slice() {
        [_, second] => list.chunks(second.len().max(1)).map(|row| json!(row)).collect(),
        _ => json!(list),
    }
}
