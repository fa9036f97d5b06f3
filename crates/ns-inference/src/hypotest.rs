//! Hypothesis tests by asymptotic formulas: CLs with its expected band, and the significance of a
//! discovery.
//!
//! The rules are pyhf's: the expected distribution comes from the Asimov data set of the
//! conditional fit at μ = 0 (for q₀ at μ = 1), auxiliary data included, and the parameter of
//! interest moves in the range that it is given. A [`ProfileRatioTest`] keeps the fits that do not
//! depend on the tested value, so that limits and grids pay two conditional fits a point.

use crate::asymptotic::{PValues, band, p_values};
use crate::fit::SEVERAL_MINIMA;
use crate::minimize::BoundSide;
use crate::minimize::Minimum;
use crate::normal::upper_tail;
use crate::options::FitOptions;
use crate::problem::Problem;
use crate::profile::Profiler;
use crate::search::{is_as_deep, is_distinctly_lower};
use crate::test_statistic::{EvaluatedStatistic, TestFailure, TestStatistic, classify};
use ns_core::likelihood::{NonFinite, diagnose};
use ns_core::{DataLikelihood, expected};
use serde::Serialize;

/// A statistic at one value of the parameter of interest, of the observed data and of the Asimov
/// data set.
#[derive(Debug, Clone, PartialEq)]
pub struct TestedValue {
    /// On the observed data.
    pub observed: EvaluatedStatistic,
    /// On the Asimov data set.
    pub asimov: EvaluatedStatistic,
}

/// What a fit was to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSet {
    /// The observed data.
    Observed,
    /// The Asimov data set.
    Asimov,
}

/// The fits that all tests of one parameter share.
#[derive(Debug)]
pub struct ProfileRatioTest<'a, L: ?Sized> {
    /// Fits to the observed data.
    pub observed: Profiler<'a, L>,
    /// Fits to the Asimov data set.
    pub asimov: Profiler<'a, L>,
    /// The statistic.
    pub statistic: TestStatistic,
    /// The tested parameter.
    pub poi: usize,
    /// The value of that parameter for which the Asimov data set is made.
    asimov_mu: f64,
    /// The parameters (P) that the Asimov data set is made for.
    pub asimov_params: Vec<f64>,
    /// -ln L of the observed data there.
    asimov_nll: f64,
    /// Whether the fit that the Asimov data set is made of converged.
    has_asimov: bool,
    /// Why the observed data, or else the Asimov data set, are impossible at `asimov_mu`, if they
    /// are.
    impossible: Option<NonFinite>,
    /// Basins of the observed data that were known when that was last looked for.
    n_basins: usize,
    /// Whether the fit that the Asimov data set is made of has several equally deep minima.
    is_ambiguous: bool,
    /// How often the Asimov data set was made again.
    pub(crate) n_renewed: usize,
    /// Conditional minima (P each) that every further test starts from too: of the observed data.
    observed_branches: Vec<Vec<f64>>,
    /// The same of the Asimov data set.
    asimov_branches: Vec<Vec<f64>>,
    /// Whether fits of conditional minima start at the basins that are known, and nowhere else.
    starts_at_basins: bool,
}

/// What a [`ProfileRatioTest`] tests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestedHypothesis {
    pub(crate) statistic: TestStatistic,
    /// The tested parameter.
    pub(crate) poi: usize,
    /// The value of that parameter for which the Asimov data set is made.
    pub(crate) asimov_mu: f64,
}

/// The largest number of conditional minima of each data set that tests start from beside the
/// basins of the pool.
const MOST_BRANCHES: usize = 12;

/// A way to find a conditional minimum, given further starts.
type Find<'a, L> = fn(&mut Profiler<'a, L>, &[(usize, f64)], &[Vec<f64>]) -> Minimum;

