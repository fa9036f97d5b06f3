//! A model with all parameters free, for callers that say at each call which are fixed, by
//! position.
//!
//! `nextstat.pyhf` is such a caller. Parameters that the measurement fixes are free here, too.

use std::sync::Arc;

use ns_compute::cpu::ModelPlan;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::curvature::{Arrowhead, Curvature};
use ns_core::expected::{asimov, cell_yields};
use ns_core::poisson::{half_deviance, log_normaliser};
use ns_core::{Data, DataLikelihood, Likelihood, Model, SearchLikelihood};
use ns_inference::hessian::Hessian;
use ns_inference::minimize::Domain;
use ns_inference::parallel::{ExecutionContext, all_threads, map};
use ns_inference::{FitOptions, FitResult, Problem, Uncertainties, fit};
use numpy::{AllowTypeChange, PyArray1, PyArray3, PyArrayLike1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{array, matrix, object, optional_array};
use crate::error;
use crate::interrupt::{Interruptible, interruptible};
use crate::memory::filled;
use crate::model::PyModel;
use crate::numbers::{data, numbers};
use crate::watch::{callback, watched};

/// -ln L of the bins and of the constraint terms, one each for every point.
type Terms<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A sequence or an array of numbers.
type Floats<'py> = PyArrayLike1<'py, f64, AllowTypeChange>;

/// Both fits to one data set.
#[derive(IntoPyObject)]
struct FitPair<'py> {
    /// The conditional best fit (P).
    conditional: Bound<'py, PyArray1<f64>>,
    /// The free best fit (P).
    free: Bound<'py, PyArray1<f64>>,
    /// 2NLL at either.
    twice_nll: [f64; 2],
}

impl<'py> FitPair<'py> {
    fn new(py: Python<'py>, [conditional, free]: &[FitResult; 2]) -> Self {
        Self {
            conditional: array(py, &conditional.bestfit),
            free: array(py, &free.bestfit),
            twice_nll: [conditional.twice_nll, free.twice_nll],
        }
    }
}

/// The fits of an asymptotic test.
#[derive(IntoPyObject)]
struct TestPairs<'py> {
    /// To the data.
    observed: FitPair<'py>,
    /// The parameters of the Asimov data set (P).
    asimov_params: Bound<'py, PyArray1<f64>>,
    /// To the Asimov data set.
    asimov: FitPair<'py>,
}

/// An asymptotic test.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
struct TestWanted {
    /// The tested parameter, its value, and that of the Asimov data set.
    poi: usize,
    mu: f64,
    asimov_mu: f64,
    /// Evaluations that a fit may take.
    most: u64,
}

/// A model with all parameters free.
#[pyclass(name = "FloatingModel", module = "nextstat._nextstat", frozen)]
pub(crate) struct FloatingModel {
    model: Model,
    plan: Arc<ModelPlan>,
}

/// Where a fit starts, its ranges, and which parameters stay at their start (each P).
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PyBox<'py> {
    start: Floats<'py>,
    lower: Floats<'py>,
    upper: Floats<'py>,
    fixed: Vec<bool>,
}

#[pymethods]
impl FloatingModel {
    #[new]
    fn new(py: Python<'_>, model: &PyModel) -> Self {
        let mut model = model.model().clone();
        model.parameters.fixed.fill(false);
        let plan = py.detach(|| Arc::new(ModelPlan::new(&model)));
        Self { model, plan }
    }

