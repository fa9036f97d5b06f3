//! A model whose every parameter may move: evaluations and fits that are told by arrays, in parameter order, what is fixed and where.
//!
//! It serves callers that think in positions rather than names, as `nextstat.pyhf` does. What the model itself holds fixed is theirs to say again.

use std::sync::Arc;

use ns_compute::cpu::ModelPlan;
use ns_compute::{BatchDataSet, BatchDataSets, CpuBatch, CpuLikelihood};
use ns_core::curvature::{Arrowhead, Curvature};
use ns_core::expected::{asimov, cell_yields};
use ns_core::likelihood::constraint_nll;
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

/// Numbers.
type Floats<'py> = PyArrayLike1<'py, f64, AllowTypeChange>;

/// The conditional and the free best fit (P each), and 2NLL at either.
type Pair<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, [f64; 2]);

/// The fits to the data, the parameters (P) of the Asimov data set, and the fits to that one.
type OfTest<'py> = (Pair<'py>, Bound<'py, PyArray1<f64>>, Pair<'py>);

/// A model with all parameters free.
#[pyclass(name = "FloatingModel", module = "nextstat._nextstat", frozen)]
pub(crate) struct FloatingModel {
    model: Model,
    plan: Arc<ModelPlan>,
}

/// Where a fit starts, in which box, and what stays at its start (each P).
#[derive(FromPyObject)]
struct Within<'py>(Floats<'py>, Floats<'py>, Floats<'py>, Vec<bool>);

#[pymethods]
impl FloatingModel {
    #[new]
    fn new(py: Python<'_>, model: &PyModel) -> Self {
        let mut model = model.model().clone();
        model.parameters.fixed.fill(false);
        let plan = py.detach(|| Arc::new(ModelPlan::new(&model)));
        Self { model, plan }
    }

    /// Yields at each of `points` (N × P): every sample (S) in every bin (B), zero where a channel lacks the sample (N × S × B).
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

    /// ln L at each of `points` (N × P) of `data` (1 or N × (B + K)).
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

    /// The same in its two parts, bins and constraint terms.
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

    /// -ln L of `values` (B + K) at `params` (P) and its gradient (P), which is NaN where -ln L is not finite.
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

    /// The Hessian (P × P) of -ln L of `values` (B + K) at `params` (P); NaN where -ln L is not finite.
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

    /// A fit of `values` (B + K) from a start, in a box; standard deviations and correlations if `errors`, intervals of `minos`.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: &Bound<'py, PyAny>,
        errors: bool,
        minos: Vec<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let data = data(&self.model, values)?;
        let uncertainties = if errors { Uncertainties::Covariance } else { Uncertainties::None };
        let options = FitOptions { uncertainties, minos, ..self.options(&within.extract()?)? };
        let likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), &data);
        let (result, at_bounds) = interruptible(py, likelihood, |likelihood| {
            let result = fit(&mut Problem::new(&self.model, likelihood, &options));
            let at_bounds = self.curvature_at_bounds(likelihood, &result, &options);
            (result, at_bounds)
        })?;
        fields(py, result, &at_bounds)
    }

    /// The fits of one asymptotic test of parameter `poi` at `mu`: those of `values` (B + K), the fit at `asimov_mu` that the Asimov data set is made for
    /// (P), and those of that data set.
    ///
    /// Every fit is what `fit` finds, from the start of `within`. None where one does not arrive within `most` evaluations or would start outside its box.
    fn fits_of_test<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: &Bound<'py, PyAny>,
        tested: (usize, f64, f64),
        most: u64,
    ) -> PyResult<Option<OfTest<'py>>> {
        let (data, ends) = (data(&self.model, values)?, Ends::of(&within.extract()?));
        let likelihood = CpuLikelihood::with_plan(Arc::clone(&self.plan), &data);
        let work = |likelihood: &mut Interruptible| {
            let mut test = TestFits { floating: self, likelihood, ends, tested, most };
            let observed = test.pair(&data)?;
            let at_asimov = test.at(&data, tested.2)?.bestfit;
            Some((observed, test.pair(&asimov(&self.model, &at_asimov))?, at_asimov))
        };
        let Some((observed, of_asimov, at_asimov)) = interruptible(py, likelihood, work)? else { return Ok(None) };
        let pair = |[conditional, best]: [FitResult; 2]| {
            let twice_nll = [conditional.twice_nll, best.twice_nll];
            (array(py, &conditional.bestfit), array(py, &best.bestfit), twice_nll)
        };
        Ok(Some((pair(observed), array(py, &at_asimov), pair(of_asimov))))
    }

    /// Fits of data sets (T × (B + K)), all from one start in one box, on all threads: what `fit` finds of each, without uncertainties.
    fn fit_each<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        within: &Bound<'py, PyAny>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sets = self.data_sets(values)?;
        let options = FitOptions { uncertainties: Uncertainties::None, ..self.options(&within.extract()?)? };
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
    /// Results by name: parameters (T × P), and one value for each fit (T).
    fn ensemble<'py>(&self, py: Python<'py>, fits: &[FitResult]) -> PyResult<Bound<'py, PyDict>> {
        let document = PyDict::new(py);
        let params: Vec<f64> = fits.iter().flat_map(|fit| fit.bestfit.iter().copied()).collect();
        document.set_item("params", matrix(py, params, [fits.len(), self.model.n_params()])?)?;
        document.set_item("twice_nll", PyArray1::from_iter(py, fits.iter().map(|fit| fit.twice_nll)))?;
        document.set_item("converged", PyArray1::from_iter(py, fits.iter().map(|fit| fit.converged)))?;
        document.set_item("n_evaluations", PyArray1::from_iter(py, fits.iter().map(|fit| fit.n_evaluations as u64)))?;
        Ok(document)
    }

    /// Data sets, one in each row.
    fn data_sets(&self, data: &Bound<'_, PyAny>) -> PyResult<Vec<Data>> {
        let n_bins = self.model.n_bins();
        let split = |row: Vec<f64>| Data { main: row[..n_bins].to_vec(), aux: row[n_bins..].to_vec() };
        Ok(rows(data, "data", n_bins + self.model.n_aux())?.into_iter().map(split).collect())
    }

    fn points(&self, points: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f64>>> {
        rows(points, "parameters", self.model.n_params())
    }

    /// Points, and one data set for all or one for each.
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

    /// One point (P) and one data set.
    fn point_and_data(&self, params: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<(Vec<f64>, Data)> {
        let mut points = self.points(params)?;
        match points.len() {
            1 => Ok((points.remove(0), data(&self.model, values)?)),
            n => Err(error::data(format!("{n} points where one is needed"))),
        }
    }

    /// The Hessian of -ln L (P × P), row by row; NaN where -ln L is not finite.
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
                Some(constraint_nll(model.parameters.constraint[param]?, aux, params[param]))
            })
            .sum();
        (-main, -constraint)
    }

    fn options(&self, within: &Within<'_>) -> PyResult<FitOptions> {
        let (ends, n) = (Ends::of(within), self.model.n_params());
        if [ends.start.len(), ends.lower.len(), ends.upper.len(), ends.fixed.len()] != [n; 4] {
            return Err(error::data(format!("starting values, bounds or flags are not those of {n} parameters")));
        }
        Ok(ends.options())
    }

    /// Standard deviations that the curvature alone gives to parameters at a bound, where the fit itself gives none.
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

