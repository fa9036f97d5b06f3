//! A model: its configuration, and its weights where they lie in their files.

pub mod memory;
mod pass;

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Problem};
use crate::files::{MappedFile, Tensors};
use crate::files::{gguf, hugging_face, safetensors};
use crate::weights::Matrix;
pub use pass::Observer;
pub(crate) use pass::{Pass, Span, check_tokens};

/// A matrix and what is added to its products.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) matrix: Matrix,
    pub(crate) bias: Option<Vec<f32>>,
}

/// One layer of the decoder.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<f32>,
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) output: Linear,
    pub(crate) mlp_norm: Vec<f32>,
    pub(crate) gate: Linear,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

/// Where a model's tokenizer and templates are.
#[derive(Debug)]
pub(crate) enum Source {
    Folder(PathBuf),
    Gguf(Box<gguf::Keys>),
}

/// How a model is loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Bytes that weights, keys and values may take; what the machine has available if not given.
    pub memory_limit: Option<u64>,
    /// Positions whose keys and values will be needed.
    pub positions: usize,
}

/// A decoder, ready to compute. Its weights stay in their files, mapped.
#[derive(Debug)]
pub struct Model {
    pub(crate) config: Config,
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<f32>,
    pub(crate) head: Option<Matrix>,
    pub(crate) frequencies: Vec<f64>,
    pub(crate) source: Source,
    weight_bytes: u64,
    /// Bytes of all tensors of its files, and the limit for them with keys and values, if one was
    /// given.
    memory_limit: Option<(u64, u64)>,
}

