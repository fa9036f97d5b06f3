//! What is written is read back, and is the same bytes for the same histograms.

use ns_root::{Histogram, RootFile, RootWriteError, RootWriter};

fn histogram(name: &str, n_bins: usize) -> Histogram {
    let values: Vec<f64> = (0..n_bins).map(|bin| (bin as f64 * 0.7).sin() * 1e3 + 0.1).collect();
    let squares: Vec<f64> = values.iter().map(|value| value.abs() / 3.0).collect();
    let edges = (0..=n_bins).map(|edge| edge as f64).collect();
    Histogram::new(name, "with a title", edges, &values, Some(&squares)).expect("a histogram")
}

fn file() -> Vec<u8> {
    let mut writer = RootWriter::new("data.root").expect("a short name");
    let uneven = Histogram::new("uneven", "", vec![-1.5, 0.0, 0.1, 1e6], &[3.0, -0.0, 1e-300], None);
    writer.add("", &uneven.expect("a histogram")).expect("room");
    for path in ["SR", "SR/inner/most", "CR", "SR/inner"] {
        for (name, n_bins) in [("one", 1), ("few", 7), ("many", 3000)] {
            writer.add(path, &histogram(name, n_bins)).expect("room");
        }
    }
    writer.add("/long/", &histogram(&"n".repeat(300), 2)).expect("room");
    writer.finish().expect("room")
}

#[test]
fn histograms_in_nested_directories_are_read_back() {
    let mut read = RootFile::from_bytes(file()).expect("a ROOT file");
    for path in ["SR", "SR/inner/most", "CR", "SR/inner"] {
        for (name, n_bins) in [("one", 1), ("few", 7), ("many", 3000)] {
            assert_eq!(read.histogram(&format!("{path}/{name}")).expect("readable"), histogram(name, n_bins));
        }
    }
    let uneven = read.histogram("uneven").expect("readable");
    assert_eq!((uneven.edges(), uneven.values()), (&[-1.5, 0.0, 0.1, 1e6][..], &[3.0, 0.0, 1e-300][..]));
    assert!(!uneven.has_squared_weights() && uneven.values()[1].is_sign_negative());
    let names: Vec<String> = read.keys("").expect("readable").into_iter().map(|key| key.name).collect();
    assert_eq!(names, ["uneven", "SR", "CR", "long"]);
    let name = "n".repeat(300);
    assert_eq!(read.histogram(&format!("long/{name}")).expect("readable").name, name);
}

#[test]
fn the_same_histograms_make_the_same_bytes() {
    assert_eq!(file(), file());
    let one = |value: f64| {
        let mut writer = RootWriter::new("data.root").expect("a short name");
        writer.add("", &Histogram::new("h", "", vec![0.0, 1.0], &[value], None).expect("one bin")).expect("room");
        writer.finish().expect("room")
    };
    let (a, b) = (one(1.0), one(2.0));
    // The identifiers differ with the contents.
    assert_ne!(a[47..63], b[47..63]);
}

#[test]
fn objects_of_several_blocks_are_read_back() {
    let large = histogram("large", 1_500_000);
    let mut writer = RootWriter::new("data.root").expect("a short name");
    writer.add("", &large).expect("room");
    let bytes = writer.finish().expect("room");
    assert_eq!(RootFile::from_bytes(bytes).expect("a ROOT file").histogram("large").expect("readable"), large);
}

#[test]
fn what_a_file_cannot_have_is_refused() {
    let mut writer = RootWriter::new("data.root").expect("a short name");
    let histogram = histogram("h", 2);
    writer.add("a", &histogram).expect("room");
    let twice = writer.add("a", &histogram).expect_err("twice");
    assert_eq!(twice.to_string(), "the ROOT file has two objects `h` in the directory `a`");
    assert!(matches!(writer.add("a/h", &histogram), Err(RootWriteError::Twice { .. })));
    for name in ["", "a/b", "a;1"] {
        assert_eq!(writer.add("", &self::histogram(name, 2)), Err(RootWriteError::Name { name: name.to_owned() }));
    }
    let named = self::histogram(&"n".repeat(9000), 2);
    assert!(matches!(writer.add("", &named), Err(RootWriteError::LongName { length: 9000, .. })));
    let name = || "h".to_owned();
    for (edges, squares) in [(vec![0.0, 1.0], None), (vec![0.0, 1.0, 2.0], Some(&[1.0][..]))] {
        let wrong = Histogram::new("h", "", edges, &[1.0, 2.0], squares);
        assert_eq!(wrong, Err(RootWriteError::Bins { name: name() }));
    }
    for edges in [[0.0, 2.0, 1.0], [0.0, 0.0, 1.0], [0.0, f64::NAN, 1.0]] {
        let wrong = Histogram::new("h", "", edges.to_vec(), &[1.0, 2.0], None);
        assert_eq!(wrong, Err(RootWriteError::Edges { name: name() }));
    }
    let limit = 10_000_000;
    let wrong = Histogram::new("h", "", Vec::new(), &vec![0.0; limit + 1], None);
    assert_eq!(wrong, Err(RootWriteError::TooManyBins { name: name(), n_bins: limit + 1, limit }));
}
