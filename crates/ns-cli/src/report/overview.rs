//! What `report` says to people: fit, pulls, correlations, yields, goodness of fit.

use std::fmt::Write;

use super::fit::{parameter_of_interest, strongest_pulls, verdict};
use super::gof;
use super::number::significant;
use super::table::{Align, table};
use super::talk::{Paint, harmless, warnings};
use super::yields::{ChannelYields, tables};

/// Most parameters of a correlation matrix that a screen has room for.
const WIDEST: usize = 12;

/// Everything about one fit.
#[derive(Debug)]
pub(crate) struct Overview<'a>(pub(crate) &'a nextstat::yields::Overview);

impl Overview<'_> {
    fn channels(&self) -> impl Iterator<Item = ChannelYields<'_>> {
        let yields = &self.0.yields;
        let (model, data) = (yields.fit.model(), yields.fit.analysis.data());
        let both = yields.prefit.iter().zip(&yields.postfit).enumerate();
        both.map(|(channel, (prefit, postfit))| ChannelYields {
            data: &data.main[model.channel_bins(channel)],
            prefit,
            postfit,
        })
    }

    /// Verdict, goodness, pulls, correlations of at least `threshold`, yields, warnings; a bad verdict first and last.
    pub(crate) fn summary(&self, threshold: f64, has_bins: bool, paint: Paint) -> String {
        let fit = &self.0.yields.fit;
        let (result, model) = (&fit.result, fit.model());
        let mut text = String::new();
        let (n_free, n_bins) = (result.n_free, model.n_bins());
        let measurement = harmless(&model.measurement);
        let _ = writeln!(
            text,
            "measurement `{measurement}`: {} parameters ({n_free} free), {n_bins} bins\n",
            model.n_params()
        );
        let _ = writeln!(text, "{}", verdict(result, paint));
        let _ = writeln!(text, "  2NLL  {}", significant(result.twice_nll, 10));
        for &poi in &model.pois {
            let _ = writeln!(text, "  {}", paint.strong(&parameter_of_interest(result, poi)));
        }
        let pulls = strongest_pulls(model, fit.analysis.data(), result);
        for part in [gof::tables(&self.0.goodness, None, paint), pulls, self.correlations(threshold)] {
            if !part.is_empty() {
                let _ = write!(text, "\n{part}");
            }
        }
        text.push_str(&tables(self.channels(), has_bins));
        text.push_str(&warnings(&[&result.warnings[..], &self.0.goodness.warnings[..]].concat()));
        if !result.converged {
            let _ = writeln!(text, "\n{}", verdict(result, paint));
        }
        text
    }

    /// The correlations of the parameters that have one of at least `threshold` with another, strongest first.
    fn correlations(&self, threshold: f64) -> String {
        let result = &self.0.yields.fit.result;
        let n = result.par_names.len();
        let Some(matrix) = result.correlation() else { return String::new() };
        let strongest = |i: usize| (0..n).filter(|&k| k != i).map(|k| matrix[i * n + k].abs()).fold(0.0, f64::max);
        let mut shown: Vec<(usize, f64)> = (0..n).map(|i| (i, strongest(i))).filter(|(_, c)| *c >= threshold).collect();
        shown.retain(|(i, _)| result.uncertainties[*i].is_some());
        shown.sort_by(|a, b| b.1.total_cmp(&a.1));
        if shown.is_empty() {
            return format!("  no two parameters have a correlation of {threshold} or more\n");
        }
        let n_left = shown.len().saturating_sub(WIDEST);
        shown.truncate(WIDEST);
        let numbers: Vec<String> = (1..=shown.len()).map(|k| k.to_string()).collect();
        let mut columns = vec![("", Align::Right), ("correlations", Align::Left)];
        columns.extend(numbers.iter().map(|k| (k.as_str(), Align::Right)));
        let row = |(k, &(i, _)): (usize, &(usize, f64))| {
            let cells = shown.iter().map(|&(j, _)| format!("{:.2}", matrix[i * n + j]));
            [numbers[k].clone(), harmless(&result.par_names[i])].into_iter().chain(cells).collect()
        };
        let mut text = table(&columns, &shown.iter().enumerate().map(row).collect::<Vec<Vec<String>>>());
        if n_left > 0 {
            let _ = writeln!(
                text,
                "  and {n_left} more parameters with a correlation of {threshold} or more, in the result"
            );
        }
        text
    }
}
