//! Tests the goodness of fit: the statistic against the likelihood, degrees of freedom, uniform
//! p-values, and published models with known results.

use ns_compute::CpuLikelihood;
use ns_core::expected::expected_main;
use ns_core::interpolate::Interpolation;
use ns_core::likelihood::nll;
use ns_core::poisson::log_normaliser;
use ns_core::spec::ModifierData;
use ns_core::{CompileOptions, Data, DataLikelihood, Model, compile};
use ns_inference::chi_squared::upper_tail;
use ns_inference::gof::{GoodnessOfFit, goodness_of_fit, saturated_deviance};
use ns_inference::{FitOptions, Problem, fit, parallel};
use ns_testkit::assert_close;
use ns_testkit::published::data_folder;
use ns_testkit::random::{self, Random, Shape};
use ns_testkit::small::{self, one_channel, region, sample};
use ns_translate::{DocumentSource, LoadRequest, load};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

use ModifierData::{HistoSys, NormFactor, NormSys};

fn goodness(model: &Model, data: &Data, options: &FitOptions) -> GoodnessOfFit {
    let mut likelihood = CpuLikelihood::new(model);
    likelihood.set_data(data);
    let result = fit(&mut Problem::new(model, &mut likelihood, options));
    goodness_of_fit(&mut Problem::new(model, &mut likelihood, options), &result, parallel::all_threads())
}

/// Returns a model of a signal region and a control region, with counts large enough for χ².
fn search() -> Model {
    let shift = HistoSys { hi_data: vec![2100.0, 1530.0, 1010.0, 800.0], lo_data: vec![1900.0, 1460.0, 985.0, 805.0] };
    let search = vec![
        sample("signal", &[100.0, 200.0, 300.0, 50.0], &[("mu", NormFactor)]),
        sample("background", &[2000.0, 1500.0, 1000.0, 800.0], &[("k", NormFactor), ("shape", shift)]),
    ];
    let control = vec![sample(
        "background",
        &[3000.0, 2500.0, 2000.0],
        &[("k", NormFactor), ("scale", NormSys { lo: 0.95, hi: 1.05 })],
    )];
    let observed: [&[f64]; 2] = [&[2080.0, 1720.0, 1290.0, 850.0], &[3050.0, 2440.0, 2010.0]];
    small::model(vec![region("search", search, observed[0]), region("control", control, observed[1])], Vec::new())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    #[test]
    fn the_statistic_is_twice_the_distance_to_the_saturated_likelihood(seed in any::<u64>(), spread in 0.1..2.0_f64) {
        let model = random::model(seed, Shape::SMALL, Interpolation::default());
        let params = random::point(&model.parameters, &mut Random::new(seed ^ 1), spread);
        let data = &model.observed;
        let value = nll(&model, data, &params);
        prop_assume!(value.is_finite());
        let none_fixed = vec![false; model.n_params()];
        let deviance = saturated_deviance(&model, data, &params, &none_fixed);
        let bins: f64 = data.main.iter().map(|&n| log_normaliser(n)).sum();
        let terms = model.table(model.layout.constraint_param).iter().zip(&data.aux);
        let terms: f64 = terms.filter_map(|(&i, &aux)| Some(model.parameters.constraint[i as usize]?.normaliser(aux))).sum();
        assert_close(deviance.total, 2.0 * (value - bins - terms), 1e-11, "q");
        assert_close(deviance.total, deviance.channels.iter().sum::<f64>() + deviance.constraints, 1e-14, "its parts");
    }
}

#[test]
fn fixed_parameters_have_no_pull_and_take_no_degree_of_freedom() {
    let model = search();
    let scale = model.parameters.index_of("scale").expect("made above");
    let free = goodness(&model, &model.observed, &FitOptions::default());
    let fixed = goodness(&model, &model.observed, &FitOptions { fixed: vec![(scale, 2.0)], ..FitOptions::default() });
    assert_eq!((free.n_bins, free.n_constraints, free.n_free, free.n_dof), (7, 2, 4, 5));
    assert_eq!((fixed.n_bins, fixed.n_constraints, fixed.n_free, fixed.n_dof), (7, 1, 3, 5));
    assert!(
        fixed.constraint_deviance.expect("a converged fit") < 4.0,
        "the fixed value is two widths away, and no pull"
    );
    assert_close(
        fixed.p_value.expect("tested"),
        upper_tail(fixed.statistic.expect("a converged fit"), 5.0),
        1e-15,
        "p",
    );
}

