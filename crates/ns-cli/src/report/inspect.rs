//! What `inspect` says: the tables of `pyhf inspect`.

use ns_core::spec::ModifierKind;
use ns_core::summary::WorkspaceSummary;

use super::table::{Align, table};
use super::talk::harmless;

const RIGHT: Align = Align::Right;
const LEFT: Align = Align::Left;

/// Counts, channels, samples, parameters, measurements.
pub(crate) fn tables(summary: &WorkspaceSummary) -> String {
    let counts = &summary.summary;
    let counts = [
        ("channels", counts.channels),
        ("bins", counts.bins),
        ("samples", counts.samples),
        ("parameters", counts.parameters),
        ("modifiers", counts.modifiers),
    ];
    let counts: Vec<_> = counts.iter().map(|(what, n)| vec![(*what).to_owned(), n.to_string()]).collect();
    let channels: Vec<_> = summary.channels.iter().map(|(name, bins)| vec![harmless(name), bins.to_string()]).collect();
    let samples: Vec<_> = summary.samples.iter().map(|name| vec![harmless(name)]).collect();
    let words = |kinds: &[ModifierKind]| kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",");
    let parameters: Vec<_> = summary
        .systematics
        .iter()
        .map(|(name, constraint, kinds)| vec![harmless(name), constraint.as_str().to_owned(), words(kinds)])
        .collect();
    let measurements: Vec<_> =
        summary.measurements.iter().map(|entry| measurement(entry, &summary.measurement)).collect();
    [
        table(&[("summary", RIGHT), ("", RIGHT)], &counts),
        table(&[("channels", RIGHT), ("bins", RIGHT)], &channels),
        table(&[("samples", RIGHT)], &samples),
        table(&[("parameters", RIGHT), ("constraint", LEFT), ("modifiers", LEFT)], &parameters),
        table(&[("measurement", RIGHT), ("poi", LEFT), ("parameters", LEFT)], &measurements),
    ]
    .join("\n")
}

fn measurement((name, poi, parameters): &(String, String, Vec<String>), chosen: &str) -> Vec<String> {
    let mark = if name == chosen { "(*) " } else { "" };
    let or_none = |text: String| if text.is_empty() { "(none)".to_owned() } else { harmless(&text) };
    vec![format!("{mark}{}", harmless(name)), or_none(poi.clone()), or_none(parameters.join(","))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Sample, Workspace};

    #[test]
    fn the_tables_have_what_the_workspace_has() {
        let modifiers = vec![Modifier { name: "mu".to_owned(), data: ModifierData::NormFactor }];
        let sample = Sample { name: "signal".to_owned(), data: vec![5.0, 10.0], modifiers };
        let workspace = Workspace {
            channels: vec![Channel { name: "SR".to_owned(), samples: vec![sample] }],
            measurements: vec![Measurement { name: "m".to_owned(), poi: Some("mu".to_owned()), parameters: vec![] }],
            ..Workspace::default()
        };
        let summary = ns_core::summary::summarize(&workspace, None).expect("it has a measurement");
        insta::assert_snapshot!(tables(&summary), @r#"
           summary
           -------
          channels  1
              bins  2
           samples  1
        parameters  1
         modifiers  1

        channels  bins
        --------  ----
              SR     2

        samples
        -------
         signal

        parameters  constraint     modifiers
        ----------  ----------     ---------
                mu  unconstrained  normfactor

        measurement  poi  parameters
        -----------  ---  ----------
              (*) m  mu   (none)
        "#);
    }
}
