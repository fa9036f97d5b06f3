//! The Particle Transformer: particles with features of pairs as a bias of attention, and a class
//! token that looks at them. Features of pairs are in `pairs`.
//!
//! Qu, Li, Qian: arXiv:2202.03772. Names of fields and tensors are those of weaver-core.

use serde_json::{Value, json};

use super::network::{Attention, Network, Norm};
use super::{n_heads, named, one_of, only, pairs};
use crate::encoder::graph::{Binary, Dimension, Op, Unary, ValueId};
use crate::encoder::tensor::Kind;
use crate::error::{Error, Problem};
use crate::files::hugging_face::Fields;

/// The fields that are read; others are refused.
const FIELDS: [&str; 24] = [
    "model_type",
    "architectures",
    "input_dim",
    "num_classes",
    "pair_input_type",
    "pair_input_dim",
    "pair_extra_dim",
    "remove_self_pair",
    "use_pre_activation_pair",
    "use_conv_embed",
    "embed_dims",
    "pair_embed_dims",
    "num_heads",
    "num_layers",
    "block_params",
    "block_ids_with_attn_mask",
    "include_global_token",
    "num_cls_layers",
    "cls_block_params",
    "fc_params",
    "activation",
    "version",
    "trim",
    "for_segmentation",
];

/// ε of normalisation of batches and of layers in PyTorch, and of root mean squares of numbers of
/// single precision.
pub(super) const EPSILON: f64 = 1e-5;
const RMS_EPSILON: f32 = f32::EPSILON;

/// What all blocks have in common.
struct Block {
    width: usize,
    n_heads: usize,
    /// 1 has scales and GELU or ReLU, 2 gates, 3 root mean squares and no biases.
    version: u64,
    activation: Unary,
    norm: Norm,
}

/// Adds the model that `fields` describe to `network`.
pub(super) fn build(fields: &Fields<'_>, network: &mut Network) -> Result<(), Error> {
    refuse_others(fields)?;
    let n_inputs = fields.size("input_dim")?;
    let embed = sizes(fields, "embed_dims", &[128, 512, 128])?;
    let width = *embed.last().ok_or_else(|| fields.error("embed_dims", Problem::Missing))?;
    let version = version(fields)?;
    let activation = activation(fields)?;
    let norm = match version {
        1 | 2 => Norm::Layer { epsilon: EPSILON as f32 },
        _ => Norm::RootMeanSquare { epsilon: RMS_EPSILON },
    };
    let block = Block { width, n_heads: n_heads(fields, "num_heads", width, 8)?, version, activation, norm };
    let axes = |size: usize| vec![named("batch"), Dimension::Fixed(size), named("particles")];
    let x = network.input("x", Kind::Float, axes(n_inputs));
    let momenta = network.input("v", Kind::Float, axes(4));
    let mask = network.input("mask", Kind::Bool, axes(1));
    let mut x = embedding(network, x, n_inputs, &embed, activation)?;
    "mask".clone_into(&mut network.scope);
    let column = network.transpose(mask, &[0, 2, 1]);
    let zero = network.number(0.0);
    x = network.node("Where", Op::Where, &[column, x, zero]);
    let keys = network.key_bias(mask);
    let axis = network.ints(&[1]);
    let keys = network.node("Unsqueeze", Op::Unsqueeze, &[keys, axis]);
    let dims = sizes(fields, "pair_embed_dims", &[64, 64, 64])?;
    let pairs = pairs::add(fields, network, momenta, &[&dims[..], &[block.n_heads]].concat(), version < 3)?;
    let bias = network.add(pairs, keys);
    for index in 0..fields.size_or("num_layers", Some(8))? {
        x = add_block(network, &format!("blocks.{index}"), Tokens { x, class: None }, bias, &block)?;
    }
    let class = class_token(fields, network, x, keys, &block)?;
    add_classifier(fields, network, class, &block)
}

fn refuse_others(fields: &Fields<'_>) -> Result<(), Error> {
    if let Some(name) = fields.object.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let expected = "a field that torchless/docs/encoders.md lists".into();
        return Err(fields.error(name, Problem::Unexpected { expected, found: "not known".into() }));
    }
    for name in ["use_conv_embed", "include_global_token", "for_segmentation"] {
        only(fields, name, &json!(false))?;
    }
    for name in ["block_params", "cls_block_params"] {
        only(fields, name, &json!({}))?;
    }
    only(fields, "pair_extra_dim", &json!(0))?;
    only(fields, "architectures", &json!(["ParticleTransformer"]))?;
    if let Some(value) = fields.get("block_ids_with_attn_mask") {
        return Err(fields.unexpected("block_ids_with_attn_mask", "null or left out", value));
    }
    // No output depends on it: events are cut where they end.
    fields.flag("trim", true).map(|_| ())
}

