//! GGUF: keys with typed values, tensors with names, and the weights, all in one file. Every length
//! is checked against the rest of the file.
//!
//! Format: the GGUF specification, version 3 (version 2 differs in nothing that is read here).

use std::collections::HashMap;
use std::path::Path;

use super::hugging_face::LARGEST_SIZE;
use super::mapped::MappedFile;
use super::tensors::{StoredTensor, Tensors, refuse_overlaps};
use crate::config::{Architecture, Biases, Config, Rope, RopePairs, RopeScaling, Windows};
use crate::error::{Error, Problem};
use crate::weights::format::Format;

/// The first bytes of every GGUF file.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";

/// More elements than all arrays of a real file have together; each takes 32 bytes of memory.
const MOST_ELEMENTS: u64 = 1 << 22;

/// A value of the file's keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Value>),
}

/// A file's keys.
#[derive(Debug)]
pub(crate) struct Keys {
    file: MappedFile,
    by_name: HashMap<String, Value>,
}

/// Reads forwards; every read is checked.
struct Reader<'a> {
    file: &'a MappedFile,
    at: usize,
    /// What is being read, for messages.
    field: String,
    /// Elements that arrays may still have.
    elements_left: u64,
}

impl Reader<'_> {
    fn error(&self, problem: Problem) -> Error {
        self.file.malformed(self.field.clone(), problem)
    }

    fn bytes(&mut self, length: u64) -> Result<&[u8], Error> {
        let available = (self.file.bytes.len() - self.at) as u64;
        if length > available {
            return Err(self.error(Problem::Truncated { needed: length, available }));
        }
        let start = self.at;
        self.at += length as usize;
        Ok(&self.file.bytes[start..self.at])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.bytes(N as u64)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.u64()?;
        let text = std::str::from_utf8(self.bytes(length)?).map(str::to_owned);
        text.map_err(|_| self.error(Problem::NotUtf8))
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Value, Error> {
        Ok(match kind {
            0 => Value::Unsigned(u64::from(self.array::<1>()?[0])),
            1 => Value::Signed(i64::from(self.array::<1>()?[0] as i8)),
            2 => Value::Unsigned(u64::from(u16::from_le_bytes(self.array()?))),
            3 => Value::Signed(i64::from(i16::from_le_bytes(self.array()?))),
            4 => Value::Unsigned(u64::from(self.u32()?)),
            5 => Value::Signed(i64::from(i32::from_le_bytes(self.array()?))),
            6 => Value::Float(f64::from(f32::from_le_bytes(self.array()?))),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            8 => Value::Text(self.text()?),
            9 => return self.values(depth),
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            other => return Err(self.error(Problem::Unsupported { what: "the value type", found: other.to_string() })),
        })
    }

    fn values(&mut self, depth: u32) -> Result<Value, Error> {
        if depth == 0 {
            let problem = Problem::Unsupported { what: "the depth", found: "arrays in arrays in arrays".into() };
            return Err(self.error(problem));
        }
        let (kind, length) = (self.u32()?, self.u64()?);
        let Some(left) = self.elements_left.checked_sub(length) else {
            let expected = "all arrays of a file have at most 2^22 elements";
            return Err(self.error(Problem::OutOfRange { value: length.to_string(), expected }));
        };
        self.elements_left = left;
        // Not reserved: the file may claim more than it has.
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(self.value(kind, depth - 1)?);
        }
        Ok(Value::Array(values))
    }
}

/// Returns the format that GGUF's number of a tensor type stands for.
fn format(kind: u32) -> Option<Format> {
    Some(match kind {
        0 => Format::F32,
        1 => Format::F16,
        2 => Format::Q4_0,
        3 => Format::Q4_1,
        6 => Format::Q5_0,
        8 => Format::Q8_0,
        12 => Format::Q4K,
        13 => Format::Q5K,
        14 => Format::Q6K,
        30 => Format::Bf16,
        _ => return None,
    })
}

/// A tensor as the header lists it.
struct Listed {
    name: String,
    shape: Vec<usize>,
    format: Format,
    offset: u64,
    bytes: u64,
}

