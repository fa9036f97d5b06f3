//! The iteration: choose a matrix, take a damped step, keep it if it keeps its promise; finish with
//! chord steps.

use super::kinks;
use super::step::{BoundStatus, Step, StepProblem};
use super::system::{MatrixKind, System};
use super::{Domain, MinimizeOptions, Minimum, Outcome};
use ns_core::curvature::CurvatureStructure;
use ns_core::{Likelihood, LimitKinks};

/// Below this estimated distance (in -ln L) the exact Hessian is used.
const EXACT_BELOW: f64 = 4.0;

/// Below this one the last factor is good enough for further steps with new gradients only.
const CHORD_BELOW: f64 = 1.0;

/// A chord step must shrink the distance by this factor to be followed by another.
const CHORD_GAIN: f64 = 0.2;

/// The same for steps with the factor of an earlier minimisation: a new one costs as much as a few
/// steps.
const RESUMED_GAIN: f64 = 1e-2;

/// The factor by which resumed minimisations are tighter.
const TIGHTER: f64 = 1e-4;

/// The exact Hessian is also used where a step lowered -ln L by what it promised to within this
/// part of [`EXACT_BELOW`], in a model of more than [`SMALL`] parameters, where a matrix that leads
/// no nearer costs much.
const CONFIRMED: f64 = 0.1;
const SMALL: usize = 100;

/// Gauss-Newton steps are damped at least this much, so that a parameter without curvature (a
/// signal where nothing was seen) goes to its bound.
const LEAST_DAMPING: f64 = 1e-9;

/// A distance below this one is convergence if rounding lets no step shrink it further.
const SMALL_EDM: f64 = 1e-9;

/// Rounding decides once this many distances in a row did not halve.
const PATIENCE: usize = 3;

/// A matrix that needs no more damping than this is singular to rounding, and not indefinite.
const MOST_SINGULAR: f64 = 1e-7;

/// Where the exact Hessian is still indefinite although the distance is below this, there is a
/// saddle point near.
const SADDLE_BELOW: f64 = 1e-3;

/// A step that promises less than this goes nowhere.
const STATIONARY: f64 = 1e-20;

/// Steps are refused above this damping, relative to the diagonal of the matrix.
const MAX_DAMPING: f64 = 1e12;

/// The memory of a minimisation, reused from one to the next.
#[derive(Debug)]
pub struct Minimizer {
    system: System,
    step: Step,
    x: Vec<f64>,
    gradient: Vec<f64>,
    trial: Vec<f64>,
    trial_gradient: Vec<f64>,
    /// The scale of the damping: the diagonal of the last Gauss-Newton matrix.
    scale: Vec<f64>,
    damping: Vec<f64>,
    /// The domain, or the part of it that a step may use.
    orthant: Domain,
    /// The kinks of limited yields near the last point with curvature, and whether that is `x`.
    limit_kinks: LimitKinks,
    knows_kinks: bool,
    /// Whether the last minimisation ended with the undamped factor of an exact Hessian.
    has_factor: bool,
    /// Whether to stop near what looks like a saddle point, so that the search can leave it;
    /// otherwise a step along the gradient does, if there is one.
    pub(crate) stops_at_saddles: bool,
}

/// What changes from step to step.
struct Progress {
    nll: f64,
    damping: f64,
    edm: f64,
    exact_below: f64,
    /// What a chord step must gain.
    chord_gain: f64,
    /// A distance below this one is convergence if a chord step does not gain that.
    enough: f64,
    /// Damping below this goes to zero at once. A step that fails without damping lowers it: then a
    /// curved valley has to be followed carefully.
    undamped_below: f64,
    /// Whether the exact Hessian here is positive definite only with a little damping.
    is_singular: bool,
    /// The smallest distance so far, and how many since then were not half of it.
    least_edm: f64,
    since_least: usize,
    /// Whether the last step led nowhere, with a matrix that was damped.
    is_idle: bool,
    iterations: usize,
    evaluations: usize,
}

