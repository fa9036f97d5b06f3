//! `nextstat evaluate`: likelihood, gradient and expected data at given points.

use super::{Command, EXIT_CODES};
use crate::args::files::Files;
use crate::args::values::source;
use crate::args::{ModelArgs, ThreadArgs};
use crate::error::CliError;
use crate::output::table::{Align, table};
use crate::output::{OutputArgs, Reporter, write_result};
use crate::status::Status;
use clap::Args;
use nextstat::evaluate::{EvaluatedPoint, Evaluation};
use nextstat::number::significant;
use ns_translate::{DocumentError, DocumentSource, read_bytes, read_points};

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Points: a JSON list of parameter vectors, each in the order of `par_names`; `-` reads
    /// standard input; the model's starting values if not given
    #[arg(long, value_name = "FILE", value_parser = source())]
    points: Option<DocumentSource>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl Command for EvaluateArgs {
    fn files(&self) -> Files<'_> {
        Files::new(&self.model.input, &self.output).reading(self.points.as_ref())
    }

    fn run(self) -> Result<Status, CliError> {
        let workspace = self.model.input.workspace.source()?;
        let mut documents = self.model.input.patch.iter().chain([&workspace]);
        if self.points == Some(DocumentSource::Stdin) && documents.any(|source| *source == DocumentSource::Stdin) {
            return Err(CliError::TwoFromStdin);
        }
        let model = self.model.model()?;
        let points = match &self.points {
            None => vec![model.model().parameters.init.clone()],
            Some(source) => read_points(&read_bytes(source)?, model.model().n_params())
                .map_err(|error| DocumentError::from(error).in_file(&source.name()))?,
        };
        let evaluation = model.evaluate(&points, self.threads.count());
        write_result(&model.evaluation_document(&evaluation), &self.output)?;
        Reporter::new(&self.output).summary(|_| summary(&evaluation));
        Ok(Status::Done)
    }
}

/// Formats 2NLL and the largest derivative at each point.
fn summary(evaluation: &Evaluation) -> String {
    let row = |(i, point): (usize, &EvaluatedPoint)| {
        let largest = point.gradient.iter().flatten().zip(&evaluation.par_names);
        let largest = largest.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let derivative = largest
            .map_or_else(String::new, |(derivative, name)| format!("{} along `{name}`", significant(*derivative, 4)));
        let reason = point.not_finite.as_ref().map_or(derivative, ToString::to_string);
        vec![i.to_string(), significant(point.twice_nll, 10), reason]
    };
    let rows: Vec<Vec<String>> = evaluation.points.iter().enumerate().map(row).collect();
    table(&[("point", Align::Right), ("2NLL", Align::Right), ("largest derivative", Align::Left)], &rows)
}
