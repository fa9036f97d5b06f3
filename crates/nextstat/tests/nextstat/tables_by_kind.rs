//! Tables of studies of a fit: its goodness, scans, contours, toys, data sets and exclusion planes.

use nextstat::coverage::CoverageRequest;
use nextstat::curves::{AxisRequest, ContourLevels, ScanRequest};
use nextstat::goodness::GoodnessRequest;
use nextstat::hypothesis::SignificanceRequest;
use nextstat::intervals::RegionRequest;
use nextstat::tables::TableFormat;
use nextstat::{Analysis, NoMonitor, Settings};
use ns_inference::scan::ScanValues;
use serde_json::{Value, json};

use crate::example;
use crate::tables::{parse_csv, table};

pub(crate) fn goodness(analysis: &Analysis) -> Value {
    let request = GoodnessRequest { n_toys: Some(10), ..GoodnessRequest::default() };
    analysis.goodness(&request, &NoMonitor).expect("a goodness of fit").document()
}

/// A scan of two parameters with a contour.
pub(crate) fn grid() -> Value {
    let axis = |name: &str| AxisRequest { parameter: Some(name.to_owned()), values: ScanValues::Automatic(3) };
    let contours = Some(ContourLevels { levels: vec![0.68], n_points: 8 });
    let request = ScanRequest { axes: vec![axis("mu"), axis("norm_ttbar")], contours, ..ScanRequest::default() };
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    analysis.scan(&request, &NoMonitor).expect("a scan").document()
}

/// A test by toys, with the numbers of no model.
pub(crate) fn toy_test() -> Value {
    let fraction = |n: u64| json!({"value": n as f64 / 100.0, "error": 0.05, "n_extreme": n, "n_converged": 100});
    json!({
        "$schema": "urn:nextstat:schema:hypotest-toys:1", "poi": {"name": "mu"}, "mu": 1.5, "test_stat": "qtilde",
        "CLs_obs": 0.125, "CLs_obs_error": 0.0625, "CLs_exp": [0.01, 0.03, 0.1, 0.3, 0.6],
        "CLs_exp_errors": [0.01, 0.02, 0.03, 0.04, 0.05], "converged": true, "n_failed": [1, 2],
        "tail_probabilities": {"CLsb_obs": fraction(10), "CLb_obs": fraction(80)}, "thrown_at": {}, "warnings": [],
    })
}

/// Fits of data sets, of which one failed.
pub(crate) fn data_sets() -> Value {
    let row = |number: u64, outcome: &str, bestfit: Value| json!({"data_set": number, "outcome": outcome, "twice_nll": 12.5, "bestfit": bestfit, "uncertainties": [0.5, 0.25]});
    let parameter = |name: &str| json!({"parameter": name, "bestfit": 1.0, "uncertainty": 0.5, "mean": 1.125, "standard_deviation": 0.375});
    json!({
        "$schema": "urn:nextstat:schema:fits:1", "par_names": ["mu", "k"], "nominal": {"converged": true},
        "data_sets": [row(0, "converged", json!([1.5, 2.0])), row(1, "iteration_limit", json!([null, null]))],
        "parameters": [parameter("mu"), parameter("k")], "correlation": [[1.0, null], [null, null]], "converged": false,
    })
}

/// An exclusion plane of one signal, with a contour.
pub(crate) fn plane() -> Value {
    let curve = json!({"contours": [{"vertices": [[500.0, 100.0], [600.0, 150.0]], "ends_at_edge": true}]});
    let point = json!({"patch": "a", "x": 500.0, "y": 100.0, "observed": 0.04, "expected": [0.01, 0.02, 0.03, 0.1, 0.2], "excluded": true});
    json!({
        "$schema": "urn:nextstat:schema:exclusion:1", "x": "m_1", "y": "m_2", "cl": 0.95, "quantity": "CLs",
        "points": [point], "observed": curve, "expected": [curve, curve, curve, curve, curve], "left_out": [],
    })
}

