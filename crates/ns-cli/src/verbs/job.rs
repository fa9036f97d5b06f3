//! `nextstat job`: the scripts that run the shards of a command on a cluster, and merge them.

use super::{Cli, Command};
use crate::args::ShardedArgs;
use crate::args::values::n_shards;
use crate::error::CliError;
use crate::output::write_stdout;
use crate::status::Status;
use clap::{Args, CommandFactory as _, ValueEnum};
use nextstat::jobs::{JobRequest, Scheduler, ShardedRun, write_job};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Arguments of `job`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct JobArgs {
    /// What runs the shards
    #[arg(long, value_name = "SCHEDULER", value_enum)]
    scheduler: SchedulerArg,

    /// Number of shards
    #[arg(long, value_name = "N", value_parser = n_shards, allow_hyphen_values = true)]
    shards: NonZeroU32,

    /// Folder for the scripts, the shards and their logs, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Run at most N shards at once; `local` runs one for each processor if not given
    #[arg(long, value_name = "N", value_parser = n_shards, allow_hyphen_values = true)]
    at_once: Option<NonZeroU32>,

    /// Line for the scheduler as it is, such as `--time=02:00:00` for Slurm, or `request_memory =
    /// 2 GB` for HTCondor; repeatable
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    directive: Vec<String>,

    /// The command `nextstat` of the machines that run the shards; this one if not given
    #[arg(long, value_name = "PROGRAM")]
    program: Option<String>,

    /// The command to divide, without `nextstat` and `--shard`; its `--output-file` gets the merged
    /// result, and its `--threads` are the processors of each shard, 1 if not given
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

const AFTER_HELP: &str = "\
Standard output gets the command that starts the job: `sh DIR/submit.sh`. The same command continues it after a failure: finished shards are kept. All machines must see the working directory and DIR at the same paths.

Exit codes:
  0  done
  2  bad input or usage; nothing is written";

/// The batch systems that a job can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchedulerArg {
    /// An array of jobs, and a job that depends on it
    Slurm,
    /// A graph of DAGMan
    #[value(name = "htcondor")]
    HtCondor,
    /// No scheduler: processes of this machine
    Local,
}

impl From<SchedulerArg> for Scheduler {
    fn from(scheduler: SchedulerArg) -> Self {
        match scheduler {
            SchedulerArg::Slurm => Self::Slurm,
            SchedulerArg::HtCondor => Self::HtCondor,
            SchedulerArg::Local => Self::Local,
        }
    }
}

impl Command for JobArgs {
    fn run(self) -> Result<Status, CliError> {
        let cli = match crate::parsed_words(&self.command) {
            Ok(cli) => cli,
            Err(code) => return Ok(Status::Passed(code)),
        };
        let files = cli.verb.files();
        files.require_other_output()?;
        files.require_inputs()?;
        let sharded = cli.verb.sharded().ok_or_else(|| self.has_no_shards())?;
        require_one_run(&sharded)?;
        let run = self.sharded_run(&sharded)?;
        // What a shard cannot have, such as `--stop-at-error`, is refused here and not in the jobs.
        if let Err(code) = crate::parsed_words(&words_of_first(&run, self.shards)) {
            return Ok(Status::Passed(code));
        }
        let n_threads = sharded.threads.and_then(|n| u32::try_from(n.get()).ok()).and_then(NonZeroU32::new);
        let submit = write_job(&JobRequest {
            scheduler: self.scheduler.into(),
            n_shards: self.shards,
            at_once: self.at_once,
            n_threads: n_threads.unwrap_or(NonZeroU32::MIN),
            folder: self.directory,
            working_directory: std::env::current_dir().map_err(CliError::NoWorkingDirectory)?,
            directives: self.directive,
            run,
        })?;
        write_stdout(format!("{}\n", nextstat::jobs::start_command(&submit)).as_bytes())?;
        Ok(Status::Done)
    }
}

impl JobArgs {
    fn has_no_shards(&self) -> CliError {
        let takes_shards = |verb: &&clap::Command| verb.get_arguments().any(|argument| argument.get_id() == "shard");
        let known =
            Cli::command().get_subcommands().filter(takes_shards).map(|verb| verb.get_name().to_owned()).collect();
        let is_merge = self.command.get(1).is_some_and(|word| word == "merge");
        let verb = self.command.iter().take(if is_merge { 2 } else { 1 }).map(String::as_str).collect::<Vec<_>>();
        CliError::NoShards { verb: verb.join(" "), known }
    }

