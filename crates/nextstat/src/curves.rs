//! Profile scans of one parameter, grids of two, and contours.

use crate::document::{identify, to_document};
use crate::error::{NeedsPoi, Procedure, SettingsError, ValuesProblem};
use crate::{Analysis, Answer, Error};
use ns_inference::Problem;
use ns_inference::contour::{self, ContourOptions, Contours};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::profile::DISTINCT;
use ns_inference::result::BestFit;
use ns_inference::scan::{self, GridPart, Scan, ScanAxis, ScanValues};
use serde::Serialize;
use serde_json::{Value, json};

/// What is scanned.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// One parameter or two different ones.
    pub axes: Vec<AxisRequest>,
    /// Parts of a grid that were computed elsewhere.
    pub parts: Vec<GridPart>,
}

/// One axis of a scan.
#[derive(Debug, Clone)]
pub struct AxisRequest {
    /// The parameter; the parameter of interest if `None`.
    pub parameter: Option<String>,
    /// Its values.
    pub values: ScanValues,
}

/// Contours of confidence levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContourRequest {
    /// Confidence levels between 0 and 1.
    pub levels: Vec<f64>,
    /// Points of each contour.
    pub n_points: usize,
}

/// A scan, with the contours around its minimum if they were asked for.
#[derive(Debug, Clone)]
pub struct Curves {
    /// The scan or the grid.
    pub scan: Scan,
    /// What was scanned.
    pub axes: Vec<ScanAxis>,
    /// The contours.
    pub contours: Option<Contours>,
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

    /// Scans one parameter or two.
    ///
    /// # Errors
    /// As [`Analysis::axes`]; too little memory; a failing device.
    pub fn scan(&self, request: &ScanRequest, monitor: &dyn Monitor) -> Result<Answer<Curves>, Error> {
        self.scan_with_contours(request, None, monitor)
    }

    /// Scans two parameters and draws contours around the same minimum.
    ///
    /// # Errors
    /// As [`Analysis::scan`]; a confidence level outside 0 to 1; contours of one parameter.
    pub fn scan_with_contours(
        &self,
        request: &ScanRequest,
        contours: Option<&ContourRequest>,
        monitor: &dyn Monitor,
    ) -> Result<Answer<Curves>, Error> {
        let axes = self.axes(&request.axes)?;
        contours.map_or(Ok(()), ContourRequest::check)?;
        if contours.is_some() && axes.len() != 2 {
            return Err(self.not_scannable(&axes).into());
        }
        let (model, options, execution) = (self.model(), self.options(), self.execution(monitor));
        let mut likelihood = self.likelihood()?;
        let mut scan = match axes.as_slice() {
            [a, b] => scan::grid_of_parts(&self.problem(&mut likelihood), [a, b], &request.parts, execution),
            _ => scan::scan(&mut self.problem(&mut likelihood), &axes[0], execution),
        };
        let contours = contours.zip(<&[ScanAxis; 2]>::try_from(axes.as_slice()).ok()).map(|(wanted, [a, b])| {
            let wanted = wanted.options([a.parameter, b.parameter]);
            // Around the same minimum as the grid.
            let options = ns_inference::FitOptions { start: Some(scan.best.params.clone()), ..options.clone() };
            contour::contours(&Problem::new(model, &mut likelihood, &options), &wanted, execution)
        });
        if contours.as_ref().is_some_and(|contours| contours.best.nll < scan.best.nll - DISTINCT) {
            scan.warnings.push("the contours surround a lower minimum than the one that the grid refers to".to_owned());
        }
        if !scan.best.nll.is_finite() {
            scan.warnings.extend(self.impossible_at(&scan.best.params));
        }
        self.answer(Curves { scan, axes, contours })
    }

    /// Computes part `part` of a grid, for [`ScanRequest::parts`].
    ///
    /// # Errors
    /// As [`Analysis::scan`]; another number of parameters than two.
    pub fn grid_part(&self, axes: &[AxisRequest], part: WorkPart, monitor: &dyn Monitor) -> Result<GridPart, Error> {
        let axes = self.axes(axes)?;
        let [a, b] = axes.as_slice() else {
            return Err(self.not_scannable(&axes).into());
        };
        let execution = ExecutionContext::new(self.threads(), monitor);
        let mut likelihood = self.likelihood()?;
        Ok(scan::grid_part(&self.problem(&mut likelihood), [a, b], part, execution))
    }

