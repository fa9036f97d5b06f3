//! `nextstat inspect`: the contents of a workspace.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::{InputArgs, compile_error};
use crate::error::CliError;
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Reporter, escape, write_result};
use crate::status::Status;
use clap::Args;
use nextstat::document::{headed, to_document};
use ns_core::spec::ModifierKind;
use ns_core::summary::{WorkspaceSummary, summarize};

/// Arguments of `inspect`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Measurement to mark as chosen; the first one if not given
    #[arg(long, value_name = "NAME")]
    measurement: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for InspectArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.input, &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        let (loaded, name) = self.input.load()?;
        let summary = summarize(&loaded.workspace, self.measurement.as_deref());
        let summary = summary.map_err(|error| compile_error(name, error))?;
        write_result(&headed("inspect", to_document(&summary)), &self.output)?;
        Reporter::new(&self.output).summary(|_| tables(&summary));
        Ok(Status::Done)
    }
}

const RIGHT: Align = Align::Right;
const LEFT: Align = Align::Left;

/// Formats counts, channels, samples, parameters and measurements, as `pyhf inspect` does.
fn tables(summary: &WorkspaceSummary) -> String {
    let counts = &summary.summary;
    let counts = [
        ("channels", counts.channels),
        ("bins", counts.bins),
        ("samples", counts.samples),
        ("parameters", counts.parameters),
        ("modifiers", counts.modifiers),
    ];
    let counts: Vec<_> = counts.iter().map(|(what, n)| vec![(*what).to_owned(), n.to_string()]).collect();
    let channels: Vec<_> = summary.channels.iter().map(|(name, bins)| vec![escape(name), bins.to_string()]).collect();
    let samples: Vec<_> = summary.samples.iter().map(|name| vec![escape(name)]).collect();
    let words = |kinds: &[ModifierKind]| kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",");
    let parameters: Vec<_> = summary
        .systematics
        .iter()
        .map(|(name, constraint, kinds)| vec![escape(name), constraint.as_str().to_owned(), words(kinds)])
        .collect();
    let measurements: Vec<_> = summary
        .measurements
        .iter()
        .map(|(name, poi, parameters)| measurement(name, poi, parameters, *name == summary.measurement))
        .collect();
    [
        table(&[("summary", RIGHT), ("", RIGHT)], &counts),
        table(&[("channels", RIGHT), ("bins", RIGHT)], &channels),
        table(&[("samples", RIGHT)], &samples),
        table(&[("parameters", RIGHT), ("constraint", LEFT), ("modifiers", LEFT)], &parameters),
        table(&[("measurement", RIGHT), ("poi", LEFT), ("parameters", LEFT)], &measurements),
    ]
    .join("\n")
}

fn measurement(name: &str, poi: &str, parameters: &[String], is_chosen: bool) -> Vec<String> {
    let mark = if is_chosen { "(*) " } else { "" };
    let or_none = |text: &str| if text.is_empty() { "(none)".to_owned() } else { escape(text) };
    vec![format!("{mark}{}", escape(name)), or_none(poi), or_none(&parameters.join(","))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ns_core::spec::{Channel, Measurement, Modifier, ModifierData, Sample, Workspace};

    #[test]
    fn tables_list_the_contents_of_the_workspace() {
        let modifiers = vec![Modifier::new("mu", ModifierData::NormFactor)];
        let sample = Sample { name: "signal".to_owned(), data: vec![5.0, 10.0], modifiers, ..Default::default() };
        let workspace = Workspace {
            channels: vec![Channel { name: "SR".to_owned(), samples: vec![sample] }],
            measurements: vec![Measurement {
                name: "m".to_owned(),
                poi: Some("mu".to_owned()),
                parameters: vec![],
                ..Default::default()
            }],
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