/// Returns the columns of a CSV table by name.
fn columns(document: &Value, name: &str) -> Vec<(String, Vec<String>)> {
    let rows = parse_csv(&table(document, name).text(TableFormat::Csv));
    let column = |i: usize| rows[1..].iter().map(|row| row[i].clone()).collect();
    rows[0].iter().enumerate().map(|(i, name)| (name.clone(), column(i))).collect()
}

/// Returns the column `name`.
fn column(document: &Value, table: &str, name: &str) -> Vec<String> {
    let found = columns(document, table).into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no column `{name}`")).1
}

#[test]
fn regions_and_constraint_terms_add_up_to_the_goodness_of_fit() {
    let document = goodness(&Analysis::new(&example("shapes"), &Settings::default()).expect("settings"));
    let names = column(&document, "goodness", "region");
    assert_eq!(names, ["control_region", "signal_region", "constraint terms", "all"]);
    let statistics: Vec<f64> =
        column(&document, "goodness", "statistic").iter().map(|text| text.parse().expect("a number")).collect();
    let sum: f64 = statistics[..3].iter().sum();
    // The order of the sum differs.
    assert!((sum - statistics[3]).abs() < 1e-12 * sum, "{statistics:?}");
    assert_eq!(json!(statistics[3]), document["statistic"]);
    let by_toys = column(&document, "goodness", "p_value_toys");
    assert_eq!(by_toys[3].parse::<f64>().ok(), document["toys"]["total"]["value"].as_f64());
    assert_eq!(by_toys[2], "");
    let mut failed = document;
    failed["converged"] = json!(false);
    assert!(column(&failed, "goodness", "statistic").iter().all(String::is_empty));
}

#[test]
fn a_report_has_the_goodness_of_its_fit() {
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    let report = analysis.report().expect("a report").document();
    let goodness = analysis.goodness(&GoodnessRequest::default(), &NoMonitor).expect("a goodness").document();
    assert_eq!(table(&report, "goodness").rows, table(&goodness, "goodness").rows);
}

#[test]
fn tests_by_toys_have_their_errors() {
    let document = toy_test();
    assert_eq!(column(&document, "tests", "observed"), ["0.125"]);
    assert_eq!(column(&document, "tests", "observed_uncertainty"), ["0.0625"]);
    assert_eq!(column(&document, "tests", "expected_plus_2_uncertainty"), ["0.05"]);
    assert_eq!(column(&document, "p_values", "n_extreme"), ["10.0", "80.0"]);
    assert_eq!(column(&document, "p_values", "n_failed"), ["1.0", "2.0"]);
    let mut discovery = document;
    discovery["test_stat"] = json!("q0");
    assert_eq!(table(&discovery, "tests").caption, "p-values of the background, by toys.");
}

#[test]
fn data_sets_whose_fits_failed_have_no_numbers() {
    let document = data_sets();
    assert_eq!(column(&document, "data_sets", "mu"), ["1.5", ""]);
    assert_eq!(column(&document, "data_sets", "twice_nll"), ["12.5", ""]);
    assert_eq!(column(&document, "data_sets", "outcome"), ["converged", "iteration limit"]);
    assert_eq!(column(&document, "parameters", "standard_deviation"), ["0.375", "0.375"]);
    let names: Vec<String> = columns(&document, "correlation").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["parameter", "mu"], "a parameter that does not vary has no correlation");
}

#[test]
fn a_grid_has_a_row_for_each_pair_of_values() {
    let document = grid();
    let numbers = |name: &str| -> Vec<f64> {
        column(&document, "scan", name).iter().map(|text| text.parse().expect("a number")).collect()
    };
    let (mu, norm, rises) = (numbers("mu"), numbers("norm_ttbar"), numbers("twice_delta_nll"));
    assert_eq!(mu.len(), 9);
    for (k, rise) in rises.iter().enumerate() {
        assert_eq!(
            json!([mu[k], norm[k], rise]),
            json!([
                document["values"][0][k / 3],
                document["values"][1][k % 3],
                document["twice_delta_nll"][k / 3][k % 3],
            ])
        );
    }
    assert_eq!(column(&document, "contours", "mu").len(), 8);
}