impl<'a, L: DataLikelihood + ?Sized> ProfileRatioTest<'a, L> {
    /// Fits the observed data, freely and at `asimov_mu`, and gives `scratch`, a likelihood of the
    /// same model, the Asimov data of the latter.
    pub fn new(
        problem: Problem<'a, L>,
        scratch: &'a mut L,
        statistic: TestStatistic,
        poi: usize,
        asimov_mu: f64,
    ) -> Self {
        let Problem { model, likelihood, options } = problem;
        let observed = Profiler::new(model, likelihood, options);
        Self::around(observed, scratch, options, TestedHypothesis { statistic, poi, asimov_mu })
    }

    /// Returns the same around the free minimum of `observed`, which is known already.
    pub(crate) fn around(
        mut observed: Profiler<'a, L>,
        scratch: &'a mut L,
        options: &FitOptions,
        TestedHypothesis { statistic, poi, asimov_mu }: TestedHypothesis,
    ) -> Self {
        let model = observed.model();
        let start = observed.start().to_vec();
        let mut point = start.clone();
        point[poi] = asimov_mu;
        let impossible = diagnose(model, observed.likelihood().data(), &point);
        let at_asimov = observed.at_explored(&[(poi, asimov_mu)], &[start]);
        // A second way to the free minimum; where it ends elsewhere there are several.
        observed.try_from_point(&at_asimov.params);
        scratch.set_data(&expected::asimov(model, &at_asimov.params));
        let mut asimov = Profiler::of_asimov(model, scratch, options, &at_asimov.params).with_pool(observed.pool());
        asimov.set_exploring(observed.is_exploring());
        if !at_asimov.converged() {
            asimov.mark_failed();
        }
        let n_basins = observed.pool().n_found();
        let is_ambiguous = observed.has_equal_minimum(&at_asimov, &[(poi, asimov_mu)]);
        Self {
            observed,
            asimov,
            statistic,
            poi,
            asimov_mu,
            has_asimov: at_asimov.converged(),
            impossible,
            asimov_nll: at_asimov.nll,
            asimov_params: at_asimov.params,
            n_basins,
            is_ambiguous,
            n_renewed: 0,
            observed_branches: Vec::new(),
            asimov_branches: Vec::new(),
            starts_at_basins: false,
        }
    }

    /// Returns the same with the Asimov data set of `params` (P), the known minimum of the observed
    /// data at `asimov_mu`. Nothing is explored: fits of conditional minima start at the basins
    /// of `observed`.
    pub(crate) fn from_basins(
        mut observed: Profiler<'a, L>,
        scratch: &'a mut L,
        options: &FitOptions,
        hypothesis: TestedHypothesis,
        params: &[f64],
    ) -> Self {
        let TestedHypothesis { statistic, poi, asimov_mu } = hypothesis;
        let model = observed.model();
        scratch.set_data(&expected::asimov(model, params));
        let mut asimov = Profiler::of_asimov(model, scratch, options, params).with_pool(observed.pool());
        asimov.set_exploring(false);
        let asimov_nll = observed.likelihood().nll(params);
        Self {
            n_basins: observed.pool().n_found(),
            observed,
            asimov,
            statistic,
            poi,
            asimov_mu,
            has_asimov: true,
            impossible: None,
            asimov_nll,
            asimov_params: params.to_vec(),
            is_ambiguous: false,
            n_renewed: 0,
            observed_branches: Vec::new(),
            asimov_branches: Vec::new(),
            starts_at_basins: true,
        }
    }

    /// Returns `true` if conditional fits start at the basins that are known, and nowhere else.
    pub(crate) fn starts_at_basins(&self) -> bool {
        self.starts_at_basins
    }

    /// Starts the conditional fits of further tests at the usual other points too: at the Asimov
    /// data set's parameters and the model's starting values, and those of the Asimov data set at
    /// the conditional minimum of the observed data. Nothing is explored.
    pub(crate) fn start_widely(&mut self) {
        self.starts_at_basins = false;
    }