/// `Within`, without the interpreter.
#[derive(Clone)]
struct Ends {
    start: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    fixed: Vec<bool>,
}

impl Ends {
    fn of(within: &Within<'_>) -> Self {
        let Within(start, lower, upper, fixed) = within;
        let [start, lower, upper] = [start, lower, upper].map(|values| values.as_array().to_vec());
        Self { start, lower, upper, fixed: fixed.clone() }
    }

    fn options(&self) -> FitOptions {
        let n = self.start.len();
        let bounds = (0..n).filter(|&i| !self.fixed[i]).map(|i| (i, [self.lower[i], self.upper[i]])).collect();
        let fixed = (0..n).filter(|&i| self.fixed[i]).map(|i| (i, self.start[i])).collect();
        FitOptions { start: Some(self.start.clone()), fixed, bounds, ..FitOptions::default() }
    }

    /// Whether every parameter starts in its range.
    fn is_inside(&self) -> bool {
        let mut each = self.start.iter().zip(self.lower.iter().zip(&self.upper));
        each.all(|(value, (lower, upper))| lower <= value && value <= upper)
    }
}

/// The fits of one test, on whichever data.
struct TestFits<'a> {
    floating: &'a FloatingModel,
    likelihood: &'a mut Interruptible,
    ends: Ends,
    /// The tested parameter, its value, and that of the Asimov data set.
    tested: (usize, f64, f64),
    /// Evaluations that a fit may take.
    most: u64,
}

impl TestFits<'_> {
    fn fit(&mut self, data: &Data, ends: &Ends) -> Option<FitResult> {
        let n = self.floating.model.n_params();
        if [ends.start.len(), ends.lower.len(), ends.upper.len(), ends.fixed.len()] != [n; 4] || !ends.is_inside() {
            return None;
        }
        self.likelihood.set_data(data);
        let options = FitOptions { uncertainties: Uncertainties::None, ..ends.options() };
        let result = fit(&mut Problem::new(&self.floating.model, self.likelihood, &options));
        (result.converged && result.n_evaluations as u64 <= self.most).then_some(result)
    }

    /// The conditional fit at `mu`.
    fn at(&mut self, data: &Data, mu: f64) -> Option<FitResult> {
        let (poi, mut ends) = (self.tested.0, self.ends.clone());
        *ends.start.get_mut(poi)? = mu;
        *ends.fixed.get_mut(poi)? = true;
        self.fit(data, &ends)
    }

    /// The conditional and the free fit; a conditional minimum below the free one shows another minimum, and the free fit is repeated from there.
    fn pair(&mut self, data: &Data) -> Option<[FitResult; 2]> {
        let conditional = self.at(data, self.tested.1)?;
        let mut best = self.fit(data, &self.ends.clone())?;
        if conditional.twice_nll < best.twice_nll {
            let again = self.fit(data, &Ends { start: conditional.bestfit.clone(), ..self.ends.clone() })?;
            if again.twice_nll < best.twice_nll {
                best = again;
            }
        }
        Some([conditional, best])
    }
}

/// Reads `values` (N × `wanted`).
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
