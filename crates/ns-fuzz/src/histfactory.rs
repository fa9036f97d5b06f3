//! Checks of HistFactory XML and of the ROOT files that it names.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ns_core::spec::Workspace;
use ns_root::{RootFile, RootFileError};
use ns_translate::{DocumentSource, KeptKeys, TargetFormat, convert, full_message, read_document};
use tempfile::TempDir;

use crate::{FuzzStage, evaluate, refused};

/// Objects of a file that are read, and directories that are entered.
const OBJECTS: usize = 64;

/// Reads `data` as a combination next to the histograms of the tests, and as a channel of one, and
/// returns the last stage that one of them reaches.
pub fn xml(data: &[u8]) -> FuzzStage {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(folder).path();
    std::fs::write(folder.join("channel.xml"), data).expect("a folder of our own");
    let top = read_one(data, folder);
    top.max(read_one(COMBINATION, folder))
}

const COMBINATION: &[u8] = br#"<Combination><Input>channel.xml</Input>
<Measurement Name="m" Lumi="1" LumiRelErr="0.1"><POI>mu</POI></Measurement></Combination>"#;

/// Returns a folder with the files that the seeds name.
fn folder() -> TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/histfactory");
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::create_dir(folder.path().join("channels")).expect("an empty folder");
    let channels = std::fs::read_dir(source.join("channels")).expect("test data");
    let names = channels.map(|entry| PathBuf::from("channels").join(entry.expect("readable").file_name()));
    for name in names.chain([PathBuf::from("data.root")]) {
        std::fs::copy(source.join(&name), folder.path().join(&name)).expect("a file of the test data");
    }
    folder
}

fn read_one(data: &[u8], folder: &Path) -> FuzzStage {
    match read_document(data, &DocumentSource::Path(folder.join("combination.xml"))) {
        Ok(read) => {
            check_writing(&read.workspace);
            evaluate(&read.workspace)
        }
        Err(error) => refused(error),
    }
}

/// Checks that a workspace is read back as it was from the XML that is written, or that what XML
/// cannot hold is named.
pub(crate) fn check_writing(workspace: &Workspace) {
    let written = match convert(workspace, &KeptKeys::default(), TargetFormat::Xml) {
        Ok(written) => written,
        Err(error) => {
            // What a reader of its own refuses should have been noticed before.
            assert!(error.items.iter().all(|item| !item.what.contains("reader refuses")), "{error}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for file in &written.files {
        std::fs::write(folder.path().join(&file.path), &file.bytes).expect("a folder of our own");
    }
    let back = read_document(written.text.as_bytes(), &DocumentSource::Path(folder.path().join("top.xml")));
    let back = back.unwrap_or_else(|error| panic!("what was written is refused: {}", full_message(&error)));
    assert_eq!(back.workspace, *workspace);
}

/// Reads all histograms of the ROOT file `data`, and returns [`FuzzStage::Compiled`] if there are
/// any.
pub fn root_file(data: &[u8]) -> FuzzStage {
    let mut file = match RootFile::from_bytes(data.to_vec()) {
        Ok(file) => file,
        Err(error) => return explained(&error),
    };
    let mut reached = FuzzStage::Refused;
    let mut folders = vec![String::new()];
    let mut left = OBJECTS;
    while let Some(folder) = folders.pop() {
        let keys = match file.keys(&folder) {
            Ok(keys) => keys,
            Err(error) => {
                explained(&error);
                continue;
            }
        };
        reached = reached.max(FuzzStage::Read);
        for key in keys.iter().take(left) {
            left -= 1;
            let path = format!("{folder}/{}", key.name);
            if key.is_directory() {
                folders.push(path);
                continue;
            }
            match file.histogram(&path) {
                Ok(histogram) => {
                    let n_bins = histogram.n_bins();
                    assert!(n_bins > 0);
                    assert_eq!([histogram.values().len(), histogram.errors().len()], [n_bins; 2]);
                    assert_eq!(histogram.edges().len(), n_bins + 1);
                    reached = FuzzStage::Compiled;
                }
                Err(error) => {
                    explained(&error);
                }
            }
        }
    }
    reached
}

fn explained(error: &RootFileError) -> FuzzStage {
    assert!(!error.to_string().is_empty());
    assert!(error.hint().is_none_or(|hint| !hint.is_empty()));
    let _ = error.missing();
    FuzzStage::Refused
}