    /// Returns yields at each of `points` (N × P): of every sample (S) in every bin (B).
    ///
    /// They are (N × S × B), zero where a channel lacks the sample.
    fn by_sample<'py>(&self, py: Python<'py>, points: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let points = self.points(points)?;
        let (n_samples, n_bins) = (self.model.samples.len(), self.model.n_bins());
        let mut all = filled(0.0, points.len(), n_samples * n_bins, "points")?;
        py.detach(|| {
            for (params, yields) in points.iter().zip(all.chunks_exact_mut((n_samples * n_bins).max(1))) {
                self.spread(&cell_yields(&self.model, params), yields);
            }
        });
        PyArray1::from_vec(py, all).reshape([points.len(), n_samples, n_bins])
    }

    /// Returns ln L at each of `points` (N × P) of `data` (1 or N × (B + K)).
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (points, data) = self.points_and_data(points, data)?;
        let mut values = vec![0.0; points.len()];
        py.detach(|| {
            let sets: Vec<BatchDataSet> = data.into_iter().map(|data| BatchDataSet::new(&self.plan, data)).collect();
            let each: Vec<&BatchDataSet> = sets.iter().collect();
            let sets =
                if let [one] = sets.as_slice() { BatchDataSets::Shared(one) } else { BatchDataSets::Each(&each) };
            CpuBatch::new(Arc::clone(&self.plan)).nll(sets, &points.concat(), &mut values);
            values.iter_mut().for_each(|value| *value = -*value);
        });
        Ok(array(py, &values))
    }

    /// Returns the two parts of ln L, bins and constraint terms.
    fn log_terms<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Terms<'py>> {
        let (points, data) = self.points_and_data(points, data)?;
        let terms: (Vec<f64>, Vec<f64>) = py.detach(|| {
            let last = data.len().saturating_sub(1);
            points.iter().enumerate().map(|(i, params)| self.terms(params, &data[i.min(last)])).unzip()
        });
        Ok((array(py, &terms.0), array(py, &terms.1)))
    }

    /// Returns -ln L of `values` (B + K) at `params` (P) and its gradient (P).
    ///
    /// The gradient is NaN where -ln L is not finite.
    fn nll_and_grad<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        let (params, data) = self.point_and_data(params, values)?;
        let mut gradient = vec![0.0; params.len()];
        let nll =
            py.detach(|| CpuLikelihood::with_plan(Arc::clone(&self.plan), &data).nll_and_grad(&params, &mut gradient));
        if !nll.is_finite() {
            gradient.fill(f64::NAN);
        }
        Ok((nll, array(py, &gradient)))
    }

    /// Returns the Hessian (P × P) of -ln L of `values` (B + K) at `params` (P).
    ///
    /// It is NaN where -ln L is not finite.
    fn hessian<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (params, data) = self.point_and_data(params, values)?;
        let n = params.len();
        let hessian = py.detach(|| self.exact_hessian(&params, &data));
        matrix(py, hessian, [n, n])
    }

    /// Fits `values` (B + K) from a start, in a box.
    ///
    /// With `errors` it computes standard deviations and correlations; `minos` are the positions of
    /// the parameters whose intervals are wanted.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: PyBox<'py>,
        errors: bool,
        minos: Vec<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let data = data(&self.model, values)?;
        let uncertainties = if errors { Uncertainties::Covariance } else { Uncertainties::None };
        let options = FitOptions { uncertainties, minos, ..self.options(&FitBox::new(within))? };
        let likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), &data);
        let (result, at_bounds) = interruptible(py, likelihood, |likelihood| {
            let result = fit(&mut Problem::new(&self.model, likelihood, &options));
            let at_bounds = self.curvature_at_bounds(likelihood, &result, &options);
            (result, at_bounds)
        })?;
        fields(py, result, &at_bounds)
    }

    /// Does the fits of one asymptotic test: to `values` (B + K), for the Asimov data set, and to
    /// it.
    ///
    /// Every fit is what `fit` finds, from the start of `within`. None if one does not converge
    /// within `most` evaluations or would start outside its box.
    fn fits_of_test<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: PyBox<'py>,
        wanted: TestWanted,
    ) -> PyResult<Option<TestPairs<'py>>> {
        let (data, ends) = (data(&self.model, values)?, FitBox::new(within));
        let likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), &data);
        let work = |likelihood: &mut Interruptible| {
            let mut test = TestFits { floating: self, likelihood, ends, wanted };
            let observed = test.pair(&data)?;
            let at_asimov = test.at(&data, wanted.asimov_mu)?.bestfit;
            Some((observed, test.pair(&asimov(&self.model, &at_asimov))?, at_asimov))
        };
        let Some((observed, of_asimov, at_asimov)) = interruptible(py, likelihood, work)? else { return Ok(None) };
        Ok(Some(TestPairs {
            observed: FitPair::new(py, &observed),
            asimov_params: array(py, &at_asimov),
            asimov: FitPair::new(py, &of_asimov),
        }))
    }

    /// Fits data sets (T × (B + K)), all from one start in one box, on all threads.
    ///
    /// Each fit is what `fit` finds, without uncertainties.
    fn fit_each<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: PyBox<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sets = self.data_sets(values)?;
        let options = FitOptions { uncertainties: Uncertainties::None, ..self.options(&FitBox::new(within))? };
        let Some(first) = sets.first() else { return self.ensemble(py, &[]) };
        let likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), first);
        let fits = watched(py, callback(progress).as_ref(), &likelihood, |likelihood, monitor| {
            let work = |likelihood: &mut Interruptible, i: usize| {
                likelihood.set_data(&sets[i]);
                fit(&mut Problem::new(&self.model, likelihood, &options))
            };
            map(sets.len(), ExecutionContext::new(all_threads(), monitor), || likelihood.clone(), work)
        })?;
        self.ensemble(py, &fits.into_iter().flatten().collect::<Vec<_>>())
    }
}

