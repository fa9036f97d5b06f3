//! `config.json` of Hugging Face folders, old and new: every field is found, checked and named when
//! it is wrong.
//!
//! Defaults are those of the configuration classes of each family in transformers 5.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json;
use crate::config::{Architecture, Biases, Config, Rope, RopePairs, RopeScaling, Windows};
use crate::error::{Error, Problem};

/// Larger than any size of a model, and two of them can be multiplied.
pub(crate) const LARGEST_SIZE: u64 = 1 << 31;

/// A JSON object of a file, whose fields are read by name.
pub(crate) struct Fields<'a> {
    pub(crate) path: &'a Path,
    /// What precedes names in messages: `rope_parameters.`
    pub(crate) prefix: &'static str,
    pub(crate) object: &'a Map<String, Value>,
}

impl Fields<'_> {
    pub(crate) fn error(&self, name: &str, problem: Problem) -> Error {
        Error::malformed(self.path, format!("`{}{name}`", self.prefix), problem)
    }

    pub(crate) fn unexpected(&self, name: &str, expected: &str, found: &Value) -> Error {
        let found: String = found.to_string().chars().take(80).collect();
        self.error(name, Problem::Unexpected { expected: expected.into(), found })
    }

    /// Returns a value that is neither missing nor null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn size_or(&self, name: &str, default: Option<usize>) -> Result<usize, Error> {
        let Some(value) = self.get(name) else { return default.ok_or_else(|| self.error(name, Problem::Missing)) };
        let size = value.as_u64().ok_or_else(|| self.unexpected(name, "a whole number", value))?;
        if size == 0 || size >= LARGEST_SIZE {
            let expected = "sizes are between 1 and 2^31";
            return Err(self.error(name, Problem::OutOfRange { value: size.to_string(), expected }));
        }
        Ok(size as usize)
    }

    pub(crate) fn size(&self, name: &str) -> Result<usize, Error> {
        self.size_or(name, None)
    }

    pub(crate) fn positive(&self, name: &str, default: Option<f64>) -> Result<f64, Error> {
        let Some(value) = self.get(name) else { return default.ok_or_else(|| self.error(name, Problem::Missing)) };
        let number = value.as_f64().ok_or_else(|| self.unexpected(name, "a number", value))?;
        if number > 0.0 && number.is_finite() {
            Ok(number)
        } else {
            Err(self.error(name, Problem::OutOfRange { value: number.to_string(), expected: "it must be positive" }))
        }
    }

    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        self.get(name)
            .map_or(Ok(default), |value| value.as_bool().ok_or_else(|| self.unexpected(name, "true or false", value)))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| self.unexpected(name, "text", value))).transpose()
    }

    fn inside(&self, name: &'static str, prefix: &'static str) -> Result<Option<Fields<'_>>, Error> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| self.unexpected(name, "an object", value))?;
        Ok(Some(Fields { path: self.path, prefix, object }))
    }

    /// Returns one or several ids of tokens in the vocabulary.
    fn ids(&self, name: &str, vocabulary: usize) -> Result<Vec<u32>, Error> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let ids = match value {
            Value::Array(values) => values.iter().map(one).collect(),
            value => one(value).map(|id| vec![id]),
        };
        let ids: Vec<u32> = ids.ok_or_else(|| self.unexpected(name, "a token id or several", value))?;
        match ids.iter().find(|id| **id as usize >= vocabulary) {
            None => Ok(ids),
            Some(id) => {
                let problem = Problem::OutOfRange { value: id.to_string(), expected: "ids are below `vocab_size`" };
                Err(self.error(name, problem))
            }
        }
    }
}

