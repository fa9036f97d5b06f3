//! Formulas against mpmath, their fast derivatives against dual numbers, and the messages of wrong
//! ones.

use ns_core::formula::{Argument, Expansion, Formula, FormulaError, Tape, TapeError, TapeScratch};
use ns_core::scalar::HyperDual;
use ns_core::taylor::Taylor;
use serde_json::Value;

fn expressions() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formulas/mpmath.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    document["expressions"].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Returns the tape of `text`, whose names are parameters in this order.
fn tape(text: &str, names: &[&str]) -> Tape {
    let formula = Formula::parse(text, &[]).unwrap();
    let parameter = |name: &str| names.iter().position(|known| *known == name).expect("a parameter") as u32;
    Tape::new(&formula, &|name| Argument::Parameter(parameter(name))).unwrap()
}

fn expansion(tape: &Tape, params: &[f64]) -> Expansion {
    let mut out = Expansion::for_tape(tape);
    tape.hessian(params, &mut TapeScratch::default(), &mut out);
    out
}

fn value(text: &str) -> f64 {
    tape(text, &[]).value(&[], &mut TapeScratch::default())
}

/// Returns gradient or Hessian with the zeros of the parameters that the formula does not have.
fn spread(tape: &Tape, n: usize, out: &Expansion) -> (Vec<f64>, Vec<f64>) {
    let (mut gradient, mut hessian) = (vec![0.0; n], vec![0.0; n * n]);
    let arguments: Vec<usize> = tape.arguments().iter().map(|&a| a as usize).collect();
    for (k, &i) in arguments.iter().enumerate() {
        gradient[i] = out.gradient[k];
        for (l, &j) in arguments.iter().enumerate() {
            hessian[i * n + j] = out.hessian[k * arguments.len() + l];
        }
    }
    (gradient, hessian)
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, text: &str) {
    for (found, expected) in found.iter().zip(expected) {
        // A derivative that is exactly zero may be a difference of terms of order one.
        let scale = if *expected == 0.0 { 1.0 } else { expected.abs() };
        assert!((found - expected).abs() <= tolerance * scale, "{text}: {found} is not {expected}");
    }
}

