//! Searches for many signals: a bump hunt, whose correlations are compared with projections of its
//! signals, and whose global p-values with toys.

use nextstat::patchsets::{GridFiles, GridRequest, SignalGrid};
use nextstat::signal_search::{Search, SearchRequest};
use nextstat::{Face, Hint as _, Settings};
use ns_core::CompileOptions;
use ns_inference::parallel::ExecutionContext;
use ns_translate::digest::{DigestAlgorithm, digest};
use ns_translate::patchset::PatchSet;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;

const BINS: usize = 60;
const MASSES: usize = 40;

/// The centre of a bin or signal of `n`, from 0 to 1.
fn place(i: usize, n: usize) -> f64 {
    (i as f64 + 0.5) / n as f64
}

/// A falling background of `scale` times 200 events in its first bin.
fn background(scale: f64) -> Vec<f64> {
    (0..BINS).map(|b| scale * 200.0 * (-2.5 * place(b, BINS)).exp()).collect()
}

fn signal(mass: usize) -> Vec<f64> {
    let height = |b: usize| 8.0 * (-0.5 * ((place(b, BINS) - place(mass, MASSES)) / 0.025).powi(2)).exp();
    (0..BINS).map(height).collect()
}

/// How the second background, with a free normalisation, falls.
fn second(scale: f64) -> Vec<f64> {
    (0..BINS).map(|b| scale * 30.0 * (1.0 - place(b, BINS))).collect()
}

/// A bump hunt in these counts.
struct BumpHunt {
    scale: f64,
    counts: Vec<f64>,
    patches: Vec<(String, Value)>,
    labels: Vec<&'static str>,
    values: Vec<Value>,
}

impl BumpHunt {
    fn new(scale: f64, counts: Vec<f64>) -> Self {
        let add = |mass: usize| {
            let modifiers = json!([{"name": "mu", "type": "normfactor", "data": null}]);
            json!([{"op": "add", "path": "/channels/0/samples/2", "value": {"name": "signal", "data": signal(mass), "modifiers": modifiers}}])
        };
        let patches = (0..MASSES).map(|mass| (format!("m{mass}"), add(mass))).collect();
        let values = (0..MASSES).map(|mass| json!([100 + mass])).collect();
        Self { scale, counts, patches, labels: vec!["mass"], values }
    }

