//! Inputs that users get wrong, and outputs that cannot be written: errors that say where, and that
//! come before anything is computed.

use std::path::{Path, PathBuf};
use std::process::Command;

use torchless::encoder::{
    Column, EncodeOptions, Encoder, EncoderEvents, EncoderInput, EncoderOptions, FillOptions, Flow, GradientTarget,
    InputValues, Offsets, RaggedInput, Score, ScoreHistograms, ScratchPool, WeightStorage, WeightedEvents,
};
use torchless::{Error, HistogramProblem, InputProblem, Threads};

use super::hostile::{TestFile, cast, floats, ints, model, node};
use super::models::{Case, folder, inputs};
use super::npz::{Array, Numbers};
use super::ragged::masked;
use crate::random_model::fresh_folder;
use crate::support::program;

fn named<'a>(arrays: &'a mut [(String, Array)], name: &str) -> &'a mut Array {
    &mut arrays.iter_mut().find(|(other, _)| other == name).expect("an input").1
}

/// Returns the error of outputs, which is that of gradients and of histograms, too.
fn refused(model: &Encoder, arrays: &[EncoderInput<'_>], options: &EncodeOptions) -> String {
    let (threads, pool) = (Threads::new(2), ScratchPool::new());
    let events = EncoderEvents { dense: arrays, ragged: &[] };
    let found = model.encode_events(&threads, &pool, events, options).expect_err("refused").to_string();
    let target = GradientTarget::Column { output: None, column: 0 };
    let of_gradients = model.gradients(&threads, &pool, events, &target, options).expect_err("refused");
    assert_eq!(of_gradients.to_string(), found);
    let mut histograms = ScoreHistograms::new(&[-9.0, 9.0], Score::default(), Flow::Merge).expect("edges");
    let events = WeightedEvents { inputs: events, weights: None, variations: &[] };
    let fill = FillOptions { encode: options.clone(), chunk_size: 3 };
    let of_histograms = histograms.fill(model, &threads, &pool, &events, &fill).expect_err("refused");
    assert_eq!(of_histograms.to_string(), found);
    found
}

#[test]
fn an_index_out_of_range_is_named_with_its_event_and_its_input() {
    let mut case = Case::of("text17");
    let Numbers::I64(ids) = &mut named(&mut case.inputs, "ids").numbers else { panic!("integers") };
    // The last of four events, which is in the second chunk of three.
    ids[3 * 12 + 2] = 30;
    for weights in [WeightStorage::F32, WeightStorage::F16] {
        let options = EncoderOptions { weights, ..EncoderOptions::default() };
        let model = Encoder::open_with(&case.path, &options).expect("a model");
        for (events_at_once, mask) in [(1, None), (3, None), (16, None), (2, Some("mask".to_owned()))] {
            let found = refused(&model, &inputs(&case.inputs), &EncodeOptions { events_at_once, mask });
            let expected = "input `ids`: event 3 leads to the index 30 at node `/tokens/Gather` (Gather), which has 30";
            assert_eq!(found, expected);
        }
    }
    let offsets = Offsets::I64(&[0, 2, 5, 6]);
    let words = [Column::contiguous(InputValues::I64(&[1, 2, 3, -31, 4, 5]))];
    let ragged = [RaggedInput { name: "ids", offsets, columns: &words }];
    let events = EncoderEvents { dense: &[], ragged: &ragged };
    let model = Encoder::open(&case.path).expect("a model");
    let found = model.encode_events(&Threads::new(1), &ScratchPool::new(), events, &masked()).expect_err("refused");
    assert!(found.to_string().starts_with("input `ids`: event 1 leads to the index -31 at"), "{found}");
}

/// Indices that are computed of an input: element by element, or of all its numbers at once.
#[test]
fn computed_indices_are_traced_to_their_input() {
    let table = floats("table", &[1.0, 2.0, 3.0]);
    let cast = cast("x", "whole");
    let next = node("Add", &["whole", "one"], "next");
    let sum = node("ReduceSum", &["next", "one"], "sum");
    let cases = [
        (
            [cast.clone(), next.clone(), node("Gather", &["table", "next"], "y")].to_vec(),
            "event 1 leads to the index 4",
        ),
        ([cast, next, sum, node("Gather", &["table", "sum"], "y")].to_vec(), "it leads to the index 3"),
    ];
    for (nodes, expected) in cases {
        let file = TestFile::new("indices", &model(&nodes, &[table.clone(), ints("one", &[1])]));
        let model = Encoder::open(&file.0).expect("a model");
        let x = EncoderInput { name: "x", shape: &[2, 2], values: InputValues::F32(&[0.0, 1.0, -2.0, 3.0]) };
        let found = model.encode(&Threads::new(1), &[x], &EncodeOptions::default()).expect_err("refused").to_string();
        assert_eq!(found, format!("input `x`: {expected} at node `the node` (Gather), which has 3"));
    }
}

#[test]
fn a_mask_that_is_inverted_in_several_events_is_refused() {
    for (name, mask) in [("part", "mask"), ("part3_weights", "mask"), ("bert_logits", "attention_mask")] {
        let mut case = Case::of(name);
        let model = case.open(torchless::encoder::EncoderPrecision::Single);
        let options = EncodeOptions { mask: Some(mask.into()), ..EncodeOptions::default() };
        assert!(model.encode(&Threads::new(1), &inputs(&case.inputs), &options).is_ok());
        match &mut named(&mut case.inputs, mask).numbers {
            Numbers::Bool(values) => values.iter_mut().for_each(|value| *value = !*value),
            Numbers::I64(values) => values.iter_mut().for_each(|value| *value = 1 - *value),
            other => panic!("{other:?}"),
        }
        let found = refused(&model, &inputs(&case.inputs), &options);
        assert_eq!(
            found,
            format!("input `{mask}`: it is 1 only where all other inputs are 0, and 0 where they are not")
        );
        assert!(InputProblem::Inverted.hint().is_some_and(|hint| hint.contains("padding")));
    }
}

/// A particle that is cut away keeps its numbers, and an event may lose all of them.
#[test]
fn masks_of_particles_that_are_cut_away_are_taken() {
    let mut case = Case::of("part");
    let model = case.open(torchless::encoder::EncoderPrecision::Single);
    let Numbers::Bool(values) = &mut named(&mut case.inputs, "mask").numbers else { panic!("truth values") };
    values[..20].fill(false);
    values.iter_mut().skip(20).step_by(20).for_each(|first| *first = false);
    assert!(model.encode(&Threads::new(1), &inputs(&case.inputs), &masked()).is_ok());
    let Numbers::Bool(values) = &mut named(&mut case.inputs, "mask").numbers else { panic!("truth values") };
    values.fill(false);
    assert!(model.encode(&Threads::new(1), &inputs(&case.inputs), &masked()).is_ok());
}

#[test]
fn unknown_columns_are_refused_without_events() {
    let case = Case::of("part");
    let model = case.open(torchless::encoder::EncoderPrecision::Single);
    let (threads, pool) = (Threads::new(1), ScratchPool::new());
    let none: [RaggedInput<'_>; 0] = [];
    let (x, v) = (Column::of_rows(InputValues::F32(&[]), 5), Column::of_rows(InputValues::F32(&[]), 4));
    let ragged = |name, columns| RaggedInput { name, offsets: Offsets::I64(&[0]), columns };
    let ragged = [ragged("x", &x[..]), ragged("v", &v[..])];
    let empty = |name, shape, values| EncoderInput { name, shape, values };
    let padded = [
        empty("x", &[0, 5, 20], InputValues::F32(&[])),
        empty("v", &[0, 4, 20], InputValues::F32(&[])),
        empty("mask", &[0, 1, 20], InputValues::Bool(&[])),
    ];
    let given = [EncoderEvents { dense: &[], ragged: &ragged }, EncoderEvents { dense: &padded, ragged: &none }];
    for events in given {
        for options in
            [masked(), EncodeOptions::default()].into_iter().take(if events.dense.is_empty() { 1 } else { 2 })
        {
            let gradients = |column| {
                let target = GradientTarget::Column { output: None, column };
                model.gradients(&threads, &pool, events, &target, &options)
            };
            assert!(gradients(2).is_ok());
            let found = gradients(3).expect_err("refused").to_string();
            assert_eq!(found, "gradients: the output `logits` has 3 numbers of an event, and no column 3");
            let fill = |column| {
                let score = Score { column, ..Score::default() };
                let mut histograms = ScoreHistograms::new(&[0.0, 1.0], score, Flow::Drop).expect("edges");
                let events = WeightedEvents { inputs: events, weights: None, variations: &[] };
                let fill = FillOptions { encode: options.clone(), ..FillOptions::default() };
                histograms.fill(&model, &threads, &pool, &events, &fill)
            };
            assert!(fill(2).is_ok());
            let found = fill(3).expect_err("refused");
            assert!(matches!(found, Error::Histogram(HistogramProblem::Column { column: 3, .. })), "{found}");
        }
    }
}

#[test]
fn gradients_are_those_of_numbers_that_are_not_the_mask() {
    let model = Case::of("part").open(torchless::encoder::EncoderPrecision::Single);
    assert_eq!(model.inputs_with_gradients(&masked()), ["x", "v"]);
    let model = Case::of("text17").open(torchless::encoder::EncoderPrecision::Single);
    assert!(model.inputs_with_gradients(&masked()).is_empty());
}

/// Runs `encode` in a folder, and returns the exit code and what it says.
fn encode(place: &Path, model: &str, inputs: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.arg("encode").arg(folder().join(model)).arg("--inputs").arg(inputs).args(more).current_dir(place);
    let done = command.output().expect("the command");
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// Inputs whose event 3 cannot be computed: an error of what is computed would name it.
fn uncomputable(place: &Path) -> PathBuf {
    let mut case = Case::of("text17");
    let Numbers::I64(ids) = &mut named(&mut case.inputs, "ids").numbers else { panic!("integers") };
    ids[3 * 12] = 1000;
    super::npz::write(&place.join("in.npz"), &case.inputs);
    place.join("in.npz")
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_computed() {
    let place = fresh_folder("unwritable");
    let inputs = uncomputable(&place);
    std::fs::create_dir(place.join("a_folder")).expect("a folder");
    for path in ["missing/out.npy", "a_folder", "in.npz/out.npy"] {
        for more in [["--output", path].to_vec(), ["--output", "good.npy", "--gradients", path].to_vec()] {
            let (code, said) = encode(&place, "text17.onnx", &inputs, &more);
            assert_eq!(code, Some(2));
            assert!(said.starts_with(&format!("error: cannot write `{path}`: ")), "{said}");
        }
    }
    // Nothing is left behind, and nothing is lost, when the computation fails.
    std::fs::write(place.join("old.npy"), "of yesterday").expect("a file");
    for output in ["new.npy", "old.npy"] {
        let (code, said) = encode(&place, "text17.onnx", &inputs, &["--output", output]);
        assert!(code == Some(2) && said.contains("event 3 leads to the index 1000"), "{said}");
    }
    assert!(!place.join("new.npy").exists());
    assert_eq!(std::fs::read(place.join("old.npy")).expect("a file"), b"of yesterday");
    // A model with several outputs.
    let (code, said) = encode(&place, "bert_pooled", &inputs, &["--output", "one.npy"]);
    assert!(code == Some(2) && said.contains("the model has 2 outputs, and `one.npy` holds one"), "{said}");
}

#[test]
#[cfg(unix)]
fn files_without_permission_and_links_to_nowhere_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = fresh_folder("forbidden");
    let inputs = uncomputable(&place);
    let refused = |path: &str| {
        let (code, said) = encode(&place, "text17.onnx", &inputs, &["--output", path]);
        code == Some(2) && said.starts_with(&format!("error: cannot write `{path}`: "))
    };
    symlink("missing/out.npy", place.join("link.npy")).expect("a link");
    assert!(refused("link.npy"));
    // A link to a file that can be made stays a link, and the file is not left behind.
    symlink("target.npy", place.join("good.npy")).expect("a link");
    assert!(!refused("good.npy"));
    assert!(place.join("good.npy").is_symlink() && !place.join("target.npy").exists());
    std::fs::write(place.join("read_only.npy"), "").expect("a file");
    std::fs::create_dir(place.join("closed")).expect("a folder");
    for (path, mode) in [("read_only.npy", 0o444), ("closed", 0o555)] {
        std::fs::set_permissions(place.join(path), std::fs::Permissions::from_mode(mode)).expect("permissions");
    }
    if std::fs::write(place.join("closed/probe"), "").is_ok() {
        println!("skipped in part: this user may write everywhere");
        return;
    }
    assert!(refused("read_only.npy") && refused("closed/out.npy"));
}

#[test]
fn the_command_refuses_masks_without_particles_and_columns_without_events() {
    let place = fresh_folder("masks");
    let mut case = Case::of("part");
    let Numbers::Bool(values) = &mut named(&mut case.inputs, "mask").numbers else { panic!("truth values") };
    values.fill(false);
    super::npz::write(&place.join("masked.npz"), &case.inputs);
    let options = ["--mask", "mask", "--output", "out.npy"];
    let (code, said) = encode(&place, "part.onnx", Path::new("masked.npz"), &options);
    assert_eq!(code, Some(2));
    let expected = "error: the mask `mask` of `masked.npz` is 0 everywhere: no event has a particle\n\
        hint: the mask is 1 for particles, and 0 for padding\n";
    assert_eq!(said, expected);
    let none: Vec<(String, Array)> =
        case.inputs.iter().map(|(name, array)| (name.clone(), super::models::events_of(array, &[]))).collect();
    super::npz::write(&place.join("none.npz"), &none);
    let with_column = |column| {
        let more = [&options[..], &["--gradients", "g.npz", "--column", column]].concat();
        encode(&place, "part.onnx", Path::new("none.npz"), &more)
    };
    assert_eq!(with_column("2").0, Some(0));
    let (code, said) = with_column("3");
    assert!(code == Some(2) && said.contains("and no column 3"), "{said}");
}

#[test]
fn what_is_read_is_not_overwritten() {
    let place = fresh_folder("overwritten");
    let inputs = uncomputable(&place);
    let before = std::fs::read(&inputs).expect("inputs");
    for path in ["in.npz", "./in.npz"] {
        for more in [["--output", path].to_vec(), ["--output", "good.npy", "--gradients", path].to_vec()] {
            let (code, said) = encode(&place, "text17.onnx", &inputs, &more);
            assert_eq!(code, Some(2));
            assert!(said.contains(&format!("`{path}` would be overwritten, and it is read")), "{said}");
        }
    }
    assert!(std::fs::read(&inputs).expect("inputs") == before);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_to_its_end_leaves_what_was_there() {
    let place = fresh_folder("full");
    let case = Case::of("text17");
    super::npz::write(&place.join("in.npz"), &case.inputs);
    std::fs::write(place.join("out.npy"), "before").expect("a file");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(program()).current_dir(&place);
    command.arg("encode").arg(folder().join("text17.onnx")).args(["--inputs", "in.npz", "--output", "out.npy"]);
    let done = command.output().expect("the command");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write `out.npy`"), "{said}");
    assert_eq!(std::fs::read(place.join("out.npy")).expect("the file"), b"before");
    let files = std::fs::read_dir(&place).expect("the folder").count();
    assert_eq!(files, 2, "a part is left");
}