/// Reads the keys and the tensors of a file.
pub(crate) fn read(path: &Path) -> Result<(Keys, Tensors), Error> {
    let file = MappedFile::open(path)?;
    let mut reader = Reader { file: &file, at: 0, field: "the header".into(), elements_left: MOST_ELEMENTS };
    let magic = reader.array::<4>()?;
    if magic != MAGIC {
        let problem = Problem::Unexpected { expected: "a GGUF file".into(), found: format!("{magic:?}") };
        return Err(reader.error(problem));
    }
    let version = reader.u32()?;
    if version != 2 && version != 3 {
        return Err(reader.error(Problem::Unsupported { what: "the version", found: version.to_string() }));
    }
    let (n_tensors, n_keys) = (reader.u64()?, reader.u64()?);
    let mut by_name = HashMap::new();
    for index in 0..n_keys {
        reader.field = format!("key {index}");
        let name = reader.text()?;
        reader.field = format!("`{name}`");
        let kind = reader.u32()?;
        let value = reader.value(kind, 2)?;
        if by_name.insert(name, value).is_some() {
            return Err(reader.error(Problem::Duplicate));
        }
    }
    let mut listed = Vec::new();
    for index in 0..n_tensors {
        reader.field = format!("tensor {index}");
        listed.push(list(&mut reader)?);
    }
    let end_of_header = reader.at;
    let keys = Keys { file: file.clone(), by_name };
    let alignment = keys.unsigned("general.alignment")?.unwrap_or(32);
    if !alignment.is_power_of_two() || alignment > 1 << 20 {
        let expected = "a power of two up to 2^20";
        return Err(
            file.malformed("`general.alignment`", Problem::OutOfRange { value: alignment.to_string(), expected })
        );
    }
    let start = (end_of_header as u64).next_multiple_of(alignment);
    let mut tensors = HashMap::new();
    for tensor in listed {
        place(&file, start, tensor, &mut tensors)?;
    }
    refuse_overlaps(&tensors)?;
    Ok((keys, Tensors { path: path.into(), by_name: tensors }))
}

fn list(reader: &mut Reader<'_>) -> Result<Listed, Error> {
    let name = reader.text()?;
    reader.field = format!("tensor `{name}`");
    let n_dimensions = reader.u32()?;
    if n_dimensions > 4 {
        let expected = "tensors have at most 4 dimensions";
        return Err(reader.error(Problem::OutOfRange { value: n_dimensions.to_string(), expected }));
    }
    let mut shape = Vec::new();
    for _ in 0..n_dimensions {
        let size = reader.u64()?;
        if size >= LARGEST_SIZE {
            let expected = "sizes are below 2^31";
            return Err(reader.error(Problem::OutOfRange { value: size.to_string(), expected }));
        }
        shape.push(size as usize);
    }
    let kind = reader.u32()?;
    let format = format(kind)
        .ok_or_else(|| reader.error(Problem::Unsupported { what: "the tensor type", found: kind.to_string() }))?;
    let offset = reader.u64()?;
    // The first one runs fastest: rows are made of it.
    let columns = shape.first().copied().unwrap_or(1);
    let n_rows = shape.iter().skip(1).try_fold(1_usize, |rows, &size| rows.checked_mul(size));
    let bytes = format.row_bytes(columns).zip(n_rows).and_then(|(row, rows)| row.checked_mul(rows));
    let bytes = bytes.ok_or_else(|| {
        let expected = "rows are whole blocks";
        reader.error(Problem::OutOfRange { value: format!("{format} of {shape:?}"), expected })
    })?;
    shape.reverse();
    Ok(Listed { name, shape, format, offset, bytes: bytes as u64 })
}

fn place(
    file: &MappedFile,
    start: u64,
    tensor: Listed,
    tensors: &mut HashMap<String, StoredTensor>,
) -> Result<(), Error> {
    let Listed { name, shape, format, offset, bytes } = tensor;
    let size = file.bytes.len() as u64;
    let first = start.checked_add(offset);
    let range = first.and_then(|first| Some(first..first.checked_add(bytes)?)).filter(|range| range.end <= size);
    let Some(range) = range else {
        let available = size.saturating_sub(start.saturating_add(offset));
        return Err(file.malformed(format!("tensor `{name}`"), Problem::Truncated { needed: bytes, available }));
    };
    let range = range.start as usize..range.end as usize;
    let stored = StoredTensor { file: file.clone(), dtype: format.name().into(), shape, range };
    if tensors.insert(name.clone(), stored).is_some() {
        return Err(file.malformed(format!("tensor `{name}`"), Problem::Duplicate));
    }
    Ok(())
}

impl Keys {
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    fn unexpected(&self, name: &str, expected: &str) -> Error {
        let mut found: String = format!("{:?}", self.by_name.get(name)).chars().take(80).collect();
        found.retain(|character| character != '\n');
        self.file.malformed(format!("`{name}`"), Problem::Unexpected { expected: expected.into(), found })
    }

    fn missing(&self, name: &str) -> Error {
        self.file.malformed(format!("`{name}`"), Problem::Missing)
    }

