//! What `gof` says: the statistic and what it is made of, and each channel by itself.

use std::fmt::Write;

use ns_core::Model;
use ns_inference::FitResult;
use ns_inference::gof::{ChannelGoodness, GoodnessOfFit};
use ns_inference::toys::{Aux, GoodnessToys, PValue};
use serde::Serialize;
use serde_json::{Value, json};

use super::fit::verdict;
use super::number::significant;
use super::table::{Align, table};
use super::talk::{Paint, harmless, warnings};
use super::to_document;
use super::toys::FIXED_AUX;
use crate::args::GofArgs;

/// Everything that `gof` has to say.
pub(crate) struct Report<'a> {
    pub(crate) model: &'a Model,
    pub(crate) result: &'a FitResult,
    pub(crate) goodness: &'a GoodnessOfFit,
    pub(crate) toys: Option<ByToys<'a>>,
}

/// p-values by toys, and how the toys were made.
#[derive(Serialize)]
pub(crate) struct ByToys<'a> {
    /// Toys asked for.
    n_toys_wanted: u64,
    seed: u64,
    aux: Aux,
    #[serde(flatten)]
    p_values: &'a GoodnessToys,
}

impl<'a> ByToys<'a> {
    pub(crate) fn new(args: &GofArgs, p_values: &'a GoodnessToys) -> Self {
        let n_toys_wanted = args.toys.unwrap_or(0);
        Self { n_toys_wanted, seed: args.setup.seed, aux: args.aux.aux(), p_values }
    }

    /// What a reader should know before using the numbers.
    fn warnings(&self) -> Vec<String> {
        let GoodnessToys { total, n_failed, .. } = self.p_values;
        let n_done = total.n_toys + n_failed;
        let cut_short =
            (n_done < self.n_toys_wanted).then(|| format!("interrupted after {n_done} of {} toys", self.n_toys_wanted));
        let fixed = (self.aux == Aux::Fixed).then(|| FIXED_AUX.to_owned());
        let failed = (*n_failed > 0).then(|| {
            let PValue { low, high, .. } = total;
            format!(
                "toys whose fit did not converge: {n_failed}; with them p could be anything from {} to {}",
                significant(*low, 3),
                significant(*high, 3)
            )
        });
        [cut_short, fixed, failed].into_iter().flatten().collect()
    }
}

impl Report<'_> {
    /// The goodness with the verdict on the fit that it is of.
    pub(crate) fn document(&self) -> Value {
        let mut document = document(self.model, self.result, self.goodness);
        document["toys"] = to_document(&self.toys);
        document["warnings"] = json!(self.warnings());
        document
    }

    fn warnings(&self) -> Vec<String> {
        let toys = self.toys.as_ref().map(ByToys::warnings).unwrap_or_default();
        [&self.goodness.warnings[..], &toys[..]].concat()
    }

    /// What is said even to those who want no summary.
    pub(crate) fn alarm(&self) -> Option<String> {
        let toys = self.toys.as_ref().map(ByToys::warnings).unwrap_or_default();
        let fit = if self.result.converged { &[][..] } else { &self.result.warnings[..] };
        let said = [fit, &toys[..]].concat();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// One screen: verdict, statistic, channels, warnings.
    pub(crate) fn summary(&self, paint: Paint) -> String {
        let Self { model, result, goodness, toys } = self;
        let mut text = format!("measurement `{}`\n\n{}\n", harmless(&model.measurement), verdict(result, paint));
        text.push_str(&tables(goodness, toys.as_ref().map(|toys| toys.p_values), paint));
        text.push_str(&warnings(&[&result.warnings[..], &self.warnings()[..]].concat()));
        if !result.converged {
            let _ = writeln!(text, "\n{}", verdict(result, paint));
        }
        text
    }
}

/// The goodness by the formula, with the verdict on the fit that it is of.
#[must_use]
pub fn document(model: &Model, result: &FitResult, goodness: &GoodnessOfFit) -> Value {
    let mut document = to_document(goodness);
    document["fit"] = fit(result);
    document["measurement"] = json!(model.measurement);
    document["nextstat_version"] = json!(env!("CARGO_PKG_VERSION"));
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

/// The statistic and the channels.
pub(super) fn tables(goodness: &GoodnessOfFit, toys: Option<&GoodnessToys>, paint: Paint) -> String {
    let GoodnessOfFit { n_bins, n_constraints, n_free, n_undetermined, .. } = goodness;
    let p_value = goodness.p_value.map_or_else(|| "no p-value".to_owned(), |p| format!("p = {}", significant(p, 3)));
    let mut text = format!(
        "  {}\n",
        paint.strong(&format!(
            "goodness of fit: q = {} with {} degree{} of freedom, {p_value}",
            significant(goodness.statistic, 5),
            goodness.n_dof,
            if goodness.n_dof == 1 { "" } else { "s" }
        ))
    );
    let _ = write!(text, "  {n_bins} bins + {n_constraints} constraint terms - {n_free} free parameters");
    if *n_undetermined > 0 {
        let _ = write!(text, " + {n_undetermined} that the data do not determine");
    }
    let _ = writeln!(text, "; the constraint terms' share of q is {}\n", significant(goodness.constraint_deviance, 4));
    if let Some(GoodnessToys { total, .. }) = toys {
        let _ = writeln!(text, "  by {} toys: p = {}\n", total.n_toys, with_error(total));
    }
    let mut columns = vec![
        ("channel", Align::Left),
        ("bins", Align::Right),
        ("deviance", Align::Right),
        ("freedom", Align::Right),
        ("p-value", Align::Right),
    ];
    columns.extend(toys.map(|_| ("by toys", Align::Right)));
    let rows: Vec<_> = (goodness.channels.iter().enumerate())
        .map(|(c, channel)| row(channel, toys.map(|toys| &toys.channels[c])))
        .collect();
    text + &table(&columns, &rows)
}

fn with_error(p: &PValue) -> String {
    format!("{} ± {}", significant(p.value, 3), significant(p.error, 2))
}

fn row(channel: &ChannelGoodness, by_toys: Option<&PValue>) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| significant(value, 3));
    let mut row = vec![
        harmless(&channel.channel),
        channel.n_bins.to_string(),
        significant(channel.deviance, 4),
        optional(channel.n_dof),
        optional(channel.p_value),
    ];
    row.extend(by_toys.map(with_error));
    row
}
