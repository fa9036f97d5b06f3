//! Exclusion contours against exact curves. Comparisons with SciPy and matplotlib are in the tests
//! of the Python package.

use nextstat::exclusion::{Exclusion, ExclusionCurve, ExclusionError, ExclusionRequest};
use nextstat::patchsets::{GridRequest, SignalGrid};
use nextstat::{CompileOptions, DocumentSource, Face, Hint, NoMonitor, Settings};
use ns_inference::normal::{significance, upper_tail};
use ns_inference::parallel::{ExecutionContext, all_threads};
use serde_json::{Value, json};

type Place = [f64; 2];

/// The document of `hypotest` for signals at `places` with CLs of the normal quantiles `z`, shifted
/// by -1 … +1 for the expected band.
fn grid(places: &[Place], z: impl Fn(Place) -> f64) -> Value {
    let patch = |(i, &[x, y]): (usize, &Place)| {
        let cls = |shift: f64| upper_tail(z([x, y]) + shift);
        let band = [1.0, 0.5, 0.0, -0.5, -1.0].map(cls);
        let result = json!({"mu": 1.0, "CLs_obs": cls(0.0), "CLs_exp": band});
        json!({"patch": format!("s{i:04}"), "values": {"a": x, "b": y}, "result": result})
    };
    json!({"complete": true, "patches": places.iter().enumerate().map(patch).collect::<Vec<_>>(), "provenance": {}})
}

fn found(document: &Value) -> Exclusion {
    Exclusion::of(document, &ExclusionRequest::default()).expect("a grid")
}

fn refused(document: &Value, request: &ExclusionRequest) -> ExclusionError {
    Exclusion::of(document, request).expect_err("no contour")
}

/// (n + 1)² places in the square -1 … 1.
fn square(n: usize) -> Vec<Place> {
    let at = |i: usize| -1.0 + 2.0 * i as f64 / n as f64;
    (0..=n).flat_map(|i| (0..=n).map(move |j| [at(i), at(j)])).collect()
}

/// Numbers from -1 to 1 that are always the same.
fn jitter(k: usize) -> f64 {
    2.0 * ((k as f64 * 0.754_877_666_246_693).fract() - 0.5)
}

/// Whether `place` is inside the rings, by crossings of a ray.
fn is_inside(curve: &ExclusionCurve, [x, y]: Place) -> bool {
    let sides = curve.region.iter().flat_map(|ring| ring.windows(2));
    let crossed = sides.filter(|side| {
        let [[ax, ay], [bx, by]] = [side[0], side[1]];
        (ay > y) != (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)
    });
    crossed.count() % 2 == 1
}

fn level() -> f64 {
    significance(0.05)
}

#[test]
fn a_linear_quantile_has_a_straight_contour() {
    let places: Vec<Place> =
        square(8).iter().enumerate().map(|(k, [x, y])| [x + 0.1 * jitter(k), y + 0.1 * jitter(k + 500)]).collect();
    let exclusion = found(&grid(&places, |[x, y]| level() + 0.2 - x - 0.5 * y));
    let [contour] = &exclusion.observed.contours[..] else { panic!("one contour") };
    assert!(contour.ends_at_edge && contour.vertices.len() > 10);
    for [x, y] in &contour.vertices {
        // Rounding of CLs near 0.05 is 1e-17 / φ(1.645).
        assert!((0.2 - x - 0.5 * y).abs() < 1e-12, "({x}, {y})");
    }
    // The band of the expectation is half a standard deviation wide here.
    for (curve, shift) in exclusion.expected.iter().zip([1.0, 0.5, 0.0, -0.5, -1.0]) {
        let vertices = curve.contours.iter().flat_map(|contour| &contour.vertices);
        assert!(vertices.into_iter().all(|[x, y]| (0.2 + shift - x - 0.5 * y).abs() < 1e-12), "{shift}");
    }
}

#[test]
fn contours_converge_to_a_circle_with_the_square_of_the_spacing() {
    let error = |n| {
        let exclusion = found(&grid(&square(n), |[x, y]| level() + 2.0 * (0.49 - x * x - y * y)));
        let [contour] = &exclusion.observed.contours[..] else { panic!("one contour") };
        assert!(!contour.ends_at_edge && contour.vertices.first() == contour.vertices.last());
        contour.vertices.iter().map(|[x, y]| (x.hypot(*y) - 0.7).abs()).fold(0.0, f64::max)
    };
    let errors = [10, 20, 40, 80].map(error);
    // The sagitta of a chord of the spacing h, h²/8 for each unit of curvature, with diagonals.
    assert!(errors[0] < 0.02, "{errors:?}");
    for pair in errors.windows(2) {
        assert!(pair[0] / pair[1] > 2.5, "{errors:?}");
    }
    assert!(errors[0] / errors[3] > 40.0, "{errors:?}");
}