impl Progress {
    fn new() -> Self {
        Self {
            nll: 0.0,
            damping: 0.0,
            edm: f64::INFINITY,
            exact_below: EXACT_BELOW,
            chord_gain: CHORD_GAIN,
            enough: 0.0,
            undamped_below: 1e-4,
            is_singular: false,
            least_edm: f64::INFINITY,
            since_least: 0,
            is_idle: false,
            iterations: 0,
            evaluations: 0,
        }
    }

    /// Returns `true` if the distance is small and has stopped shrinking.
    fn rests(&mut self) -> bool {
        let edm = self.edm.abs();
        if edm < 0.5 * self.least_edm {
            (self.least_edm, self.since_least) = (edm, 0);
        } else {
            self.since_least += 1;
        }
        edm < SMALL_EDM && self.since_least >= PATIENCE
    }
}

/// What a step led to.
enum Next {
    Continue,
    Stop(Outcome),
}

impl Minimizer {
    /// Allocates memory for likelihoods of this structure.
    #[must_use]
    pub fn new(structure: &CurvatureStructure) -> Self {
        let n = structure.partition.n_params();
        let zeros = || vec![0.0; n];
        Self {
            system: System::new(structure),
            step: Step::new(n),
            x: zeros(),
            gradient: zeros(),
            trial: zeros(),
            trial_gradient: zeros(),
            scale: vec![1.0; n],
            damping: zeros(),
            orthant: Domain::default(),
            limit_kinks: LimitKinks::default(),
            knows_kinks: false,
            has_factor: false,
            stops_at_saddles: false,
        }
    }

