//! What `gof` says to people: the statistic and what it is made of, and each channel by itself.

use std::fmt::Write;

use nextstat::goodness::{Goodness, GoodnessByToys};
use ns_core::Model;
use ns_inference::gof::{ChannelGoodness, GoodnessOfFit};
use ns_inference::toys::{AuxTreatment, GoodnessToys, ToyPValue};

use super::fit::verdict;
use super::number::significant;
use super::table::{Align, table};
use super::talk::{Paint, harmless, warnings};
use super::toys::FIXED_AUX;

/// What a reader should know of p-values by toys before using them.
pub(crate) fn warnings_of_toys(toys: &GoodnessByToys) -> Vec<String> {
    let GoodnessToys { total, n_failed, .. } = &toys.p_values;
    let (n_done, n_wanted) = (total.n_toys + n_failed, toys.n_toys_wanted);
    let cut_short = (n_done < n_wanted).then(|| format!("interrupted after {n_done} of {n_wanted} toys"));
    let fixed = (toys.aux == AuxTreatment::Fixed).then(|| FIXED_AUX.to_owned());
    let failed = (*n_failed > 0).then(|| {
        let ToyPValue { low, high, .. } = total;
        format!(
            "toys whose fit did not converge: {n_failed}; with them p could be anything from {} to {}",
            significant(*low, 3),
            significant(*high, 3)
        )
    });
    [cut_short, fixed, failed].into_iter().flatten().collect()
}

/// What is said even to those who want no summary.
pub(crate) fn toys_alarm(goodness: &Goodness, warnings_of_toys: &[String]) -> Option<String> {
    let fit = if goodness.fit.converged { &[][..] } else { &goodness.fit.warnings[..] };
    let said = [fit, warnings_of_toys].concat();
    (!said.is_empty()).then(|| said.join("; "))
}

/// One screen: verdict, statistic, channels, warnings.
pub(crate) fn summary(model: &Model, answer: &Goodness, warnings_of_toys: &[String], paint: Paint) -> String {
    let Goodness { fit, goodness, toys } = answer;
    let mut text = format!("measurement `{}`\n\n{}\n", harmless(&model.measurement), verdict(fit, paint));
    text.push_str(&tables(goodness, toys.as_ref().map(|toys| &toys.p_values), paint));
    text.push_str(&warnings(&[&fit.warnings[..], &goodness.warnings[..], warnings_of_toys].concat()));
    if !fit.converged {
        let _ = writeln!(text, "\n{}", verdict(fit, paint));
    }
    text
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

fn with_error(p: &ToyPValue) -> String {
    format!("{} ± {}", significant(p.value, 3), significant(p.error, 2))
}

fn row(channel: &ChannelGoodness, by_toys: Option<&ToyPValue>) -> Vec<String> {
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