#[test]
fn every_excluded_point_is_inside_and_no_other() {
    // An island of exclusion, and parts that end at the edge.
    let z = |[x, y]: Place| level() - 0.25 + 0.6 * (5.0 * x).sin() * (4.0 * y + 1.0).cos() + 0.1 * x;
    let exclusion = found(&grid(&square(17), z));
    let curves = [&exclusion.observed, &exclusion.expected[2]];
    assert!(exclusion.observed.contours.iter().any(|contour| contour.ends_at_edge));
    assert!(exclusion.observed.contours.iter().any(|contour| !contour.ends_at_edge));
    for curve in curves {
        for point in &exclusion.points {
            // A bit inside the edge of the grid, where the rule of crossings is one-sided.
            let place = [point.x * (1.0 - 1e-9), point.y * (1.0 - 1e-9)];
            assert_eq!(Some(is_inside(curve, place)), point.excluded, "{place:?}");
        }
    }
    let n_excluded = exclusion.points.iter().filter(|point| point.excluded == Some(true)).count();
    assert!(n_excluded > 50 && n_excluded < exclusion.points.len() - 50);
}

#[test]
fn the_region_is_on_the_left_of_contours_and_rings() {
    let area = |ring: &[Place]| {
        ring.windows(2).map(|side| side[0][0] * side[1][1] - side[0][1] * side[1][0]).sum::<f64>() / 2.0
    };
    for mass_splitting in [false, true] {
        let request = ExclusionRequest { mass_splitting, ..ExclusionRequest::default() };
        let circle = |sign: f64| {
            let document = grid(&square(40), |[x, y]| level() + sign * (0.49 - x * x - y * y));
            Exclusion::of(&document, &request).expect("a grid").observed
        };
        let exact = std::f64::consts::PI * 0.49;
        let disc = circle(1.0);
        assert!((area(&disc.region[0]) - exact).abs() < 5e-3 && area(&disc.contours[0].vertices) > 0.0);
        // The rest of the square: its edge, and the disc as a hole.
        let rest: f64 = circle(-1.0).region.iter().map(|ring| area(ring)).sum();
        assert!((rest - (4.0 - exact)).abs() < 5e-3, "{rest}");
    }
}

#[test]
fn the_order_of_patches_changes_nothing() {
    // On a rectangular grid all triangulations are ambiguous.
    let mut document = grid(&square(7), |[x, y]| level() + 0.4 - x * x - 0.7 * y * y * x);
    let expected = found(&document);
    let patches = document["patches"].as_array_mut().expect("patches");
    patches.reverse();
    let n = patches.len();
    for k in 0..n {
        patches.swap(k, (k * 37 + 11) % n);
    }
    assert_eq!(found(&document), expected);
}

#[test]
fn units_of_the_axes_do_not_matter() {
    let places: Vec<Place> =
        square(9).iter().enumerate().map(|(k, [x, y])| [x + 0.05 * jitter(k), y + 0.05 * jitter(k + 99)]).collect();
    let z = |[x, y]: Place| level() + 0.3 - x * x - y;
    let one = found(&grid(&places, z));
    let other: Vec<Place> = places.iter().map(|[x, y]| [1000.0 * x, y / 1000.0]).collect();
    let other = found(&grid(&other, |[x, y]| z([x / 1000.0, y * 1000.0])));
    for (a, b) in one.observed.contours.iter().zip(&other.observed.contours) {
        assert_eq!(a.vertices.len(), b.vertices.len());
        for (a, b) in a.vertices.iter().zip(&b.vertices) {
            assert!((a[0] - b[0] / 1000.0).abs() < 1e-9 && (a[1] - b[1] * 1000.0).abs() < 1e-9);
        }
    }
}

#[test]
fn points_on_a_diagonal_edge_are_not_passed_over() {
    // Rounding moves the points of the last row off their line by 1e-16 of the range.
    let side = 100.0 / 3.0;
    let place = |i: i32, j: i32| [side * f64::from(i) + 0.1, 0.7 * side * f64::from(j) + 0.3];
    let places: Vec<Place> = (0..13).flat_map(|i| (0..=i).map(move |j| place(i, j))).collect();
    let exclusion = found(&grid(&places, |[x, y]| level() + 2.0 - (x / 200.0).powi(2) + 0.001 * y));
    let [contour] = &exclusion.observed.contours[..] else { panic!("one contour") };
    let is_on_edge = |[x, y]: &&Place| ((x - 0.1) - (y - 0.3) / 0.7).abs() < 1e-6;
    assert_eq!(contour.vertices.iter().filter(is_on_edge).count(), 1);
}

