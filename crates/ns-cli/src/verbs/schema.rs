//! `nextstat schema`: the JSON Schemas of the documents that the command writes.

use super::Command;
use crate::args::files::Files;
use crate::error::CliError;
use crate::output::{OutputArgs, write_json, write_text};
use crate::status::Status;
use clap::Args;
use nextstat::schema;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Name of the schema, such as `fit`; without it, print the names, one per line
    name: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

impl Command for SchemaArgs {
    fn files(&self) -> Files<'_> {
        Files::of(&[], &self.output)
    }

    fn run(self) -> Result<Status, CliError> {
        match &self.name {
            Some(name) => write_json(&schema::bundled(name)?, &self.output)?,
            None => {
                let names: String = schema::names().map(|name| format!("{name}\n")).collect();
                write_text(&names, &self.output)?;
            }
        }
        Ok(Status::Done)
    }
}