    /// Minimises -ln L from `start` (P) inside `domain`.
    pub fn minimize<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        start: &[f64],
        domain: &Domain,
        options: &MinimizeOptions,
    ) -> Minimum {
        self.begin(start, domain);
        let mut progress = Progress::new();
        progress.nll = self.evaluate(likelihood, MatrixKind::GaussNewton, domain, &mut progress);
        self.settle(likelihood, MatrixKind::GaussNewton, domain, &mut progress);
        if !progress.nll.is_finite() {
            return self.finish(&progress, Outcome::NotFinite);
        }
        self.proceed(likelihood, domain, options, &mut progress)
    }

    /// Minimises from `start` (P), which is near a minimum: where the last one was, of a likelihood
    /// that has changed little since. For a domain without kinks.
    ///
    /// Steps are taken with the factorised Hessian of the last minimisation as long as each gains
    /// enough, and with the last factor from there on. It ends tighter than `options` ask, because
    /// where it ends depends on where it began.
    pub(crate) fn resume<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        start: &[f64],
        domain: &Domain,
        options: &MinimizeOptions,
    ) -> Minimum {
        self.begin(start, domain);
        kinks::orthant(domain, &self.x, &mut self.orthant);
        let mut progress = Progress { enough: options.tolerance, ..Progress::new() };
        let tight = MinimizeOptions { tolerance: TIGHTER * options.tolerance, ..*options };
        let mut minimum = self.resume_from_x(likelihood, domain, &tight, &mut progress);
        if minimum.converged() && minimum.evaluations > 1 && minimum.edm.abs() <= tight.tolerance {
            // The step that is known already: with it what is left of the distance does not matter
            // even where a minimum's position does. Where nothing had to be done nothing is, so
            // that what has not changed stays the same to the bit.
            self.step.apply(&self.x, &self.orthant, &mut self.trial);
            minimum.params.copy_from_slice(&self.trial);
        }
        minimum
    }

    fn resume_from_x<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        options: &MinimizeOptions,
        progress: &mut Progress,
    ) -> Minimum {
        if self.keeps_factor(domain) {
            (progress.evaluations, progress.chord_gain) = (1, RESUMED_GAIN);
            progress.nll = likelihood.nll_and_grad(&self.x, &mut self.gradient);
            if !progress.nll.is_finite() {
                // Outside the domain the gradient is zero, which would look like convergence.
                return self.finish(progress, Outcome::NotFinite);
            }
            let inside = self.chord_step();
            progress.edm = self.step.edm(&self.gradient);
            if !inside || progress.edm.abs() > CHORD_BELOW {
                progress.nll = self.evaluate(likelihood, MatrixKind::Exact, domain, progress);
            } else if let Next::Stop(outcome) = self.chord(likelihood, domain, options, progress) {
                return self.finish(progress, outcome);
            }
            progress.chord_gain = CHORD_GAIN;
        } else {
            progress.nll = self.evaluate(likelihood, MatrixKind::Exact, domain, progress);
            self.rescale(domain);
        }
        if !progress.nll.is_finite() {
            return self.finish(progress, Outcome::NotFinite);
        }
        self.proceed(likelihood, domain, options, progress)
    }

    /// Forgets the factor, so that the next minimisation makes its own Hessian.
    pub(crate) fn forget_factor(&mut self) {
        self.has_factor = false;
    }

    /// Returns `true` if the last factor is that of an exact Hessian, over the parameters that
    /// are free in `domain` and, at `self.x`, at no bound.
    fn keeps_factor(&self, domain: &Domain) -> bool {
        let fits = |i: usize| match self.step.status[i] {
            BoundStatus::Free => !domain.fixed[i],
            BoundStatus::Fixed => domain.fixed[i],
            BoundStatus::Lower => !domain.fixed[i] && self.x[i] == domain.lower[i],
            BoundStatus::Upper => !domain.fixed[i] && self.x[i] == domain.upper[i],
        };
        self.has_factor && (0..self.x.len()).all(fits)
    }

    /// Writes column `i` of the covariance, the inverse of the Hessian that was factorised last, to
    /// `out` (P). Returns `false` and leaves `out` undefined if the last minimisation did not end
    /// at `params` (P) with the factor of an exact Hessian, or if parameter `i` was not free.
    pub(crate) fn covariance_column(&mut self, params: &[f64], i: usize, out: &mut [f64]) -> bool {
        if !self.step.free[i] || !self.ended_at(params) {
            return false;
        }
        self.trial_gradient.fill(0.0);
        self.trial_gradient[i] = 1.0;
        self.system.solve(&self.trial_gradient, out);
        out[i] > 0.0 && out.iter().all(|c| c.is_finite())
    }

    /// Returns `true` if the last minimisation ended at `params` (P) with the factor of an exact
    /// Hessian.
    pub(crate) fn ended_at(&self, params: &[f64]) -> bool {
        self.has_factor && self.x == params
    }

    /// Writes the Newton step for `gradient` (P) to `step` (P), by the Hessian that was factorised
    /// last; 0 for parameters that were not free. Returns `false` and writes nothing if the last
    /// minimisation did not end at `params` (P) with the factor of an exact Hessian.
    pub(crate) fn newton_step(&mut self, params: &[f64], gradient: &[f64], step: &mut [f64]) -> bool {
        if !self.ended_at(params) {
            return false;
        }
        for i in 0..gradient.len() {
            self.trial_gradient[i] = if self.step.free[i] { -gradient[i] } else { 0.0 };
        }
        self.system.solve(&self.trial_gradient, step);
        true
    }

    fn begin(&mut self, start: &[f64], domain: &Domain) {
        for i in 0..start.len() {
            self.x[i] = if domain.fixed[i] { start[i] } else { start[i].clamp(domain.lower[i], domain.upper[i]) };
        }
    }

    fn proceed<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        options: &MinimizeOptions,
        progress: &mut Progress,
    ) -> Minimum {
        while progress.iterations < options.max_iterations {
            progress.iterations += 1;
            match self.iterate(likelihood, domain, options, progress) {
                Next::Continue => {}
                Next::Stop(outcome) => return self.finish(progress, outcome),
            }
        }
        self.finish(progress, Outcome::IterationLimit)
    }

    fn finish(&mut self, progress: &Progress, outcome: Outcome) -> Minimum {
        // Where -ln L is infinite its gradient is zero, which looks like convergence.
        let outcome = if progress.nll.is_finite() { outcome } else { Outcome::NotFinite };
        self.has_factor =
            outcome == Outcome::Converged && progress.damping == 0.0 && self.system.kind() == MatrixKind::Exact;
        if outcome == Outcome::Converged {
            self.step.kinks.add_to_gradient(&self.limit_kinks, &mut self.gradient);
        }
        Minimum {
            // -0 served as the lower side of a kink; it is 0 to everybody else.
            params: self.x.iter().map(|&x| x + 0.0).collect(),
            nll: progress.nll,
            gradient: self.gradient.clone(),
            edm: progress.edm,
            outcome,
            iterations: progress.iterations,
            evaluations: progress.evaluations,
            at_edge: false,
        }
    }

    /// Computes -ln L, gradient and second-order information at `self.x`.
    fn evaluate<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        kind: MatrixKind,
        domain: &Domain,
        progress: &mut Progress,
    ) -> f64 {
        progress.evaluations += 1;
        let curvature = self.system.select(kind);
        let value = likelihood.nll_and_curvature(&self.x, &mut self.gradient, curvature);
        self.find_kinks(likelihood);
        if kind == MatrixKind::GaussNewton && value.is_finite() {
            self.rescale(domain);
        }
        value
    }

    /// Finds the kinks of limited yields near `self.x`.
    fn find_kinks<L: Likelihood + ?Sized>(&mut self, likelihood: &mut L) {
        likelihood.kinks(&self.x, &mut self.limit_kinks);
        self.knows_kinks = true;
    }

    /// Chooses the side of every parameter that is on a kink; whether one went through.
    fn settle<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        kind: MatrixKind,
        domain: &Domain,
        progress: &mut Progress,
    ) -> bool {
        let mut moved = false;
        if kinks::flip_uphill(domain, &self.x, &self.gradient, &mut self.trial) {
            progress.evaluations += 1;
            likelihood.nll_and_grad(&self.trial, &mut self.trial_gradient);
            moved = kinks::keep_downhill(&self.x, &self.trial_gradient, &mut self.trial);
            if moved {
                std::mem::swap(&mut self.x, &mut self.trial);
                progress.nll = self.evaluate(likelihood, kind, domain, progress);
            }
        }
        kinks::orthant(domain, &self.x, &mut self.orthant);
        moved
    }

    fn rescale(&mut self, domain: &Domain) {
        self.system.diagonal(&mut self.scale);
        for i in 0..self.scale.len() {
            let range = domain.upper[i] - domain.lower[i];
            let least = if range.is_finite() && range > 0.0 { 1.0 / (range * range) } else { 1e-12 };
            self.scale[i] = self.scale[i].max(least);
        }
    }

    fn iterate<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        options: &MinimizeOptions,
        progress: &mut Progress,
    ) -> Next {
        let least = if self.system.kind() == MatrixKind::GaussNewton { LEAST_DAMPING } else { 0.0 };
        for (damping, scale) in self.damping.iter_mut().zip(&self.scale) {
            *damping = progress.damping.max(least) * scale;
        }
        if !self.knows_kinks {
            self.find_kinks(likelihood);
        }
        let problem = StepProblem {
            x: &self.x,
            g: &self.gradient,
            domain: &self.orthant,
            damping: &self.damping,
            kinks: &self.limit_kinks,
        };
        if self.step.compute(&mut self.system, problem).is_err() {
            return self.not_positive_definite(likelihood, domain, progress);
        }
        progress.edm = self.step.predicted_decrease(&mut self.system, &self.gradient, &self.damping);
        let undamped = progress.damping == 0.0 || (progress.is_singular && progress.damping <= MOST_SINGULAR);
        let exact = self.system.kind() == MatrixKind::Exact;
        if exact && undamped && progress.rests() {
            return Next::Stop(Outcome::Converged);
        }
        if exact && undamped && self.step.kinks.has_multipliers() {
            return self.step_to_kinks(likelihood, domain, options, progress);
        }
        if exact && undamped && progress.edm.abs() < CHORD_BELOW {
            return self.chord(likelihood, domain, options, progress);
        }
        self.take_step(likelihood, domain, progress)
    }

    /// Handles a matrix that is not positive definite: damp the exact Hessian a little, else go
    /// back to Gauss-Newton, which always is.
    fn not_positive_definite<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        progress: &mut Progress,
    ) -> Next {
        let exact = self.system.kind() == MatrixKind::Exact;
        if exact && self.stops_at_saddles && progress.exact_below < SADDLE_BELOW {
            // So near a point without derivative, and -ln L curves down in some direction.
            return Next::Stop(Outcome::Saddle);
        }
        if exact && progress.is_idle && progress.damping > MOST_SINGULAR {
            // Stationary, and less damping than in the last step leaves the matrix indefinite: a
            // maximum or a saddle in some direction.
            return Next::Stop(Outcome::Saddle);
        }
        if !exact || progress.exact_below < 1e-6 {
            progress.damping = (10.0 * progress.damping).max(1e-9);
            return if progress.damping > MAX_DAMPING { Next::Stop(Outcome::Stalled) } else { Next::Continue };
        }
        if progress.damping == 0.0 {
            progress.is_singular = true;
            progress.damping = 1e-9;
            return Next::Continue;
        }
        progress.exact_below *= 0.1;
        progress.damping = 0.0;
        self.evaluate(likelihood, MatrixKind::GaussNewton, domain, progress);
        Next::Continue
    }

    fn take_step<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        progress: &mut Progress,
    ) -> Next {
        let predicted = self.step.predicted_decrease(&mut self.system, &self.gradient, &self.damping);
        let is_undamped = progress.damping == 0.0 || (progress.is_singular && progress.damping <= MOST_SINGULAR);
        self.step.apply(&self.x, &self.orthant, &mut self.trial);
        kinks::keep_sides(domain, &self.x, &mut self.trial);
        let noise = noise(progress.nll);
        progress.evaluations += 1;
        let before = likelihood.nll(&self.trial);
        let left = (progress.nll - before - predicted).abs();
        let is_confirmed = self.x.len() > SMALL && left < CONFIRMED * progress.exact_below;
        let is_near = progress.edm < progress.exact_below || is_confirmed;
        let kind = if is_near { MatrixKind::Exact } else { MatrixKind::GaussNewton };
        let ratio = (progress.nll - before) / predicted;
        let accepted = before.is_finite() && (ratio > 1e-4 || (predicted < noise && before <= progress.nll + noise));
        progress.is_idle = accepted && predicted <= STATIONARY && !is_undamped;
        if accepted {
            std::mem::swap(&mut self.x, &mut self.trial);
            progress.nll = self.evaluate(likelihood, kind, domain, progress);
            self.settle(likelihood, kind, domain, progress);
            if ratio > 0.75 || predicted < noise {
                let less = progress.damping / 10.0;
                progress.damping = if less < progress.undamped_below { 0.0 } else { less };
            } else if ratio < 0.25 {
                progress.damping = (3.0 * progress.damping).max(1e-3);
            }
            return Next::Continue;
        }
        if predicted < noise && self.system.kind() == MatrixKind::GaussNewton && progress.edm < progress.exact_below {
            // Close enough for the exact Hessian, whose last step is better than this one.
            progress.nll = self.evaluate(likelihood, MatrixKind::Exact, domain, progress);
            return Next::Continue;
        }
        if predicted < noise {
            // Rounding decides from here on.
            let is_small = is_undamped && progress.edm.abs() < SMALL_EDM;
            return Next::Stop(if is_small { Outcome::Converged } else { Outcome::Stalled });
        }
        if progress.damping == 0.0 {
            progress.undamped_below = (1e-3 * progress.undamped_below).max(1e-16);
        }
        progress.damping = (8.0 * progress.damping).max(1e-2);
        if progress.damping > MAX_DAMPING { Next::Stop(Outcome::Stalled) } else { Next::Continue }
    }

    /// Takes a step that ends on kinks or crosses some, unless it leads nowhere: then the minimum
    /// is on kinks.
    ///
    /// The step gains ½ pᵀHp, and Σ λ d of the distances d of the kinks, which rounding leaves.
    fn step_to_kinks<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        options: &MinimizeOptions,
        progress: &mut Progress,
    ) -> Next {
        let approach = self.step.kinks.distance_gain();
        if approach > noise(progress.nll) || progress.edm - approach > options.tolerance {
            return self.take_step(likelihood, domain, progress);
        }
        let moved = self.settle(likelihood, MatrixKind::Exact, domain, progress);
        if moved { Next::Continue } else { Next::Stop(Outcome::Converged) }
    }

    /// Takes Newton steps with the last factor and new gradients, as long as they gain enough.
    fn chord<L: Likelihood + ?Sized>(
        &mut self,
        likelihood: &mut L,
        domain: &Domain,
        options: &MinimizeOptions,
        progress: &mut Progress,
    ) -> Next {
        loop {
            if progress.edm.abs() <= options.tolerance {
                let moved = self.settle(likelihood, MatrixKind::Exact, domain, progress);
                return if moved { Next::Continue } else { Next::Stop(Outcome::Converged) };
            }
            self.step.apply(&self.x, &self.orthant, &mut self.trial);
            kinks::keep_sides(domain, &self.x, &mut self.trial);
            progress.evaluations += 1;
            let nll = likelihood.nll_and_grad(&self.trial, &mut self.trial_gradient);
            if nll.is_nan() || nll > progress.nll + noise(progress.nll) {
                return self.take_step(likelihood, domain, progress);
            }
            let stalled = self.trial == self.x;
            std::mem::swap(&mut self.x, &mut self.trial);
            std::mem::swap(&mut self.gradient, &mut self.trial_gradient);
            self.knows_kinks = false;
            progress.nll = nll;
            let last = progress.edm;
            let inside = self.chord_step();
            progress.edm = self.step.edm(&self.gradient);
            if stalled {
                let is_small = progress.edm.abs() < SMALL_EDM;
                return Next::Stop(if is_small { Outcome::Converged } else { Outcome::Stalled });
            }
            if inside && progress.edm.abs() <= progress.enough && progress.edm.abs() > progress.chord_gain * last.abs()
            {
                return Next::Stop(Outcome::Converged);
            }
            if !inside || progress.edm.abs() > progress.chord_gain * last.abs().max(options.tolerance) {
                progress.nll = self.evaluate(likelihood, MatrixKind::Exact, domain, progress);
                self.settle(likelihood, MatrixKind::Exact, domain, progress);
                return Next::Continue;
            }
        }
    }

    /// Returns the next step with the same factor; false if the set of fixed parameters should
    /// change.
    fn chord_step(&mut self) -> bool {
        let domain = &self.orthant;
        for i in 0..self.x.len() {
            self.trial_gradient[i] = if self.step.free[i] { -self.gradient[i] } else { 0.0 };
        }
        self.system.solve(&self.trial_gradient, &mut self.step.p);
        self.step.kinks.clear();
        (0..self.x.len()).all(|i| match self.step.status[i] {
            BoundStatus::Free => (domain.lower[i]..=domain.upper[i]).contains(&(self.x[i] + self.step.p[i])),
            BoundStatus::Fixed => true,
            BoundStatus::Lower => self.gradient[i] >= 0.0,
            BoundStatus::Upper => self.gradient[i] <= 0.0,
        })
    }
}

/// Returns what rounding may change in -ln L.
fn noise(nll: f64) -> f64 {
    2e-14 * nll.abs().max(1.0)
}
