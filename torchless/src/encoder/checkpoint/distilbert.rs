//! DistilBERT: BERT without segments and pooler, with other names, and a head of two layers.

use serde_json::json;

use super::bert::{Layer, LayerNames, add_layer, classify_tokens, key_bias, per_token, places_in_order, pool};
use super::network::{Network, Norm};
use super::{activation, head, n_heads, n_labels, named, only};
use crate::encoder::graph::{Dimension, Unary, ValueId};
use crate::encoder::tensor::Kind;
use crate::error::Error;
use crate::files::hugging_face::Fields;

/// The heads that are computed; the first one has none.
const HEADS: [&str; 3] = ["DistilBertModel", "DistilBertForSequenceClassification", "DistilBertForTokenClassification"];

const NAMES: LayerNames = LayerNames {
    projections: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    mixed: "attention.out_lin",
    mixed_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

/// The model has no field for it.
const EPSILON: f32 = 1e-12;

/// Adds the model that `fields` describe to `network`.
pub(super) fn build(fields: &Fields<'_>, network: &mut Network) -> Result<(), Error> {
    only(fields, "is_decoder", &json!(false))?;
    let width = fields.size_or("dim", Some(768))?;
    let layer = Layer {
        width,
        n_heads: n_heads(fields, "n_heads", width, 12)?,
        inner: fields.size_or("hidden_dim", Some(3072))?,
        activation: activation(fields, "activation", "gelu")?,
        norm: Norm::Layer { epsilon: EPSILON },
    };
    let head = head(fields, &HEADS)?;
    let prefix = if head == HEADS[0] { "" } else { "distilbert." };
    let axes = || vec![named("batch"), named("tokens")];
    let ids = network.input("input_ids", Kind::Int, axes());
    let mask = network.input("attention_mask", Kind::Int, axes());
    let mut x = embeddings(fields, network, prefix, ids, &layer)?;
    let bias = key_bias(network, mask);
    for index in 0..fields.size_or("n_layers", Some(6))? {
        x = add_layer(network, &format!("{prefix}transformer.layer.{index}"), &NAMES, [x, bias], &layer)?;
    }
    add_head(fields, network, head, x, width)
}

/// Returns the norm of the sum of the embeddings of tokens and places: (batch, tokens, width).
fn embeddings(
    fields: &Fields<'_>,
    network: &mut Network,
    prefix: &str,
    ids: ValueId,
    layer: &Layer,
) -> Result<ValueId, Error> {
    let name = |part: &str| format!("{prefix}embeddings.{part}");
    let n_words = fields.size_or("vocab_size", Some(30_522))?;
    network.scope = name("word_embeddings");
    let words = network.weight(&name("word_embeddings.weight"), &[n_words, layer.width])?;
    let words = network.rows(words, n_words, ids);
    let n_places = fields.size_or("max_position_embeddings", Some(512))?;
    network.scope = name("position_embeddings");
    // Sines and cosines are stored, too (`sinusoidal_pos_embds`).
    let places = network.weight(&name("position_embeddings.weight"), &[n_places, layer.width])?;
    let indices = places_in_order(network, ids);
    let places = network.gather(places, 0, indices);
    // A buffer of older files: 0, 1, 2, ...
    network.ignore(&name("position_ids"));
    let sum = network.add(words, places);
    network.norm(sum, &name("LayerNorm"), layer.width, layer.norm)
}

fn add_head(fields: &Fields<'_>, network: &mut Network, head: &str, x: ValueId, width: usize) -> Result<(), Error> {
    match head {
        "DistilBertForTokenClassification" => classify_tokens(fields, network, x, width)?,
        "DistilBertForSequenceClassification" => {
            let n_labels = n_labels(fields)?;
            let pooled = pool(network, "pre_classifier", Unary::Relu, x, width)?;
            let logits = network.linear(pooled, "classifier", [width, n_labels], true)?;
            network.output("logits", vec![named("batch"), Dimension::Fixed(n_labels)], logits);
        }
        _ => network.output("last_hidden_state", per_token(width), x),
    }
    Ok(())
}
