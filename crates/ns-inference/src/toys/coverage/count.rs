//! Counts decisions: fractions of toys whose intervals contain the true value, their errors, and
//! what they say of a method.

use super::decide::{Decision, ToyDecisions};
use super::{Coverage, CoverageMethod, CoverageSettings, MOST_FAILED};
use crate::result::PoiBestFit;
use crate::toys::binomial::clopper_pearson;
use crate::toys::p_value::ToyPValue;
use serde::Serialize;

/// The confidence level of Clopper-Pearson intervals of a coverage.
const BOUNDS_CL: f64 = 0.95;

/// The number of standard errors to which a coverage is known.
const STANDARD_ERRORS: f64 = 2.0;

/// What a coverage says of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageVerdict {
    /// The coverage is within the tolerance of the confidence level, to two standard errors.
    Compatible,
    /// The coverage is above the confidence level by more than two standard errors.
    OverCovers,
    /// None of the others.
    NotEnoughToys,
    /// Too many toys without a decision.
    TooManyFailures,
    /// The coverage is below the confidence level by more than two standard errors.
    UnderCovers,
}

/// The coverage of one method at one true value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoveragePoint {
    /// The true value of the parameter of interest.
    pub true_value: f64,
    /// The method.
    pub method: CoverageMethod,
    /// The fraction of toys whose interval contains the true value; `None` without toys or if too
    /// many of them failed. Failed toys count as not covered.
    pub coverage: Option<f64>,
    /// Its binomial error.
    pub coverage_error: Option<f64>,
    /// Its Clopper-Pearson interval at 95 % confidence level.
    pub coverage_bounds: Option<[f64; 2]>,
    /// Its range over all possible results of failed and undecided toys; `None` if there is none.
    pub coverage_range: Option<[f64; 2]>,
    /// How many standard errors it is above the confidence level: of a fraction whose expectation
    /// is the confidence level.
    pub deviation: Option<f64>,
    /// What it says.
    pub verdict: CoverageVerdict,
    /// The number of toys, including failed ones.
    pub n_toys: u64,
    /// The number of toys whose interval contains the true value.
    pub n_covered: u64,
    /// The number of toys for which a fit did not converge.
    pub n_failed: u64,
    /// The number of toys that have no interval, because -ln L is not curved at the best fit. They
    /// count as not covered.
    pub n_without_interval: u64,
    /// The number of toys that were decided by an estimate that is not significant.
    pub n_undecided: u64,
    /// The number of inner toys of all toys.
    pub n_inner_toys: u64,
}

/// What the coverage at all true values says of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodCoverage {
    /// The method.
    pub method: CoverageMethod,
    /// What it says.
    pub verdict: CoverageVerdict,
    /// The same in a sentence.
    pub statement: String,
}

/// Counts of the decisions of one method.
#[derive(Debug, Clone, Copy, Default)]
struct MethodTally {
    n_toys: u64,
    n_covered: u64,
    n_failed: u64,
    n_without_interval: u64,
    /// The numbers of undecided toys that do not count as covered and that do.
    n_undecided: [u64; 2],
}

/// Counts of the toys of one true value.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    methods: [MethodTally; CoverageMethod::ALL.len()],
    n_inner: u64,
}

impl Tally {
    /// Adds the decisions about a toy.
    pub(super) fn add(&mut self, toy: &ToyDecisions) {
        self.n_inner += toy.n_inner;
        for (tally, decision) in self.methods.iter_mut().zip(&toy.decisions) {
            let Some(decision) = decision else { continue };
            tally.n_toys += 1;
            match decision {
                Decision::Covers => tally.n_covered += 1,
                Decision::Misses => {}
                Decision::NoInterval => tally.n_without_interval += 1,
                Decision::Failed | Decision::Open(_) => tally.n_failed += 1,
                Decision::Undecided { covers } => {
                    tally.n_undecided[usize::from(*covers)] += 1;
                    tally.n_covered += u64::from(*covers);
                }
            }
        }
    }

    /// Returns the coverage of `method` at `true_value`.
    fn point(&self, method: CoverageMethod, true_value: f64, settings: &CoverageSettings) -> CoveragePoint {
        let tally = self.methods[method.index()];
        let MethodTally { n_toys, n_covered, n_failed, n_without_interval, n_undecided } = tally;
        let (cl, n) = (settings.cl, n_toys as f64);
        let is_known = n_toys > 0 && n_failed as f64 <= MOST_FAILED * n;
        let fraction = ToyPValue::from_counts(n_covered, n_toys, 0);
        let range = [n_covered - n_undecided[1], n_covered + n_undecided[0] + n_failed].map(|k| k as f64 / n);
        let has_range = n_undecided != [0, 0] || n_failed > 0;
        let known = |value: f64| is_known.then_some(value);
        let standard_error = (cl * (1.0 - cl) / n).sqrt();
        CoveragePoint {
            true_value,
            method,
            coverage: known(fraction.value),
            coverage_error: known(fraction.error),
            coverage_bounds: is_known.then(|| clopper_pearson(n_covered, n_toys, BOUNDS_CL)),
            coverage_range: has_range.then_some(range),
            deviation: known((fraction.value - cl) / standard_error),
            verdict: if is_known { verdict(range, standard_error, settings) } else { without(n_toys) },
            n_toys,
            n_covered,
            n_failed,
            n_without_interval,
            n_undecided: n_undecided[0] + n_undecided[1],
            n_inner_toys: if method == CoverageMethod::FeldmanCousins { self.n_inner } else { 0 },
        }
    }
}