    /// Explores the conditional minima of further tests.
    pub(crate) fn explore(&mut self) {
        self.starts_at_basins = false;
        self.observed.set_exploring(true);
        self.asimov.set_exploring(true);
    }

    /// Returns `true` if a constrained parameter of a conditional minimum of `pair` is far from its
    /// start.
    pub(crate) fn has_large_pulls(&self, pair: &TestedValue) -> bool {
        self.observed.has_large_pulls(&pair.observed.conditional)
            || self.asimov.has_large_pulls(&pair.asimov.conditional)
    }

    /// Notes whether the Asimov data set is one of several.
    pub(crate) fn note_ambiguous(&mut self, is_ambiguous: bool) {
        self.is_ambiguous = is_ambiguous;
    }

    /// Makes every further test start from the conditional minimum (P) of `tested` too.
    pub(crate) fn add_start(&mut self, data: DataSet, tested: &EvaluatedStatistic) {
        let branches = self.branches_of(data);
        if branches.len() < MOST_BRANCHES && !branches.contains(&tested.conditional) {
            branches.push(tested.conditional.clone());
        }
    }

    /// Returns the conditional minima that every further test on `data` starts from.
    pub(crate) fn branches_of(&mut self, data: DataSet) -> &mut Vec<Vec<f64>> {
        match data {
            DataSet::Observed => &mut self.observed_branches,
            DataSet::Asimov => &mut self.asimov_branches,
        }
    }

    /// Returns the statistic at `mu`. Each conditional minimum is looked for from several places
    /// and explored, so that a second minimum does not go unnoticed.
    pub fn at(&mut self, mu: f64) -> TestedValue {
        let mut pair = self.pair(mu, Profiler::at_explored, &[]);
        while self.renew_asimov() {
            let found = std::slice::from_ref(&pair.observed.conditional);
            pair = self.pair(mu, Profiler::at_explored, found);
        }
        pair
    }

    /// Returns the same on the way to a value at which everything is explored.
    pub(crate) fn at_on_the_way(&mut self, mu: f64) -> TestedValue {
        self.pair(mu, Profiler::at_on_the_way, &[])
    }

    /// Returns both statistics at `mu`; the observed one is looked for from `known` (P each) too.
    fn pair(&mut self, mu: f64, find: Find<'a, L>, known: &[Vec<f64>]) -> TestedValue {
        let usual = [self.asimov_params.clone(), self.observed.start().to_vec()];
        let usual = if self.starts_at_basins { &[][..] } else { &usual };
        let starts = [usual, known, &self.observed_branches].concat();
        let conditional = find(&mut self.observed, &[(self.poi, mu)], &starts);
        let observed = classify(&self.observed, self.statistic, self.poi, mu, conditional);
        let usual = std::slice::from_ref(&observed.conditional);
        let usual = if self.starts_at_basins { &[][..] } else { usual };
        let starts = [usual, &self.asimov_branches].concat();
        let conditional = find(&mut self.asimov, &[(self.poi, mu)], &starts);
        let asimov = classify(&self.asimov, self.statistic, self.poi, mu, conditional);
        TestedValue { observed, asimov }
    }

    /// Makes the Asimov data set again if a test has met a basin that is lower where it was made.
    /// Returns whether it did.
    fn renew_asimov(&mut self) -> bool {
        let n_basins = self.observed.pool().n_found();
        if n_basins == self.n_basins {
            return false;
        }
        self.n_basins = n_basins;
        let fixed = [(self.poi, self.asimov_mu)];
        let again = self.observed.at_on_the_way(&fixed, &[]);
        let is_ambiguous = self.observed.has_equal_minimum(&again, &fixed);
        if !again.converged() || (self.has_asimov && !is_distinctly_lower(again.nll, self.asimov_nll)) {
            self.is_ambiguous |= is_ambiguous && is_as_deep(again.nll, self.asimov_nll);
            return false;
        }
        self.is_ambiguous = is_ambiguous;
        let data = expected::asimov(self.observed.model(), &again.params);
        self.asimov.likelihood().set_data(&data);
        self.asimov.adopt_asimov(&again.params);
        (self.asimov_params, self.asimov_nll, self.has_asimov) = (again.params, again.nll, true);
        self.n_renewed += 1;
        true
    }

