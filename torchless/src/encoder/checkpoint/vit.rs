//! ViT: patches of an image and a class token, layers with norms before them, and a head.

use serde_json::Value;

use super::network::{Attention, Network, Norm};
use super::{activation, head, n_heads, n_labels, named};
use crate::encoder::graph::{Dimension, Op, Unary, ValueId};
use crate::encoder::kernels::linear::Activation;
use crate::encoder::tensor::Kind;
use crate::error::{Error, Problem};
use crate::files::hugging_face::Fields;

/// The heads that are computed; the first one has none.
const HEADS: [&str; 2] = ["ViTModel", "ViTForImageClassification"];

/// The sizes of a layer.
struct Layer {
    width: usize,
    n_heads: usize,
    inner: usize,
    has_bias: bool,
    activation: Unary,
    norm: Norm,
}

/// Adds the model that `fields` describe to `network`.
pub(super) fn build(fields: &Fields<'_>, network: &mut Network) -> Result<(), Error> {
    let width = fields.size_or("hidden_size", Some(768))?;
    let layer = Layer {
        width,
        n_heads: n_heads(fields, "num_attention_heads", width, 12)?,
        inner: fields.size_or("intermediate_size", Some(3072))?,
        has_bias: fields.flag("qkv_bias", true)?,
        activation: activation(fields, "hidden_act", "gelu")?,
        norm: Norm::Layer { epsilon: fields.positive("layer_norm_eps", Some(1e-12))? as f32 },
    };
    let head = head(fields, &HEADS)?;
    let prefix = if head == HEADS[0] { "" } else { "vit." };
    let mut x = embeddings(fields, network, prefix, width)?;
    for index in 0..fields.size_or("num_hidden_layers", Some(12))? {
        x = add_layer(network, &format!("{prefix}encoder.layer.{index}"), x, &layer)?;
    }
    let x = network.norm(x, &format!("{prefix}layernorm"), width, layer.norm)?;
    add_head(fields, network, head, x, width)
}

/// Returns height and width of a field that is one number for both, or two.
fn height_and_width(fields: &Fields<'_>, name: &str, default: usize) -> Result<[usize; 2], Error> {
    let Some(Value::Array(sizes)) = fields.get(name) else {
        return Ok([fields.size_or(name, Some(default))?; 2]);
    };
    // Images are not larger than a side of 2^16.
    let sizes: Vec<usize> = sizes.iter().filter_map(|size| usize::try_from(size.as_u64()?).ok()).collect();
    match sizes[..] {
        [height, width] if (1..=1 << 16).contains(&height) && (1..=1 << 16).contains(&width) => Ok([height, width]),
        _ => Err(fields.unexpected(name, "a size or two, from 1 to 65536", fields.get(name).unwrap_or(&Value::Null))),
    }
}

/// Returns embeddings of the class token and of patches: (batch, 1 + patches, width).
fn embeddings(fields: &Fields<'_>, network: &mut Network, prefix: &str, width: usize) -> Result<ValueId, Error> {
    let image = height_and_width(fields, "image_size", 224)?;
    let patch = height_and_width(fields, "patch_size", 16)?;
    let n_channels = fields.size_or("num_channels", Some(3))?;
    if patch[0] > image[0] || patch[1] > image[1] {
        let value = format!("{patch:?}");
        return Err(fields.error("patch_size", Problem::OutOfRange { value, expected: "patches fit into the image" }));
    }
    let n_patches = (image[0] / patch[0]).saturating_mul(image[1] / patch[1]);
    let dimensions = [n_channels, image[0], image[1]].map(Dimension::Fixed);
    let pixels = network.input("pixel_values", Kind::Float, [named("batch")].into_iter().chain(dimensions).collect());
    let name = format!("{prefix}embeddings.patch_embeddings.projection");
    network.scope.clone_from(&name);
    let weights = network.weight(&format!("{name}.weight"), &[width, n_channels, patch[0], patch[1]])?;
    let bias = network.weight(&format!("{name}.bias"), &[width])?;
    let op = Op::Conv { strides: patch.map(|size| size as i64).to_vec(), activation: Activation::None };
    let patches = network.node("Conv", op, &[pixels, weights, bias]);
    let patches = network.reshape(patches, &[0, width as i64, -1]);
    let patches = network.transpose(patches, &[0, 2, 1]);
    network.scope = format!("{prefix}embeddings");
    let token = network.weight(&format!("{prefix}embeddings.cls_token"), &[1, 1, width])?;
    let token = network.for_each_event(token, &[1, 1, width], pixels);
    let x = network.concat(&[token, patches], 1);
    let places =
        network.weight(&format!("{prefix}embeddings.position_embeddings"), &[1, n_patches.saturating_add(1), width])?;
    // Of masked training; no output depends on it.
    network.ignore(&format!("{prefix}embeddings.mask_token"));
    Ok(network.add(x, places))
}

/// Adds attention and a network of two layers to the norms of what they read.
fn add_layer(network: &mut Network, name: &str, x: ValueId, layer: &Layer) -> Result<ValueId, Error> {
    let &Layer { width, n_heads, inner, has_bias, activation, norm } = layer;
    let normed = network.norm(x, &format!("{name}.layernorm_before"), width, norm)?;
    let mut project =
        |part: &str| network.linear(normed, &format!("{name}.attention.attention.{part}"), [width; 2], has_bias);
    let [queries, keys, values] = [project("query")?, project("key")?, project("value")?];
    network.scope = format!("{name}.attention");
    let mixed = network.attention(Attention { queries, keys, values, bias: None, n_heads, width });
    let mixed = network.linear(mixed, &format!("{name}.attention.output.dense"), [width; 2], true)?;
    let x = network.add(mixed, x);
    let normed = network.norm(x, &format!("{name}.layernorm_after"), width, norm)?;
    let up = network.linear(normed, &format!("{name}.intermediate.dense"), [width, inner], true)?;
    let up = network.unary(activation, up);
    let down = network.linear(up, &format!("{name}.output.dense"), [inner, width], true)?;
    Ok(network.add(down, x))
}

fn add_head(fields: &Fields<'_>, network: &mut Network, head: &str, x: ValueId, width: usize) -> Result<(), Error> {
    let per_image = |last: usize| vec![named("batch"), Dimension::Fixed(last)];
    let zero = network.int(0);
    network.scope = "class token".into();
    let first = network.gather(x, 1, zero);
    if head == "ViTForImageClassification" {
        let n_labels = n_labels(fields)?;
        let logits = network.linear(first, "classifier", [width, n_labels], true)?;
        network.output("logits", per_image(n_labels), logits);
        return Ok(());
    }
    network.output("last_hidden_state", vec![named("batch"), named("patches"), Dimension::Fixed(width)], x);
    if network.has("pooler.dense.weight") {
        let pooled_width = fields.size_or("pooler_output_size", Some(width))?;
        let pooled = network.linear(first, "pooler.dense", [width, pooled_width], true)?;
        let pooled = network.unary(activation(fields, "pooler_act", "tanh")?, pooled);
        network.output("pooler_output", per_image(pooled_width), pooled);
    }
    Ok(())
}