    /// Draws contours of two parameters.
    ///
    /// # Errors
    /// Unknown or fixed parameters, or one of them twice; a confidence level outside 0 to 1.
    pub fn contours(
        &self,
        parameters: [&str; 2],
        request: &ContourRequest,
        monitor: &dyn Monitor,
    ) -> Result<Answer<Contours>, Error> {
        request.check()?;
        let [a, b] = parameters.map(|name| self.varied(Some(name), Procedure::Contours));
        let parameters_of = [a?, b?];
        if parameters_of[0] == parameters_of[1] {
            return Err(SettingsError::NotScannable { names: parameters.map(str::to_owned).to_vec() }.into());
        }
        let (wanted, execution) = (request.options(parameters_of), ExecutionContext::new(self.threads(), monitor));
        self.answer(contour::contours(
            &Problem::new(self.model(), &mut self.likelihood()?, self.options()),
            &wanted,
            execution,
        ))
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

impl ContourRequest {
    fn check(&self) -> Result<(), SettingsError> {
        match self.levels.iter().find(|level| !(0.0 < **level && **level < 1.0)) {
            Some(&level) => Err(SettingsError::BadLevel { level }),
            None => Ok(()),
        }
    }

    fn options(&self, parameters: [usize; 2]) -> ContourOptions {
        ContourOptions { parameters, levels: self.levels.clone(), n_points: self.n_points }
    }
}

impl Curves {
    /// Whether every fit converged.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.scan.converged && self.contours.as_ref().is_none_or(|contours| contours.converged)
    }

    /// Whether every point was computed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scan.is_complete && self.contours.as_ref().is_none_or(|contours| contours.is_complete)
    }

    /// Returns the warnings of the scan, then those of the contours.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.scan.warnings.iter().chain(self.contours.iter().flat_map(|contours| &contours.warnings))
    }
}

impl Answer<Curves> {
    /// Returns the document: lists over points of one parameter, rows over the first of two;
    /// with the parameters of every point if `has_params`.
    #[must_use]
    pub fn document(&self, has_params: bool) -> Value {
        let Curves { scan, axes, contours } = &self.result;
        let mut document = json!({
            "best": best(axes, &scan.best),
            "complete": self.result.is_complete(),
            "converged": self.result.is_converged(),
            "delta_nll": points(scan, &scan.delta_nll),
            "outcomes": points(scan, &scan.outcomes),
            "par_names": self.model().parameters.names,
            "twice_delta_nll": points(scan, &scan.twice_delta_nll),
            "warnings": self.result.warnings().collect::<Vec<_>>(),
        });
        identify(&mut document, self.model());
        if has_params {
            document["params"] = points(scan, &scan.params);
        }
        match (scan.parameters.as_slice(), scan.values.as_slice()) {
            ([parameter], [values]) => {
                document["parameter"] = json!(parameter);
                document["values"] = json!(values);
            }
            (parameters, values) => {
                document["parameters"] = json!(parameters);
                document["values"] = json!(values);
            }
        }
        if let Some(contours) = contours {
            document["contours"] = json!(contours.contours);
        }
        self.sign(document)
    }
}

/// The free fit, with the scanned parameters' own values.
fn best(axes: &[ScanAxis], best: &BestFit) -> Value {
    let mut document = to_document(best);
    let of = |list: &dyn Fn(usize) -> Value| match axes {
        [axis] => list(axis.parameter),
        axes => axes.iter().map(|axis| list(axis.parameter)).collect(),
    };
    let (value, uncertainty) =
        if axes.len() == 1 { ("value", "value_uncertainty") } else { ("values", "value_uncertainties") };
    document[value] = of(&|i| json!(best.params.get(i)));
    document[uncertainty] = of(&|i| json!(best.uncertainties.get(i).copied().flatten()));
    document
}

/// One number per point: a list, or a row per value of the first of two parameters.
fn points<T: Serialize>(scan: &Scan, list: &[T]) -> Value {
    match scan.values.as_slice() {
        [_, second] => list.chunks(second.len().max(1)).map(|row| json!(row)).collect(),
        _ => json!(list),
    }
}