#[test]
fn value_gradient_and_hessian_are_mpmaths() {
    let expressions = expressions();
    assert_eq!(expressions.len(), 200);
    for row in expressions {
        let text = row["text"].as_str().unwrap();
        let names: Vec<&str> = row["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let (tape, point) = (tape(text, &names), numbers(&row["point"]));
        let out = expansion(&tape, &point);
        let (gradient, hessian) = spread(&tape, names.len(), &out);
        assert_close(&[out.value], &[row["value"].as_f64().unwrap()], 1e-12, text);
        assert_close(&gradient, &numbers(&row["gradient"]), 1e-11, text);
        assert_close(&hessian, &numbers(&row["hessian"]), 1e-9, text);
    }
}

#[test]
fn reverse_derivatives_equal_those_of_dual_numbers() {
    for row in expressions() {
        let text = row["text"].as_str().unwrap();
        let names: Vec<&str> = row["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let (tape, point) = (tape(text, &names), numbers(&row["point"]));
        let reference = tape.evaluate(&HyperDual::variables(&point));
        if reference.hessian.is_empty() {
            continue; // A formula without parameters.
        }
        let (gradient, hessian) = spread(&tape, names.len(), &expansion(&tape, &point));
        let is_close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-10 * b.abs().max(1.0));
        assert!(is_close(&gradient, &reference.gradient), "{text}");
        assert!(is_close(&hessian, &reference.hessian), "{text}");
    }
}

/// Compares the gradient of a formula along a line through `point` with the fast Hessian there, and
/// its second derivative with differences of the Hessian if asked for.
fn assert_gradient_along_a_line(text: &str, tape: &Tape, point: &[f64], is_smooth: bool) {
    let direction: Vec<f64> = (0..point.len()).map(|i| 0.3 - 0.17 * i as f64).collect();
    // The derivative of the gradient along the line: the Hessian times the direction.
    let rates = |step: f64| -> Vec<f64> {
        let at: Vec<f64> = point.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
        let out = expansion(tape, &at);
        let arguments = tape.arguments().iter().map(|&a| direction[a as usize]).collect::<Vec<f64>>();
        let product = |row: &[f64]| row.iter().zip(&arguments).map(|(h, v)| h * v).sum();
        out.hessian.chunks(arguments.len().max(1)).map(product).collect()
    };
    let line: Vec<Taylor> = point.iter().zip(&direction).map(|(&x, &v)| Taylor::line(x, v)).collect();
    let (value, gradient) = tape.expand(&line);
    let expected = expansion(tape, point);
    assert_close(&[value.value], &[expected.value], 1e-12, text);
    let h = 1e-4;
    let [here, below, above, far_below, far_above] = [0.0, -h, h, -2.0 * h, 2.0 * h].map(rates);
    let scale = expected.gradient.iter().chain(&here).fold(1.0_f64, |scale, x| scale.max(x.abs()));
    for (k, derivative) in gradient.iter().enumerate() {
        assert!((derivative.value - expected.gradient[k]).abs() <= 1e-11 * scale, "{text}: {derivative:?}, gradient");
        assert!(
            (derivative.first - here[k]).abs() <= 1e-10 * scale,
            "{text}: the rate of {derivative:?} is not {here:?}"
        );
        if !is_smooth {
            continue;
        }
        // Richardson's: the error of the difference is of fourth order.
        let [near, far] = [above[k] - below[k], (far_above[k] - far_below[k]) / 2.0];
        let second = (4.0 * near - far) / 3.0 / (2.0 * h);
        let scale = scale.max(second.abs());
        assert!((derivative.second - second).abs() <= 1e-6 * scale, "{text}: {} is not {second}", derivative.second);
    }
}

#[test]
fn gradients_along_a_line_have_two_derivatives() {
    for row in expressions() {
        let text = row["text"].as_str().unwrap();
        let names: Vec<&str> = row["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_gradient_along_a_line(text, &tape(text, &names), &numbers(&row["point"]), true);
    }
}

#[test]
fn gradients_along_a_line_exist_at_special_points() {
    for (text, names, point, is_smooth) in [
        ("x^0", vec!["x"], vec![0.0], true),
        ("x^1", vec!["x"], vec![0.0], true),
        ("x^2", vec!["x"], vec![0.0], true),
        ("x^3 + 2*x*y", vec!["x", "y"], vec![0.0, 0.0], true),
        ("(x - 1)^2 * y^2", vec!["x", "y"], vec![1.0, 0.0], true),
        ("x^3.25", vec!["x"], vec![0.0], false),
        ("x^y", vec!["x", "y"], vec![0.0, 3.5], false),
        ("abs(x)*y", vec!["x", "y"], vec![-0.5, 2.0], true),
        ("abs(x)*y", vec!["x", "y"], vec![0.0, 2.0], false),
        ("min(x, y)*max(x, 2*y)", vec!["x", "y"], vec![1.0, 1.0], false),
        ("atan2(x, y)", vec!["x", "y"], vec![0.0, 1.0], true),
        ("atan2(x, y)", vec!["x", "y"], vec![1.0, 0.0], true),
        ("atan2(x, y)", vec!["x", "y"], vec![-1.0, 0.0], true),
        ("tanh(x)", vec!["x"], vec![0.0], true),
        ("tanh(1000*x)", vec!["x"], vec![0.8], true),
        ("tanh(1000*x)", vec!["x"], vec![-100.0], true),
        ("x > 0 ? x*x : log(x)", vec!["x"], vec![1.5], true),
        ("x > 0 ? log(x) : x*x", vec!["x"], vec![-1.5], true),
        ("sqrt(x*x + 1) / (1 + x)", vec!["x"], vec![0.0], true),
        ("10^x", vec!["x"], vec![0.0], true),
    ] {
        assert_gradient_along_a_line(text, &tape(text, &names), &point, is_smooth);
    }
}

#[test]
fn a_constant_that_another_formula_gives_is_an_exponent_like_a_number() {
    let [power, two] = ["c^n", "1 + 1"].map(|text| Formula::parse(text, &[]).unwrap());
    let resolve = |name: &str| if name == "n" { Argument::Formula(&two) } else { Argument::Parameter(0) };
    let tape = Tape::new(&power, &resolve).unwrap();
    for c in [-1.5, 0.0, 2.0] {
        let (value, gradient) = tape.expand(&[Taylor::line(c, 1.0)]);
        assert_eq!([value.value, value.first, value.second], [c * c, 2.0 * c, 2.0]);
        assert_eq!([gradient[0].value, gradient[0].first, gradient[0].second], [2.0 * c, 2.0, 0.0]);
    }
    // A parameter that does not move, too, but for the derivative with respect to itself.
    let tape = self::tape("c^n", &["c", "n"]);
    let (value, gradient) = tape.expand(&[Taylor::line(-1.5, 1.0), Taylor::line(2.0, 0.0)]);
    assert_eq!([value.value, value.first, value.second], [2.25, -3.0, 2.0]);
    assert_eq!([gradient[0].value, gradient[0].first], [-3.0, 2.0]);
    assert!(gradient[1].value.is_nan());
}

#[test]
fn operators_bind_as_in_root() {
    // ROOT 6.36 (TFormula::Eval), apart from the quotients of integers.
    let cases = [
        ("2^3^2", 512.0),
        ("2**3**2", 512.0),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("2^3*2", 16.0),
        ("7-3-1", 3.0),
        ("8./4/2", 1.0),
        ("1+2*3", 7.0),
        ("(1>0)*3", 3.0),
        ("1>0?5:6", 5.0),
        ("0?1:0?2:3", 3.0),
        ("1<2 && 2<=2 || 0", 1.0),
        ("!0 + 1", 2.0),
        ("TMath::Power(2,3)", 8.0),
        ("std::max(1,2)", 2.0),
        ("TMath::Pi()", std::f64::consts::PI),
        ("min(3, 1, 2)", 1.0),
        ("4/2", 2.0),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn positions_stand_for_the_entries_of_the_list() {
    let arguments = ["r".to_owned(), "kappa".to_owned()];
    for text in ["@0*@1^2", "x[0]*x[1]^2", "r*kappa^2"] {
        let formula = Formula::parse(text, &arguments).unwrap();
        assert_eq!(formula.names(), ["r", "kappa"], "{text}");
    }
    // Without a list, `x[0]` is an element of the vector `x`.
    assert_eq!(Formula::parse("x[0]", &[]).unwrap().names(), ["x[0]"]);
}

#[test]
fn messages_name_column_and_remedy() {
    let error = |text: &str, arguments: &[String]| -> FormulaError { Formula::parse(text, arguments).unwrap_err() };
    let cases = [
        ("", "expected a number, a name or `(`, found the end at column 1 of ``", None),
        ("mu * ", "expected a number, a name or `(`, found the end at column 6 of `mu * `", None),
        ("(mu", "expected `)`, found the end at column 4 of `(mu`", None),
        ("mu mu", "expected an operator or the end, found `mu` at column 4 of `mu mu`", None),
        ("exp(1, 2)", "`exp` takes 1 operand, found 2 at column 1 of `exp(1, 2)`", None),
        ("mu $ 2", "unexpected character `$` at column 4 of `mu $ 2`", Some("backticks")),
        ("1/2*mu", "`1/2` is a quotient of integers, which ROOT rounds towards zero", Some("1.0/2")),
        ("@2", "argument 2 does not exist: the list has 0 at column 1 of `@2`", Some("list the parameters")),
        ("sqr(mu)", "unknown function `sqr` at column 1", Some("did you mean `sqrt`?")),
        ("1e999", "`1e999` is not a number at column 1", None),
        ("`mu", "a name in backticks does not end at column 1", None),
    ];
    for (text, message, hint) in cases {
        let error = error(text, &[]);
        assert!(error.to_string().starts_with(message), "{text}: {error}");
        match (error.hint(), hint) {
            (None, None) => {}
            (Some(found), Some(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[test]
fn hostile_texts_are_refused_without_a_panic() {
    for (open, close) in [("(", ")"), ("-", ""), ("2^", "2"), ("exp(", ")"), ("1?", ":1"), ("!", "")] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(Formula::parse(&text, &[]).is_err(), "{open}");
    }
    let long = format!("a{}", "+a".repeat(100_000));
    assert!(Formula::parse(&long, &[]).unwrap_err().to_string().contains("more than 20000 operations"));
    let sum = format!("a{}", "+a".repeat(5_000));
    assert_eq!(expansion(&tape(&sum, &["a"]), &[2.0]).value, 10_002.0);
}

#[test]
fn points_outside_the_domain_are_nan() {
    for text in ["log(-1)", "sqrt(-1)", "asin(2)", "(-1)^0.5", "min(log(-1), 1)", "max(1, log(-1))", "log(-1) > 0"] {
        assert!(value(text).is_nan(), "{text}");
    }
    // What is not chosen does not count, nor do its derivatives.
    let out = expansion(&tape("a > 0 ? a^2 : log(a)", &["a"]), &[3.0]);
    assert_eq!((out.value, out.gradient[0], out.hessian[0]), (9.0, 6.0, 2.0));
    let out = expansion(&tape("a >= 0 ? a^2 : sqrt(-a)", &["a"]), &[0.0]);
    assert_eq!((out.value, out.gradient[0], out.hessian[0]), (0.0, 0.0, 2.0));
}

#[test]
fn powers_have_finite_derivatives_at_zero() {
    for (text, expected) in
        [("a^2", [0.0, 0.0, 2.0]), ("a^1", [0.0, 1.0, 0.0]), ("a^0", [1.0, 0.0, 0.0]), ("a*a", [0.0, 0.0, 2.0])]
    {
        let out = expansion(&tape(text, &["a"]), &[0.0]);
        assert_eq!([out.value, out.gradient[0], out.hessian[0]], expected, "{text}");
    }
}

#[test]
fn formulas_may_name_formulas_but_not_themselves() {
    let [f, g, h] = ["g + 1", "a*h", "a^2"].map(|text| Formula::parse(text, &[]).unwrap());
    let resolve = |name: &str| match name {
        "g" => Argument::Formula(&g),
        "h" => Argument::Formula(&h),
        _ => Argument::Parameter(0),
    };
    let out = expansion(&Tape::new(&f, &resolve).unwrap(), &[2.0]);
    assert_eq!((out.value, out.gradient[0], out.hessian[0]), (9.0, 12.0, 12.0));
    let [f, g] = ["g + 1", "f*2"].map(|text| Formula::parse(text, &[]).unwrap());
    let resolve = |name: &str| Argument::Formula(if name == "f" { &f } else { &g });
    assert_eq!(Tape::new(&f, &resolve), Err(TapeError::Cycle));
}

#[test]
fn a_formula_that_is_a_parameter_or_a_polynomial_is_known_as_such() {
    assert_eq!(tape("(mu)", &["mu"]).as_parameter(), Some(0));
    assert_eq!(tape("1*mu", &["mu"]).as_parameter(), None);
    for (text, degree) in [
        ("1 + 2*a - b/3.0", 1),
        ("-(a+b)*2", 1),
        ("exp(1)*a", 1),
        ("a*b", 2),
        ("a^2", 2),
        ("(1 + a - b)^2 / 4", 2),
        ("a*b*a", 3),
        ("a^3", 3),
        ("(a*b)^2", 3),
        ("exp(a)", 3),
        ("2/a", 3),
    ] {
        let tape = tape(text, &["a", "b"]);
        assert_eq!((tape.degree(), tape.is_linear()), (degree, degree < 2), "{text}");
    }
}

#[test]
fn renamed_formulas_keep_everything_else() {
    let arguments = ["a".to_owned()];
    let formula = Formula::parse("@0 + `b-1`*a^2 + exp(b)", &arguments).unwrap();
    assert_eq!(formula.names(), ["a", "b-1", "b"]);
    let renamed = formula.renamed(|name| match name {
        "a" => "c d".to_owned(),
        "b-1" => "e".to_owned(),
        name => name.to_owned(),
    });
    assert_eq!(renamed, "@0 + e*`c d`^2 + exp(b)");
}
