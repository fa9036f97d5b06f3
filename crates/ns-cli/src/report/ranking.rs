//! What `ranking` says to people: the first parameters, and groups.

use std::fmt::Write as _;

use ns_inference::ranking::{GroupImpact, Impacts, Ranking, RankingEntry};

use super::number::{optional, significant};
use super::table::{Align, table};
use super::talk::{Paint, free_fit_failed, harmless, warnings};

/// One screen: the parameter of interest, the `top` nuisance parameters, groups, warnings.
pub(crate) fn summary(ranking: &Ranking, top: usize, paint: Paint) -> String {
    let mut text = String::new();
    let poi = &ranking.poi;
    let name = harmless(&poi.name);
    let line = format!("{name} = {} ± {}", significant(poi.bestfit, 6), optional(poi.uncertainty, 4));
    let _ = writeln!(text, "  {}", paint.strong(&line));
    let breakdown = &ranking.breakdown;
    if breakdown.global_systematic.is_some() {
        let _ = writeln!(
            text,
            "  auxiliary data {}, event counts {}",
            optional(breakdown.global_systematic, 4),
            optional(breakdown.global_statistical, 4)
        );
    }
    if !ranking.entries.is_empty() {
        let rows: Vec<Vec<String>> = ranking.entries.iter().take(top).map(row).collect();
        let heading = format!("impact on {name}");
        let columns = [
            (heading.as_str(), Align::Left),
            ("pull", Align::Right),
            ("constraint", Align::Right),
            ("pre-fit", Align::Right),
            ("post-fit", Align::Right),
            ("global", Align::Right),
            ("covariance", Align::Right),
        ];
        let _ = write!(text, "\n{}", table(&columns, &rows));
        let hidden = ranking.entries.len().saturating_sub(top);
        if hidden > 0 {
            let _ = writeln!(text, "  and {hidden} more, in the result");
        }
    }
    text.push_str(&groups(&ranking.groups));
    text.push_str(&warnings(&ranking.warnings));
    if !ranking.best.converged {
        text.push_str(&free_fit_failed(paint));
    }
    text
}

fn row(entry: &RankingEntry) -> Vec<String> {
    vec![
        harmless(&entry.parameter),
        entry.pull.map_or_else(|| "-".to_owned(), |pull| format!("{pull:+.2}")),
        optional(entry.constraint, 2),
        both(entry.prefit.as_ref()),
        both(entry.postfit.as_ref()),
        both(entry.global.as_ref()),
        entry.covariance_postfit.map_or_else(|| "-".to_owned(), signed),
    ]
}

/// The impacts down and up.
fn both(impacts: Option<&Impacts>) -> String {
    let side = |impact: Option<f64>| impact.map_or_else(|| "failed".to_owned(), signed);
    impacts.map_or_else(|| "-".to_owned(), |i| format!("{} {}", side(i.down.impact), side(i.up.impact)))
}

fn signed(impact: f64) -> String {
    let digits = significant(impact, 3);
    if impact > 0.0 { format!("+{digits}") } else { digits }
}

fn groups(groups: &[GroupImpact]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let columns =
        [("group", Align::Left), ("parameters", Align::Right), ("frozen", Align::Right), ("global", Align::Right)];
    let row = |group: &GroupImpact| {
        let n = group.members.len().to_string();
        vec![harmless(&group.group), n, optional(group.frozen, 4), optional(group.global, 4)]
    };
    format!("\n{}", table(&columns, &groups.iter().map(row).collect::<Vec<_>>()))
}
