//! Profiled statistics of rows of templates that stay on a device: it fits, and the host decides from where the fits ended. Nothing here knows the templates.
//!
//! The device begins at the starting values, conditional fits at the free minimum too, and is asked for minima across folds as the host would look for them; only, every parameter that
//! inputs might fold counts as one that is same_sign. A row whose fits have not
//! arrived, or where another minimum was found or may be hidden, is left to the host, which has to be given its templates then.
//!
//! Legend: R rows, P parameters.

use super::device::failed;
use super::error::DifferentiableError;
use super::follow::FitStart;
use super::statistics::{TestedPoi, compared_value, tested};
use super::{ProfiledDifferentiableSession, WarmStartedFits};
use crate::minimize::Domain;
use crate::options::domain_and_start;
use crate::profile::{DISTINCT, rounding};
use crate::search::{Candidates, has_other_side, is_cheap, may_hide_minimum};
use crate::test_statistic::TestStatistic;
use ns_core::batch::{BatchData, BatchFit, BatchFixed, BatchTask, TemplateBatchMinimizer};
use ns_core::{Data, TemplateLikelihood};

/// The minimum of -ln L of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchMinimum {
    /// -ln L there.
    pub nll: f64,
    /// Where it is (P).
    pub params: Vec<f64>,
}

/// A statistic of the observed data, of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchStatistic {
    /// Its value; 0 where it is constant.
    pub q: f64,
    /// The conditional minimum (P).
    pub conditional: Vec<f64>,
    /// The free one (P).
    pub free: Vec<f64>,
}

/// The fits of all rows of a device.
struct BatchFits<'a> {
    device: &'a mut dyn TemplateBatchMinimizer,
    data: &'a Data,
    domain: Domain,
    start: Vec<f64>,
    /// Parameters that templates of some row may fold (P).
    same_sign: Vec<bool>,
}

/// Where fits begin (N × P), and which parameters each fit fixes.
struct Starts {
    points: Vec<f64>,
    fixed: Vec<bool>,
}

/// Parameters whose signs are changed, and the points that result: for each parameter one for each
/// batch element.
struct Reflections<'a> {
    parameters: &'a [usize],
    points: Vec<f64>,
}

/// A fit that ended in a minimum, or nothing.
type MaybeMinimum = Option<BatchMinimum>;

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// The minima of -ln L of `data`, which are the observed ones, with the parameter of interest at the row's value of `mu` if those are given; nothing for rows that are
    /// left to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn profiled_nll_of_batch(
        &mut self,
        device: &mut dyn TemplateBatchMinimizer,
        data: &Data,
        mu: Option<&[f64]>,
    ) -> Result<Vec<Option<BatchMinimum>>, DifferentiableError> {
        let n_batch = device.n_batch();
        self.forget_templates_of_device();
        self.judge();
        let Some(mut fits) = self.batch_fits(device, data) else { return Ok(vec![None; n_batch]) };
        let starts = fits.starts(self.poi, mu);
        let found = fits.run(&starts)?;
        self.count(&found);
        Ok(found)
    }

    /// The statistic of `data`, which are the observed ones, at each row's value of `mu` (R; q₀: at 0); nothing for rows that are left to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn statistic_of_batch(
        &mut self,
        device: &mut dyn TemplateBatchMinimizer,
        data: &Data,
        statistic: TestStatistic,
        mu: &[f64],
    ) -> Result<Vec<Option<BatchStatistic>>, DifferentiableError> {
        let poi = self.poi;
        let mu: Vec<f64> = mu.iter().map(|&mu| tested(statistic, mu)).collect();
        self.forget_templates_of_device();
        self.judge();
        let Some(mut fits) = self.batch_fits(device, data) else { return Ok(vec![None; mu.len()]) };
        let [mut all, conditional_starts] = [fits.starts(poi, None), fits.starts(poi, Some(&mu))];
        all.append(&conditional_starts);
        let mut free = fits.run(&all)?;
        let conditional = free.split_off(mu.len());
        let again = fits.run(&conditional_starts.moved_to(&free, poi))?;
        let conditional: Vec<MaybeMinimum> =
            conditional.into_iter().zip(again).map(|(one, other)| same(&one?, other?)).collect();
        let domain = fits.domain;
        self.count(&free);
        self.count(&conditional);
        let judge = |((free, conditional), mu): ((MaybeMinimum, MaybeMinimum), f64)| {
            let (free, conditional) = (free?, conditional?);
            if conditional.nll - free.nll < -rounding(free.nll) {
                // The free minimum is another one.
                return None;
            }
            let mu_hat = free.params[poi];
            let at = TestedPoi { mu, mu_hat, is_at_end: domain.bound_at(poi, mu_hat).is_some() };
            let q = compared_value(statistic, &at, conditional.nll, free.nll);
            Some(BatchStatistic { q, conditional: conditional.params, free: free.params })
        };
        Ok(free.into_iter().zip(conditional).zip(mu).map(judge).collect())
    }

    /// Does `work` as a session without a device would: for rows that are left to the host.
    pub fn on_host<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut device = self.device.take();
        if let Some(device) = &mut device {
            // The inputs may be others then, and no fit goes on from the device's.
            device.is_current = false;
            if self.options.start == FitStart::Initial {
                self.warm_fits = WarmStartedFits::default();
            }
        }
        let done = work(self);
        self.device = device;
        done
    }

    /// The fits of all rows, if a device can do them: with kinks, with
    /// parameters that may hide minima and with several starting points they are the host's, as they are in
    /// single precision.
    fn batch_fits<'a>(&self, device: &'a mut dyn TemplateBatchMinimizer, data: &'a Data) -> Option<BatchFits<'a>> {
        let (domain, start) = domain_and_start(&self.model, &self.options.fit);
        let is_hosts = !domain.kinked.is_empty()
            || Candidates::of(&self.model).explore_widely(&domain)
            || self.options.fit.multi_start.is_some();
        if !device.is_exact() || is_hosts {
            return None;
        }
        let mut same_sign = self.model.same_sign();
        for input in self.inputs.templates() {
            let layout = &self.model.layout;
            for histosys in &input.histosys {
                same_sign[self.model.table(layout.histosys_param)[histosys.entry] as usize] = true;
            }
            for normsys in &input.normsys {
                same_sign[self.model.table(layout.normsys_param)[normsys.entry] as usize] = true;
            }
        }
        Some(BatchFits { device, data, domain, start, same_sign })
    }

    /// The device may be the session's own: it has the templates of the rows then.
    fn forget_templates_of_device(&mut self) {
        if let Some(device) = &mut self.device {
            device.is_current = false;
        }
    }

    fn count(&mut self, found: &[MaybeMinimum]) {
        if let Some(device) = &mut self.device {
            device.n_fits += found.iter().flatten().count() as u64;
        }
    }
}

