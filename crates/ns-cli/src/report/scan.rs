//! What `scan` says to people: a curve of one parameter, or how far contours reach.

use std::fmt::Write as _;

use nextstat::curves::Curves;
use ns_inference::contour::Contours;
use ns_inference::scan::Scan;

use super::number::{optional, significant};
use super::table::{Align, table};
use super::talk::{Paint, free_fit_failed, harmless, warnings};

/// How many values a screen has room for.
const SHOWN: usize = 41;

/// One screen: the best fit, the curve or the contours, warnings.
pub(crate) fn summary(curves: &Curves, paint: Paint) -> String {
    let Curves { scan, axes, contours } = curves;
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
    text.push_str(&warnings(&curves.warnings().cloned().collect::<Vec<_>>()));
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