impl Model {
    /// Opens a Hugging Face folder, a GGUF file, or one `.safetensors` file beside its
    /// `config.json`.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::open_with(path, &LoadOptions::default())
    }

    /// Opens a model as `options` say.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the files, with its place; a model that needs more memory than there
    /// is, before anything is read of its weights.
    pub fn open_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Model, Error> {
        let path = path.as_ref();
        if path.is_dir() {
            let config = hugging_face::read_config(path)?;
            return Model::build(config, &safetensors::read_folder(path)?, Source::Folder(path.into()), options);
        }
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let config = hugging_face::read_config(folder)?;
            let mut by_name = std::collections::HashMap::new();
            safetensors::read(path, &mut by_name)?;
            let tensors = Tensors { path: path.into(), by_name };
            return Model::build(config, &tensors, Source::Folder(folder.into()), options);
        }
        let is_gguf = MappedFile::open(path)?.bytes.starts_with(&gguf::MAGIC);
        if !is_gguf {
            let expected = "a folder with `config.json`, a GGUF file or a safetensors file".into();
            let problem = Problem::Unexpected { expected, found: "something else".into() };
            return Err(Error::malformed(path, "the file", problem));
        }
        let (keys, tensors) = gguf::read(path)?;
        let config = gguf::config(&keys, &tensors)?;
        Model::build(config, &tensors, Source::Gguf(Box::new(keys)), options)
    }

    fn build(mut config: Config, tensors: &Tensors, source: Source, options: &LoadOptions) -> Result<Model, Error> {
        // No sequence is longer than the context.
        let cache = memory::estimate_kv_cache_memory(&config, options.positions.min(config.context));
        memory::check(tensors.n_bytes(), cache, options.memory_limit)?;
        let names = Names::of(&source);
        let embedding = tensors.matrix(names.embedding, config.vocabulary, config.hidden)?;
        let mut layers = Vec::new();
        for layer in 0..config.n_layers {
            layers.push(names.layer(&config, tensors, layer)?);
        }
        let norm = tensors.vector(names.norm, config.hidden)?;
        let head = (!config.is_tied || tensors.has(names.head))
            .then(|| tensors.matrix(names.head, config.vocabulary, config.hidden))
            .transpose()?;
        // A file may claim that its head is the embedding and have a different one, which then
        // counts.
        let head = head.filter(|head| !config.is_tied || head.stored() != embedding.stored());
        config.is_tied = head.is_none();
        let frequencies = config.rope.frequencies(config.head_dim);
        let matrices = layers.iter().flat_map(Layer::matrices).chain(&head);
        let weight_bytes = matrices.map(|matrix| matrix.n_bytes() as u64).sum::<u64>() + embedding.n_bytes() as u64;
        let memory_limit = options.memory_limit.map(|limit| (tensors.n_bytes(), limit));
        Ok(Model { config, embedding, layers, norm, head, frequencies, source, weight_bytes, memory_limit })
    }

    /// Returns its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the folder or the file that it is from.
    pub fn path(&self) -> &Path {
        match &self.source {
            Source::Folder(folder) => folder,
            Source::Gguf(keys) => keys.path(),
        }
    }

    /// Returns the bytes of its files' tensors, and the limit for them with keys and values, if
    /// there is one.
    pub(crate) fn memory_limit(&self) -> Option<(u64, u64)> {
        self.memory_limit
    }

    /// Returns the bytes of all matrices, as they are stored.
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// Returns the bytes that are read for every token: all matrices but the embedding, unless that
    /// is the output matrix, too.
    pub fn bytes_per_token(&self) -> u64 {
        if self.head.is_some() { self.weight_bytes - self.embedding.n_bytes() as u64 } else { self.weight_bytes }
    }

    /// Returns the number of weights in its matrices.
    pub fn n_weights(&self) -> u64 {
        self.matrices().map(|matrix| matrix.rows() as u64 * matrix.columns() as u64).sum()
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.layers.iter().flat_map(Layer::matrices).chain(&self.head).chain([&self.embedding])
    }

    /// Returns the matrices that have products: all but the embedding, unless that is the output
    /// matrix, too.
    pub(crate) fn multiplied(&self) -> impl Iterator<Item = &Matrix> {
        self.layers.iter().flat_map(Layer::matrices).chain([self.head.as_ref().unwrap_or(&self.embedding)])
    }

    /// Returns the formats of the matrices with how many there are of each, the most frequent
    /// first.
    pub fn formats(&self) -> Vec<(crate::weights::format::Format, usize)> {
        let mut counts: Vec<(crate::weights::format::Format, usize)> = Vec::new();
        for matrix in self.matrices() {
            match counts.iter_mut().find(|(format, _)| *format == matrix.format()) {
                Some((_, count)) => *count += 1,
                None => counts.push((matrix.format(), 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

impl Layer {
    /// Returns how many weights are in its matrices: multiplications for each token.
    pub(crate) fn n_weights(&self) -> usize {
        self.matrices().map(|matrix| matrix.rows() * matrix.columns()).sum()
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let Layer { query, key, value, output, gate, up, down, .. } = self;
        [query, key, value, output, gate, up, down].into_iter().map(|linear| &linear.matrix)
    }
}

/// How a kind of file calls the tensors.
struct Names {
    embedding: &'static str,
    norm: &'static str,
    head: &'static str,
    layer: &'static str,
    /// The two norms, then queries, keys, values, output, gate, up, down.
    parts: [&'static str; 9],
}

impl Names {
    fn of(source: &Source) -> Names {
        match source {
            Source::Folder(_) => Names {
                embedding: "model.embed_tokens.weight",
                norm: "model.norm.weight",
                head: "lm_head.weight",
                layer: "model.layers.",
                parts: [
                    "input_layernorm",
                    "post_attention_layernorm",
                    "self_attn.q_proj",
                    "self_attn.k_proj",
                    "self_attn.v_proj",
                    "self_attn.o_proj",
                    "mlp.gate_proj",
                    "mlp.up_proj",
                    "mlp.down_proj",
                ],
            },
            Source::Gguf(_) => Names {
                embedding: "token_embd.weight",
                norm: "output_norm.weight",
                head: "output.weight",
                layer: "blk.",
                parts: [
                    "attn_norm",
                    "ffn_norm",
                    "attn_q",
                    "attn_k",
                    "attn_v",
                    "attn_output",
                    "ffn_gate",
                    "ffn_up",
                    "ffn_down",
                ],
            },
        }
    }

    fn layer(&self, config: &Config, tensors: &Tensors, layer: usize) -> Result<Layer, Error> {
        let name = |part: usize, suffix: &str| format!("{}{layer}.{}.{suffix}", self.layer, self.parts[part]);
        let linear = |part: usize, rows: usize, columns: usize, has_bias: bool| -> Result<Linear, Error> {
            let matrix = tensors.matrix(&name(part, "weight"), rows, columns)?;
            let bias = has_bias.then(|| tensors.vector(&name(part, "bias"), rows)).transpose()?;
            Ok(Linear { matrix, bias })
        };
        let Config { hidden, intermediate, biases, .. } = *config;
        let (queries, keys) = (config.query_width(), config.kv_width());
        Ok(Layer {
            attention_norm: tensors.vector(&name(0, "weight"), hidden)?,
            mlp_norm: tensors.vector(&name(1, "weight"), hidden)?,
            query: linear(2, queries, hidden, biases.qkv)?,
            key: linear(3, keys, hidden, biases.qkv)?,
            value: linear(4, keys, hidden, biases.qkv)?,
            output: linear(5, hidden, queries, biases.output)?,
            gate: linear(6, intermediate, hidden, biases.mlp)?,
            up: linear(7, intermediate, hidden, biases.mlp)?,
            down: linear(8, hidden, intermediate, biases.mlp)?,
        })
    }
}