    /// Returns the whole test at `mu`.
    pub fn result(&mut self, mu: f64) -> HypotestResult {
        let pair = self.at(mu);
        self.result_of(mu, &pair)
    }

    /// Returns the whole test at `mu`, of which `pair` are the statistics.
    pub(crate) fn result_of(&mut self, mu: f64, pair: &TestedValue) -> HypotestResult {
        let (q, q_asimov) = (pair.observed.value, pair.asimov.value);
        let p = q.zip(q_asimov).map(|(q, q_asimov)| p_values(self.statistic, q, q_asimov));
        let expected = q_asimov.filter(|_| self.statistic.is_one_sided()).map(|q| band(self.statistic, q));
        let each = |value: fn(&PValues) -> f64| expected.as_ref().map(|band| band.each_ref().map(value));
        HypotestResult {
            poi: TestedPoi {
                name: self.observed.model().parameters.names[self.poi].clone(),
                index: self.poi,
                bestfit: self.bestfit(DataSet::Observed),
                bestfit_asimov: self.bestfit(DataSet::Asimov),
            },
            mu,
            test_stat: self.statistic,
            cls_obs: p.map(|p| p.cls),
            cls_exp: each(|p| p.cls),
            clsb_obs: p.map(|p| p.clsb),
            clb_obs: p.map(|p| p.clb),
            clsb_exp: each(|p| p.clsb),
            clb_exp: each(|p| p.clb),
            q,
            q_asimov,
            converged: q.is_some() && q_asimov.is_some(),
            warnings: self.warnings(Some(mu), pair),
        }
    }

    /// Returns the best-fit value of the parameter of interest; `None` if the fit did not converge.
    pub(crate) fn bestfit(&self, data: DataSet) -> Option<f64> {
        let best = match data {
            DataSet::Observed => self.observed.best(),
            DataSet::Asimov => self.asimov.best(),
        };
        best.params.get(self.poi).copied().filter(|_| best.converged())
    }

    /// Returns the warnings that belong to the numbers; `mu` is the value that was asked for, if
    /// there was one.
    pub fn warnings(&mut self, mu: Option<f64>, pair: &TestedValue) -> Vec<String> {
        self.observed.note_cut_short(self.asimov.is_cut_short());
        let undetermined = self.observed.undetermined(self.poi);
        let failures = self.failures(pair);
        let impossible = if failures.is_empty() { None } else { self.impossible() };
        failures
            .into_iter()
            .chain(impossible)
            .chain(undetermined)
            .chain(self.at_end())
            .chain(self.asimov_outside_range())
            .chain(self.outside_range(mu))
            .chain(self.several_minima())
            .chain(self.ambiguous())
            .chain(self.observed.search_warnings())
            .chain(self.negative_range())
            .collect()
    }

    /// Returns a warning if the Asimov data set is one of several.
    fn ambiguous(&self) -> Option<String> {
        let (name, mu) = (&self.observed.model().parameters.names[self.poi], self.asimov_mu);
        self.is_ambiguous.then(|| {
            format!(
                "the Asimov data set is not unique: the fit with `{name}` = {mu} has several equally deep minima, and one of them was taken"
            )
        })
    }

    /// Returns why the tests of `pair` have no value.
    pub(crate) fn failures(&self, pair: &TestedValue) -> Vec<String> {
        let failed = [(DataSet::Observed, pair.observed.failure), (DataSet::Asimov, pair.asimov.failure)];
        failed.into_iter().filter_map(|(data, failure)| Some(self.describe(data, failure?))).collect()
    }

