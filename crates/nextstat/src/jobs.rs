//! Writes a folder of scripts that run the shards of one command on many machines and merge them.
//!
//! Every scheduler runs the same two scripts, `shard.sh` and `merge.sh`. What starts them is in a
//! module for each scheduler. The scripts expect that all machines see the working directory and
//! the folder at the same paths.

mod htcondor;
mod local;
mod shell;
mod slurm;

use ns_translate::whole_file::{NewFile, NewFileError, write_all_whole};
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The script that starts a job.
const SUBMIT: &str = "submit.sh";

/// What runs the shards of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Slurm: an array of jobs, and a job that depends on it.
    Slurm,
    /// HTCondor: a graph of DAGMan.
    HtCondor,
    /// No scheduler: processes of the machine on which the script runs.
    Local,
}

/// A command that is divided into shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardedRun {
    /// The program.
    pub program: String,
    /// The verb.
    pub verb: &'static str,
    /// The verb whose `merge` joins the shards.
    pub merged_by: &'static str,
    /// The words after the verb that every shard gets: not `--shard`, `--resume`, and the files of
    /// results.
    pub words: Vec<String>,
    /// The option that names the file of a shard.
    pub file_option: &'static str,
    /// `true` if that is a NumPy file, and `--resume` continues it; `false` if it is a document,
    /// which is there as a whole or not at all.
    pub resumes: bool,
    /// The files that the merge writes, at least one.
    pub results: Vec<String>,
}

impl ShardedRun {
    /// Returns the name of the file of a shard.
    #[must_use]
    pub fn file_of(&self, shard: &str) -> String {
        format!("shard-{shard}.{}", if self.resumes { "npy" } else { "json" })
    }
}

/// A job: a command, how it is divided, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// What runs the shards.
    pub scheduler: Scheduler,
    /// The number of shards.
    pub n_shards: NonZeroU32,
    /// The most shards that run at once. Without it a scheduler decides, and `local` runs one for
    /// each processor of this machine.
    pub at_once: Option<NonZeroU32>,
    /// The processors of a shard.
    pub n_threads: NonZeroU32,
    /// The folder of the scripts, the shards and their logs.
    pub folder: PathBuf,
    /// Where the command runs.
    pub working_directory: PathBuf,
    /// Lines for the scheduler, such as `--time=02:00:00` or `request_memory = 2 GB`.
    pub directives: Vec<String>,
    /// The command.
    pub run: ShardedRun,
}

/// Why a job cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A path that a script cannot contain.
    #[error("`{}` is not text in UTF-8, which scripts need", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A directive of several lines.
    #[error("the directive `{directive}` has more than one line")]
    SeveralLines {
        /// The directive.
        directive: String,
    },
    /// Directives without a scheduler.
    #[error("`local` has no scheduler that the directive `{directive}` could be for")]
    NoScheduler {
        /// The first directive.
        directive: String,
    },
    /// A result whose folder is not there, or that is a folder.
    #[error("`{}` cannot be the file of a result: {reason}", path.display())]
    NoResultFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A folder with other contents than those of the job.
    #[error("the folder `{}` is not empty, and what is in it is not this job", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The file system refuses a file or the folder.
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        /// The file or the folder.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
}

impl JobError {
    /// Returns one line of advice, or `None`.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::SeveralLines { .. } => Some("give every line as a directive of its own"),
            Self::NoScheduler { .. } => Some("directives are for `slurm` and `htcondor`"),
            Self::Occupied { .. } => Some("name another folder, or remove this one"),
            Self::NoResultFile { .. } => Some("name a file in a folder that exists, outside that of the job"),
            Self::NotText { .. } | Self::Unwritable { .. } => None,
        }
    }
}

/// A script of a job: its name in the folder, and its text.
struct Script {
    name: &'static str,
    text: String,
}

/// The paths of a job as text, absolute.
struct Places {
    working_directory: String,
    folder: String,
}