impl FloatingModel {
    /// Returns results by name: parameters (T × P), and one value for each fit (T).
    fn ensemble<'py>(&self, py: Python<'py>, fits: &[FitResult]) -> PyResult<Bound<'py, PyDict>> {
        let document = PyDict::new(py);
        let params: Vec<f64> = fits.iter().flat_map(|fit| fit.bestfit.iter().copied()).collect();
        document.set_item("params", matrix(py, params, [fits.len(), self.model.n_params()])?)?;
        document.set_item("twice_nll", PyArray1::from_iter(py, fits.iter().map(|fit| fit.twice_nll)))?;
        document.set_item("converged", PyArray1::from_iter(py, fits.iter().map(|fit| fit.converged)))?;
        document.set_item("n_evaluations", PyArray1::from_iter(py, fits.iter().map(|fit| fit.n_evaluations as u64)))?;
        Ok(document)
    }

    /// Reads data sets, one in each row.
    fn data_sets(&self, data: &Bound<'_, PyAny>) -> PyResult<Vec<Data>> {
        let n_bins = self.model.n_bins();
        let split = |row: Vec<f64>| Data { main: row[..n_bins].to_vec(), aux: row[n_bins..].to_vec() };
        Ok(rows(data, "data", n_bins + self.model.n_aux())?.into_iter().map(split).collect())
    }

    fn points(&self, points: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f64>>> {
        rows(points, "parameters", self.model.n_params())
    }

    /// Reads points, and one data set for all or one for each.
    fn points_and_data(
        &self,
        points: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<Vec<f64>>, Vec<Data>)> {
        let (points, data) = (self.points(points)?, self.data_sets(data)?);
        if data.len() != 1 && data.len() != points.len() {
            return Err(error::data(format!("{} data sets for {} points", data.len(), points.len())));
        }
        Ok((points, data))
    }

    /// Reads one point (P) and one data set.
    fn point_and_data(&self, params: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<(Vec<f64>, Data)> {
        let mut points = self.points(params)?;
        match points.len() {
            1 => Ok((points.remove(0), data(&self.model, values)?)),
            n => Err(error::data(format!("{n} points where one is needed"))),
        }
    }

    /// Returns the Hessian of -ln L (P × P), row by row; NaN where -ln L is not finite.
    fn exact_hessian(&self, params: &[f64], data: &Data) -> Vec<f64> {
        let mut likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), data);
        let mut curvature = Curvature::Exact(Arrowhead::zeros(likelihood.structure().partition));
        let mut gradient = vec![0.0; params.len()];
        let nll = likelihood.nll_and_curvature(params, &mut gradient, &mut curvature);
        match curvature {
            Curvature::Exact(matrix) if nll.is_finite() => matrix.to_dense(),
            _ => vec![f64::NAN; params.len() * params.len()],
        }
    }

    /// Copies yields by cell to `yields` (S × B).
    fn spread(&self, cells: &[f64], yields: &mut [f64]) {
        let (model, n_bins) = (&self.model, self.model.n_bins());
        for channel in 0..model.channels.len() {
            let first_bin = model.channel_bins(channel).start;
            for template in model.channel_templates(channel) {
                let sample = model.table(model.layout.template_sample)[template] as usize;
                let from = &cells[model.part(model.layout.template_cell, template)];
                yields[sample * n_bins + first_bin..][..from.len()].copy_from_slice(from);
            }
        }
    }

    fn terms(&self, params: &[f64], data: &Data) -> (f64, f64) {
        let model = &self.model;
        let lambda = ns_core::expected::expected_main(model, params);
        let main: f64 =
            lambda.iter().zip(&data.main).map(|(&lambda, &n)| half_deviance(n, lambda) + log_normaliser(n)).sum();
        let of = model.table(model.layout.constraint_param).iter().zip(&data.aux);
        let constraint: f64 = of
            .filter_map(|(&param, &aux)| {
                let param = param as usize;
                Some(model.parameters.constraint[param]?.nll(aux, params[param]))
            })
            .sum();
        (-main, -constraint)
    }

    fn options(&self, ends: &FitBox) -> PyResult<FitOptions> {
        let n = self.model.n_params();
        if !ends.has_length(n) {
            return Err(error::data(format!("starting values, bounds or flags are not those of {n} parameters")));
        }
        Ok(ends.options())
    }

    /// Returns the standard deviations of parameters at a bound, for which a fit gives none, from
    /// the curvature alone.
    fn curvature_at_bounds(
        &self,
        likelihood: &mut impl SearchLikelihood,
        result: &FitResult,
        options: &FitOptions,
    ) -> Vec<(usize, f64)> {
        if options.uncertainties == Uncertainties::None || result.at_bounds.is_empty() {
            return Vec::new();
        }
        let n = self.model.n_params();
        let mut domain = Domain {
            lower: vec![f64::NEG_INFINITY; n],
            upper: vec![f64::INFINITY; n],
            fixed: vec![false; n],
            kinked: Vec::new(),
        };
        options.fixed.iter().for_each(|&(i, _)| domain.fixed[i] = true);
        let Some(covariance) = Hessian::at(likelihood, &result.bestfit, &domain).covariance() else {
            return Vec::new();
        };
        let names = &self.model.parameters.names;
        let at = result.at_bounds.iter().filter_map(|at| names.iter().position(|name| *name == at.parameter));
        at.map(|i| (i, covariance[i * n + i].sqrt())).collect()
    }
}