#[test]
fn an_exclusion_has_its_signals_and_its_contours() {
    let document = plane();
    assert_eq!(column(&document, "points", "excluded"), ["yes"]);
    assert_eq!(column(&document, "points", "expected_plus_1"), ["0.1"]);
    let vertices = column(&document, "contours", "m_2");
    assert_eq!((vertices.len(), &vertices[1]), (12, &"150.0".to_owned()));
}

#[test]
fn a_coverage_has_a_row_for_each_value_and_method() {
    let analysis = Analysis::new(&example("simple"), &Settings::default()).expect("settings");
    let request = CoverageRequest { n_toys: 40, ..CoverageRequest::new(vec![0.0, 1.0]) };
    let document = analysis.coverage(&request, &NoMonitor).expect("a coverage").document();
    let names = column(&document, "coverage", "method");
    assert_eq!(names, ["hessian", "minos", "cls", "hessian", "minos", "cls"]);
    assert_eq!(column(&document, "coverage", "true_value"), ["0.0", "0.0", "0.0", "1.0", "1.0", "1.0"]);
    let found = column(&document, "coverage", "coverage")[4].parse::<f64>().ok();
    assert_eq!(found, document["points"][4]["coverage"].as_f64());
}

#[test]
fn a_region_has_its_vertices_and_its_points() {
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    let axes = [("mu", [0.0, 1.5, 3.0, 4.5]), ("norm_ttbar", [0.7, 0.9, 1.1, 1.3])];
    let axes = axes.map(|(name, values)| (name.to_owned(), values.to_vec()));
    let request = RegionRequest { tolerance: 0.5, ..RegionRequest::new(axes) };
    let document = analysis.region(&request, &NoMonitor).expect("a region").document();
    let contours = document["contours"].as_array().expect("contours").iter();
    let parts = contours.flat_map(|level| level["contours"].as_array().expect("parts"));
    let vertices: Vec<&Value> = parts.flat_map(|part| part["vertices"].as_array().expect("vertices")).collect();
    let mu: Vec<Option<f64>> = column(&document, "contours", "mu").iter().map(|text| text.parse().ok()).collect();
    assert!(!mu.is_empty());
    assert_eq!(mu, vertices.iter().map(|vertex| vertex[0].as_f64()).collect::<Vec<_>>());
    let p_values = column(&document, "points", "p_value");
    assert_eq!(p_values.len(), 16);
    assert_eq!(p_values[5].parse::<f64>().ok(), document["points"][5]["p_value"]["value"].as_f64());
}

#[test]
fn a_significance_has_both_p_values() {
    let analysis = Analysis::new(&example("shapes"), &Settings::default()).expect("settings");
    let document = analysis.significance(&SignificanceRequest::default()).expect("a significance").document();
    let median = document["p0_exp"][2].as_f64();
    assert!(median.is_some());
    assert_eq!(column(&document, "significance", "p0_exp")[0].parse::<f64>().ok(), median);
}

#[test]
fn impacts_of_groups_keep_their_significant_zeros() {
    let group = |frozen: f64| json!({"group": "theory", "members": ["a", "b"], "frozen": frozen, "global": null});
    let document = json!({
        "$schema": "urn:nextstat:schema:ranking:1", "poi": {"name": "mu"}, "fit": {"converged": true}, "ranking": [],
        "groups": [group(0.1035), group(0.25)], "converged": true, "warnings": [],
    });
    let markdown = table(&document, "groups").text(TableFormat::Markdown);
    assert!(markdown.contains("| theory | 2 | 0.10 | – |") && markdown.contains("| 0.25 |"), "{markdown}");
}

#[test]
fn tables_of_results_that_did_not_converge_say_so() {
    let mut document = toy_test();
    assert_eq!(table(&document, "tests").alarm(), None);
    document["converged"] = json!(false);
    let failed = table(&document, "tests");
    assert!(!failed.converged);
    assert_eq!(failed.alarm().as_deref(), Some("numbers of fits that did not converge are left out"));
}