impl Places {
    fn new(request: &JobRequest) -> Result<Self, JobError> {
        let text = |path: &Path| path.to_str().map(str::to_owned).ok_or(JobError::NotText { path: path.to_owned() });
        let unwritable = |source| JobError::Unwritable { path: request.folder.clone(), source };
        let working_directory = std::path::absolute(&request.working_directory).map_err(unwritable)?;
        // A parent that is a link keeps its name, as other machines may see it elsewhere.
        let folder: PathBuf = working_directory.join(&request.folder).components().collect();
        Ok(Self { working_directory: text(&working_directory)?, folder: text(&folder)? })
    }
}

/// Writes the scripts of a job, all of them or none, and returns the path of the script that starts
/// it. A folder that has the same job already stays as it is.
///
/// # Errors
/// [`JobError::Occupied`] if the folder has other contents; the other variants if a path or a
/// directive cannot be in a script, or the file system refuses the files.
pub fn write_job(request: &JobRequest) -> Result<PathBuf, JobError> {
    request.run.results.iter().try_for_each(|result| check_result(request, result))?;
    let files: Vec<NewFile> = scripts(request)?
        .into_iter()
        .map(|script| NewFile { path: request.folder.join(script.name), bytes: script.text.into_bytes() })
        .collect();
    let submit = request.folder.join(SUBMIT);
    if !is_empty(&request.folder)? {
        let is_there = |file: &NewFile| fs::read(&file.path).is_ok_and(|bytes| bytes == file.bytes);
        let occupied = || JobError::Occupied { folder: request.folder.clone() };
        return files.iter().all(is_there).then_some(submit).ok_or_else(occupied);
    }
    write_all_whole(&files, &[]).map_err(|error| match error {
        NewFileError::Unwritable { path, source } => JobError::Unwritable { path, source },
        NewFileError::IsInput { path } | NewFileError::SamePlace { path } => JobError::Occupied { folder: path },
    })?;
    files.iter().filter(|file| is_script(&file.path)).try_for_each(|file| make_executable(&file.path))?;
    Ok(submit)
}

/// Refuses a result that the merge could not write, before any shard has run.
fn check_result(request: &JobRequest, result: &str) -> Result<(), JobError> {
    let path = request.working_directory.join(result);
    let refused = |reason| Err(JobError::NoResultFile { path: result.into(), reason });
    let parent = path.parent().unwrap_or(&request.working_directory);
    let folder = request.working_directory.join(&request.folder);
    if !parent.is_dir() {
        return refused("there is no such folder");
    }
    if path.is_dir() || path == folder {
        return refused("it is a folder");
    }
    let is_same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if is_same(parent, &folder) { refused("it is in the folder of the job") } else { Ok(()) }
}

/// Returns the command line that runs the script `submit`.
#[must_use]
pub fn start_command(submit: &Path) -> String {
    let path = submit.to_string_lossy();
    let here = if path.starts_with('-') { "./" } else { "" };
    format!("sh {}", shell::quoted(&format!("{here}{path}")))
}

/// Returns the scripts of a job.
fn scripts(request: &JobRequest) -> Result<Vec<Script>, JobError> {
    if let Some(directive) = request.directives.iter().find(|text| text.contains(['\n', '\r', '\0'])) {
        return Err(JobError::SeveralLines { directive: directive.clone() });
    }
    let places = Places::new(request)?;
    let mut scripts = vec![shell::shard(request, &places), shell::merge(request, &places)];
    match request.scheduler {
        Scheduler::Slurm => scripts.extend(slurm::scripts(request, &places)),
        Scheduler::HtCondor => scripts.extend(htcondor::scripts(request, &places)),
        Scheduler::Local => match request.directives.first() {
            Some(directive) => return Err(JobError::NoScheduler { directive: directive.clone() }),
            None => scripts.push(local::submit(request, &places)),
        },
    }
    Ok(scripts)
}

/// Returns `true` if nothing is in `folder`, or there is no such folder.
fn is_empty(folder: &Path) -> Result<bool, JobError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(JobError::Unwritable { path: folder.to_owned(), source }),
    }
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sh")
}

/// Lets every user who may read a script run it: HTCondor starts the scripts themselves.
#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), JobError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unwritable = |source| JobError::Unwritable { path: path.to_owned(), source };
    let mut permissions = fs::metadata(path).map_err(unwritable)?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(mode | (mode & 0o444) >> 2);
    fs::set_permissions(path, permissions).map_err(unwritable)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), JobError> {
    Ok(())
}