fn without(n_toys: u64) -> CoverageVerdict {
    if n_toys == 0 { CoverageVerdict::NotEnoughToys } else { CoverageVerdict::TooManyFailures }
}

/// Returns what a coverage in the range from `low` to `high` says, whose standard error is
/// `error`.
fn verdict([low, high]: [f64; 2], error: f64, settings: &CoverageSettings) -> CoverageVerdict {
    let &CoverageSettings { cl, tolerance, .. } = settings;
    let [low, high] = [low - STANDARD_ERRORS * error, high + STANDARD_ERRORS * error];
    if low >= cl - tolerance && high <= cl + tolerance {
        CoverageVerdict::Compatible
    } else if high < cl {
        CoverageVerdict::UnderCovers
    } else if low > cl {
        CoverageVerdict::OverCovers
    } else {
        CoverageVerdict::NotEnoughToys
    }
}

/// Returns the result of `tallies`, one for each true value.
pub(super) fn results(settings: &CoverageSettings, poi: PoiBestFit, tallies: &[Tally], is_complete: bool) -> Coverage {
    let at = |(tally, value): (&Tally, &f64)| -> Vec<CoveragePoint> {
        settings.methods().map(|method| tally.point(method, *value, settings)).collect()
    };
    let points: Vec<CoveragePoint> = tallies.iter().zip(&settings.true_values).flat_map(at).collect();
    let of_method = |method| points.iter().filter(move |point| point.method == method);
    let methods = settings.methods().map(|method| summarised(method, of_method(method), settings)).collect();
    let has_inner = settings.wants(CoverageMethod::FeldmanCousins);
    Coverage {
        poi,
        cl: settings.cl,
        methods,
        nuisance_parameters: "conditional_best_fit",
        tolerance: settings.tolerance,
        max_failed_fraction: MOST_FAILED,
        aux: settings.aux,
        seed: settings.seed,
        n_toys: settings.n_toys,
        max_inner_toys: has_inner.then_some(settings.max_inner_toys),
        converged: is_complete && points.iter().all(|point| point.coverage.is_some()),
        is_complete,
        warnings: warnings(settings, &points, is_complete),
        points,
    }
}

/// Returns what the coverage of `method` at all true values says.
fn summarised<'a>(
    method: CoverageMethod,
    points: impl Iterator<Item = &'a CoveragePoint>,
    settings: &CoverageSettings,
) -> MethodCoverage {
    // The farthest from the confidence level of those with the worst verdict, which is the last
    // one.
    let key = |point: &CoveragePoint| point.deviation.map_or(f64::INFINITY, f64::abs);
    let worse = |a: &&CoveragePoint, b: &&CoveragePoint| {
        (a.verdict as usize).cmp(&(b.verdict as usize)).then(key(a).total_cmp(&key(b)))
    };
    match points.max_by(worse) {
        Some(worst) => MethodCoverage { method, verdict: worst.verdict, statement: statement(worst, settings) },
        None => {
            let (verdict, statement) = (CoverageVerdict::NotEnoughToys, "no true value was tested".to_owned());
            MethodCoverage { method, verdict, statement }
        }
    }
}

