//! BERT and RoBERTa: embeddings of tokens, places and segments, layers with norms behind them, and
//! a head.

use serde_json::json;

use super::network::{Attention, Network, Norm};
use super::{activation, head, n_heads, n_labels, named, only};
use crate::encoder::graph::{Binary, Dimension, Op, Unary, ValueId};
use crate::encoder::tensor::Kind;
use crate::error::Error;
use crate::files::hugging_face::Fields;

/// What differs between BERT and RoBERTa.
pub(super) struct Family {
    /// What names of weights begin with if there is a head.
    prefix: &'static str,
    /// The heads that are computed: none, of texts, of tokens.
    heads: [&'static str; 3],
    n_words: usize,
    /// Whether places are counted over tokens that are not padding, from behind its number on.
    counts_tokens: bool,
}

pub(super) const BERT: Family = Family {
    prefix: "bert.",
    heads: ["BertModel", "BertForSequenceClassification", "BertForTokenClassification"],
    n_words: 30_522,
    counts_tokens: false,
};

pub(super) const ROBERTA: Family = Family {
    prefix: "roberta.",
    heads: ["RobertaModel", "RobertaForSequenceClassification", "RobertaForTokenClassification"],
    n_words: 50_265,
    counts_tokens: true,
};

/// The sizes of a layer.
pub(super) struct Layer {
    pub(super) width: usize,
    pub(super) n_heads: usize,
    pub(super) inner: usize,
    pub(super) activation: Unary,
    pub(super) norm: Norm,
}

/// The names of a layer's weights.
pub(super) struct LayerNames {
    /// Queries, keys, values.
    pub(super) projections: [&'static str; 3],
    pub(super) mixed: &'static str,
    pub(super) mixed_norm: &'static str,
    pub(super) up: &'static str,
    pub(super) down: &'static str,
    pub(super) norm: &'static str,
}

const NAMES: LayerNames = LayerNames {
    projections: ["attention.self.query", "attention.self.key", "attention.self.value"],
    mixed: "attention.output.dense",
    mixed_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

/// Adds the model that `fields` describe to `network`.
pub(super) fn build(fields: &Fields<'_>, network: &mut Network, family: &Family) -> Result<(), Error> {
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
    let head = head(fields, &family.heads)?;
    let prefix = if head == family.heads[0] { "" } else { family.prefix };
    let axes = || vec![named("batch"), named("tokens")];
    let ids = network.input("input_ids", Kind::Int, axes());
    let mask = network.input("attention_mask", Kind::Int, axes());
    // RoBERTa has one segment, and its tokenizers name none.
    let n_segments = fields.size_or("type_vocab_size", Some(2))?;
    let has_segments = !(family.counts_tokens && n_segments == 1);
    let segments = has_segments.then(|| network.input("token_type_ids", Kind::Int, axes()));
    let mut x = embeddings(fields, network, (prefix, family), (ids, segments), &layer)?;
    let bias = key_bias(network, mask);
    for index in 0..fields.size_or("num_hidden_layers", Some(12))? {
        x = add_layer(network, &format!("{prefix}encoder.layer.{index}"), &NAMES, [x, bias], &layer)?;
    }
    add_head(fields, network, (head, family), x, width)
}

/// Returns 0 for tokens and -∞ for padding: (batch, 1, 1, tokens).
pub(super) fn key_bias(network: &mut Network, mask: ValueId) -> ValueId {
    "attention_mask".clone_into(&mut network.scope);
    let bias = network.key_bias(mask);
    let axes = network.ints(&[1, 2]);
    network.node("Unsqueeze", Op::Unsqueeze, &[bias, axes])
}

/// Returns the norm of the sum of three embeddings: (batch, tokens, width). Without segments all
/// tokens are of the first one.
fn embeddings(
    fields: &Fields<'_>,
    network: &mut Network,
    (prefix, family): (&str, &Family),
    (ids, segments): (ValueId, Option<ValueId>),
    layer: &Layer,
) -> Result<ValueId, Error> {
    let name = |part: &str| format!("{prefix}embeddings.{part}");
    let table = |network: &mut Network, part: &str, field: &str, default| -> Result<ValueId, Error> {
        let rows = fields.size_or(field, Some(default))?;
        network.scope = name(part);
        network.weight(&format!("{}.weight", name(part)), &[rows, layer.width])
    };
    let words = table(network, "word_embeddings", "vocab_size", family.n_words)?;
    let words = network.rows(words, fields.size_or("vocab_size", Some(family.n_words))?, ids);
    let places = table(network, "position_embeddings", "max_position_embeddings", 512)?;
    let indices = match family.counts_tokens {
        true => counted_places(network, ids, fields.size_or("pad_token_id", Some(1))?),
        false => places_in_order(network, ids),
    };
    let places = network.gather(places, 0, indices);
    let kinds = table(network, "token_type_embeddings", "type_vocab_size", 2)?;
    let kinds = match segments {
        Some(segments) => network.rows(kinds, fields.size_or("type_vocab_size", Some(2))?, segments),
        None => {
            let first = network.int(0);
            network.gather(kinds, 0, first)
        }
    };
    // A buffer of older files: 0, 1, 2, ...
    network.ignore(&name("position_ids"));
    let sum = network.add(words, kinds);
    let sum = network.add(sum, places);
    network.norm(sum, &name("LayerNorm"), layer.width, layer.norm)
}

/// Returns the places of tokens: 0, 1, 2, …
pub(super) fn places_in_order(network: &mut Network, ids: ValueId) -> ValueId {
    let n_tokens = network.size(ids, 1);
    network.range(n_tokens)
}

/// Returns the places of tokens: pad + 1, pad + 2, … over those that are not `pad`, which has its
/// own number.
fn counted_places(network: &mut Network, ids: ValueId, pad: usize) -> ValueId {
    let (pad, axis) = (network.int(pad as i64), network.int(1));
    let is_pad = network.binary(Binary::Equal, ids, pad);
    let is_token = network.unary(Unary::Not, is_pad);
    let is_token = network.node("Cast", Op::Cast { to: Kind::Int }, &[is_token]);
    let running = Op::CumSum { is_exclusive: false, is_reversed: false };
    let count = network.node("CumSum", running, &[is_token, axis]);
    let count = network.binary(Binary::Mul, count, is_token);
    network.add(count, pad)
}

/// Adds attention and a network of two layers, each with a norm of its sum with what it reads.
pub(super) fn add_layer(
    network: &mut Network,
    name: &str,
    names: &LayerNames,
    [x, bias]: [ValueId; 2],
    layer: &Layer,
) -> Result<ValueId, Error> {
    let &Layer { width, n_heads, inner, activation, norm } = layer;
    let name = |part: &str| format!("{name}.{part}");
    let mut project = |part: &str| network.linear(x, &name(part), [width; 2], true);
    let [queries, keys, values] = names.projections;
    let [queries, keys, values] = [project(queries)?, project(keys)?, project(values)?];
    network.scope = name("attention");
    let mixed = network.attention(Attention { queries, keys, values, bias: Some(bias), n_heads, width });
    let mixed = network.linear(mixed, &name(names.mixed), [width; 2], true)?;
    let sum = network.add(mixed, x);
    let x = network.norm(sum, &name(names.mixed_norm), width, norm)?;
    let up = network.linear(x, &name(names.up), [width, inner], true)?;
    let up = network.unary(activation, up);
    let down = network.linear(up, &name(names.down), [inner, width], true)?;
    let sum = network.add(down, x);
    network.norm(sum, &name(names.norm), width, norm)
}

fn add_head(
    fields: &Fields<'_>,
    network: &mut Network,
    (head, family): (&str, &Family),
    x: ValueId,
    width: usize,
) -> Result<(), Error> {
    let per_text = |last: usize| vec![named("batch"), Dimension::Fixed(last)];
    let [_, of_texts, of_tokens] = family.heads;
    match head {
        _ if head == of_tokens => classify_tokens(fields, network, x, width)?,
        _ if head == of_texts => {
            let n_labels = n_labels(fields)?;
            let [pooler, last] = match family.counts_tokens {
                true => ["classifier.dense", "classifier.out_proj"],
                false => ["bert.pooler.dense", "classifier"],
            };
            let pooled = pool(network, pooler, Unary::Tanh, x, width)?;
            let logits = network.linear(pooled, last, [width, n_labels], true)?;
            network.output("logits", per_text(n_labels), logits);
        }
        _ => {
            network.output("last_hidden_state", per_token(width), x);
            // Models may be made without it.
            if network.has("pooler.dense.weight") {
                let pooled = pool(network, "pooler.dense", Unary::Tanh, x, width)?;
                network.output("pooler_output", per_text(width), pooled);
            }
        }
    }
    Ok(())
}

/// Returns the axes of an output of every token.
pub(super) fn per_token(last: usize) -> Vec<Dimension> {
    vec![named("batch"), named("tokens"), Dimension::Fixed(last)]
}

/// Adds the head that classifies every token.
pub(super) fn classify_tokens(
    fields: &Fields<'_>,
    network: &mut Network,
    x: ValueId,
    width: usize,
) -> Result<(), Error> {
    let n_labels = n_labels(fields)?;
    let logits = network.linear(x, "classifier", [width, n_labels], true)?;
    network.output("logits", per_token(n_labels), logits);
    Ok(())
}

/// Returns `activation` of a layer of the first token: (batch, width).
pub(super) fn pool(
    network: &mut Network,
    name: &str,
    activation: Unary,
    x: ValueId,
    width: usize,
) -> Result<ValueId, Error> {
    name.clone_into(&mut network.scope);
    let zero = network.int(0);
    let first = network.gather(x, 1, zero);
    let pooled = network.linear(first, name, [width; 2], true)?;
    Ok(network.unary(activation, pooled))
}