impl Starts {
    fn append(&mut self, other: &Starts) {
        self.points.extend_from_slice(&other.points);
        self.fixed.extend_from_slice(&other.fixed);
    }

    /// The same from `minima`, where there are any; the parameter `poi` stays.
    fn moved_to(mut self, minima: &[MaybeMinimum], poi: usize) -> Starts {
        let n_params = self.points.len() / minima.len().max(1);
        for (point, minimum) in self.points.chunks_mut(n_params.max(1)).zip(minima) {
            if let Some(minimum) = minimum {
                let mu = point[poi];
                point.copy_from_slice(&minimum.params);
                point[poi] = mu;
            }
        }
        self
    }
}

/// The second of two ends of the same fit, if both are the same minimum.
fn same(one: &BatchMinimum, other: BatchMinimum) -> MaybeMinimum {
    ((one.nll - other.nll).abs() <= DISTINCT).then_some(other)
}

impl BatchFits<'_> {
    /// The starting values of all rows, with the parameter `poi` at each row's value if those are given.
    fn starts(&self, poi: usize, mus: Option<&[f64]>) -> Starts {
        let n_batch = self.device.n_batch();
        let mut starts = Starts { points: self.start.repeat(n_batch), fixed: self.domain.fixed.repeat(n_batch) };
        for (row, mu) in mus.into_iter().flatten().enumerate() {
            let at = row * self.start.len() + poi;
            (starts.points[at], starts.fixed[at]) = (*mu, true);
        }
        starts
    }

    /// Where fits from `starts` (N × P) end, with nothing looked for across folds.
    fn minimize(&mut self, starts: &[f64], fixed: &[bool]) -> Result<Vec<MaybeMinimum>, DifferentiableError> {
        let task = BatchTask {
            data: BatchData::Shared(self.data),
            starts,
            lower: &self.domain.lower,
            upper: &self.domain.upper,
            fixed: BatchFixed::Each(fixed),
            kinked: &[],
            variance_of: None,
        };
        let arrivals = self.device.minimize(&task).map_err(|error| failed(&error))?;
        let ended = |BatchFit { params, nll, converged, .. }| (converged && nll.is_finite()).then_some((params, nll));
        Ok(arrivals
            .into_iter()
            .map(|arrival| ended(arrival).map(|(params, nll)| BatchMinimum { nll, params }))
            .collect())
    }

    /// The minima that `starts` lead to.
    fn run(&mut self, Starts { points, fixed }: &Starts) -> Result<Vec<MaybeMinimum>, DifferentiableError> {
        let mut found = self.minimize(points, fixed)?;
        let reflected: Vec<usize> = (0..self.start.len()).filter(|&i| self.may_reflect(i, fixed, &found)).collect();
        let at_once = (self.device.batch_size() / found.len().max(1)).max(1);
        let minima = found.clone();
        let [few, many] = self.by_number_of_reflections(fixed, &minima);
        for params in reflected.chunks(at_once) {
            let at = Reflections { parameters: params, points: self.reflected_points(params, &minima) };
            self.screen_reflections(&at, fixed, &many, &mut found)?;
            self.minimize_reflections(&at, fixed, &few, &mut found)?;
        }
        Ok(found)
    }

    /// Each of `minima` with each of the parameters `reflected` across its fold. Every fit has a point for every parameter, so that points are of the same rows as fits.
    fn reflected_points(&self, reflected: &[usize], minima: &[MaybeMinimum]) -> Vec<f64> {
        let n_params = self.start.len();
        let mut points = Vec::with_capacity(reflected.len() * minima.len() * n_params);
        for &i in reflected {
            for minimum in minima {
                points.extend_from_slice(minimum.as_ref().map_or(&self.start, |minimum| &minimum.params));
                let at = points.len() - n_params + i;
                points[at] = -points[at];
            }
        }
        points
    }

    /// Whether any of `minima` may have a lower one across the fold of parameter `i`.
    fn may_reflect(&self, i: usize, fixed: &[bool], minima: &[MaybeMinimum]) -> bool {
        self.same_sign[i] && minima.iter().enumerate().any(|(k, minimum)| self.is_reflectable(i, fixed, k, minimum))
    }

    fn is_reflectable(&self, i: usize, fixed: &[bool], k: usize, minimum: &MaybeMinimum) -> bool {
        let is_fixed = fixed[k * self.start.len() + i];
        !is_fixed && minimum.as_ref().is_some_and(|minimum| has_other_side(&self.domain, i, minimum.params[i]))
    }

    /// Those of `minima` that have so few folds that the host would cross each, and the others.
    fn by_number_of_reflections(&self, fixed: &[bool], minima: &[MaybeMinimum]) -> [Vec<MaybeMinimum>; 2] {
        let n_params = self.start.len();
        let are_few = |k: usize, minimum: &MaybeMinimum| {
            let n = (0..n_params).filter(|&i| self.same_sign[i] && self.is_reflectable(i, fixed, k, minimum)).count();
            is_cheap(n, n_params)
        };
        [true, false].map(|few| {
            minima
                .iter()
                .enumerate()
                .map(|(k, minimum)| minimum.clone().filter(|_| are_few(k, minimum) == few))
                .collect()
        })
    }

    /// Which of the points across folds, which fit's, across the fold of which parameter and from which minimum: those that could be on the other side.
    fn reflections<'b>(
        &'b self,
        reflected: &'b [usize],
        fixed: &'b [bool],
        minima: &'b [MaybeMinimum],
    ) -> impl Iterator<Item = (usize, usize, usize, &'b BatchMinimum)> {
        let places = reflected.iter().flat_map(|&i| (0..minima.len()).map(move |k| (k, i)));
        places.enumerate().filter_map(move |(point, (k, i))| {
            let minimum = minima[k].as_ref().filter(|_| self.is_reflectable(i, fixed, k, &minima[k]))?;
            Some((point, k, i, minimum))
        })
    }

    /// Gives up those of `found` that may have a lower minimum across the fold of one of the parameters `reflected`, from what -ln L and its derivative are there.
    fn screen_reflections(
        &mut self,
        at: &Reflections<'_>,
        fixed: &[bool],
        minima: &[MaybeMinimum],
        found: &mut [MaybeMinimum],
    ) -> Result<(), DifferentiableError> {
        if minima.iter().all(Option::is_none) {
            return Ok(());
        }
        let n_params = self.start.len();
        let (values, derivatives) =
            self.device.batch_gradients(self.data, &at.points).map_err(|error| failed(&error))?;
        for (point, k, i, minimum) in self.reflections(at.parameters, fixed, minima) {
            let rise = values[point] - minimum.nll;
            if may_hide_minimum(-2.0 * minimum.params[i], rise, derivatives[point * n_params + i]) {
                found[k] = None;
            }
        }
        Ok(())
    }

    /// Gives up those of `found` that have a lower minimum across the fold of one of the parameters `reflected`, or where that could not be found out.
    fn minimize_reflections(
        &mut self,
        at: &Reflections<'_>,
        fixed: &[bool],
        minima: &[MaybeMinimum],
        found: &mut [MaybeMinimum],
    ) -> Result<(), DifferentiableError> {
        if minima.iter().all(Option::is_none) {
            return Ok(());
        }
        let arrivals = self.minimize(&at.points, &fixed.repeat(at.parameters.len()))?;
        for (point, k, _, minimum) in self.reflections(at.parameters, fixed, minima) {
            if arrivals[point].as_ref().is_none_or(|reflected| reflected.nll < minimum.nll - DISTINCT) {
                found[k] = None;
            }
        }
        Ok(())
    }
}
