//! Damaged weights and configurations of encoders: an error each that names the field or the
//! tensor.

use std::path::PathBuf;

use torchless::encoder::Encoder;

use super::models::folder;

/// Opens the small BERT after `change` of its configuration and its weights.
fn error_after(name: &str, change: impl Fn(&mut String, &mut Vec<u8>)) -> String {
    let place: PathBuf = std::env::temp_dir().join(format!("torchless-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a temporary folder");
    let from = folder().join("bert_logits");
    let mut config = std::fs::read_to_string(from.join("config.json")).expect("a configuration");
    let mut weights = std::fs::read(from.join("model.safetensors")).expect("weights");
    change(&mut config, &mut weights);
    std::fs::write(place.join("config.json"), config).expect("a file");
    std::fs::write(place.join("model.safetensors"), weights).expect("a file");
    let opened = Encoder::open(&place).map(|_| ());
    std::fs::remove_dir_all(&place).expect("a temporary folder");
    opened.expect_err("a damaged model").to_string()
}

#[test]
fn configurations_that_are_not_known_are_refused_by_field() {
    let changes = [
        ("\"bert\"", "\"foo\"", "`model_type`"),
        ("\"gelu\"", "\"quick_gelu\"", "`hidden_act`"),
        ("\"num_attention_heads\": 4", "\"num_attention_heads\": 5", "`num_attention_heads`"),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "encoder.layer.2"),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "no such tensor"),
        ("\"hidden_size\": 16", "\"hidden_size\": 20", "it should be of shape"),
        ("BertForSequence", "BertForNothing", "`architectures`"),
    ];
    for (old, new, expected) in changes {
        let found = error_after("config", |config, _| *config = config.replace(old, new));
        assert!(found.contains(expected), "{new}: {found}");
    }
}

#[test]
fn weights_that_are_damaged_are_refused() {
    let found = error_after("short", |_, weights| weights.truncate(weights.len() - 7));
    assert!(found.contains("bytes"), "{found}");
    let found = error_after("nan", |_, weights| {
        let start = weights.len() - 4;
        weights[start..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert!(found.contains("weights must be finite"), "{found}");
    let found = error_after("header", |_, weights| weights[..8].fill(255));
    assert!(found.contains("the length of the header"), "{found}");
}