    /// Returns the command without what differs between shards.
    fn sharded_run(&self, sharded: &ShardedArgs<'_>) -> Result<ShardedRun, CliError> {
        let mut words = self.command.get(1..).unwrap_or_default().to_vec();
        let mut results = Vec::new();
        for file in &sharded.results {
            let Some(path) = file.path else { continue };
            let path = path.to_str().unwrap_or_default();
            words = without(&words, file.options, path)
                .ok_or_else(|| CliError::HiddenOption { option: file.options[0], value: path.to_owned() })?;
            results.push(path.to_owned());
        }
        words.retain(|word| word != "--resume");
        if sharded.threads.is_none() {
            words.splice(..0, ["--threads".to_owned(), "1".to_owned()]);
        }
        Ok(ShardedRun {
            program: self.program.clone().unwrap_or_else(this_program),
            verb: sharded.verb,
            merged_by: sharded.merged_by,
            words,
            file_option: sharded.file_option,
            resumes: sharded.resumes,
            results,
        })
    }
}

/// Refuses what a whole run can have and a shard or a job cannot.
fn require_one_run(sharded: &ShardedArgs<'_>) -> Result<(), CliError> {
    if sharded.division.0.is_some() {
        return Err(CliError::OwnShard);
    }
    if sharded.results.last().is_none_or(|result| result.path.is_none_or(|path| path.as_os_str() == "-")) {
        return Err(CliError::JobToStdout);
    }
    if sharded.is_piped {
        return Err(CliError::JobFromStdin);
    }
    if sharded.is_table { Err(CliError::JobOfTable) } else { Ok(()) }
}

/// Returns the words of the first shard.
fn words_of_first(run: &ShardedRun, n_shards: NonZeroU32) -> Vec<String> {
    let own = [run.verb, "--shard", &format!("1/{n_shards}"), run.file_option, &run.file_of("1")];
    let resume = run.resumes.then(|| "--resume".to_owned());
    own.into_iter().map(str::to_owned).chain(resume).chain(run.words.iter().cloned()).collect()
}

/// Returns `words` without the option that has one of the names `options` and this value, or `None`
/// if there is no such option.
fn without(words: &[String], options: &[&str], value: &str) -> Option<Vec<String>> {
    let is_joined = |word: &String| {
        let (option, rest) = options.iter().find_map(|&option| Some((option, word.strip_prefix(option)?)))?;
        let is_short = !option.starts_with("--");
        (rest.strip_prefix('=') == Some(value) || is_short && rest == value).then_some(1)
    };
    let n_words = |words: &[String]| match words {
        [option, next, ..] if options.contains(&option.as_str()) && next == value => Some(2),
        [word, ..] => is_joined(word),
        [] => None,
    };
    let (start, n) = (0..words.len()).find_map(|start| Some((start, n_words(&words[start..])?)))?;
    Some([&words[..start], &words[start + n..]].concat())
}

/// Returns the path of this program, or of the `nextstat` of the search path where this program is
/// a Python.
fn this_program() -> String {
    const NAME: &str = "nextstat";
    let text = |path: PathBuf| path.to_str().map(str::to_owned);
    let own = std::env::current_exe().ok().filter(|path| path.file_stem().is_some_and(|stem| stem == NAME));
    let found = own.or_else(|| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .map(|folder| folder.join(NAME))
            .find(|path| path.is_absolute() && path.is_file())
    });
    found.and_then(text).unwrap_or_else(|| NAME.to_owned())
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn options_are_found_in_every_spelling() {
        let options = ["--output-file", "--output", "-o"];
        for spelled in ["--output-file f", "--output f", "-o f", "--output-file=f", "--output=f", "-o=f", "-of"] {
            let words: Vec<String> = format!("ws.json {spelled} -q").split(' ').map(str::to_owned).collect();
            assert_eq!(without(&words, &options, "f").as_deref(), Some(&["ws.json".to_owned(), "-q".to_owned()][..]));
        }
        for spelled in ["--output-file g", "-qo f", "f", "--output-filef"] {
            let words: Vec<String> = format!("ws.json {spelled}").split(' ').map(str::to_owned).collect();
            assert_eq!(without(&words, &options, "f"), None, "{spelled}");
        }
    }
}
