//! What `evaluate` says.

use ns_core::likelihood::NonFinite;
use serde::Serialize;

use super::number::significant;
use super::table::{Align, table};

/// Every point evaluated.
#[derive(Debug, Serialize)]
pub(crate) struct Evaluation<'a> {
    /// Parameter names (P).
    pub(crate) par_names: &'a [String],
    /// One entry per point.
    pub(crate) points: Vec<Point>,
}

/// One point evaluated.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    /// 2·(-ln L), `null` where it is not finite.
    pub(crate) twice_nll: f64,
    /// Its gradient (P); `null` where `twice_nll` is not finite.
    pub(crate) gradient: Option<Vec<f64>>,
    /// Expected data: main bins (B), then auxiliary data (K).
    pub(crate) expected_data: Vec<f64>,
    /// Why `twice_nll` is not finite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_finite: Option<NonFinite>,
}

/// 2NLL and the steepest slope at each point.
pub(crate) fn summary(evaluation: &Evaluation<'_>) -> String {
    let row = |(i, point): (usize, &Point)| {
        let steepest = point.gradient.iter().flatten().zip(evaluation.par_names);
        let steepest = steepest.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let slope =
            steepest.map_or_else(String::new, |(slope, name)| format!("{} along `{name}`", significant(*slope, 4)));
        let reason = point.not_finite.as_ref().map_or(slope, ToString::to_string);
        vec![i.to_string(), significant(point.twice_nll, 10), reason]
    };
    let rows: Vec<Vec<String>> = evaluation.points.iter().enumerate().map(row).collect();
    table(&[("point", Align::Right), ("2NLL", Align::Right), ("steepest slope", Align::Left)], &rows)
}