fn version(fields: &Fields<'_>) -> Result<u64, Error> {
    match fields.get("version") {
        None => Ok(1),
        Some(value) => {
            let known = value.as_f64().filter(|number| [1.0, 2.0, 3.0].contains(number));
            known.map(|number| number as u64).ok_or_else(|| fields.unexpected("version", "1, 2 or 3", value))
        }
    }
}

fn activation(fields: &Fields<'_>) -> Result<Unary, Error> {
    known_activation(fields, "activation", fields.text("activation")?.unwrap_or("gelu"))
}

fn known_activation(fields: &Fields<'_>, name: &str, found: &str) -> Result<Unary, Error> {
    match found {
        "gelu" => Ok(Unary::Gelu),
        "relu" => Ok(Unary::Relu),
        other => Err(one_of(fields, name, other, &["gelu", "relu"])),
    }
}

/// Returns an array of at least one size.
fn sizes(fields: &Fields<'_>, name: &str, default: &[usize]) -> Result<Vec<usize>, Error> {
    let Some(value) = fields.object.get(name) else { return Ok(default.to_vec()) };
    let one = |value: &Value| value.as_u64().filter(|size| (1..1 << 31).contains(size)).map(|size| size as usize);
    let sizes = value.as_array().and_then(|values| values.iter().map(one).collect::<Option<Vec<usize>>>());
    sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(|| fields.unexpected(name, "an array of sizes", value))
}

/// Normalises features with stored statistics, and takes them through layers: (batch, particles,
/// width).
fn embedding(
    network: &mut Network,
    x: ValueId,
    n_inputs: usize,
    dims: &[usize],
    activation: Unary,
) -> Result<ValueId, Error> {
    let x = batch_norm(network, x, "embed.input_bn", n_inputs)?;
    let mut x = network.transpose(x, &[0, 2, 1]);
    let mut inputs = n_inputs;
    for (index, &outputs) in dims.iter().enumerate() {
        let epsilon = EPSILON as f32;
        x = network.norm(x, &format!("embed.embed.{}", 3 * index), inputs, Norm::Layer { epsilon })?;
        x = network.linear(x, &format!("embed.embed.{}", 3 * index + 1), [inputs, outputs], true)?;
        x = network.unary(activation, x);
        inputs = outputs;
    }
    Ok(x)
}

/// Normalises axis 1 with stored statistics.
pub(super) fn batch_norm(network: &mut Network, x: ValueId, name: &str, size: usize) -> Result<ValueId, Error> {
    name.clone_into(&mut network.scope);
    let mut inputs = vec![x];
    for part in ["weight", "bias", "running_mean", "running_var"] {
        inputs.push(network.weight(&format!("{name}.{part}"), &[size])?);
    }
    network.ignore(&format!("{name}.num_batches_tracked"));
    Ok(network.node("BatchNormalization", Op::BatchNorm { epsilon: EPSILON as f32 }, &inputs))
}

/// What a block reads.
#[derive(Clone, Copy)]
struct Tokens {
    /// Particles: (batch, particles, width).
    x: ValueId,
    /// A class token that looks at itself and at the particles: (batch, 1, width).
    class: Option<ValueId>,
}

/// Adds a block; its output has the shape of the class token, or of particles if there is none.
fn add_block(
    network: &mut Network,
    name: &str,
    tokens: Tokens,
    bias: ValueId,
    block: &Block,
) -> Result<ValueId, Error> {
    let &Block { width, version, norm, .. } = block;
    let residual = tokens.class.unwrap_or(tokens.x);
    network.scope = name.to_owned();
    let read = match tokens.class {
        Some(class) => network.concat(&[class, tokens.x], 1),
        None => tokens.x,
    };
    let read = network.norm(read, &format!("{name}.pre_attn_norm"), width, norm)?;
    let mut x = attention(network, &format!("{name}.attn"), [tokens.class.unwrap_or(read), read], bias, block)?;
    if version == 1 {
        let factors = network.read(&format!("{name}.c_attn"), &[block.n_heads])?;
        let each = |&factor: &f32| std::iter::repeat_n(f64::from(factor), width / block.n_heads);
        let factors = network.numbers(&[width], factors.iter().flat_map(each).collect());
        x = network.binary(Binary::Mul, x, factors);
        x = network.norm(x, &format!("{name}.post_attn_norm"), width, norm)?;
    }
    let x = network.add(x, residual);
    let inner = add_inner(network, name, x, block)?;
    let mut residual = x;
    if version == 1 {
        let factors = network.weight(&format!("{name}.w_resid"), &[width])?;
        residual = network.binary(Binary::Mul, factors, residual);
    }
    Ok(network.add(inner, residual))
}

