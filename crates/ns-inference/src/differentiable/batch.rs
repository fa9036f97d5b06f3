//! Computes profiled statistics of batches of templates that stay on a device: the device fits, and
//! the host evaluates the minima without knowing the templates.
//!
//! Device fits start at the starting values, and conditional ones also at the free minimum.
//! Same-sign systematics are reflected as on the host, except that every parameter to which the
//! inputs can give same-sign variations counts as same-sign. A batch element is left to the host if
//! its fits have not converged, or if a second minimum was found or may be hidden. The host then
//! needs its templates.
//!
//! Legend: N batch elements, P parameters.

use super::device::failed;
use super::error::DifferentiableError;
use super::statistics::{TestedPoi, compared_value, tested};
use super::warm_start::FitStart;
use super::{ProfiledDifferentiableSession, WarmStartedFits};
use crate::minimize::Domain;
use crate::options::domain_and_start;
use crate::search::{Candidates, has_other_side, is_cheap, may_hide_minimum};
use crate::search::{falls_below, is_equally_deep, is_lower};
use crate::test_statistic::TestStatistic;
use ns_core::batch::{BatchData, BatchFit, BatchFixed, BatchTask, TemplateBatchMinimizer};
use ns_core::{Data, TemplateLikelihood};

/// The minimum of -ln L of a batch element.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchMinimum {
    /// -ln L at the minimum.
    pub nll: f64,
    /// The parameters at the minimum (P).
    pub params: Vec<f64>,
}

/// A statistic of the observed data of a batch element.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchStatistic {
    /// The statistic; 0 where it is constant.
    pub q: f64,
    /// The conditional minimum (P).
    pub conditional: Vec<f64>,
    /// The free minimum (P).
    pub free: Vec<f64>,
}

/// The fits of a batch on a device.
struct BatchFits<'a> {
    device: &'a mut dyn TemplateBatchMinimizer,
    data: &'a Data,
    domain: Domain,
    start: Vec<f64>,
    /// Parameters that are same-sign systematics for the templates of some batch element (P).
    same_sign: Vec<bool>,
}

/// Starting points of fits (fits × P), and the parameters that each fit fixes.
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

/// A minimum, or `None` for a fit that did not converge.
type MaybeMinimum = Option<BatchMinimum>;