/// Reads the configuration of a folder's `config.json`.
pub(crate) fn read_config(folder: &Path) -> Result<Config, Error> {
    let path: PathBuf = folder.join("config.json");
    let object = json::read_object(&path)?;
    let fields = Fields { path: &path, prefix: "", object: &object };
    let architecture = architecture(&fields)?;
    require_silu(&fields)?;
    let hidden = fields.size("hidden_size")?;
    let Heads { n_heads, n_kv_heads, head_dim } = heads(&fields, architecture, hidden)?;
    let default_context = match architecture {
        Architecture::Llama => 2048,
        Architecture::Mistral => 4096 * 32,
        Architecture::Qwen2 => 32768,
    };
    let context = fields.size_or("max_position_embeddings", Some(default_context))?;
    let n_layers = fields.size("num_hidden_layers")?;
    let attention_bias = architecture == Architecture::Llama && fields.flag("attention_bias", false)?;
    let mlp = architecture == Architecture::Llama && fields.flag("mlp_bias", false)?;
    let vocabulary = fields.size("vocab_size")?;
    let (bos, eos) = ends(folder, &fields, vocabulary)?;
    Ok(Config {
        architecture,
        hidden,
        n_layers,
        n_heads,
        n_kv_heads,
        head_dim,
        intermediate: fields.size("intermediate_size")?,
        vocabulary,
        context,
        epsilon: fields.positive("rms_norm_eps", Some(1e-6))?,
        rope: rope(&fields, context)?,
        windows: windows(&fields, architecture, n_layers)?,
        biases: Biases { qkv: attention_bias || architecture == Architecture::Qwen2, output: attention_bias, mlp },
        is_tied: fields.flag("tie_word_embeddings", false)?,
        bos,
        eos,
    })
}

/// Refuses every activation but SiLU.
fn require_silu(fields: &Fields<'_>) -> Result<(), Error> {
    match fields.text("hidden_act")?.or(fields.text("hidden_activation")?) {
        None | Some("silu" | "swish") => Ok(()),
        Some(other) => {
            let problem = Problem::Unsupported { what: "the activation", found: other.into() };
            Err(fields.error("hidden_act", problem))
        }
    }
}

/// The heads of attention.
struct Heads {
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
}

fn heads(fields: &Fields<'_>, architecture: Architecture, hidden: usize) -> Result<Heads, Error> {
    let n_heads = fields.size("num_attention_heads")?;
    let default_kv_heads = match architecture {
        // Null is not missing: it means as many as there are heads.
        _ if fields.object.get("num_key_value_heads").is_some_and(Value::is_null) => n_heads,
        Architecture::Llama => n_heads,
        Architecture::Mistral => 8,
        Architecture::Qwen2 => 32,
    };
    let n_kv_heads = fields.size_or("num_key_value_heads", Some(default_kv_heads))?;
    if !n_heads.is_multiple_of(n_kv_heads) {
        let problem =
            Problem::OutOfRange { value: n_kv_heads.to_string(), expected: "it must divide `num_attention_heads`" };
        return Err(fields.error("num_key_value_heads", problem));
    }
    let head_dim = fields.size_or("head_dim", Some((hidden / n_heads).max(1)))?;
    if !head_dim.is_multiple_of(2) {
        let problem = Problem::OutOfRange { value: head_dim.to_string(), expected: "heads have an even width" };
        return Err(fields.error("head_dim", problem));
    }
    Ok(Heads { n_heads, n_kv_heads, head_dim })
}

fn architecture(fields: &Fields<'_>) -> Result<Architecture, Error> {
    let by_class = || -> Result<Option<&str>, Error> {
        let first = fields.get("architectures").and_then(Value::as_array).and_then(|classes| classes.first());
        Ok(first.and_then(Value::as_str).and_then(|class| class.strip_suffix("ForCausalLM")))
    };
    let name = match fields.text("model_type")? {
        Some(name) => name.to_owned(),
        None => by_class()?.ok_or_else(|| fields.error("model_type", Problem::Missing))?.to_lowercase(),
    };
    let known = Architecture::ALL.into_iter().find(|architecture| architecture.name() == name);
    known.ok_or_else(|| fields.error("model_type", Problem::Unsupported { what: "the architecture", found: name }))
}

