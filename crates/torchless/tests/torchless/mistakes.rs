//! References, events and settings that say nothing or something wrong: the command never calls them good.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::{text, torchless};
use crate::twin::{Twin, fresh_folder};

const TOKENS: [u32; 4] = [5, 9, 61, 7];

/// A reference of one prompt with these tensors of `TOKENS`: a name, rows and numbers.
fn reference(prompts: &Value, tensors: &[(&str, usize, &[f32])]) -> PathBuf {
    let folder = fresh_folder("verify-reference");
    std::fs::write(folder.join("reference.json"), json!({ "prompts": prompts }).to_string()).expect("a folder");
    let stored = |(name, rows, values): &(&str, usize, &[f32])| {
        let shape = vec![*rows, values.len() / rows.max(&1)];
        ((*name).to_owned(), (shape, values.to_vec()))
    };
    let file = Twin { weights: tensors.iter().map(stored).collect(), ..Twin::new("llama") };
    let names: Vec<&String> = file.weights.keys().collect();
    std::fs::write(folder.join("reference_logits.safetensors"), file.safetensors(&names)).expect("a folder");
    folder
}

fn verified(model: &Path, reference: &Path) -> (Option<i32>, String) {
    let arguments = ["verify", "--model", text(model), "--reference", text(reference), "--json"];
    let output = torchless(&arguments);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_reference_is_compared_row_by_row_or_is_not_good() {
    let twin = Twin::new("llama").drawn();
    let model = twin.write_folder("verify-model", true, 1);
    let all = twin.logits(&TOKENS);
    let rows = |rows: &[usize]| -> Vec<f32> { rows.iter().flat_map(|row| all[row * 70..][..70].to_vec()).collect() };
    let prompt = |rows: Value| json!([{ "name": "p", "ids": TOKENS, "logit_rows": rows }]);
    let code = |prompts: Value, tensors: &[(&str, usize, &[f32])]| verified(&model, &reference(&prompts, tensors));
    // In any order, and twice.
    assert_eq!(code(prompt(json!([3, 0, 3])), &[("p.logits", 3, &rows(&[3, 0, 3]))]).0, Some(0));
    assert_eq!(code(prompt(json!([0, 3])), &[("p.logits", 2, &rows(&[3, 0]))]).0, Some(1));
    // Nothing to compare with.
    assert_eq!(code(prompt(json!([3])), &[("q.logits", 1, &rows(&[3]))]).0, Some(1));
    assert_eq!(code(prompt(json!([])), &[("p.logits", 0, &[])]).0, Some(1));
    let said = |prompts: Value, tensors: &[(&str, usize, &[f32])], expected: &str| {
        let (code, said) = verified(&model, &reference(&prompts, tensors));
        assert!(code == Some(2) && said.contains(expected), "{said}");
    };
    said(json!([]), &[("p.logits", 1, &rows(&[3]))], "`prompts`: it is missing");
    said(prompt(json!([4])), &[("p.logits", 1, &rows(&[3]))], "`prompts.logit_rows`: 4 is out of range");
    said(prompt(json!([0, 3])), &[("p.logits", 1, &rows(&[3]))], "tensor `p.logits`: it should be of shape [2, 70]");
    let stream = vec![0.0; 4 * 48];
    let wrong = [("p.logits", 1, &rows(&[3])[..]), ("p.hidden0", 4, &stream)];
    assert_eq!(code(prompt(json!([3])), &wrong).0, Some(1));
    said(prompt(json!([3])), &[("p.hidden1", 4, &stream)], "tensor `p.hidden0`: it is missing");
    let deeper: Vec<String> = (0..5).map(|layer| format!("p.hidden{layer}")).collect();
    let deeper: Vec<(&str, usize, &[f32])> = deeper.iter().map(|name| (name.as_str(), 4, &stream[..])).collect();
    said(prompt(json!([3])), &deeper, "tensors `p.hidden…`: it should be of 4 at most");
}