#[test]
fn splittings_change_the_triangulation_alone() {
    let places: Vec<Place> = (0..9)
        .flat_map(|i| {
            [2.0, 5.0, 10.0, 20.0, 40.0]
                .map(|splitting| [100.0 + 25.0 * f64::from(i), 100.0 + 25.0 * f64::from(i) - splitting])
        })
        .collect();
    // The exclusion depends on the splitting, and all points are near the diagonal.
    let document = grid(&places, |[x, y]| level() + (12.0 - (x - y)) / 10.0 + 0.001 * (150.0 - x));
    let request = ExclusionRequest { mass_splitting: true, ..ExclusionRequest::default() };
    let exclusion = Exclusion::of(&document, &request).expect("a grid");
    assert_eq!(exclusion.coordinates, ["a", "a - b"]);
    let [contour] = &exclusion.observed.contours[..] else { panic!("one contour") };
    for [x, y] in &contour.vertices {
        assert!(((12.0 - (x - y)) / 10.0 + 0.001 * (150.0 - x)).abs() < 1e-10, "({x}, {y})");
    }
}

#[test]
fn limits_are_interpolated_in_their_logarithm() {
    let patch = |(i, [x, y]): (usize, Place)| {
        let limit = (2.0 * x + y - 0.3).exp();
        let expected = [0.5, 0.7, 1.0, 1.4, 2.0].map(|factor| factor * limit);
        json!({"patch": i.to_string(), "values": {"a": x, "b": y}, "result": {"observed": limit, "expected": expected, "level": 0.1}})
    };
    let patches: Vec<Value> = square(6).into_iter().enumerate().map(patch).collect();
    let document = json!({"patches": patches});
    let exclusion = found(&document);
    assert!((exclusion.cl - 0.9).abs() < 1e-12);
    let vertices = exclusion.observed.contours.iter().flat_map(|contour| &contour.vertices);
    assert!(vertices.into_iter().all(|[x, y]| (2.0 * x + y - 0.3).abs() < 1e-12));
    assert!(exclusion.points.iter().all(|point| point.excluded == Some(2.0 * point.x + point.y < 0.3)));
    let other = ExclusionRequest { cl: Some(0.95), ..ExclusionRequest::default() };
    assert!(matches!(refused(&document, &other), ExclusionError::OtherLevel { .. }));
}

#[test]
fn certain_signals_are_finite_and_said() {
    let mut document = grid(&square(4), |[x, _]| level() - 3.0 * x);
    let patches = document["patches"].as_array_mut().expect("patches");
    for patch in patches.iter_mut() {
        let x = patch["values"]["a"].as_f64().expect("a number");
        if x.abs() > 0.1 {
            let cls = if x < 0.0 { 0.0 } else { 1.0 };
            patch["result"]["CLs_obs"] = json!(cls);
        }
    }
    let exclusion = found(&document);
    let vertices: Vec<_> = exclusion.observed.contours.iter().flat_map(|contour| &contour.vertices).collect();
    assert!(!vertices.is_empty() && vertices.iter().all(|[x, y]| x.is_finite() && y.is_finite() && x.abs() <= 0.5));
    assert!(
        exclusion.warnings[0].starts_with("observed: the contour passes 5 signals with CLs of 0 or 1"),
        "{:?}",
        exclusion.warnings
    );
}

#[test]
fn signals_without_results_are_left_out_and_named() {
    let mut document = grid(&square(6), |[x, _]| level() - x);
    document["patches"][3] = json!({"patch": "broken", "values": {}, "error": "no minimum"});
    document["patches"][7]["result"]["converged"] = json!(false);
    document["patches"][9]["result"]["CLs_obs"] = Value::Null;
    let exclusion = found(&document);
    assert!(!exclusion.converged);
    let left_out: Vec<&str> = exclusion.left_out.iter().map(|found| found.patch.as_str()).collect();
    assert_eq!(left_out, ["broken", "s0007"]);
    assert!(exclusion.warnings[0].ends_with("left out, and contours pass over their places: `broken`, `s0007`"));
    assert_eq!(exclusion.warnings[1], "observed: 1 of 47 signals without a value left out");
    let vertices = exclusion.observed.contours.iter().flat_map(|contour| &contour.vertices);
    assert!(vertices.into_iter().all(|[x, _]| x.abs() < 1e-12));
}

#[test]
fn limits_that_were_found_count_where_others_were_not() {
    let mut document = grid(&square(6), |[x, _]| level() - x);
    for patch in document["patches"].as_array_mut().expect("patches") {
        let x = patch["values"]["a"].as_f64().expect("a number");
        patch["result"] = json!({"converged": true, "level": 0.05, "observed": x.exp(), "expected": vec![x.exp(); 5]});
    }
    let whole = found(&document);
    let part = &mut document["patches"][9]["result"];
    (part["converged"], part["expected"][4]) = (json!(false), Value::Null);
    let exclusion = found(&document);
    assert!(whole.converged && !exclusion.converged && exclusion.left_out.is_empty());
    assert_eq!(exclusion.observed, whole.observed);
    assert_eq!(exclusion.warnings, ["expected +2σ: 1 of 49 signals without a value left out"]);
    document["patches"][9]["result"] = json!({"converged": false, "level": 0.05, "observed": null, "expected": null});
    assert_eq!(found(&document).left_out[0].patch, "s0009");
}