    /// Returns why a test on `data` has no value.
    pub(crate) fn describe(&self, data: DataSet, failure: TestFailure) -> String {
        let (name, mu) = (&self.observed.model().parameters.names[self.poi], self.asimov_mu);
        match data {
            DataSet::Asimov if !self.has_asimov => format!(
                "there is no Asimov data set at `{name}` = {mu}: the fit with `{name}` = {mu} to the observed data did not converge"
            ),
            DataSet::Asimov => failure.describe(name, &format!("the Asimov data set at `{name}` = {mu}")),
            DataSet::Observed => failure.describe(name, "the observed data"),
        }
    }

    /// Returns what makes the data impossible where the Asimov data set is made, with the other
    /// parameters at their starting values.
    pub(crate) fn impossible(&self) -> Option<String> {
        let (name, mu, reason) =
            (&self.observed.model().parameters.names[self.poi], self.asimov_mu, self.impossible.as_ref()?);
        Some(format!(
            "with `{name}` at {mu} and the other parameters at their starting values the data are impossible: {reason}"
        ))
    }

    /// Returns a warning if the best fit is at an end of its range other than zero.
    fn at_end(&self) -> Option<String> {
        let (domain, best) = (self.observed.domain(), self.observed.best());
        self.bestfit(DataSet::Observed)?;
        let end = match domain.bound_at(self.poi, *best.params.get(self.poi)?)? {
            BoundSide::Upper => domain.upper[self.poi],
            BoundSide::Lower => domain.lower[self.poi],
        };
        let name = &self.observed.model().parameters.names[self.poi];
        (end != 0.0).then(|| {
            format!("the best fit of `{name}` is at the end of its range, {end}; a wider range gives another one")
        })
    }

    /// Returns a warning if the Asimov data set is made for a value outside the range.
    fn asimov_outside_range(&self) -> Option<String> {
        let (mu, domain) = (self.asimov_mu, self.observed.domain());
        let (lower, upper) = (domain.lower[self.poi], domain.upper[self.poi]);
        let name = &self.observed.model().parameters.names[self.poi];
        (!(lower..=upper).contains(&mu))
            .then(|| format!("the Asimov data set is made for `{name}` = {mu}, outside its range, {lower} to {upper}"))
    }

    fn outside_range(&self, mu: Option<f64>) -> Option<String> {
        let (mu, domain) = (mu?, self.observed.domain());
        let (lower, upper) = (domain.lower[self.poi], domain.upper[self.poi]);
        let name = &self.observed.model().parameters.names[self.poi];
        (!(lower..=upper).contains(&mu)).then(|| {
            format!("{mu} is outside the range of `{name}`, {lower} to {upper}, in which its best fit is sought")
        })
    }

    fn several_minima(&self) -> Option<String> {
        let several = self.observed.has_several_minima() || self.asimov.has_several_minima();
        several.then(|| SEVERAL_MINIMA.to_owned())
    }

    fn negative_range(&self) -> Option<String> {
        let lower = self.observed.domain().lower[self.poi];
        let has_tilde = matches!(self.statistic, TestStatistic::QTilde | TestStatistic::TTilde);
        let name = &self.observed.model().parameters.names[self.poi];
        (has_tilde && lower < 0.0).then(|| {
            format!("`{name}` may go down to {lower}, so the statistic is the one without tilde; its best fit is compared, also a negative one")
        })
    }
}

/// The parameter of interest of a test, with its best fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestedPoi {
    /// Its name.
    pub name: String,
    /// Its index among the parameters.
    pub index: usize,
    /// Best fit of the observed data; `None` if the fit did not converge.
    pub bestfit: Option<f64>,
    /// Best fit of the Asimov data set; likewise.
    pub bestfit_asimov: Option<f64>,
}

