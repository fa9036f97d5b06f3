//! What `scan` says: lists of points for one parameter, matrices for two, and a curve that people can read.

use std::fmt::Write as _;

use ns_core::Model;
use ns_inference::contour::Contours;
use ns_inference::result::BestFit;
use ns_inference::scan::{Axis, Scan};
use serde::Serialize;
use serde_json::{Value, json};

use super::number::{optional, significant};
use super::table::{Align, table};
use super::talk::{Paint, free_fit_failed, harmless, warnings};
use super::to_document;

/// How many values a screen has room for.
const SHOWN: usize = 41;

/// The result as a document.
pub(crate) fn document(
    model: &Model,
    axes: &[Axis],
    scan: &Scan,
    contours: Option<&Contours>,
    has_params: bool,
) -> Value {
    let mut document = json!({
        "best": best(axes, &scan.best),
        "complete": scan.is_complete && contours.is_none_or(|contours| contours.is_complete),
        "converged": scan.converged && contours.is_none_or(|contours| contours.converged),
        "delta_nll": points(scan, &scan.delta_nll),
        "measurement": model.measurement,
        "nextstat_version": env!("CARGO_PKG_VERSION"),
        "outcomes": points(scan, &scan.outcomes),
        "par_names": model.parameters.names,
        "twice_delta_nll": points(scan, &scan.twice_delta_nll),
        "warnings": scan.warnings.iter().chain(contours.iter().flat_map(|c| &c.warnings)).collect::<Vec<_>>(),
    });
    if has_params {
        document["params"] = points(scan, &scan.params);
    }
    match (scan.parameters.as_slice(), scan.values.as_slice()) {
        ([parameter], [values]) => {
            document["parameter"] = json!(parameter);
            document["values"] = json!(values);
        }
        (parameters, values) => {
            document["parameters"] = json!(parameters);
            document["values"] = json!(values);
        }
    }
    if let Some(contours) = contours {
        document["contours"] = json!(contours.contours);
    }
    document
}

/// The free fit, with the scanned parameters' own values.
fn best(axes: &[Axis], best: &BestFit) -> Value {
    let mut document = to_document(best);
    let of = |list: &dyn Fn(usize) -> Value| match axes {
        [axis] => list(axis.parameter),
        axes => axes.iter().map(|axis| list(axis.parameter)).collect(),
    };
    let (value, uncertainty) =
        if axes.len() == 1 { ("value", "value_uncertainty") } else { ("values", "value_uncertainties") };
    document[value] = of(&|i| json!(best.params.get(i)));
    document[uncertainty] = of(&|i| json!(best.uncertainties.get(i).copied().flatten()));
    document
}

/// One number per point: a list, or a row per value of the first of two parameters.
fn points<T: Serialize>(scan: &Scan, list: &[T]) -> Value {
    match scan.values.as_slice() {
        [_, second] => list.chunks(second.len().max(1)).map(|row| json!(row)).collect(),
        _ => json!(list),
    }
}

/// One screen: the best fit, the curve or the contours, warnings.
pub(crate) fn summary(axes: &[Axis], scan: &Scan, contours: Option<&Contours>, paint: Paint) -> String {
    let mut text = String::new();
    for (axis, name) in axes.iter().zip(&scan.parameters) {
        let value = scan.best.params.get(axis.parameter).map_or(f64::NAN, |value| *value);
        let uncertainty = scan.best.uncertainties.get(axis.parameter).copied().flatten();
        let line = format!("{} = {} ± {}", harmless(name), significant(value, 6), optional(uncertainty, 4));
        let _ = writeln!(text, "  {}", paint.strong(&line));
    }
    let _ = writeln!(text, "  2NLL  {}\n", significant(scan.best.twice_nll, 10));
    match scan.values.as_slice() {
        [values] => text.push_str(&curve(&harmless(&scan.parameters[0]), values, scan)),
        values => {
            let [rows, columns] = [0, 1].map(|k| values.get(k).map_or(0, Vec::len));
            let done = scan.outcomes.iter().flatten().count();
            let _ = writeln!(text, "  {done} points of a grid of {rows} x {columns}");
        }
    }
    if let Some(contours) = contours {
        text.push_str(&extents(contours));
    }
    let said = scan.warnings.iter().chain(contours.iter().flat_map(|contours| &contours.warnings));
    text.push_str(&warnings(&said.cloned().collect::<Vec<_>>()));
    if !scan.best.converged {
        text.push_str(&free_fit_failed(paint));
    }
    text
}

fn curve(name: &str, values: &[f64], scan: &Scan) -> String {
    let columns = [(name, Align::Right), ("2ΔNLL", Align::Right), ("", Align::Left)];
    let step = values.len().div_ceil(SHOWN).max(1);
    let row = |(value, twice): (&f64, &Option<f64>)| {
        // Four marks per unit, up to 2ΔNLL = 9.
        let bar = twice.map_or(0, |twice| (4.0 * twice.clamp(0.0, 9.0)).round() as usize);
        vec![significant(*value, 5), optional(*twice, 4), "*".repeat(bar)]
    };
    let rows: Vec<Vec<String>> = values.iter().zip(&scan.twice_delta_nll).step_by(step).map(row).collect();
    table(&columns, &rows)
}

/// How far each contour reaches in both parameters.
fn extents(contours: &Contours) -> String {
    let [first, second] = contours.parameters.each_ref().map(|name| harmless(name));
    let columns = [("contour", Align::Right), (first.as_str(), Align::Left), (second.as_str(), Align::Left)];
    let rows = contours.contours.iter().map(|contour| {
        let reach = |k: usize| {
            let values = || contour.points.iter().filter(|p| p.twice_delta_nll.is_some()).map(|p| p.values[k]);
            let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            format!("{} … {}", significant(low, 5), significant(high, 5))
        };
        vec![format!("{}%", significant(100.0 * contour.confidence_level, 6)), reach(0), reach(1)]
    });
    format!("\n{}", table(&columns, &rows.collect::<Vec<_>>()))
}
