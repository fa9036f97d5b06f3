//! Formats what a combination did.

use super::escape;
use super::table::{Align, table as format_table};
use ns_translate::workspace::{CombinationReport, CombinedParameter, CorrelatedBy, ParameterUse};

/// Rows of a table; a report as JSON has all of them.
const SHOWN: usize = 40;

/// Formats the parameters that a map or their names correlate, and those that a rule splits; a
/// blank line comes before each table.
pub(crate) fn table(report: &CombinationReport) -> String {
    let by = |wanted: CorrelatedBy| {
        report.parameters.iter().filter(move |found| found.correlated_by == Some(wanted)).collect::<Vec<_>>()
    };
    let rules = report.rules.iter().filter(|rule| rule.action == "decorrelate");
    let made: Vec<&String> = rules.flat_map(|rule| &rule.parameters).collect();
    let is_split = |found: &&CombinedParameter| found.correlated_by.is_none() && made.contains(&&found.parameter);
    let split: Vec<&CombinedParameter> = report.parameters.iter().filter(is_split).collect();
    let labels: Vec<&str> = report.analyses.iter().map(|analysis| &*analysis.label).collect();
    [
        section("correlated by the map", &by(CorrelatedBy::Map), &labels),
        section("correlated by name alone", &by(CorrelatedBy::Name), &labels),
        section("decorrelated", &split, &labels),
    ]
    .concat()
}

/// Formats some parameters, with a column for each workspace.
fn section(title: &str, parameters: &[&CombinedParameter], labels: &[&str]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let headings: Vec<String> = labels.iter().map(|label| escape(label)).collect();
    let has_rules = parameters.iter().any(|found| !found.rules.is_empty());
    let mut columns = vec![("parameter", Align::Left)];
    columns.extend(has_rules.then_some(("rule", Align::Left)));
    columns.extend(headings.iter().map(|label| (&**label, Align::Left)));
    let row = |found: &&CombinedParameter| {
        let mut row = vec![escape(&found.parameter)];
        row.extend(has_rules.then(|| found.rules.join(", ")));
        row.extend(labels.iter().map(|label| cell(found, label)));
        row
    };
    let rows: Vec<Vec<String>> = parameters.iter().take(SHOWN).map(row).collect();
    let more = match parameters.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!("  and {n} more\n"),
    };
    format!("\n{title}: {}\n{}{more}", parameters.len(), format_table(&columns, &rows))
}

/// Formats what a parameter is in a workspace: its types of modifiers, and its names there if they
/// are others.
fn cell(found: &CombinedParameter, label: &str) -> String {
    let Some(used) = found.uses.iter().find(|used| used.analysis == label) else { return "-".to_owned() };
    let ParameterUse { names, kinds, channels, .. } = used;
    let kinds = match kinds[..] {
        [] => "unused".to_owned(),
        _ => kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", "),
    };
    let in_channels = match &channels[..] {
        [] => String::new(),
        [channel] => format!(" in {}", escape(channel)),
        several => format!(" in {} channels", several.len()),
    };
    match &names[..] {
        [name] if *name == found.parameter => format!("{kinds}{in_channels}"),
        names => format!("{kinds} {}{in_channels}", escape(&names.join(", "))),
    }
}