#[test]
fn a_grid_without_a_boundary_says_so() {
    for (shift, said) in [(5.0, "every"), (-5.0, "no")] {
        let exclusion = found(&grid(&square(3), |_| level() + shift));
        assert!(exclusion.observed.contours.is_empty());
        let curves = "observed, expected -2σ, expected -1σ, expected, expected +1σ, expected +2σ";
        assert_eq!(exclusion.warnings, [format!("{curves}: {said} signal is excluded, so that there is no contour")]);
        assert_eq!(exclusion.observed.region.len(), usize::from(shift > 0.0), "the whole grid is the region");
    }
}

#[test]
fn one_point_with_two_results_needs_a_choice() {
    let mut document = grid(&square(3), |[x, _]| level() - x);
    let patches = document["patches"].as_array_mut().expect("patches");
    let mut again: Vec<Value> = patches.clone();
    for (i, (patch, other)) in patches.iter_mut().zip(&mut again).enumerate() {
        patch["values"]["width"] = json!(1);
        other["values"]["width"] = json!(5);
        other["patch"] = json!(format!("wide{i}"));
        other["result"]["CLs_obs"] = json!(0.5);
    }
    patches.extend(again);
    let error = refused(&document, &ExclusionRequest::default());
    assert_eq!(error.to_string(), "the patches `s0000` and `wide0` are at the same point and differ");
    let hint = error.hint(Face::Command).expect("a hint");
    assert!(hint.starts_with("`width` tells them apart: `--at width=1`"), "{hint}");
    let at = vec![("width".to_owned(), "1.0".to_owned())];
    let request = ExclusionRequest { at, ..ExclusionRequest::default() };
    let exclusion = Exclusion::of(&document, &request).expect("a plane");
    assert_eq!((exclusion.points.len(), &exclusion.at["width"]), (16, &json!(1)));
    // The same result twice is one.
    let mut twice = grid(&square(3), |[x, _]| level() - x);
    let mut more = twice["patches"][5].clone();
    more["patch"] = json!("again");
    twice["patches"].as_array_mut().expect("patches").push(more);
    assert_eq!(found(&twice).points.len(), 16);
}

/// All 125 signals of the ATLAS search for charginos and neutralinos with a Higgs boson.
#[test]
#[ignore = "needs published likelihoods"]
fn a_published_grid_has_its_contour() {
    let folder = ns_testkit::published::data_folder().join("workspaces");
    let source = |name: &str| DocumentSource::Path(folder.join(name));
    let signals =
        SignalGrid::load(&source("atlas_1lbb.json.zst"), &source("atlas_1lbb.patchset.json.zst")).expect("published");
    let (options, settings) = (CompileOptions::default(), Settings::default());
    let request = GridRequest { options: &options, settings: &settings, face: Face::Library };
    let execution = ExecutionContext::new(all_threads(), &NoMonitor);
    let answer = signals.every_patch(&request, execution, |analysis| analysis.hypotest(&Default::default()));
    let exclusion = found(&answer.expect("answers").document());
    assert_eq!((exclusion.points.len(), exclusion.left_out.len()), (125, 0));
    for curve in std::iter::once(&exclusion.observed).chain(&exclusion.expected) {
        assert!(!curve.contours.is_empty());
    }
    for point in &exclusion.points {
        let [cls, median] = [point.observed, point.expected[2]].map(|cls| cls.expect("a result"));
        assert_eq!((point.excluded, point.excluded_expected), (Some(cls < 0.05), Some(median < 0.05)));
        // Towards the middle of the grid, because points of its edge are on the edge of the region.
        let place = [point.x + 1e-7 * (500.0 - point.x), point.y + 1e-7 * (150.0 - point.y)];
        assert_eq!(is_inside(&exclusion.observed, place), cls < 0.05, "{}", point.patch);
        assert_eq!(is_inside(&exclusion.expected[2], place), median < 0.05, "{}", point.patch);
    }
    // Charginos up to 740 GeV are excluded for a massless neutralino (arXiv:1909.09226).
    let at_zero = exclusion.observed.contours.iter().flat_map(|contour| &contour.vertices).filter(|[_, y]| *y < 1.0);
    let reach = at_zero.map(|[x, _]| *x).fold(0.0, f64::max);
    assert!((reach - 740.0).abs() < 20.0, "{reach}");
}