/// A `PyBox` without the interpreter.
#[derive(Clone)]
struct FitBox {
    start: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    fixed: Vec<bool>,
}

impl FitBox {
    fn new(given: PyBox<'_>) -> Self {
        let PyBox { start, lower, upper, fixed } = given;
        let [start, lower, upper] = [start, lower, upper].map(|values| values.as_array().to_vec());
        Self { start, lower, upper, fixed }
    }

    fn options(&self) -> FitOptions {
        let n = self.start.len();
        let bounds = (0..n).filter(|&i| !self.fixed[i]).map(|i| (i, [self.lower[i], self.upper[i]])).collect();
        let fixed = (0..n).filter(|&i| self.fixed[i]).map(|i| (i, self.start[i])).collect();
        FitOptions { start: Some(self.start.clone()), fixed, bounds, ..FitOptions::default() }
    }

    /// Returns whether everything is given for `n` parameters.
    fn has_length(&self, n: usize) -> bool {
        [self.start.len(), self.lower.len(), self.upper.len(), self.fixed.len()] == [n; 4]
    }

    /// Returns whether every parameter starts in its range.
    fn is_inside(&self) -> bool {
        let mut each = self.start.iter().zip(self.lower.iter().zip(&self.upper));
        each.all(|(value, (lower, upper))| lower <= value && value <= upper)
    }
}

