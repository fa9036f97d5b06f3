//! What `gof` says: the statistic and what it is made of, and each channel by itself.

use std::fmt::Write;

use ns_core::Model;
use ns_inference::FitResult;
use ns_inference::gof::{ChannelGoodness, GoodnessOfFit};
use serde_json::{Value, json};

use super::fit::verdict;
use super::number::significant;
use super::table::{Align, table};
use super::talk::{Paint, harmless, warnings};
use super::to_document;

/// The goodness with the verdict on the fit that it is of.
pub(crate) fn document(model: &Model, result: &FitResult, goodness: &GoodnessOfFit) -> Value {
    let mut document = to_document(goodness);
    if let Value::Object(members) = &mut document {
        members.extend([
            ("fit".to_owned(), fit(result)),
            ("measurement".to_owned(), json!(model.measurement)),
            ("nextstat_version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
        ]);
    }
    document
}

/// Whether the fit can be trusted, without its parameters.
fn fit(result: &FitResult) -> Value {
    json!({
        "converged": result.converged,
        "outcome": result.outcome,
        "edm": result.edm,
        "twice_nll": result.twice_nll,
        "at_bounds": result.at_bounds,
        "flat_directions": result.flat_directions,
        "not_finite": result.not_finite,
        "warnings": result.warnings,
    })
}

/// One screen: verdict, statistic, channels, warnings.
pub(crate) fn summary(model: &Model, result: &FitResult, goodness: &GoodnessOfFit, paint: Paint) -> String {
    let mut text = format!("measurement `{}`\n\n{}\n", harmless(&model.measurement), verdict(result, paint));
    text.push_str(&tables(goodness, paint));
    text.push_str(&warnings(&[&result.warnings[..], &goodness.warnings[..]].concat()));
    if !result.converged {
        let _ = writeln!(text, "\n{}", verdict(result, paint));
    }
    text
}

/// The statistic and the channels.
pub(super) fn tables(goodness: &GoodnessOfFit, paint: Paint) -> String {
    let GoodnessOfFit { n_bins, n_constraints, n_free, n_undetermined, .. } = goodness;
    let p_value = goodness.p_value.map_or_else(|| "no p-value".to_owned(), |p| format!("p = {}", significant(p, 3)));
    let mut text = format!(
        "  {}\n",
        paint.strong(&format!(
            "goodness of fit: q = {} with {} degrees of freedom, {p_value}",
            significant(goodness.statistic, 5),
            goodness.n_dof
        ))
    );
    let _ = write!(text, "  {n_bins} bins + {n_constraints} constraint terms - {n_free} free parameters");
    if *n_undetermined > 0 {
        let _ = write!(text, " + {n_undetermined} that the data do not determine");
    }
    let _ = writeln!(text, "; the constraint terms' share of q is {}\n", significant(goodness.constraint_deviance, 4));
    let columns = [
        ("channel", Align::Left),
        ("bins", Align::Right),
        ("deviance", Align::Right),
        ("freedom", Align::Right),
        ("p-value", Align::Right),
    ];
    let rows: Vec<_> = goodness.channels.iter().map(row).collect();
    text + &table(&columns, &rows)
}

fn row(channel: &ChannelGoodness) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| significant(value, 3));
    vec![
        harmless(&channel.channel),
        channel.n_bins.to_string(),
        significant(channel.deviance, 4),
        optional(channel.n_dof),
        optional(channel.p_value),
    ]
}