/// Reads `rope_parameters` of new files, `rope_theta` and `rope_scaling` of old ones.
fn rope(fields: &Fields<'_>, context: usize) -> Result<Rope, Error> {
    let parameters = fields.inside("rope_parameters", "rope_parameters.")?;
    let scaling = match parameters {
        Some(parameters) => Some(parameters),
        None => fields.inside("rope_scaling", "rope_scaling.")?,
    };
    for outer in [Some(fields), scaling.as_ref()].into_iter().flatten() {
        let rotated = outer.positive("partial_rotary_factor", Some(1.0))?;
        if rotated != 1.0 {
            let problem = Problem::Unsupported { what: "a part of", found: rotated.to_string() };
            return Err(outer.error("partial_rotary_factor", problem));
        }
    }
    let theta = fields.positive("rope_theta", Some(10_000.0))?;
    let Some(scaling) = scaling else {
        return Ok(Rope { theta, scaling: RopeScaling::None, pairs: RopePairs::Halves });
    };
    let theta = scaling.positive("rope_theta", Some(theta))?;
    let kind = match scaling.text("rope_type")? {
        Some(kind) => kind,
        None => scaling.text("type")?.unwrap_or("default"),
    };
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: scaling.positive("factor", None)? },
        "llama3" => {
            let low_freq_factor = scaling.positive("low_freq_factor", None)?;
            let high_freq_factor = scaling.positive("high_freq_factor", None)?;
            if high_freq_factor <= low_freq_factor {
                let value = high_freq_factor.to_string();
                let problem = Problem::OutOfRange { value, expected: "it must be above `low_freq_factor`" };
                return Err(scaling.error("high_freq_factor", problem));
            }
            let original_context = scaling.positive("original_max_position_embeddings", Some(context as f64))?;
            let factor = scaling.positive("factor", None)?;
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }
        }
        other => {
            let problem = Problem::Unsupported { what: "the scaling", found: other.into() };
            return Err(scaling.error("rope_type", problem));
        }
    };
    Ok(Rope { theta, scaling, pairs: RopePairs::Halves })
}

fn windows(fields: &Fields<'_>, architecture: Architecture, n_layers: usize) -> Result<Windows, Error> {
    match architecture {
        Architecture::Llama => Ok(Windows::None),
        // Files without the field have the window of the first Mistral; files with null have none.
        Architecture::Mistral if !fields.object.contains_key("sliding_window") => Ok(Windows::All(4096)),
        Architecture::Mistral if fields.get("sliding_window").is_none() => Ok(Windows::None),
        Architecture::Mistral => fields.size("sliding_window").map(Windows::All),
        Architecture::Qwen2 => {
            let is_null = fields.object.get("sliding_window").is_some_and(Value::is_null);
            if !fields.flag("use_sliding_window", false)? || is_null {
                return Ok(Windows::None);
            }
            let window = fields.size_or("sliding_window", Some(4096))?;
            if let Some(listed) = fields.get("layer_types") {
                return listed_windows(fields, listed, n_layers, window);
            }
            // A count of layers without a window, which may be none at all.
            let layer = match fields.get("max_window_layers") {
                None => 28,
                Some(value) => {
                    value.as_u64().ok_or_else(|| fields.unexpected("max_window_layers", "a whole number", value))?
                }
            };
            Ok(Windows::From { layer: usize::try_from(layer).unwrap_or(usize::MAX), window })
        }
    }
}

fn listed_windows(fields: &Fields<'_>, listed: &Value, n_layers: usize, window: usize) -> Result<Windows, Error> {
    let kinds = listed.as_array().filter(|kinds| kinds.len() == n_layers);
    let has_window = kinds.and_then(|kinds| {
        let has = |kind: &Value| match kind.as_str() {
            Some("sliding_attention") => Some(true),
            Some("full_attention") => Some(false),
            _ => None,
        };
        kinds.iter().map(has).collect::<Option<Vec<bool>>>()
    });
    let expected = format!("`full_attention` or `sliding_attention` for each of {n_layers} layers");
    let has_window = has_window.ok_or_else(|| fields.unexpected("layer_types", &expected, listed))?;
    Ok(Windows::Listed { has_window, window })
}

/// Returns the first token and the last ones; `generation_config.json` overrides `config.json`.
fn ends(folder: &Path, fields: &Fields<'_>, vocabulary: usize) -> Result<(Option<u32>, Vec<u32>), Error> {
    let both = |fields: &Fields<'_>| -> Result<_, Error> {
        Ok((fields.ids("bos_token_id", vocabulary)?, fields.ids("eos_token_id", vocabulary)?))
    };
    let (mut bos, mut eos) = both(fields)?;
    let path = folder.join("generation_config.json");
    if path.exists() {
        let object = json::read_object(&path)?;
        let generation = Fields { path: &path, prefix: "", object: &object };
        let (bos_there, eos_there) = both(&generation)?;
        bos = if bos_there.is_empty() { bos } else { bos_there };
        eos = if eos_there.is_empty() { eos } else { eos_there };
    }
    Ok((bos.first().copied(), eos))
}