    pub(crate) fn unsigned(&self, name: &str) -> Result<Option<u64>, Error> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Value::Unsigned(number)) => Ok(Some(*number)),
            Some(Value::Signed(number)) if *number >= 0 => Ok(Some(*number as u64)),
            // Some writers give a number for every layer; they must agree.
            Some(Value::Array(values)) => match values.as_slice() {
                [Value::Unsigned(first), rest @ ..] if rest.iter().all(|value| *value == Value::Unsigned(*first)) => {
                    Ok(Some(*first))
                }
                [Value::Signed(first), rest @ ..]
                    if *first >= 0 && rest.iter().all(|value| *value == Value::Signed(*first)) =>
                {
                    Ok(Some(*first as u64))
                }
                _ => Err(self.unexpected(name, "one number for all layers")),
            },
            Some(_) => Err(self.unexpected(name, "a whole number")),
        }
    }

    fn size_or(&self, name: &str, default: Option<usize>) -> Result<usize, Error> {
        let Some(size) = self.unsigned(name)? else { return default.ok_or_else(|| self.missing(name)) };
        if size == 0 || size >= LARGEST_SIZE {
            let expected = "sizes are between 1 and 2^31";
            let problem = Problem::OutOfRange { value: size.to_string(), expected };
            return Err(self.file.malformed(format!("`{name}`"), problem));
        }
        Ok(size as usize)
    }

    fn positive(&self, name: &str, default: Option<f64>) -> Result<f64, Error> {
        let number = match self.by_name.get(name) {
            None => return default.ok_or_else(|| self.missing(name)),
            Some(Value::Float(number)) => *number,
            Some(Value::Unsigned(number)) => *number as f64,
            Some(_) => return Err(self.unexpected(name, "a number")),
        };
        if number > 0.0 && number.is_finite() {
            return Ok(number);
        }
        let problem = Problem::OutOfRange { value: number.to_string(), expected: "it must be positive" };
        Err(self.file.malformed(format!("`{name}`"), problem))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.unexpected(name, "text")),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.unexpected(name, "true or false")),
        }
    }

    fn array<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        one: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Value::Array(values)) => {
                let values = values.iter().map(one).collect::<Option<Vec<T>>>();
                values.map(Some).ok_or_else(|| self.unexpected(name, kind))
            }
            Some(_) => Err(self.unexpected(name, kind)),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, Error> {
        self.array(name, "an array of texts", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(crate) fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>, Error> {
        self.array(name, "an array of numbers", |value| match value {
            Value::Unsigned(number) => Some(*number as f64),
            Value::Signed(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        })
    }

    pub(crate) fn token(&self, name: &str) -> Result<Option<u32>, Error> {
        let id = self.unsigned(name)?;
        id.map(|id| u32::try_from(id).map_err(|_| self.unexpected(name, "a token id"))).transpose()
    }

    /// Returns a token id, and refuses one that has no row in the embedding.
    fn token_below(&self, name: &str, vocabulary: usize) -> Result<Option<u32>, Error> {
        match self.token(name)? {
            Some(id) if id as usize >= vocabulary => {
                let expected = "ids are below the rows of `token_embd.weight`";
                let problem = Problem::OutOfRange { value: id.to_string(), expected };
                Err(self.file.malformed(format!("`{name}`"), problem))
            }
            id => Ok(id),
        }
    }

    pub(crate) fn missing_key(&self, name: &str) -> Error {
        self.missing(name)
    }
}

/// Reads the configuration that a file's keys describe.
pub(crate) fn config(keys: &Keys, tensors: &Tensors) -> Result<Config, Error> {
    let name = keys.text("general.architecture")?.ok_or_else(|| keys.missing("general.architecture"))?;
    let known = Architecture::ALL.into_iter().find(|architecture| architecture.name() == name);
    let architecture = known.ok_or_else(|| {
        let problem = Problem::Unsupported { what: "the architecture", found: name.to_owned() };
        keys.file.malformed("`general.architecture`", problem)
    })?;
    let key = |suffix: &str| format!("{name}.{suffix}");
    let hidden = keys.size_or(&key("embedding_length"), None)?;
    let n_heads = keys.size_or(&key("attention.head_count"), None)?;
    let n_kv_heads = keys.size_or(&key("attention.head_count_kv"), Some(n_heads))?;
    let head_dim = keys.size_or(&key("attention.key_length"), Some((hidden / n_heads).max(1)))?;
    let out_of_range = |suffix: &str, value: usize, expected| {
        keys.file.malformed(format!("`{}`", key(suffix)), Problem::OutOfRange { value: value.to_string(), expected })
    };
    if !n_heads.is_multiple_of(n_kv_heads) {
        return Err(out_of_range("attention.head_count_kv", n_kv_heads, "it must divide `attention.head_count`"));
    }
    if !head_dim.is_multiple_of(2) {
        return Err(out_of_range("attention.key_length", head_dim, "heads have an even width"));
    }
    for suffix in ["attention.value_length", "rope.dimension_count"] {
        let width = keys.size_or(&key(suffix), Some(head_dim))?;
        if width != head_dim {
            return Err(out_of_range(suffix, width, "it must be the width of a head"));
        }
    }
    let embedding = tensors.by_name.get("token_embd.weight").and_then(|tensor| tensor.shape.first().copied());
    let vocabulary = embedding
        .filter(|&rows| rows > 0)
        .ok_or_else(|| keys.file.malformed("tensor `token_embd.weight`", Problem::Missing))?;
    let eos = ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"];
    let eos = [keys.token_below(eos[0], vocabulary)?, keys.token_below(eos[1], vocabulary)?];
    let has_bias = |name: &str| tensors.has(&format!("blk.0.{name}.bias"));
    let windows = match keys.unsigned(&key("attention.sliding_window"))? {
        None | Some(0) => Windows::None,
        Some(_) => Windows::All(keys.size_or(&key("attention.sliding_window"), None)?),
    };
    Ok(Config {
        architecture,
        hidden,
        n_layers: keys.size_or(&key("block_count"), None)?,
        n_heads,
        n_kv_heads,
        head_dim,
        intermediate: keys.size_or(&key("feed_forward_length"), None)?,
        vocabulary,
        context: keys.size_or(&key("context_length"), None)?,
        epsilon: keys.positive(&key("attention.layer_norm_rms_epsilon"), None)?,
        rope: rope(keys, tensors, architecture, head_dim)?,
        windows,
        biases: Biases { qkv: has_bias("attn_q"), output: has_bias("attn_output"), mlp: has_bias("ffn_gate") },
        is_tied: !tensors.has("output.weight"),
        bos: keys.token_below("tokenizer.ggml.bos_token_id", vocabulary)?,
        eos: eos.into_iter().flatten().collect(),
    })
}

fn rope(keys: &Keys, tensors: &Tensors, architecture: Architecture, head_dim: usize) -> Result<Rope, Error> {
    let key = |suffix: &str| format!("{architecture}.rope.{suffix}");
    let pairs = match architecture {
        // Files of this architecture have the rows of queries and keys in the order of neighbours.
        Architecture::Llama | Architecture::Mistral => RopePairs::Neighbours,
        Architecture::Qwen2 => RopePairs::Halves,
    };
    let theta = keys.positive(&key("freq_base"), Some(10_000.0))?;
    let scaling = match (rope_factors(keys, tensors, head_dim)?, linear_factor(keys, architecture)?) {
        (Some(factors), linear) => RopeScaling::Divided(factors.iter().map(|factor| linear * factor).collect()),
        (None, 1.0) => RopeScaling::None,
        (None, factor) => RopeScaling::Linear { factor },
    };
    Ok(Rope { theta, scaling, pairs })
}

/// Returns the divisor of every frequency: 1 if the scaling is `none`; linear is the default.
fn linear_factor(keys: &Keys, architecture: Architecture) -> Result<f64, Error> {
    let key = |suffix: &str| format!("{architecture}.rope.{suffix}");
    // The older name counts where the newer one is missing.
    let factor = keys.positive(&key("scaling.factor"), Some(keys.positive(&key("scale_linear"), Some(1.0))?))?;
    match keys.text(&key("scaling.type"))?.unwrap_or("linear") {
        "linear" => Ok(factor),
        "none" => Ok(1.0),
        other => {
            let problem = Problem::Unsupported { what: "the scaling", found: other.into() };
            Err(keys.file.malformed(format!("`{}`", key("scaling.type")), problem))
        }
    }
}

/// Returns the divisor of each frequency, if the file has such numbers.
fn rope_factors(keys: &Keys, tensors: &Tensors, head_dim: usize) -> Result<Option<Vec<f64>>, Error> {
    if !tensors.has("rope_freqs.weight") {
        return Ok(None);
    }
    let factors = tensors.vector("rope_freqs.weight", head_dim / 2)?;
    if factors.iter().any(|factor| factor.is_nan() || *factor <= 0.0) {
        let problem = Problem::OutOfRange { value: "a factor".into(), expected: "factors are positive" };
        return Err(keys.file.malformed("tensor `rope_freqs.weight`", problem));
    }
    Ok(Some(factors.iter().map(|&factor| f64::from(factor)).collect()))
}