/// Returns attention of `queries` to `read`, which has been normalised.
fn attention(
    network: &mut Network,
    name: &str,
    [queries, read]: [ValueId; 2],
    bias: ValueId,
    block: &Block,
) -> Result<ValueId, Error> {
    let &Block { width, n_heads, version, .. } = block;
    let has_bias = version < 3;
    name.clone_into(&mut network.scope);
    // Files of older versions have the names of PyTorch's own attention.
    let dot = if network.has(&format!("{name}.in_proj_weight")) { "_" } else { "." };
    let weights = network.weight(&format!("{name}.in_proj{dot}weight"), &[3 * width, width])?;
    let biases = has_bias.then(|| network.weight(&format!("{name}.in_proj{dot}bias"), &[3 * width])).transpose()?;
    let mut project = |x: ValueId, part: usize| {
        let rows = network.slice(weights, 0, part * width, (part + 1) * width);
        let product = network.product(x, rows);
        let Some(biases) = biases else { return product };
        let bias = network.slice(biases, 0, part * width, (part + 1) * width);
        network.add(product, bias)
    };
    let [queries, keys, values] = [project(queries, 0), project(read, 1), project(read, 2)];
    let mixed = network.attention(Attention { queries, keys, values, bias: Some(bias), n_heads, width });
    network.linear(mixed, &format!("{name}.out_proj"), [width; 2], has_bias)
}

/// Adds the network of a block: (…, width) to (…, width), four times as wide between.
fn add_inner(network: &mut Network, name: &str, x: ValueId, block: &Block) -> Result<ValueId, Error> {
    let &Block { width, version, activation, norm, .. } = block;
    let (inner, has_bias) = (4 * width, version < 3);
    let normed = network.norm(x, &format!("{name}.pre_fc_norm"), width, norm)?;
    let mut x = network.linear(normed, &format!("{name}.fc1"), [width, inner], has_bias)?;
    if version == 1 {
        x = network.unary(activation, x);
        x = network.norm(x, &format!("{name}.post_fc_norm"), inner, norm)?;
    } else {
        let gate = network.linear(normed, &format!("{name}.fc1_g"), [width, inner], has_bias)?;
        let gate = network.unary(Unary::Silu, gate);
        x = network.binary(Binary::Mul, gate, x);
    }
    network.linear(x, &format!("{name}.fc2"), [inner, width], has_bias)
}

/// Returns the class token after its blocks: (batch, width).
fn class_token(
    fields: &Fields<'_>,
    network: &mut Network,
    x: ValueId,
    keys: ValueId,
    block: &Block,
) -> Result<ValueId, Error> {
    let shape = [1, 1, block.width];
    let token = network.weight("cls_token", &shape)?;
    "cls_token".clone_into(&mut network.scope);
    let mut class = network.for_each_event(token, &shape, x);
    let nothing = network.numbers(&[1, 1, 1, 1], vec![0.0]);
    let nothing = network.for_each_event(nothing, &[1, 1, 1, 1], x);
    let bias = network.concat(&[nothing, keys], -1);
    for index in 0..fields.size_or("num_cls_layers", Some(2))? {
        class = add_block(network, &format!("cls_blocks.{index}"), Tokens { x, class: Some(class) }, bias, block)?;
    }
    let class = network.reshape(class, &[0, block.width as i64]);
    network.norm(class, "norm", block.width, block.norm)
}

/// Adds the layers of `fc_params` and the last one, which has an output of each class.
fn add_classifier(fields: &Fields<'_>, network: &mut Network, mut x: ValueId, block: &Block) -> Result<(), Error> {
    let n_classes = fields.size("num_classes")?;
    let empty = Vec::new();
    let layers = match fields.object.get("fc_params") {
        None => &empty,
        Some(Value::Array(layers)) => layers,
        Some(other) => return Err(fields.unexpected("fc_params", "an array", other)),
    };
    let mut inputs = block.width;
    for (index, layer) in layers.iter().enumerate() {
        let unexpected = || fields.unexpected("fc_params", "layers of [size, dropout] or [size, dropout, name]", layer);
        let (size, name) = match layer.as_array().map(Vec::as_slice) {
            Some([size, Value::Number(_)]) => (size, "relu"),
            Some([size, Value::Number(_), Value::String(name)]) => (size, name.as_str()),
            _ => return Err(unexpected()),
        };
        let size = size.as_u64().filter(|size| (1..1 << 31).contains(size)).ok_or_else(unexpected)? as usize;
        x = network.linear(x, &format!("fc.{index}.0"), [inputs, size], block.version < 3)?;
        x = network.unary(known_activation(fields, "fc_params", name)?, x);
        inputs = size;
    }
    let logits = network.linear(x, &format!("fc.{}", layers.len()), [inputs, n_classes], true)?;
    network.output("logits", vec![named("batch"), Dimension::Fixed(n_classes)], logits);
    Ok(())
}
