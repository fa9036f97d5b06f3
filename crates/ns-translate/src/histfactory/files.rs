//! Finds the files that XML names, and reads histograms from ROOT files.
//!
//! ROOT takes relative names from the folder in which it is started, which need not be known when a
//! combination is read. Here they are looked for, in this order, from the folder of the
//! combination, from the folders around it, and from the current folder. A combination that was
//! moved with its inputs names folders that are no longer there: then the last parts of a name are
//! looked for from the folder of the combination, the longest first, and a warning says so.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ns_root::{Histogram, RootFile};

use super::channel::HistogramName;
use super::error::{HistFactoryError, HistFactoryProblem};
use crate::hint::tried;
use crate::memory_files::MemoryFiles;
use crate::place::DocumentPlace;
use crate::source::{DocumentSource, SourceError, read_bytes};
use crate::whole_file::NewFile;

/// ROOT files that are open at a time: systems limit them.
const OPEN_LIMIT: usize = 64;

/// Places that a message about a missing file lists.
const LISTED: usize = 4;

/// The files of a combination.
pub(super) struct InputFiles {
    /// The combination.
    origin: DocumentSource,
    /// The folder of the combination.
    folder: PathBuf,
    /// Names as written, and where they were found.
    found: HashMap<String, PathBuf>,
    open: HashMap<PathBuf, RootFile>,
    /// All files that were read, each once, in the order in which they were met.
    read: Vec<PathBuf>,
    /// What was found elsewhere than its name says.
    warnings: Vec<String>,
}

impl InputFiles {
    /// Returns the files of the combination in `origin`.
    pub(super) fn new(origin: &DocumentSource) -> Self {
        Self {
            origin: origin.clone(),
            folder: origin.folder(),
            found: HashMap::new(),
            open: HashMap::new(),
            read: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns files that are about to be written.
    pub(super) fn in_memory(files: &[NewFile]) -> Self {
        let mut memory = MemoryFiles::default();
        files.iter().for_each(|file| memory.insert(&file.path, file.bytes.clone()));
        Self::new(&DocumentSource::memory(Arc::new(memory), ""))
    }

    /// Reads all bytes of the file at `path`.
    pub(super) fn bytes(&self, path: PathBuf) -> Result<Vec<u8>, SourceError> {
        read_bytes(&self.origin.sibling(path))
    }

    /// Returns all files that were read, and warnings.
    pub(super) fn into_parts(self) -> (Vec<PathBuf>, Vec<String>) {
        (self.read, self.warnings)
    }

    /// Returns where the file `written` at `place` is.
    pub(super) fn find(&mut self, written: &str, place: &DocumentPlace) -> Result<PathBuf, HistFactoryError> {
        if let Some(path) = self.found.get(written) {
            return Ok(path.clone());
        }
        if is_on_the_network(written) {
            return Err(HistFactoryProblem::Network { file: written.to_owned() }.at(place));
        }
        // Without the parts `.`, which names of ROOT often begin with.
        let name: PathBuf = Path::new(written).components().filter(|part| *part != Component::CurDir).collect();
        let path = match candidates(&self.folder, &name).find(|path| self.is_file(path)) {
            Some(path) => path,
            None => self.moved(written, &name, place)?,
        };
        self.found.insert(written.to_owned(), path.clone());
        if !self.read.contains(&path) {
            self.read.push(path.clone());
        }
        Ok(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        self.origin.sibling(path).is_file()
    }

    /// Returns the file that the last parts of `name` name, which is spelled `written`.
    fn moved(&mut self, written: &str, name: &Path, place: &DocumentPlace) -> Result<PathBuf, HistFactoryError> {
        let parts: Vec<_> = name.components().collect();
        let shorter = (1..parts.len()).map(|skipped| self.folder.join(parts[skipped..].iter().collect::<PathBuf>()));
        let Some(path) = shorter.into_iter().find(|path| self.is_file(path)) else {
            let tried = tried(candidates(&self.folder, name).take(LISTED));
            return Err(HistFactoryProblem::NoFile { file: written.to_owned(), tried }.at(place));
        };
        self.warnings.push(format!("there is no file `{written}`; `{}` is read instead", path.display()));
        Ok(path)
    }

    /// Reads a histogram. All its contents are finite.
    pub(super) fn histogram(&mut self, name: &HistogramName) -> Result<Histogram, HistFactoryError> {
        let path = self.find(&name.file, &name.place)?;
        let file = path.display().to_string();
        let histogram = self.opened(&path, &name.place)?.histogram(&name.path).map_err(|error| {
            let known = error.missing().map(|(_, known)| known.to_vec()).unwrap_or_default();
            let problem = HistFactoryProblem::Histogram { histogram: name.path.clone(), file, known };
            HistFactoryError::At { problem, place: name.place.clone(), source: Some(Box::new(error)) }
        })?;
        require_finite("the content", histogram.values(), name)?;
        Ok(histogram)
    }

    fn opened(&mut self, path: &Path, place: &DocumentPlace) -> Result<&mut RootFile, HistFactoryError> {
        if !self.open.contains_key(path) {
            let file = self.origin.sibling(path).open_root().map_err(|error| HistFactoryError::At {
                problem: HistFactoryProblem::File { file: path.display().to_string() },
                place: place.clone(),
                source: Some(Box::new(error)),
            })?;
            if self.open.len() >= OPEN_LIMIT {
                self.open.clear();
            }
            self.open.insert(path.to_owned(), file);
        }
        Ok(self.open.get_mut(path).unwrap_or_else(|| unreachable!("it was put there")))
    }
}

/// Refuses `numbers` (B) of a histogram of which one is not finite.
pub(super) fn require_finite(
    what: &'static str,
    numbers: &[f64],
    name: &HistogramName,
) -> Result<(), HistFactoryError> {
    let Some(bin) = numbers.iter().position(|number| !number.is_finite()) else { return Ok(()) };
    let (histogram, value) = (name.path.clone(), numbers[bin]);
    Err(HistFactoryProblem::NotFinite { what, histogram, bin, value }.at(&name.place))
}

/// Returns whether a name has a protocol, such as `root://`.
fn is_on_the_network(written: &str) -> bool {
    written.split_once("://").is_some_and(|(protocol, _)| {
        !protocol.is_empty() && protocol.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// Returns where a file can be, the likeliest place first.
fn candidates(folder: &Path, written: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let here = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let around: Vec<PathBuf> = here.ancestors().skip(1).map(|outer| outer.join(written)).collect();
    let is_absolute = written.is_absolute();
    let first = folder.join(written);
    let others = around.into_iter().chain([written.to_owned()]);
    std::iter::once(first).chain(others.take_while(move |_| !is_absolute))
}