impl<L: TemplateLikelihood + Clone> ProfiledDifferentiableSession<L> {
    /// Returns the minima of -ln L of `data`, which must be the observed data, with the parameter
    /// of interest fixed at each batch element's value in `mu` (N) if given; `None` for elements
    /// that are left to the host.
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
        self.invalidate_device_templates();
        self.update_nonlinearity();
        let Some(mut fits) = self.batch_fits(device, data) else { return Ok(vec![None; n_batch]) };
        let starts = fits.starts(self.poi, mu);
        let found = fits.run(&starts)?;
        self.count(&found);
        Ok(found)
    }

    /// Returns the statistic of `data`, which must be the observed data, at each batch element's
    /// value in `mu` (N; q₀: at 0); `None` for elements that are left to the host.
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
        self.invalidate_device_templates();
        self.update_nonlinearity();
        let Some(mut fits) = self.batch_fits(device, data) else { return Ok(vec![None; mu.len()]) };
        let [mut all, conditional_starts] = [fits.starts(poi, None), fits.starts(poi, Some(&mu))];
        all.append(&conditional_starts);
        let mut free = fits.run(&all)?;
        let conditional = free.split_off(mu.len());
        let again = fits.run(&conditional_starts.moved_to(&free, poi))?;
        let conditional: Vec<MaybeMinimum> =
            conditional.into_iter().zip(again).map(|(one, other)| if_equally_deep(&one?, other?)).collect();
        let domain = fits.domain;
        self.count(&free);
        self.count(&conditional);
        let to_statistic = |((free, conditional), mu): ((MaybeMinimum, MaybeMinimum), f64)| {
            let (free, conditional) = (free?, conditional?);
            if falls_below(conditional.nll - free.nll, free.nll) {
                // There is a lower free minimum than the one found.
                return None;
            }
            let mu_hat = free.params[poi];
            let at = TestedPoi { mu, mu_hat, is_at_end: domain.bound_at(poi, mu_hat).is_some() };
            let q = compared_value(statistic, &at, conditional.nll, free.nll);
            Some(BatchStatistic { q, conditional: conditional.params, free: free.params })
        };
        Ok(free.into_iter().zip(conditional).zip(mu).map(to_statistic).collect())
    }

    /// Runs `work` on this session without its device, for batch elements that are left to the
    /// host, and returns its result.
    pub fn on_host<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut device = self.device.take();
        if let Some(device) = &mut device {
            // `work` may change the inputs, and its fits must not continue from those of the
            // device.
            device.is_current = false;
            if self.options.start == FitStart::Initial {
                self.warm_fits = WarmStartedFits::default();
            }
        }
        let done = work(self);
        self.device = device;
        done
    }

    /// Returns the fits of a batch on `device`, or `None` if the host must do them: for kinked
    /// interpolations, parameters that may hide minima, multi-start, and devices in single
    /// precision.
    fn batch_fits<'a>(&self, device: &'a mut dyn TemplateBatchMinimizer, data: &'a Data) -> Option<BatchFits<'a>> {
        let (domain, start) = domain_and_start(&self.model, &self.options.fit);
        let needs_host = !domain.kinked.is_empty()
            || Candidates::of(&self.model).explore_widely(&domain)
            || self.options.fit.multi_start.is_some();
        if !device.is_exact() || needs_host {
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

    /// Marks the templates of the session's device as outdated: the batch may be on the same
    /// device.
    fn invalidate_device_templates(&mut self) {
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

    /// Returns these starts with each point moved to its minimum in `minima` if there is one. The
    /// parameter `poi` keeps its value.
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

/// Returns the second of two minima of the same fit if both are equally deep.
fn if_equally_deep(one: &BatchMinimum, other: BatchMinimum) -> MaybeMinimum {
    is_equally_deep(one.nll, other.nll).then_some(other)
}

impl BatchFits<'_> {
    /// Returns the starting values of all batch elements, with the parameter `poi` fixed at each
    /// element's value in `mus` if given.
    fn starts(&self, poi: usize, mus: Option<&[f64]>) -> Starts {
        let n_batch = self.device.n_batch();
        let mut starts = Starts { points: self.start.repeat(n_batch), fixed: self.domain.fixed.repeat(n_batch) };
        for (element, mu) in mus.into_iter().flatten().enumerate() {
            let at = element * self.start.len() + poi;
            (starts.points[at], starts.fixed[at]) = (*mu, true);
        }
        starts
    }

    /// Returns the minima of fits from `starts` (fits × P), without reflections.
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
        let fits = self.device.minimize(&task).map_err(|error| failed(&error))?;
        let minimum_of =
            |BatchFit { params, nll, converged, .. }| (converged && nll.is_finite()).then_some((params, nll));
        Ok(fits.into_iter().map(|fit| minimum_of(fit).map(|(params, nll)| BatchMinimum { nll, params })).collect())
    }

    /// Returns the minima of fits from `starts`. Removes those that have, or may have, a lower
    /// minimum at a reflected point.
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

    /// Returns each of `minima` with each of the parameters `reflected` in turn negated. There is a
    /// point for every fit and parameter, so that all points belong to the same batch elements as
    /// the fits.
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

    /// Returns whether any of `minima` may have a lower one after reflection of parameter `i`.
    fn may_reflect(&self, i: usize, fixed: &[bool], minima: &[MaybeMinimum]) -> bool {
        self.same_sign[i] && minima.iter().enumerate().any(|(k, minimum)| self.is_reflectable(i, fixed, k, minimum))
    }

    fn is_reflectable(&self, i: usize, fixed: &[bool], k: usize, minimum: &MaybeMinimum) -> bool {
        let is_fixed = fixed[k * self.start.len() + i];
        !is_fixed && minimum.as_ref().is_some_and(|minimum| has_other_side(&self.domain, i, minimum.params[i]))
    }

    /// Splits `minima` into those with so few same-sign systematics that the host would minimise
    /// from every reflected point, and the others.
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

    /// Lists the reflected points that may be on the other side of zero: the index of the point, of
    /// its fit, and of the reflected parameter, and the minimum that was reflected.
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

    /// Removes from `found` the minima that may have a lower one at a reflected point, as
    /// indicated by -ln L and its derivative there.
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

    /// Removes from `found` the minima for which the fit from a reflected point ended lower or
    /// failed.
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
        let reflected_minima = self.minimize(&at.points, &fixed.repeat(at.parameters.len()))?;
        for (point, k, _, minimum) in self.reflections(at.parameters, fixed, minima) {
            if reflected_minima[point].as_ref().is_none_or(|reflected| is_lower(reflected.nll, minimum.nll)) {
                found[k] = None;
            }
        }
        Ok(())
    }
}