    fn grid(&self) -> SignalGrid {
        let norm = |name: &str| json!([{"name": name, "type": "normfactor", "data": null}]);
        let samples = json!([
            {"name": "falling", "data": background(self.scale), "modifiers": norm("norm_falling")},
            {"name": "linear", "data": second(self.scale), "modifiers": norm("norm_linear")},
        ]);
        let bounds = json!([{"name": "mu", "bounds": [[0.0, 100.0]]}]);
        let workspace = json!({
            "version": "1.0.0",
            "channels": [{"name": "SR", "samples": samples}],
            "observations": [{"name": "SR", "data": self.counts}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": bounds}}],
        })
        .to_string();
        let sha256 = digest(workspace.as_bytes(), DigestAlgorithm::Sha256).unwrap();
        let patch = |((name, patch), values): (&(String, Value), &Value)| json!({"metadata": {"name": name, "values": values}, "patch": patch});
        let patches: Vec<Value> = self.patches.iter().zip(&self.values).map(patch).collect();
        let metadata = json!({"name": "bumps", "description": "bumps", "labels": self.labels, "digests": {"sha256": sha256}, "references": {"hepdata": "ins1234567"}});
        let set = json!({"version": "1.0.0", "metadata": metadata, "patches": patches}).to_string();
        let set = PatchSet::from_bytes(set.as_bytes()).unwrap();
        SignalGrid::new(Arc::new(set), workspace.as_bytes(), GridFiles::default()).unwrap()
    }

    fn search(&self, request: &SearchRequest) -> Result<Search, nextstat::Error> {
        self.search_on(request, 2)
    }

    fn search_on(&self, request: &SearchRequest, threads: usize) -> Result<Search, nextstat::Error> {
        let (options, settings) = (CompileOptions::default(), Settings::default());
        let of = GridRequest { options: &options, settings: &settings, face: Face::Library };
        self.grid().search(&of, request, ExecutionContext::with_threads(NonZeroUsize::new(threads).unwrap()))
    }
}

/// Returns the counts of the background, and a bump of `strength` times the signal at `mass`.
fn counts(scale: f64, mass: usize, strength: f64) -> Vec<f64> {
    let sum = background(scale).into_iter().zip(second(scale)).zip(signal(mass));
    sum.map(|((a, b), s)| (a + b + strength * s).round()).collect()
}

/// Returns the part of `vector` that is orthogonal to the orthonormal `basis`.
fn orthogonal(vector: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    basis.iter().fold(vector.to_vec(), |rest, direction| {
        let along: f64 = rest.iter().zip(direction).map(|(a, b)| a * b).sum();
        rest.iter().zip(direction).map(|(a, b)| a - along * b).collect()
    })
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn correlations_are_those_of_signals_without_their_projections_on_the_background() {
    // The counts are those that the background expects, so that both normalisations are 1.
    let expected: Vec<f64> = background(10.0).iter().zip(second(10.0)).map(|(a, b)| a + b).collect();
    let hunt = BumpHunt::new(10.0, expected.clone());
    let found = hunt.search(&SearchRequest { correlations: true, ..SearchRequest::default() }).unwrap();
    let whitened = |values: &[f64]| -> Vec<f64> { values.iter().zip(&expected).map(|(v, l)| v / l.sqrt()).collect() };
    let unit = |v: Vec<f64>| -> Vec<f64> {
        let length = product(&v, &v).sqrt();
        v.iter().map(|x| x / length).collect()
    };
    let first = unit(whitened(&background(10.0)));
    let next = unit(orthogonal(&whitened(&second(10.0)), std::slice::from_ref(&first)));
    let basis = [first, next];
    let signals: Vec<Vec<f64>> = (0..MASSES).map(|m| unit(orthogonal(&whitened(&signal(m)), &basis))).collect();
    let correlation = found.correlation.unwrap();
    for a in 0..MASSES {
        for b in 0..MASSES {
            let exact = product(&signals[a], &signals[b]);
            assert!((correlation[a][b] - exact).abs() < 1e-8, "{a} {b}: {} and {exact}", correlation[a][b]);
        }
        assert!(found.patches[a]["Z_linear"].as_f64().unwrap().abs() < 1e-4);
    }
}

#[test]
fn the_field_agrees_with_toys_for_large_counts() {
    let hunt = BumpHunt::new(100.0, counts(100.0, 20, 30.0));
    let request = SearchRequest { n_toys: 3_000, ..SearchRequest::default() };
    let found = hunt.search(&request).unwrap();
    let strongest = found.strongest.unwrap();
    assert!(["m19", "m20", "m21"].contains(&&*strongest.patch) && strongest.z > 2.0, "{strongest:?}");
    let patch = &found.patches[20];
    let (z, linear) = (patch["result"]["Z_obs"].as_f64().unwrap(), patch["Z_linear"].as_f64().unwrap());
    assert!((z / linear - 1.0).abs() < 0.05, "{z} and {linear}");
    for point in found.curve.iter().filter(|point| point.z <= 3.0) {
        let toys = point.toys.unwrap();
        let error = toys.error.unwrap().hypot(point.field.error.unwrap());
        assert!((toys.p_value - point.field.p_value).abs() < 4.0 * error, "{point:?}");
        // Upcrossings bound the p-value from above.
        assert!(point.upcrossings.unwrap().p_value >= point.field.p_value - 4.0 * error, "{point:?}");
        assert!(point.field.p_value >= point.p_local);
    }
    let toys = found.toys.unwrap();
    assert_eq!((toys.n_toys, toys.n_failed), (3_000, 0));
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let hunt = BumpHunt::new(1.0, counts(1.0, 10, 3.0));
    let request = SearchRequest { n_toys: 200, n_samples: 2_000, correlations: true, ..SearchRequest::default() };
    let [one, three] = [1, 3].map(|threads| hunt.search_on(&request, threads).unwrap().document());
    assert_eq!(one, three);
}

#[test]
fn small_counts_and_signals_without_a_place_are_told() {
    let mut hunt = BumpHunt::new(0.02, counts(0.02, 20, 0.0));
    // This signal is the background, and this one has other bins.
    hunt.patches[3].1[0]["value"]["data"] = json!(background(0.02));
    hunt.patches[5].1[0]["value"]["data"] = json!([1.0, 2.0]);
    let found = hunt.search(&SearchRequest::default()).unwrap();
    assert!(found.patches[3]["Z_linear"].is_null() && found.patches[5].get("error").is_some());
    let said = found.warnings.join("\n");
    for part in ["1 of 40 patches have errors", "1 signals cannot be told from the background", "the counts are small"]
    {
        assert!(said.contains(part), "{said}");
    }
    assert!(!found.converged && found.complete);
}

#[test]
fn signals_are_in_a_row_along_one_label() {
    let mut hunt = BumpHunt::new(1.0, counts(1.0, 20, 4.0));
    let along = |hunt: &BumpHunt, label: Option<&str>| {
        let request = SearchRequest { label: label.map(str::to_owned), n_samples: 200, ..SearchRequest::default() };
        hunt.search(&request)
    };
    let row = along(&hunt, None).unwrap().upcrossings.unwrap();
    assert!(row.label == "mass" && row.expected > 1.0 && row.observed >= 1, "{row:?}");
    let error = along(&hunt, Some("mas")).unwrap_err();
    assert_eq!(error.to_string(), "the patch set has no label `mas`");
    assert_eq!(error.hint(Face::Library).unwrap(), "its labels are `mass`");
    hunt.labels.push("width");
    hunt.values.iter_mut().for_each(|values| values.as_array_mut().unwrap().push(json!(1)));
    hunt.values[1] = json!([100, 2]);
    assert!(along(&hunt, None).unwrap().upcrossings.is_none());
    assert!(along(&hunt, Some("mass")).unwrap_err().to_string().contains("not numbers that differ"));
    let few = SearchRequest { n_samples: 10, ..SearchRequest::default() };
    assert!(hunt.search(&few).unwrap_err().to_string().contains("10 samples are too few"));
}