#[test]
fn undetermined_directions_take_no_degree_of_freedom() {
    let background = || sample("background", &[50.0, 60.0, 70.0], &[("alpha", NormSys { lo: 0.9, hi: 1.1 })]);
    let observed = [63.0, 71.0, 92.0];
    let alone =
        one_channel(vec![sample("signal", &[10.0, 20.0, 15.0], &[("mu", NormFactor)]), background()], &observed);
    let twice = one_channel(
        vec![sample("signal", &[10.0, 20.0, 15.0], &[("mu", NormFactor), ("k", NormFactor)]), background()],
        &observed,
    );
    let idle = one_channel(
        vec![
            sample("signal", &[10.0, 20.0, 15.0], &[("mu", NormFactor)]),
            background(),
            sample("nothing", &[0.0, 0.0, 0.0], &[("idle", NormFactor)]),
        ],
        &observed,
    );
    let expected = goodness(&alone, &alone.observed, &FitOptions::default());
    assert_eq!((expected.n_dof, expected.n_undetermined), (2, 0));
    for other in [twice, idle] {
        let found = goodness(&other, &other.observed, &FitOptions::default());
        assert_eq!((found.n_dof, found.n_undetermined, found.n_free), (2, 1, 3));
        assert_close(found.p_value.expect("tested"), expected.p_value.expect("tested"), 1e-9, "p");
        assert!(found.warnings.iter().any(|w| w.contains("do not determine: 1")), "{:?}", found.warnings);
    }
}

#[test]
fn empty_bins_do_not_count() {
    let samples = |empty: &[f64]| {
        let data = |bins: &[f64]| [bins, empty].concat();
        vec![
            sample("signal", &data(&[10.0, 20.0]), &[("mu", NormFactor)]),
            sample("background", &data(&[50.0, 60.0]), &[]),
        ]
    };
    let full = one_channel(samples(&[]), &[63.0, 71.0]);
    let with_empty = one_channel(samples(&[0.0]), &[63.0, 71.0, 0.0]);
    let [full, with_empty] = [full, with_empty].map(|m| goodness(&m, &m.observed, &FitOptions::default()));
    assert_eq!((full.n_bins, full.n_dof), (2, 1));
    assert_eq!((with_empty.n_bins, with_empty.n_dof), (2, 1));
    assert_close(with_empty.channels[0].p_value.expect("tested"), full.channels[0].p_value.expect("tested"), 1e-9, "p");
}

#[test]
fn p_values_need_degrees_of_freedom_and_convergence() {
    let saturated = one_channel(vec![sample("signal", &[10.0], &[("mu", NormFactor)])], &[13.0]);
    let found = goodness(&saturated, &saturated.observed, &FitOptions::default());
    assert_eq!((found.n_dof, found.p_value, found.channels[0].p_value), (0, None, None));
    assert!(
        found.statistic.is_some_and(|q| q < 1e-9)
            && found.warnings[0].starts_with("the model has at least as many free parameters"),
        "{:?}",
        found.warnings
    );

    let minimize = ns_inference::minimize::MinimizeOptions { max_iterations: 0, ..Default::default() };
    let model = search();
    let found = goodness(&model, &model.observed, &FitOptions { minimize, ..FitOptions::default() });
    assert!(found.p_value.is_none() && found.channels.iter().all(|c| c.p_value.is_none() && c.n_dof.is_none()));
    assert!(found.warnings[0].contains("did not converge"), "{:?}", found.warnings);
    assert_eq!((found.statistic, found.constraint_deviance), (None, None));
    assert!(found.channels.iter().all(|channel| channel.deviance.is_none()));
}

#[test]
fn goodness_of_fit_restores_the_data_of_the_likelihood() {
    let model = search();
    let mut likelihood = CpuLikelihood::new(&model);
    let options = FitOptions::default();
    let result = fit(&mut Problem::new(&model, &mut likelihood, &options));
    goodness_of_fit(&mut Problem::new(&model, &mut likelihood, &options), &result, parallel::all_threads());
    assert_eq!(fit(&mut Problem::new(&model, &mut likelihood, &options)), result);
}

