//! CLs of simplified models beside those of the full model.

use super::{Simplified, SimplifiedSignal};
use crate::hypothesis::HypotestRequest;
use crate::patchsets::{GridRequest, SignalGrid, failed_patches};
use crate::{Analysis, CompiledModel, Error, Settings};
use ns_core::CompileOptions;
use ns_inference::parallel::{self, ExecutionContext};
use ns_inference::simplified::{SimplifiedForm, SimplifiedYields};
use ns_translate::patchset::PatchEntry;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// CLs at a strength of 1 by asymptotic formulas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTest {
    /// Observed.
    #[serde(rename = "CLs_obs")]
    pub cls_obs: Option<f64>,
    /// Expected at -2 to +2 standard deviations.
    #[serde(rename = "CLs_exp")]
    pub cls_exp: Option<[f64; 5]>,
    /// Whether its fits converged.
    pub converged: bool,
}

/// The tests of one signal in three models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTests {
    /// In the full model.
    pub full: ComparedTest,
    /// In the linear simplified one.
    pub linear: ComparedTest,
    /// In the one with third moments.
    pub third_moments: ComparedTest,
}

/// The tests of all signals.
#[derive(Debug, Clone, PartialEq)]
pub struct SimplifiedComparison {
    /// A signal each: `tests` or `error`, and for those of a patch set `patch` and `values`.
    pub signals: Vec<Value>,
    /// The tests of those without an error.
    pub tests: Vec<ComparedTests>,
    /// The signals that were to be tested.
    pub n_signals: usize,
}

impl ComparedTest {
    fn of(analysis: &Analysis) -> Result<Self, Error> {
        let found = analysis.hypotest(&HypotestRequest::default())?.result;
        Ok(Self { cls_obs: found.cls_obs, cls_exp: found.cls_exp, converged: found.converged })
    }

    /// Returns by how much the CLs, observed and median expected, differ from those of `full`.
    fn differences(&self, full: &Self) -> [Option<f64>; 2] {
        let observed = self.cls_obs.zip(full.cls_obs);
        let expected = self.cls_exp.zip(full.cls_exp).map(|(own, full)| (own[2], full[2]));
        [observed, expected].map(|pair| pair.map(|(own, full)| (own - full).abs()))
    }
}

impl Simplified {
    /// Tests the signal of `full` in the full model and `signal`, the same one in the simplified
    /// channels, in both simplified ones.
    pub(super) fn compared(&self, full: &Analysis, signal: &SimplifiedSignal) -> Result<ComparedTests, Error> {
        let test = |form: SimplifiedForm| {
            let yields = SimplifiedYields::of(&self.moments, form);
            let workspace = self.background.workspace(&yields, form, Some(signal));
            let model = CompiledModel::new(workspace, &CompileOptions::default())?;
            ComparedTest::of(&Analysis::new(
                &model,
                &Settings { threads: full.settings().threads, ..Settings::default() },
            )?)
        };
        Ok(ComparedTests {
            full: ComparedTest::of(full)?,
            linear: test(SimplifiedForm::Linear)?,
            third_moments: test(SimplifiedForm::ThirdMoments)?,
        })
    }
}

impl SimplifiedComparison {
    /// Returns the comparison of a model with one signal.
    pub(super) fn of_model(tests: ComparedTests) -> Self {
        Self { signals: vec![json!({"tests": tests})], n_signals: 1, tests: vec![tests] }
    }

    /// Tests every signal of `grid`.
    pub(super) fn of_grid(
        simplified: &Simplified,
        grid: &SignalGrid,
        request: &GridRequest<'_>,
        execution: ExecutionContext<'_>,
    ) -> Self {
        let entries = grid.set().patches();
        let test = |entry: &PatchEntry| {
            let analysis = grid.analysis(entry, request)?;
            simplified.compared(&analysis, &simplified.background.signal(&analysis)?.signal)
        };
        let answers = parallel::map(entries.len(), execution, || (), |(), i| test(&entries[i]));
        let mut found = Self { signals: Vec::new(), tests: Vec::new(), n_signals: entries.len() };
        for (entry, answer) in entries.iter().zip(answers) {
            let mut signal: Map<String, Value> = grid.head(entry);
            match answer {
                None => continue,
                Some(Err(error)) => {
                    signal.insert("error".to_owned(), json!(error.full_message(request.face)));
                }
                Some(Ok(tests)) => {
                    signal.insert("tests".to_owned(), json!(tests));
                    found.tests.push(tests);
                }
            }
            found.signals.push(Value::Object(signal));
        }
        found
    }

    /// Returns whether every signal was tested, and every fit converged.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.n_failed() == 0
    }

    /// Returns whether the comparison was not interrupted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.signals.len() == self.n_signals
    }

    fn n_failed(&self) -> usize {
        let is_bad = |tests: &&ComparedTests| {
            [&tests.full, &tests.linear, &tests.third_moments].iter().any(|test| !test.converged)
        };
        self.signals.len() - self.tests.len() + self.tests.iter().filter(is_bad).count()
    }

    /// Returns what a reader should know before using the numbers.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self.n_failed() {
            1 if self.n_signals == 1 => Some("a fit of the comparison did not converge".to_owned()),
            n_failed => failed_patches(n_failed, self.signals.len()),
        }
    }

    /// Returns the largest differences of CLs, observed and median expected, of one form.
    #[must_use]
    pub fn largest_differences(&self, form: SimplifiedForm) -> [Option<f64>; 2] {
        let of = |tests: &ComparedTests| match form {
            SimplifiedForm::Linear => tests.linear.differences(&tests.full),
            SimplifiedForm::ThirdMoments => tests.third_moments.differences(&tests.full),
        };
        let largest = |which: usize| self.tests.iter().filter_map(|tests| of(tests)[which]).reduce(f64::max);
        [largest(0), largest(1)]
    }

    /// Returns the entry of the document.
    pub(super) fn document(&self) -> Value {
        let largest = |form: SimplifiedForm| {
            let [observed, expected] = self.largest_differences(form);
            json!({"CLs_obs": observed, "CLs_exp": expected})
        };
        json!({
            "complete": self.is_complete(),
            "largest_differences": {
                "linear": largest(SimplifiedForm::Linear),
                "third_moments": largest(SimplifiedForm::ThirdMoments),
            },
            "n_signals": self.n_signals,
            "signals": self.signals,
        })
    }
}
