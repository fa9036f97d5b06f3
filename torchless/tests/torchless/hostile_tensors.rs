//! Safetensors files and indices of shards with false claims: an error that names file and field.

use std::path::Path;

use serde_json::{Value, json};

use crate::hostile::{refused, tried};
use crate::random_model::RandomModel;

/// Returns a file of the header and `n_bytes` bytes of numbers.
fn file(header: &str, n_bytes: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; n_bytes]].concat()
}

/// What is said of a model of one such file.
fn said(header: &str, n_bytes: usize) -> String {
    let folder = RandomModel::new("llama").drawn().write_folder("headers", true, 1);
    std::fs::write(folder.join("model.safetensors"), file(header, n_bytes)).expect("a writable file");
    let message = refused(&folder);
    assert!(message.contains("model.safetensors"), "{message}");
    message
}

fn entry(n_numbers: usize, first: usize, last: usize) -> Value {
    json!({ "dtype": "F32", "shape": [n_numbers], "data_offsets": [first, last] })
}

#[test]
fn false_headers_of_safetensors_are_refused_by_name() {
    let tensor = |dtype: &str, shape: &str, offsets: &str| {
        said(&format!(r#"{{"x": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}"#), 64)
    };
    assert!(tensor("F32", "[4]", "[0, 1000]").contains("tensor `x`: it needs 1000 bytes, and the file has 64 left"));
    assert!(tensor("F32", "[4]", "[16, 0]").contains("tensor `x`: 16..0 is out of range"));
    assert!(tensor("F32", "[5]", "[0, 16]").contains("tensor `x`: it should be the size of shape [5]"));
    assert!(tensor("Q4", "[4]", "[0, 16]").contains("tensor `x`: the type `Q4` is not supported"));
    assert!(tensor("F32", "[9223372036854775807, 9223372036854775807]", "[0, 16]").contains("tensor `x`"));
    let twice = r#"{"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, "x": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]}}"#;
    assert!(said(twice, 32).contains("the header: duplicate key `/x` at line 1 column "));
    let twice = r#"{"x": {"dtype": "F32", "shape": [4], "shape": [2, 2], "data_offsets": [0, 16]}}"#;
    assert!(said(twice, 16).contains("the header: duplicate key `/x/shape`"));
    for (header, found) in [("[", r#""[""#), (" {}", r#"" ""#), ("\n{}", r#""\n""#), ("", "empty")] {
        let message = said(header, 64);
        let expected = format!("the header: it should be an object, from `{{` on, and is {found}");
        assert!(message.ends_with(&expected), "{message}");
    }
    let odd = said(&json!({ format!("\u{1b}[2J{}", "x".repeat(100_000)): entry(4, 0, 1000) }).to_string(), 64);
    assert!(odd.contains("tensor `\\u{1b}[2Jxxx") && odd.contains("x…x") && odd.contains("x`: it needs 1000"), "{odd}");
    assert!(said(&format!("{{\"a\":{}", "[".repeat(100_000)), 64).contains("the header: recursion limit exceeded"));
    assert!(said(r#"{"__metadata__": {"a": 1}}"#, 0).contains("`__metadata__`: it should be texts with names"));
    let folder = RandomModel::new("llama").drawn().write_folder("lengths", true, 1);
    let path = folder.join("model.safetensors");
    std::fs::write(&path, u64::MAX.to_le_bytes()).expect("a writable file");
    assert!(refused(&folder).contains("the length of the header: 18446744073709551615 is out of range"));
    std::fs::remove_file(&path).expect("a file");
    assert!(refused(&folder).contains("model.safetensors"));
}

#[test]
fn bytes_of_two_tensors_or_of_none_are_refused() {
    let two = |first: Value, second: Value, n_bytes| said(&json!({ "x": first, "y": second }).to_string(), n_bytes);
    let shared = two(entry(4, 0, 16), entry(4, 8, 24), 24);
    assert!(shared.contains("tensor `y`: it should be in bytes of its own, and is in those of `x`, too"), "{shared}");
    let hole = two(entry(4, 0, 16), entry(4, 20, 36), 36);
    let expected = "tensor `y`: it should be at byte 16 of the numbers, where those before it end, and is at byte 20";
    assert!(hole.contains(expected), "{hole}");
    let late = two(entry(4, 20, 36), entry(4, 4, 20), 36);
    assert!(
        late.contains("tensor `y`: it should be at byte 0 of the numbers, where those before it end, and is at byte 4"),
        "{late}"
    );
    let longer = two(entry(4, 16, 32), entry(4, 0, 16), 33);
    assert!(longer.contains("what is behind tensor `x`: it should be the end of the file, and is 1 bytes"), "{longer}");
    assert!(said("{}", 8).contains("what is behind the header: it should be the end of the file, and is 8 bytes"));
    // In any order, with spaces behind the header, with nothing in a tensor and with words about
    // the file, all is well but what is missing.
    let header = json!({ "x": entry(4, 16, 32), "y": entry(4, 0, 16), "z": entry(0, 16, 16), "__metadata__": { "format": "pt" } });
    assert!(said(&format!("{header}   "), 32).contains("tensor `model.embed_tokens.weight`: it is missing"));
}

/// What is said of a model of three files whose index was changed.
fn indexed(folder: &Path, change: impl FnOnce(&mut Value)) -> String {
    let path = folder.join("model.safetensors.index.json");
    let text = std::fs::read_to_string(&path).expect("a readable file");
    let mut index: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut index["weight_map"]);
    std::fs::write(&path, index.to_string()).expect("a writable file");
    let message = refused(folder);
    std::fs::write(&path, text).expect("a writable file");
    tried(folder).expect("whole");
    message
}

#[test]
fn a_false_index_is_refused_by_file_and_field() {
    const NORM: &str = "model.norm.weight";
    let folder = RandomModel::new("llama").drawn().write_folder("shards", true, 3);
    let in_index = |message: &str, rest: &str| {
        let expected = format!("model.safetensors.index.json`: `weight_map.{rest}");
        assert!(message.contains(&expected), "{message}, not {expected}");
    };
    for name in ["../model-00002-of-00003.safetensors", "a/b", "a\\b", "..", ".", "", "/etc/passwd", "x/"] {
        let message = indexed(&folder, |map| map[NORM] = json!(name));
        in_index(&message, &format!("{NORM}`: `{name}` is not a plain file name"));
    }
    let message = indexed(&folder, |map| map[NORM] = json!("model-00001-of-00003.safetensors"));
    in_index(
        &message,
        &format!(
            "{NORM}`: it should be in `model-00001-of-00003.safetensors`, and is in `model-00003-of-00003.safetensors`"
        ),
    );
    let message = indexed(&folder, |map| map["more"] = json!("model-00002-of-00003.safetensors"));
    in_index(&message, "more`: it should be in `model-00002-of-00003.safetensors`, and is in none of the files");
    let message = indexed(&folder, |map| map["more"] = json!("model-00004-of-00003.safetensors"));
    in_index(&message, "more`: there is no file `model-00004-of-00003.safetensors` beside it");
    std::fs::create_dir(folder.join("folder")).expect("a folder");
    in_index(&indexed(&folder, |map| map["more"] = json!("folder")), "more`: there is no file `folder` beside it");
    let message = indexed(&folder, |map| *map = json!([]));
    assert!(message.contains("model.safetensors.index.json`: the file: invalid type: sequence"), "{message}");
}

#[test]
fn a_tensor_of_two_shards_is_refused_though_the_index_chooses_one() {
    let small = RandomModel::new("llama").drawn();
    let folder = small.write_folder("two-shards", true, 2);
    let names: Vec<&String> = small.weights.keys().collect();
    let (first, second) = names.split_at(names.len().div_ceil(2));
    let more: Vec<&String> = second.iter().chain(&first[..1]).copied().collect();
    std::fs::write(folder.join("model-00002-of-00002.safetensors"), small.safetensors(&more)).expect("a writable file");
    let message = refused(&folder);
    let expected =
        format!("tensor `{}`: it should be in one file, and is in `model-00001-of-00002.safetensors`, too", first[0]);
    assert!(message.contains("model-00002-of-00002.safetensors") && message.contains(&expected), "{message}");
}

#[test]
fn a_missing_shard_is_refused_by_its_name() {
    let folder = RandomModel::new("llama").drawn().write_folder("missing-shard", true, 3);
    std::fs::remove_file(folder.join("model-00002-of-00003.safetensors")).expect("a file");
    assert!(refused(&folder).contains("there is no file `model-00002-of-00003.safetensors` beside it"));
}

#[test]
fn a_file_that_the_index_does_not_name_is_not_read() {
    let folder = RandomModel::new("llama").drawn().write_folder("other-files", true, 3);
    std::fs::write(folder.join("consolidated.safetensors"), "nothing").expect("a writable folder");
    tried(&folder).expect("whole");
}
