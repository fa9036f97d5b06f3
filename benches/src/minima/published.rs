//! Published cases: the exhaustive minima, to be stored, and how far the default results are above
//! them.

use super::{Effort, KINDS, MinimaArgs, is_of_minima};
use ns_compute::CpuLikelihood;
use ns_core::{DataLikelihood, Likelihood, Model, expected};
use ns_inference::hypotest::ProfileRatioTest;
use ns_inference::test_statistic::TestStatistic;
use ns_inference::{FitOptions, Problem, fit};
use ns_testkit::exhaustive::{self, Wanted};
use ns_testkit::published;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The exhaustive minima of one model, as 2NLL.
pub(super) struct Minima {
    pub(super) free: f64,
    /// At μ = 0, and at μ = 1.
    pub(super) conditional: Option<[f64; 2]>,
    /// Of the Asimov data set of the conditional minimum at μ = 0: free, and at μ = 1.
    pub(super) asimov: Option<[f64; 2]>,
}

impl Minima {
    /// Of the observed data of `model`.
    pub(super) fn exhaustive(model: &Model, effort: Effort) -> Self {
        let poi = model.poi();
        let mut likelihood = CpuLikelihood::new(model);
        let observed = exhaustive::search(model, &mut likelihood, poi, &[0.0, 1.0], effort);
        let free = 2.0 * observed.free.nll;
        let [Some(at_0), Some(at_1)] = [0, 1].map(|k| observed.conditional.get(k)) else {
            return Self { free, conditional: None, asimov: None };
        };
        likelihood.set_data(&expected::asimov(model, &at_0.params));
        let known = [at_0.params.clone(), at_1.params.clone()];
        let asimov =
            exhaustive::search_for(model, &mut likelihood, Wanted { poi, values: &[1.0], known: &known }, effort);
        Self {
            free,
            conditional: Some([2.0 * at_0.nll, 2.0 * at_1.nll]),
            asimov: Some([2.0 * asimov.free.nll, 2.0 * asimov.conditional[0].nll]),
        }
    }

    fn json(&self, effort: Effort) -> Value {
        let mut minima =
            json!({ "seed": effort.seed, "n_starts": effort.n_starts, "n_values": effort.n_values, "free": self.free });
        let named = [(self.conditional, ["mu_0", "mu_1"]), (self.asimov, ["asimov_free", "asimov_mu_1"])];
        for (values, names) in named.into_iter().filter_map(|(values, names)| Some((values?, names))) {
            names.into_iter().zip(values).for_each(|(name, value)| minima[name] = json!(value));
        }
        minima
    }

    /// How far the default results of `model` are above these, in 2NLL, in the order of [`KINDS`],
    /// and their warnings. The last one is the difference of the statistics of the two Asimov data
    /// sets.
    pub(super) fn default_above(&self, model: &Model) -> ([f64; 4], Vec<String>) {
        let (options, mut likelihood) = (FitOptions::default(), CpuLikelihood::new(model));
        let fitted = fit(&mut Problem::new(model, &mut likelihood, &options));
        let mut above = [fitted.twice_nll - self.free, 0.0, 0.0, 0.0];
        let mut warnings = fitted.warnings;
        if let (Some(poi), Some(conditional), Some(asimov)) = (model.poi(), self.conditional, self.asimov) {
            let mut scratch = likelihood.clone();
            let mut tester = ProfileRatioTest::new(
                Problem::new(model, &mut likelihood, &options),
                &mut scratch,
                TestStatistic::TTilde,
                poi,
                0.0,
            );
            let pair = tester.at(1.0);
            warnings.extend(tester.warnings(Some(1.0), &pair));
            let at_0 = tester.asimov_params.clone();
            above[1] = 2.0 * likelihood.nll(&at_0) - conditional[0];
            above[2] = 2.0 * likelihood.nll(&pair.observed.conditional) - conditional[1];
            above[3] = pair.asimov.value.unwrap_or(f64::NAN) - (asimov[1] - asimov[0]);
        }
        (above, warnings)
    }
}

pub(super) fn run(arguments: &MinimaArgs) -> Result<(), Box<dyn Error>> {
    let mut cases = published::cases_in(&arguments.data);
    cases.retain(|case| arguments.case.is_empty() || arguments.case.contains(&case.name));
    // Small models first, so that a fault shows early.
    cases.sort_by_key(|case| case.model.n_params());
    let mut stored = Map::new();
    println!(
        "{:44} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "case", "P", KINDS[0], KINDS[1], KINDS[2], KINDS[3], "oracle s"
    );
    for case in &cases {
        let begin = Instant::now();
        let model = &case.model;
        let effort = Effort { n_starts: arguments.starts, ..Effort::default() };
        let minima = Minima::exhaustive(model, effort);
        let seconds = begin.elapsed().as_secs_f64();
        let (above, warnings) = minima.default_above(model);
        println!(
            "{:44} {:>5} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1}",
            case.name,
            model.n_params(),
            above[0],
            above[1],
            above[2],
            above[3],
            seconds
        );
        warnings.iter().filter(|warning| is_of_minima(warning)).for_each(|warning| println!("  {warning}"));
        stored.insert(case.name.clone(), minima.json(effort));
        if let Some(file) = &arguments.write {
            write(file, &stored)?;
        }
    }
    Ok(())
}

/// Writes what there is: a run that is stopped leaves the cases that it has done.
fn write(file: &Path, cases: &Map<String, Value>) -> Result<(), Box<dyn Error>> {
    let document = json!({
        "what": "2NLL of the lowest minima that an exhaustive search finds; asimov: of the Asimov data set of the minimum at mu = 0",
        "program": concat!("ns-benches ", env!("CARGO_PKG_VERSION"), " minima --published"),
        "date": today(),
        "cases": cases,
    });
    Ok(std::fs::write(file, serde_json::to_string_pretty(&document)? + "\n")?)
}

/// The date, as YYYY-MM-DD in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Counted from March, so that a leap day is the last day of a year; 719468 days after
    // 0000-03-01 comes 1970-01-01.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}
