//! What a job must know of the arguments of a verb that takes shards.

use super::SetupArgs;
use crate::output::OutputArgs;
use ns_translate::DocumentSource;
use ns_translate::toys::Shard;
use std::num::NonZeroUsize;
use std::path::Path;

/// A run that can be divided into shards.
pub(crate) struct ShardedArgs<'a> {
    /// The verb, which merges its shards or those of the same format.
    pub(crate) verb: &'static str,
    /// The verb whose `merge` joins the shards.
    pub(crate) merged_by: &'static str,
    /// The option that names the file of a shard.
    pub(crate) file_option: &'static str,
    /// `true` for a NumPy file, which `--resume` continues.
    pub(crate) resumes: bool,
    /// The shard, if one was given, and whether a run is continued.
    pub(crate) division: (Option<Shard>, bool),
    /// The files of results; the last one is the result's own.
    pub(crate) results: Vec<ResultFile<'a>>,
    /// `true` if the result is written as a table, which shards do not have.
    pub(crate) is_table: bool,
    /// `true` if something is read from standard input.
    pub(crate) is_piped: bool,
    /// The number of threads, if it was given.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// A file that a run writes.
pub(crate) struct ResultFile<'a> {
    /// The names of the option.
    pub(crate) options: &'static [&'static str],
    /// The file, if it was named.
    pub(crate) path: Option<&'a Path>,
}

impl<'a> ResultFile<'a> {
    /// Returns the file of the result itself.
    pub(crate) fn of(output: &'a OutputArgs) -> Self {
        Self { options: OutputArgs::FILE_OPTIONS, path: output.output_file.as_deref() }
    }
}

/// Returns `true` if the workspace or one of `more` is read from standard input.
pub(crate) fn is_piped(setup: &SetupArgs, more: Option<&DocumentSource>) -> bool {
    let input = &setup.model.input;
    let is_stdin = |source: &DocumentSource| source.path().is_none();
    input.workspace.named().is_none_or(is_stdin) || input.patch.iter().any(is_stdin) || more.is_some_and(is_stdin)
}