/// Returns what `worst` says of its method in a sentence.
fn statement(worst: &CoveragePoint, settings: &CoverageSettings) -> String {
    let &CoverageSettings { cl, tolerance, .. } = settings;
    let (intervals, are_asymptotic) = match worst.method {
        CoverageMethod::Hessian => ("intervals of z standard deviations", true),
        CoverageMethod::Minos => ("MINOS intervals", true),
        CoverageMethod::Cls => ("upper limits by asymptotic CLs", true),
        CoverageMethod::FeldmanCousins => ("Feldman-Cousins intervals", false),
    };
    let value = worst.true_value;
    let coverage = match (worst.coverage, worst.coverage_error) {
        (Some(coverage), Some(error)) => format!("{coverage:.4} ± {error:.4} at {value}"),
        _ => format!("unknown at {value}"),
    };
    let advice = |text: &str| if are_asymptotic { format!("; {text}") } else { String::new() };
    match worst.verdict {
        CoverageVerdict::Compatible => format!(
            "{intervals} have their coverage: within {tolerance} of {cl} at all tested values{}",
            advice("asymptotic formulas may be used there")
        ),
        CoverageVerdict::OverCovers => {
            format!("{intervals} over-cover: their coverage is {coverage}; they are conservative")
        }
        CoverageVerdict::UnderCovers => format!(
            "{intervals} under-cover: their coverage is {coverage}{}",
            advice("asymptotic formulas should not be used there")
        ),
        CoverageVerdict::NotEnoughToys => {
            format!("not enough toys to say whether {intervals} have their coverage: it is {coverage}")
        }
        CoverageVerdict::TooManyFailures => format!(
            "the coverage of {intervals} is unknown: the fits of {} of {} toys at {value} did not converge",
            worst.n_failed, worst.n_toys
        ),
    }
}

fn warnings(settings: &CoverageSettings, points: &[CoveragePoint], is_complete: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if !is_complete {
        warnings.push("interrupted: some true values have fewer toys than wanted, or none".to_owned());
    }
    for point in points {
        let CoveragePoint { true_value, n_toys, n_failed, n_without_interval, n_undecided, .. } = *point;
        let (method, at) = (point.method.name(), format!("of {n_toys} toys at {true_value}"));
        if n_failed > 0 {
            warnings.push(format!("{method}: the fits of {n_failed} {at} did not converge; they count as not covered"));
        }
        if n_without_interval > 0 {
            warnings.push(format!(
                "{method}: {n_without_interval} {at} have no interval, because -ln L is not curved at their best fit; they count as not covered"
            ));
        }
        if n_undecided as f64 > settings.tolerance * n_toys as f64 {
            warnings.push(format!(
                "{method}: {n_undecided} {at} were not decided significantly by {} inner toys each",
                settings.max_inner_toys
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys::AuxTreatment;

    fn settings() -> CoverageSettings {
        CoverageSettings {
            poi: 0,
            true_values: vec![1.0],
            methods: vec![CoverageMethod::Minos],
            cl: 0.95,
            n_toys: 1000,
            max_inner_toys: 100,
            tolerance: 0.02,
            seed: 0,
            aux: AuxTreatment::Fluctuated,
        }
    }

    fn point(counts: MethodTally) -> CoveragePoint {
        let mut tally = Tally::default();
        tally.methods[CoverageMethod::Minos.index()] = counts;
        tally.point(CoverageMethod::Minos, 1.0, &settings())
    }

    fn tally(n_toys: u64, n_covered: u64) -> MethodTally {
        MethodTally { n_toys, n_covered, ..MethodTally::default() }
    }

    /// The standard error of 0.95 is 0.00689 for 1000 toys and 0.00218 for 10,000.
    #[test]
    fn verdicts_take_two_standard_errors() {
        let verdict = |n_toys, n_covered| point(tally(n_toys, n_covered)).verdict;
        assert_eq!(verdict(1000, 950), CoverageVerdict::Compatible);
        assert_eq!(verdict(1000, 940), CoverageVerdict::NotEnoughToys);
        assert_eq!(verdict(1000, 935), CoverageVerdict::UnderCovers);
        assert_eq!(verdict(1000, 965), CoverageVerdict::OverCovers);
        // Significant, but small.
        assert_eq!(verdict(10_000, 9440), CoverageVerdict::Compatible);
        assert_eq!(verdict(0, 0), CoverageVerdict::NotEnoughToys);
    }

    #[test]
    fn deviations_are_in_standard_errors_of_the_confidence_level() {
        let found = point(tally(1900, 1767)).deviation.expect("a coverage");
        // 0.93, and √(0.95 · 0.05/1900) = 0.005.
        assert!((found + 4.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn failed_toys_are_never_covered_and_too_many_leave_no_answer() {
        let found = point(MethodTally { n_failed: 10, ..tally(1000, 940) });
        assert_eq!((found.coverage, found.coverage_range), (Some(0.94), Some([0.94, 0.95])));
        let found = point(MethodTally { n_failed: 11, ..tally(1000, 940) });
        assert_eq!((found.coverage, found.verdict), (None, CoverageVerdict::TooManyFailures));
        assert!(found.coverage_error.is_none() && found.coverage_bounds.is_none() && found.deviation.is_none());
    }

    #[test]
    fn undecided_toys_widen_the_range() {
        let found = point(MethodTally { n_undecided: [10, 20], ..tally(1000, 950) });
        assert_eq!((found.coverage, found.coverage_range), (Some(0.95), Some([0.93, 0.96])));
        assert_eq!((found.verdict, found.n_undecided), (CoverageVerdict::NotEnoughToys, 30));
    }
}
