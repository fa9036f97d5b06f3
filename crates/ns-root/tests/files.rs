//! What is read from files that ROOT and uproot wrote equals what ROOT reads in them
//! (testdata/root/generate.py).

use std::path::PathBuf;

use ns_root::{Histogram, RootFile, RootFileError};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/root")
}

fn contents() -> Value {
    let text = std::fs::read(folder().join("contents.json")).expect("readable");
    serde_json::from_slice(&text).expect("JSON")
}

fn open(name: &str) -> RootFile {
    RootFile::open(&folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Contents and edges are the bits that ROOT has; its errors went through a square root.
fn assert_same(histogram: &Histogram, expected: &Value, place: &str) {
    let cells = numbers(&expected["cells"]);
    let inside = &cells[1..cells.len() - 1];
    assert_eq!(histogram.values(), inside, "{place}");
    assert_eq!([histogram.underflow(), histogram.overflow()], [cells[0], cells[cells.len() - 1]], "{place}");
    for (found, wanted) in histogram.errors().iter().zip(numbers(&expected["errors"])) {
        assert!((found - wanted).abs() <= 1e-15 * wanted.abs(), "{place}: {found} and {wanted}");
    }
    for (found, wanted) in histogram.edges().iter().zip(numbers(&expected["edges"])) {
        assert!((found - wanted).abs() <= 4.0 * f64::EPSILON * wanted.abs().max(1.0), "{place}: {found} and {wanted}");
    }
    assert_eq!(histogram.edges().len(), inside.len() + 1, "{place}");
}

#[test]
fn files_of_every_compression_and_writer_equal_what_root_reads() {
    let contents = contents();
    for (writer, compressions) in [
        ("root", &["none", "old", "zlib", "lzma", "lz4", "zstd"][..]),
        ("uproot", &["none", "zlib", "lzma", "lz4", "zstd"]),
    ] {
        for compression in compressions {
            let name = format!("{writer}-{compression}.root");
            let mut file = open(&name);
            for (path, expected) in contents[writer].as_object().expect("an object") {
                let histogram = file.histogram(path).unwrap_or_else(|error| panic!("{name}: {path}: {error}"));
                assert_same(&histogram, expected, &format!("{name}: {path}"));
            }
        }
    }
}

#[test]
fn the_highest_cycle_is_read_unless_another_is_named() {
    let mut file = open("root-zlib.root");
    let newest = file.histogram("weighted").expect("readable");
    assert_eq!(file.histogram("weighted;2").expect("readable"), newest);
    assert_eq!(file.histogram("/weighted;*").expect("readable"), newest);
    assert_eq!(file.histogram("weighted;1").expect("readable").values()[0] * 2.0, newest.values()[0]);
    assert!(matches!(file.histogram("weighted;3"), Err(RootFileError::NoObject { .. })));
}

#[test]
fn what_is_missing_is_named_with_what_is_there() {
    let mut file = open("root-zlib.root");
    let error = file.histogram("regions/CR/kind_D").expect_err("missing");
    assert_eq!(error.to_string(), "there is no directory `CR` in the directory `regions`");
    assert_eq!(error.missing(), Some(("CR", &["SR".to_owned()][..])));
    let error = file.histogram("regions/SR/kind_X").expect_err("missing");
    assert_eq!(error.to_string(), "there is no histogram `kind_X` in the directory `regions/SR`");
    assert_eq!(error.missing().map(|(_, known)| known.len()), Some(6));
    assert_eq!(file.histogram("").expect_err("missing").to_string(), "there is no histogram ``");
}

#[test]
fn other_objects_are_refused_by_their_class() {
    let mut file = open("root-zlib.root");
    let error = file.histogram("regions/SR/plane").expect_err("two axes");
    assert_eq!(error.to_string(), "`regions/SR/plane` is a `TH2F`, not a histogram with one axis");
    let error = file.histogram("regions/SR").expect_err("a directory");
    assert_eq!(error.to_string(), "`regions/SR` is a `TDirectory`, not a histogram with one axis");
    let error = file.histogram("regions/SR/label/x").expect_err("no directory");
    assert_eq!(error.to_string(), "there is no directory `label` in the directory `regions/SR`");
}

#[test]
fn keys_are_listed_with_all_cycles() {
    let keys = open("root-zstd.root").keys("").expect("readable");
    let listed: Vec<(&str, i16)> = keys.iter().map(|key| (key.name.as_str(), key.cycle)).collect();
    assert_eq!(listed, [("weighted", 2), ("weighted", 1), ("regions", 1)]);
}

#[test]
fn files_that_break_off_end_in_an_error_at_every_length() {
    let bytes = std::fs::read(folder().join("root-zlib.root")).expect("readable");
    for length in 0..bytes.len() {
        let read = RootFile::from_bytes(bytes[..length].to_vec()).and_then(|mut file| {
            file.histogram("regions/SR/kind_D")?;
            file.histogram("weighted")
        });
        // The last bytes are a list of free space, which nothing needs.
        assert!(read.is_err() || length > bytes.len() - 300, "{length} bytes");
    }
}

#[test]
fn a_text_is_no_root_file() {
    let error = RootFile::from_bytes(b"{\"channels\": []}".to_vec()).err().expect("no ROOT file");
    assert_eq!(error.to_string(), "this is not a ROOT file: it does not begin with `root`");
}
