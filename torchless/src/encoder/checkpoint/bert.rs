//! BERT: embeddings of tokens, places and segments, layers with norms behind them, and a head.

use serde_json::json;

use super::network::{Attention, Network, Norm};
use super::{activation, head, n_heads, n_labels, named, only};
use crate::encoder::graph::{Dimension, Op, Unary, ValueId};
use crate::encoder::tensor::Kind;
use crate::error::Error;
use crate::files::hugging_face::Fields;

/// The heads that are computed; the first one has none.
const HEADS: [&str; 3] = ["BertModel", "BertForSequenceClassification", "BertForTokenClassification"];

/// The sizes of a layer.
struct Layer {
    width: usize,
    n_heads: usize,
    inner: usize,
    activation: Unary,
    norm: Norm,
}

/// Adds the model that `fields` describe to `network`.
pub(super) fn build(fields: &Fields<'_>, network: &mut Network) -> Result<(), Error> {
    only(fields, "position_embedding_type", &json!("absolute"))?;
    for name in ["is_decoder", "add_cross_attention"] {
        only(fields, name, &json!(false))?;
    }
    let width = fields.size_or("hidden_size", Some(768))?;
    let layer = Layer {
        width,
        n_heads: n_heads(fields, "num_attention_heads", width, 12)?,
        inner: fields.size_or("intermediate_size", Some(3072))?,
        activation: activation(fields, "hidden_act", "gelu")?,
        norm: Norm::Layer { epsilon: fields.positive("layer_norm_eps", Some(1e-12))? as f32 },
    };
    let head = head(fields, &HEADS)?;
    let prefix = if head == HEADS[0] { "" } else { "bert." };
    let axes = || vec![named("batch"), named("tokens")];
    let ids = network.input("input_ids", Kind::Int, axes());
    let mask = network.input("attention_mask", Kind::Int, axes());
    let segments = network.input("token_type_ids", Kind::Int, axes());
    let mut x = embeddings(fields, network, prefix, [ids, segments], &layer)?;
    "attention_mask".clone_into(&mut network.scope);
    let bias = network.key_bias(mask);
    let axes = network.ints(&[1, 2]);
    let bias = network.node("Unsqueeze", Op::Unsqueeze, &[bias, axes]);
    for index in 0..fields.size_or("num_hidden_layers", Some(12))? {
        x = add_layer(network, &format!("{prefix}encoder.layer.{index}"), x, bias, &layer)?;
    }
    add_head(fields, network, head, x, width)
}

/// Returns the norm of the sum of three embeddings: (batch, tokens, width).
fn embeddings(
    fields: &Fields<'_>,
    network: &mut Network,
    prefix: &str,
    [ids, segments]: [ValueId; 2],
    layer: &Layer,
) -> Result<ValueId, Error> {
    let name = |part: &str| format!("{prefix}embeddings.{part}");
    let table = |network: &mut Network, part: &str, field: &str, default| -> Result<ValueId, Error> {
        let rows = fields.size_or(field, Some(default))?;
        network.scope = name(part);
        network.weight(&format!("{}.weight", name(part)), &[rows, layer.width])
    };
    let words = table(network, "word_embeddings", "vocab_size", 30_522)?;
    let words = network.rows(words, fields.size_or("vocab_size", Some(30_522))?, ids);
    let places = table(network, "position_embeddings", "max_position_embeddings", 512)?;
    let n_tokens = network.size(ids, 1);
    let indices = network.range(n_tokens);
    let places = network.gather(places, 0, indices);
    let kinds = table(network, "token_type_embeddings", "type_vocab_size", 2)?;
    let kinds = network.rows(kinds, fields.size_or("type_vocab_size", Some(2))?, segments);
    // A buffer of older files: 0, 1, 2, ...
    network.ignore(&name("position_ids"));
    let sum = network.add(words, kinds);
    let sum = network.add(sum, places);
    network.norm(sum, &name("LayerNorm"), layer.width, layer.norm)
}

/// Adds attention and a network of two layers, each with a norm of its sum with what it reads.
fn add_layer(network: &mut Network, name: &str, x: ValueId, bias: ValueId, layer: &Layer) -> Result<ValueId, Error> {
    let &Layer { width, n_heads, inner, activation, norm } = layer;
    let mut project = |part: &str| network.linear(x, &format!("{name}.attention.self.{part}"), [width; 2], true);
    let [queries, keys, values] = [project("query")?, project("key")?, project("value")?];
    network.scope = format!("{name}.attention");
    let mixed = network.attention(Attention { queries, keys, values, bias: Some(bias), n_heads, width });
    let mixed = network.linear(mixed, &format!("{name}.attention.output.dense"), [width; 2], true)?;
    let sum = network.add(mixed, x);
    let x = network.norm(sum, &format!("{name}.attention.output.LayerNorm"), width, norm)?;
    let up = network.linear(x, &format!("{name}.intermediate.dense"), [width, inner], true)?;
    let up = network.unary(activation, up);
    let down = network.linear(up, &format!("{name}.output.dense"), [inner, width], true)?;
    let sum = network.add(down, x);
    network.norm(sum, &format!("{name}.output.LayerNorm"), width, norm)
}

fn add_head(fields: &Fields<'_>, network: &mut Network, head: &str, x: ValueId, width: usize) -> Result<(), Error> {
    let per_token = |last: usize| vec![named("batch"), named("tokens"), Dimension::Fixed(last)];
    let per_text = |last: usize| vec![named("batch"), Dimension::Fixed(last)];
    match head {
        "BertForTokenClassification" => {
            let n_labels = n_labels(fields)?;
            let logits = network.linear(x, "classifier", [width, n_labels], true)?;
            network.output("logits", per_token(n_labels), logits);
        }
        "BertForSequenceClassification" => {
            let n_labels = n_labels(fields)?;
            let pooled = pool(network, "bert.pooler.dense", x, width)?;
            let logits = network.linear(pooled, "classifier", [width, n_labels], true)?;
            network.output("logits", per_text(n_labels), logits);
        }
        _ => {
            network.output("last_hidden_state", per_token(width), x);
            // Models may be made without it.
            if network.has("pooler.dense.weight") {
                let pooled = pool(network, "pooler.dense", x, width)?;
                network.output("pooler_output", per_text(width), pooled);
            }
        }
    }
    Ok(())
}

/// Returns tanh of a layer of the first token: (batch, width).
fn pool(network: &mut Network, name: &str, x: ValueId, width: usize) -> Result<ValueId, Error> {
    name.clone_into(&mut network.scope);
    let zero = network.int(0);
    let first = network.gather(x, 1, zero);
    let pooled = network.linear(first, name, [width; 2], true)?;
    Ok(network.unary(Unary::Tanh, pooled))
}