/// A hypothesis test at one value of the parameter of interest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HypotestResult {
    /// The parameter of interest.
    pub poi: TestedPoi,
    /// Its tested value.
    pub mu: f64,
    /// The test statistic.
    pub test_stat: TestStatistic,
    /// CLs = CL_s+b/CL_b (for q₀: the p-value of the background); `None` where a fit failed.
    #[serde(rename = "CLs_obs")]
    pub cls_obs: Option<f64>,
    /// Expected CLs at -2, -1, 0, +1, +2 standard deviations of the background, in increasing
    /// order; one-sided statistics only.
    #[serde(rename = "CLs_exp")]
    pub cls_exp: Option<[f64; 5]>,
    /// p-value of the tested hypothesis.
    #[serde(rename = "CLsb_obs")]
    pub clsb_obs: Option<f64>,
    /// p-value under the background.
    #[serde(rename = "CLb_obs")]
    pub clb_obs: Option<f64>,
    /// Expected CL_s+b, as `cls_exp`.
    #[serde(rename = "CLsb_exp")]
    pub clsb_exp: Option<[f64; 5]>,
    /// Expected CL_b, as `cls_exp`.
    #[serde(rename = "CLb_exp")]
    pub clb_exp: Option<[f64; 5]>,
    /// The statistic of the observed data.
    pub q: Option<f64>,
    /// The statistic of the Asimov data set.
    pub q_asimov: Option<f64>,
    /// Whether every fit converged.
    pub converged: bool,
    /// What to know before the numbers are used.
    pub warnings: Vec<String>,
}

/// Tests `mu` of parameter `poi` on the data of `likelihood`.
pub fn hypotest<L: DataLikelihood + Clone>(
    problem: &mut Problem<'_, L>,
    statistic: TestStatistic,
    poi: usize,
    mu: f64,
) -> HypotestResult {
    let mut scratch = problem.likelihood.clone();
    ProfileRatioTest::new(problem.reborrow(), &mut scratch, statistic, poi, statistic.asimov_mu()).result(mu)
}

/// The significance of a discovery: how improbable the data are without signal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignificanceResult {
    /// The parameter of interest.
    pub poi: TestedPoi,
    /// Observed significance √q₀ in standard deviations; 0 where the best fit is negative; `None`
    /// where a fit failed.
    #[serde(rename = "Z_obs")]
    pub z_obs: Option<f64>,
    /// Its p-value, 1 - Φ(Z).
    pub p0_obs: Option<f64>,
    /// Expected significance if the parameter of interest is `mu_expected`.
    #[serde(rename = "Z_exp")]
    pub z_exp: Option<f64>,
    /// Expected p-values where that signal fluctuates by +2, +1, 0, -1, -2 standard deviations, in
    /// increasing order.
    pub p0_exp: Option<[f64; 5]>,
    /// The value for which the significance is expected.
    pub mu_expected: f64,
    /// q₀ of the observed data.
    pub q0: Option<f64>,
    /// q₀ of the Asimov data set.
    pub q0_asimov: Option<f64>,
    /// Whether every fit converged.
    pub converged: bool,
    /// What to know before the numbers are used.
    pub warnings: Vec<String>,
}

/// Returns the discovery significance of parameter `poi`, observed and expected at `mu_expected`
/// (arXiv:1007.1727, eqs. 12, 52 and 53).
pub fn significance<L: DataLikelihood + Clone>(
    problem: &mut Problem<'_, L>,
    poi: usize,
    mu_expected: f64,
) -> SignificanceResult {
    let mut scratch = problem.likelihood.clone();
    let mut test = ProfileRatioTest::new(problem.reborrow(), &mut scratch, TestStatistic::Q0, poi, mu_expected);
    let result = test.result(0.0);
    let z_obs = result.q.map(f64::sqrt);
    SignificanceResult {
        poi: result.poi,
        z_obs,
        p0_obs: z_obs.map(upper_tail),
        z_exp: result.q_asimov.map(f64::sqrt),
        p0_exp: result.cls_exp,
        mu_expected,
        q0: result.q,
        q0_asimov: result.q_asimov,
        converged: result.converged,
        warnings: result.warnings,
    }
}
