//! Which files a verb reads and which it writes: a result must not take the place of what it was made from.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ns_translate::DocumentSource;

use super::{InputArgs, OutputArgs, PatchsetVerb, ToysVerb, Verb};
use crate::error::CliError;

/// Files of a verb.
#[derive(Default)]
struct Files<'a> {
    read: Vec<&'a Path>,
    written: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    fn new(input: &'a InputArgs, output: &'a OutputArgs) -> Self {
        let documents = input.workspace.named().into_iter().chain(&input.patch);
        let read = documents.filter_map(path).chain(input.patchset.as_deref()).collect();
        Self { read, written: output.output_file.iter().cloned().collect() }
    }

    fn of(sources: &[Option<&'a DocumentSource>], output: &'a OutputArgs) -> Self {
        let read = sources.iter().copied().flatten().filter_map(path).collect();
        Self { read, written: output.output_file.iter().cloned().collect() }
    }

    /// With the files that stand beside files of toys.
    fn with_documents(mut self) -> Self {
        let is_npy = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "npy");
        let beside = |path: &PathBuf| [".json", ".part", ".part.json"].map(|suffix| with_suffix(path, suffix));
        let more: Vec<PathBuf> = self.written.iter().filter(is_npy).flat_map(beside).collect();
        self.written.extend(more);
        self
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(suffix);
    name.into()
}

fn path(source: &DocumentSource) -> Option<&Path> {
    match source {
        DocumentSource::Path(path) => Some(path),
        DocumentSource::Stdin => None,
    }
}

impl Verb {
    fn files(&self) -> Files<'_> {
        match self {
            Self::Fit(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Gof(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Report(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Scan(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Ranking(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Hypotest(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Limit(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Significance(args) => Files::new(&args.setup.model.input, &args.output),
            Self::Inspect(args) => Files::new(&args.input, &args.output),
            Self::Check(args) => Files::new(&args.model.input, &args.output),
            Self::Evaluate(args) => {
                let mut files = Files::new(&args.model.input, &args.output);
                files.read.extend(args.points.as_ref().and_then(path));
                files
            }
            Self::HypotestToys(args) => {
                let mut files = Files::new(&args.setup.model.input, &args.output);
                files.written.extend(args.toys_file.clone());
                files.with_documents()
            }
            Self::Toys(args) => match &args.verb {
                None => Files::new(&args.throw.setup.model.input, &args.throw.output).with_documents(),
                Some(ToysVerb::Merge(merge)) => {
                    let mut files = Files::of(&[], &merge.output);
                    files.read.extend(merge.files.iter().map(PathBuf::as_path));
                    files.with_documents()
                }
            },
            Self::Digest(args) => Files::of(&[args.named()], &args.output),
            Self::Patchset(args) => match &args.verb {
                PatchsetVerb::List(args) | PatchsetVerb::Inspect(args) => Files::of(&[args.named()], &args.output),
                PatchsetVerb::Extract(args) => Files::of(&[args.set.named()], &args.set.output),
                PatchsetVerb::Verify(args) => Files::of(&[Some(&args.workspace), args.set.named()], &args.set.output),
                // A workspace may take the place of the one that was patched.
                PatchsetVerb::Apply(args) => Files::of(&[args.set.named()], &args.set.output),
            },
            // These make a workspace of a workspace, which may take its place.
            Self::Combine(_) | Self::Prune(_) | Self::Rename(_) | Self::Sort(_) => Files::default(),
            Self::Devices(_) | Self::Completions(_) => Files::default(),
        }
    }

    /// Finds out whether the result would replace an input.
    ///
    /// # Errors
    /// [`CliError::OutputIsInput`] with the name of that file.
    pub(crate) fn require_other_output(&self) -> Result<(), CliError> {
        let files = self.files();
        let is_file = |path: &&PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file());
        let is_read =
            |path: &&PathBuf| files.read.iter().any(|input| same_file::is_same_file(input, path).unwrap_or(false));
        match files.written.iter().filter(is_file).find(is_read) {
            Some(path) => Err(CliError::OutputIsInput { name: format!("`{}`", path.display()) }),
            None => Ok(()),
        }
    }
}