/// The fits of one test, to any data.
struct TestFits<'a> {
    floating: &'a FloatingModel,
    likelihood: &'a mut Interruptible,
    ends: FitBox,
    wanted: TestWanted,
}

impl TestFits<'_> {
    fn fit(&mut self, data: &Data, ends: &FitBox) -> Option<FitResult> {
        if !ends.has_length(self.floating.model.n_params()) || !ends.is_inside() {
            return None;
        }
        self.likelihood.set_data(data);
        let options = FitOptions { uncertainties: Uncertainties::None, ..ends.options() };
        let result = fit(&mut Problem::new(&self.floating.model, self.likelihood, &options));
        (result.converged && result.n_evaluations as u64 <= self.wanted.most).then_some(result)
    }

    /// Does the conditional fit at `mu`.
    fn at(&mut self, data: &Data, mu: f64) -> Option<FitResult> {
        let (poi, mut ends) = (self.wanted.poi, self.ends.clone());
        *ends.start.get_mut(poi)? = mu;
        *ends.fixed.get_mut(poi)? = true;
        self.fit(data, &ends)
    }

    /// Does the conditional and the free fit.
    ///
    /// A conditional minimum below the free one shows another minimum: the free fit is repeated
    /// from there.
    fn pair(&mut self, data: &Data) -> Option<[FitResult; 2]> {
        let conditional = self.at(data, self.wanted.mu)?;
        let mut best = self.fit(data, &self.ends.clone())?;
        if conditional.twice_nll < best.twice_nll {
            let again = self.fit(data, &FitBox { start: conditional.bestfit.clone(), ..self.ends.clone() })?;
            if again.twice_nll < best.twice_nll {
                best = again;
            }
        }
        Some([conditional, best])
    }
}

/// Reads `values` (N × `wanted`), called `what` in messages.
fn rows(values: &Bound<'_, PyAny>, what: &str, wanted: usize) -> PyResult<Vec<Vec<f64>>> {
    let found = numbers(values, what)?;
    let n_rows = found.rows.unwrap_or(1);
    if found.values.len() != n_rows * wanted {
        return Err(error::data(format!("{} values for {n_rows} times {wanted} {what}", found.values.len())));
    }
    Ok((0..n_rows).map(|row| found.values[row * wanted..(row + 1) * wanted].to_vec()).collect())
}

fn fields<'py>(py: Python<'py>, mut result: FitResult, at_bounds: &[(usize, f64)]) -> PyResult<Bound<'py, PyDict>> {
    let n = result.par_names.len();
    let correlation = result.correlation();
    for &(i, width) in at_bounds {
        result.uncertainties[i] = Some(width).filter(|width| width.is_finite());
    }
    let document = PyDict::new(py);
    document.set_item("bestfit", array(py, &result.bestfit))?;
    document.set_item("uncertainties", optional_array(py, &result.uncertainties))?;
    let square = |values: Option<Vec<f64>>| values.map(|values| matrix(py, values, [n, n])).transpose();
    document.set_item("correlation", square(correlation)?)?;
    document.set_item("covariance", square(result.covariance)?)?;
    document.set_item("twice_nll", result.twice_nll)?;
    document.set_item("converged", result.converged)?;
    document.set_item("edm", result.edm)?;
    document.set_item("n_evaluations", result.n_evaluations)?;
    document.set_item("n_iterations", result.n_iterations)?;
    document.set_item("minos", object(py, &result.minos)?)?;
    document.set_item("warnings", result.warnings)?;
    Ok(document)
}