/// Returns a normal random number (Box-Muller transform).
fn normal(random: &mut Random) -> f64 {
    let (u, v) = (random.between(0.0, 1.0), random.between(0.0, std::f64::consts::TAU));
    (-2.0 * (1.0 - u).ln()).sqrt() * v.cos()
}

#[test]
fn p_values_are_uniform_in_total_and_per_channel() {
    let model = search();
    let truth = model.parameters.init.clone();
    let lambda = expected_main(&model, &truth);
    let mut random = Random::new(4);
    let mut p_values: Vec<Vec<f64>> = vec![Vec::new(); 3];
    const N: usize = 600;
    for _ in 0..N {
        let main = lambda.iter().map(|l| (l + l.sqrt() * normal(&mut random)).round()).collect();
        let aux = model.observed.aux.iter().map(|a| a + normal(&mut random)).collect();
        let found = goodness(&model, &Data { main, aux }, &FitOptions::default());
        let each = found.channels.iter().map(|channel| channel.p_value).chain([found.p_value]);
        p_values.iter_mut().zip(each).for_each(|(list, p)| list.push(p.expect("there are degrees of freedom")));
    }
    for list in &mut p_values {
        list.sort_by(f64::total_cmp);
        let distance =
            list.iter().enumerate().map(|(i, p)| (p - (i as f64 + 0.5) / N as f64).abs()).fold(0.0, f64::max);
        // The Kolmogorov limit at a probability of 0.001 is 1.95/√n.
        assert!(distance < 1.95 / (N as f64).sqrt(), "{distance}");
    }
}

#[test]
fn degrees_of_freedom_are_divided_among_channels_and_constraints() {
    let model = search();
    let found = goodness(&model, &model.observed, &FitOptions::default());
    let n_dof: f64 = found.channels.iter().map(|channel| channel.n_dof.expect("a converged fit")).sum();
    assert!(n_dof < found.n_dof as f64 && n_dof > (found.n_dof - 2) as f64, "{n_dof}");
    // Four bins minus mu, k and a part of shape; three bins minus k and a part of scale. Both
    // regions share k.
    assert!(found.channels[0].n_dof > Some(1.0) && found.channels[0].n_dof < Some(3.0));
}

#[test]
fn tails_of_chi_squared_match_forty_digit_arithmetic() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/chi_squared/mpmath.json");
    let table: Value = serde_json::from_slice(&std::fs::read(path).expect("in the repository")).expect("JSON");
    let rows = table["rows"].as_array().expect("rows");
    assert!(rows.len() > 100);
    for row in rows {
        let [x, n_dof, tail] = ["x", "n_dof", "tail"].map(|key| row[key].as_f64().expect("a number"));
        let found = upper_tail(x, n_dof);
        // The exponent of a tail of 1e-300 has an error of 1e-13.
        assert!((found / tail - 1.0).abs() < 2e-13, "P(χ² > {x} | {n_dof}) = {found:e}, not {tail:e}");
    }
    assert_eq!((upper_tail(-1.0, 3.0), upper_tail(f64::INFINITY, 3.0)), (1.0, 0.0));
    assert!(upper_tail(f64::NAN, 3.0).is_nan() && upper_tail(1.0, -1.0).is_nan());
}

#[test]
#[ignore = "needs published likelihoods"]
fn published_fits_have_their_known_p_values() {
    let folder = data_folder().join("workspaces");
    for (name, n_dof, p_value) in [("atlas_tHu_fcnc", 35, 0.81), ("atlas_tttt", 25, 0.95)] {
        let workspace =
            load(&LoadRequest::new(DocumentSource::Path(folder.join(format!("{name}.json"))))).expect("published");
        let model = compile(&workspace, &CompileOptions::default()).expect("published");
        let found = goodness(&model, &model.observed, &FitOptions::default());
        assert_eq!(found.n_dof, n_dof, "{name}");
        assert_close(found.p_value.expect("tested"), p_value, 5e-3, name);
    }
}
