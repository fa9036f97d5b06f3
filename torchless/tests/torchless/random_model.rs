//! Small random models: written as files of every kind, and computed by a plain forward pass in
//! double precision.
//!
//! The reference implementation is written from the formulas and uses nothing of the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// How numbers are stored.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stored {
    F32,
    F16,
    Bf16,
    /// Matrices of whole blocks; all numbers are multiples of 1/256.
    Q8_0,
}

/// A model to make.
#[derive(Clone)]
pub(crate) struct RandomModel {
    pub(crate) family: &'static str,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) intermediate: usize,
    pub(crate) vocabulary: usize,
    pub(crate) layers: usize,
    pub(crate) theta: f64,
    pub(crate) epsilon: f64,
    /// factor, low, high, original context
    pub(crate) llama3: Option<[f64; 4]>,
    pub(crate) linear: Option<f64>,
    /// Window of each layer.
    pub(crate) windows: Vec<Option<usize>>,
    pub(crate) tied: bool,
    pub(crate) biased: bool,
    pub(crate) stored: Stored,
    pub(crate) weights: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl RandomModel {
    pub(crate) fn new(family: &'static str) -> RandomModel {
        RandomModel {
            family,
            hidden: 48,
            heads: 6,
            kv_heads: 2,
            head_dim: 12,
            intermediate: 80,
            vocabulary: 70,
            layers: 3,
            theta: 500.0,
            epsilon: 1e-3,
            llama3: None,
            linear: None,
            windows: vec![None; 3],
            tied: false,
            biased: family == "qwen2",
            stored: Stored::F32,
            weights: BTreeMap::new(),
        }
    }

    /// Draws the weights.
    pub(crate) fn drawn(mut self) -> RandomModel {
        let mut state = 88_172_645_463_325_252_u64;
        let stored = self.stored;
        let mut weights = BTreeMap::new();
        let mut put = |name: String, shape: Vec<usize>, middle: f64, width: f64| {
            let mut values = Vec::new();
            for _ in 0..shape.iter().product() {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
                values.push(rounded((middle + width * (2.0 * uniform - 1.0)) as f32, stored));
            }
            weights.insert(name, (shape, values));
        };
        let (h, q, kv) = (self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        put("model.embed_tokens.weight".into(), vec![self.vocabulary, h], 0.0, 0.3);
        put("model.norm.weight".into(), vec![h], 1.0, 0.3);
        if !self.tied {
            put("lm_head.weight".into(), vec![self.vocabulary, h], 0.0, 0.5);
        }
        for layer in 0..self.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            put(name("input_layernorm.weight"), vec![h], 1.0, 0.4);
            put(name("post_attention_layernorm.weight"), vec![h], 1.0, 0.4);
            for (part, rows, columns) in [("q", q, h), ("k", kv, h), ("v", kv, h), ("o", h, q)] {
                put(name(&format!("self_attn.{part}_proj.weight")), vec![rows, columns], 0.0, 0.4);
                if self.biased && part != "o" {
                    put(name(&format!("self_attn.{part}_proj.bias")), vec![rows], 0.0, 0.5);
                }
            }
            let m = self.intermediate;
            for (part, rows, columns) in [("gate", m, h), ("up", m, h), ("down", h, m)] {
                put(name(&format!("mlp.{part}_proj.weight")), vec![rows, columns], 0.0, 0.3);
            }
        }
        self.weights = weights;
        self
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.weights.get(name).unwrap_or_else(|| panic!("{name}")).1
    }

    fn frequencies(&self) -> Vec<f64> {
        let plain = (0..self.head_dim / 2).map(|pair| self.theta.powf(-((2 * pair) as f64) / self.head_dim as f64));
        plain
            .map(|frequency| frequency / self.linear.unwrap_or(1.0))
            .map(|frequency| {
                let Some([factor, low, high, context]) = self.llama3 else { return frequency };
                let wavelength = 2.0 * std::f64::consts::PI / frequency;
                if wavelength < context / high {
                    frequency
                } else if wavelength > context / low {
                    frequency / factor
                } else {
                    let smooth = (context / wavelength - low) / (high - low);
                    (1.0 - smooth) * frequency / factor + smooth * frequency
                }
            })
            .collect()
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let weights = self.get(&format!("{name}.weight"));
        let bias = self.weights.get(&format!("{name}.bias"));
        let rows = weights.chunks(x.len()).enumerate();
        rows.map(|(row, weights)| {
            let sum: f64 = weights.iter().zip(x).map(|(weight, x)| f64::from(*weight) * x).sum();
            sum + bias.map_or(0.0, |(_, bias)| f64::from(bias[row]))
        })
        .collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let weights = self.get(name).iter();
        x.iter().zip(weights).map(|(x, weight)| x / (mean + self.epsilon).sqrt() * f64::from(*weight)).collect()
    }

    /// All rows of logits.
    pub(crate) fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let frequencies = self.frequencies();
        let embedding = self.get("model.embed_tokens.weight");
        let mut stream: Vec<Vec<f64>> = tokens
            .iter()
            .map(|&token| {
                embedding[token as usize * self.hidden..][..self.hidden].iter().map(|x| f64::from(*x)).collect()
            })
            .collect();
        for layer in 0..self.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            let normed: Vec<Vec<f64>> = stream.iter().map(|x| self.norm(&name("input_layernorm.weight"), x)).collect();
            let project = |part: &str| -> Vec<Vec<f64>> {
                normed.iter().map(|x| self.linear(&name(&format!("self_attn.{part}_proj")), x)).collect()
            };
            let turned = |mut rows: Vec<Vec<f64>>| {
                for (position, row) in rows.iter_mut().enumerate() {
                    for head in row.chunks_mut(self.head_dim) {
                        for (pair, frequency) in frequencies.iter().enumerate() {
                            let (sine, cosine) = (position as f64 * frequency).sin_cos();
                            let (a, b) = (head[pair], head[pair + self.head_dim / 2]);
                            head[pair] = a * cosine - b * sine;
                            head[pair + self.head_dim / 2] = b * cosine + a * sine;
                        }
                    }
                }
                rows
            };
            let (queries, keys, values) = (turned(project("q")), turned(project("k")), project("v"));
            for (i, x) in stream.iter_mut().enumerate() {
                let mut attended = Vec::new();
                for head in 0..self.heads {
                    let at = |head: usize| head * self.head_dim..(head + 1) * self.head_dim;
                    let kv_head = head * self.kv_heads / self.heads;
                    let seen: Vec<usize> =
                        (0..=i).filter(|j| self.windows[layer].is_none_or(|window| i - j < window)).collect();
                    let dot = |j: usize| -> f64 {
                        queries[i][at(head)].iter().zip(&keys[j][at(kv_head)]).map(|(q, k)| q * k).sum()
                    };
                    let weights: Vec<f64> =
                        seen.iter().map(|&j| (dot(j) / (self.head_dim as f64).sqrt()).exp()).collect();
                    let sum: f64 = weights.iter().sum();
                    for index in at(kv_head) {
                        let total: f64 = seen.iter().zip(&weights).map(|(&j, weight)| weight * values[j][index]).sum();
                        attended.push(total / sum);
                    }
                }
                let change = self.linear(&name("self_attn.o_proj"), &attended);
                x.iter_mut().zip(change).for_each(|(x, change)| *x += change);
            }
            for x in &mut stream {
                let normed = self.norm(&name("post_attention_layernorm.weight"), x);
                let (gate, up) =
                    (self.linear(&name("mlp.gate_proj"), &normed), self.linear(&name("mlp.up_proj"), &normed));
                let product: Vec<f64> =
                    gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
                let change = self.linear(&name("mlp.down_proj"), &product);
                x.iter_mut().zip(change).for_each(|(x, change)| *x += change);
            }
        }
        let head = if self.tied { "model.embed_tokens" } else { "lm_head" };
        let rows = stream.iter().flat_map(|x| self.linear(head, &self.norm("model.norm.weight", x)));
        rows.map(|logit| logit as f32).collect()
    }

    /// `config.json`, as transformers 5 writes it or as older ones did.
    pub(crate) fn config(&self, is_new: bool) -> Value {
        let mut config = json!({
            "model_type": self.family, "hidden_act": "silu", "hidden_size": self.hidden, "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "intermediate_size": self.intermediate, "vocab_size": self.vocabulary, "max_position_embeddings": 64,
            "rms_norm_eps": self.epsilon, "tie_word_embeddings": self.tied, "bos_token_id": 1, "eos_token_id": [2, 3],
        });
        let mut scaling = json!({ "rope_type": "default" });
        if let Some([factor, low, high, context]) = self.llama3 {
            scaling = json!({ "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                "original_max_position_embeddings": context });
        }
        if let Some(factor) = self.linear {
            scaling = json!({ if is_new { "rope_type" } else { "type" }: "linear", "factor": factor });
        }
        if is_new {
            scaling["rope_theta"] = json!(self.theta);
            config["rope_parameters"] = scaling;
        } else {
            config["rope_theta"] = json!(self.theta);
            let is_plain = self.llama3.is_none() && self.linear.is_none();
            config["rope_scaling"] = if is_plain { Value::Null } else { scaling };
        }
        match self.family {
            "mistral" => config["sliding_window"] = json!(self.windows[0]),
            "qwen2" => {
                let window = self.windows.iter().flatten().next();
                config["use_sliding_window"] = json!(window.is_some());
                config["sliding_window"] = json!(window);
                config["max_window_layers"] =
                    json!(self.windows.iter().position(Option::is_some).unwrap_or(self.layers));
            }
            // Llama has no window, even if its file has one.
            _ => config["sliding_window"] = json!(2),
        }
        config
    }

    /// Writes a Hugging Face folder with `n_files` files of weights.
    pub(crate) fn write_folder(&self, name: &str, is_new: bool, n_files: usize) -> PathBuf {
        let folder = fresh_folder(name);
        std::fs::write(folder.join("config.json"), self.config(is_new).to_string()).expect("a writable folder");
        let names: Vec<&String> = self.weights.keys().collect();
        let mut map = serde_json::Map::new();
        for (index, names) in names.chunks(names.len().div_ceil(n_files)).enumerate() {
            let file = match n_files {
                1 => "model.safetensors".to_owned(),
                _ => format!("model-{:05}-of-{n_files:05}.safetensors", index + 1),
            };
            names.iter().for_each(|name| {
                map.insert((*name).clone(), json!(file));
            });
            std::fs::write(folder.join(&file), self.safetensors(names)).expect("a writable folder");
        }
        if n_files > 1 {
            let index = json!({ "metadata": {}, "weight_map": map }).to_string();
            std::fs::write(folder.join("model.safetensors.index.json"), index).expect("a writable folder");
        }
        folder
    }

    pub(crate) fn safetensors(&self, names: &[&String]) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        let mut data = Vec::new();
        for name in names {
            let (shape, values) = &self.weights[*name];
            let first = data.len();
            values.iter().for_each(|value| data.extend(encoded(*value, self.stored)));
            let dtype = match self.stored {
                Stored::F32 => "F32",
                Stored::F16 => "F16",
                Stored::Bf16 => "BF16",
                Stored::Q8_0 => unreachable!("GGUF files only"),
            };
            header.insert(
                (*name).clone(),
                json!({ "dtype": dtype, "shape": shape, "data_offsets": [first, data.len()] }),
            );
        }
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    /// Writes a GGUF file, rows of queries and keys in its architecture's order.
    pub(crate) fn write_gguf(&self, name: &str) -> PathBuf {
        self.write_gguf_with(name, &[])
    }

    /// The same with more keys: text, texts, flags, ids, or numbers of single precision.
    pub(crate) fn write_gguf_with(&self, name: &str, more: &[(&str, Value)]) -> PathBuf {
        let mut keys: Vec<u8> = Vec::new();
        let mut n_keys = 0_u64;
        let mut key = |name: &str, kind: u32, value: &[u8]| {
            text(&mut keys, name);
            keys.extend(kind.to_le_bytes());
            keys.extend(value);
            n_keys += 1;
        };
        let mut family = Vec::new();
        text(&mut family, self.family);
        key("general.architecture", 8, &family);
        let number = |value: usize| (value as u32).to_le_bytes();
        for (suffix, value) in [
            ("embedding_length", self.hidden),
            ("block_count", self.layers),
            ("feed_forward_length", self.intermediate),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", self.head_dim),
            ("rope.dimension_count", self.head_dim),
            ("context_length", 64),
        ] {
            key(&format!("{}.{suffix}", self.family), 4, &number(value));
        }
        key(&format!("{}.rope.freq_base", self.family), 6, &(self.theta as f32).to_le_bytes());
        let epsilon = format!("{}.attention.layer_norm_rms_epsilon", self.family);
        key(&epsilon, 6, &(self.epsilon as f32).to_le_bytes());
        for (name, value) in more {
            let mut bytes = Vec::new();
            match value {
                Value::String(value) => {
                    text(&mut bytes, value);
                    key(name, 8, &bytes);
                }
                Value::Array(texts) => {
                    bytes.extend(8_u32.to_le_bytes());
                    bytes.extend((texts.len() as u64).to_le_bytes());
                    texts.iter().for_each(|value| text(&mut bytes, value.as_str().expect("text")));
                    key(name, 9, &bytes);
                }
                Value::Bool(value) => key(name, 7, &[u8::from(*value)]),
                value if name.ends_with("_id") => key(name, 4, &number(value.as_u64().expect("an id") as usize)),
                value => key(name, 6, &(value.as_f64().expect("a number") as f32).to_le_bytes()),
            }
        }
        let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> =
            self.weights.iter().map(|(name, (shape, values))| self.as_gguf(name, shape, values)).collect();
        if self.llama3.is_some() {
            let plain = RandomModel { llama3: None, ..self.clone() }.frequencies();
            let factors = plain.iter().zip(self.frequencies()).map(|(plain, scaled)| (plain / scaled) as f32).collect();
            tensors.push(("rope_freqs.weight".into(), vec![self.head_dim / 2], factors));
        }
        let mut infos = Vec::new();
        let mut data = Vec::new();
        for (name, shape, values) in &tensors {
            text(&mut infos, name);
            infos.extend((shape.len() as u32).to_le_bytes());
            shape.iter().rev().for_each(|&size| infos.extend((size as u64).to_le_bytes()));
            let (kind, stored) = match self.stored {
                _ if shape.len() == 1 => (0_u32, Stored::F32),
                Stored::F32 => (0, Stored::F32),
                Stored::F16 => (1, Stored::F16),
                Stored::Bf16 => (30, Stored::Bf16),
                Stored::Q8_0 => (8, Stored::Q8_0),
            };
            infos.extend(kind.to_le_bytes());
            infos.extend((data.len() as u64).to_le_bytes());
            match stored {
                Stored::Q8_0 => values.as_chunks::<32>().0.iter().for_each(|block| data.extend(encoded_block(block))),
                _ => values.iter().for_each(|value| data.extend(encoded(*value, stored))),
            }
            data.resize(data.len().next_multiple_of(32), 0);
        }
        let counts = [tensors.len() as u64, n_keys];
        let mut file =
            [&b"GGUF"[..], &3_u32.to_le_bytes(), &counts[0].to_le_bytes(), &counts[1].to_le_bytes()].concat();
        file.extend(keys);
        file.extend(infos);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        let path = fresh_folder(name).join("model.gguf");
        std::fs::write(&path, file).expect("a writable folder");
        path
    }

    fn as_gguf(&self, name: &str, shape: &[usize], values: &[f32]) -> (String, Vec<usize>, Vec<f32>) {
        let mut values = values.to_vec();
        let is_turned = name.contains("q_proj") || name.contains("k_proj");
        if is_turned && self.family == "llama" {
            let width = values.len() / shape[0];
            let half = self.head_dim / 2;
            let rows: Vec<Vec<f32>> = values.chunks(width).map(<[f32]>::to_vec).collect();
            let from = |row: usize| {
                let (head, inside) = (row / self.head_dim, row % self.head_dim);
                head * self.head_dim + inside / 2 + half * (inside % 2)
            };
            values = (0..rows.len()).flat_map(|row| rows[from(row)].clone()).collect();
        }
        let name = name.replace("model.layers.", "blk.").replace("model.embed_tokens", "token_embd");
        let name = name.replace("model.norm", "output_norm").replace("lm_head", "output");
        let name =
            name.replace("self_attn.o_proj", "attn_output").replace("self_attn.", "attn_").replace("mlp.", "ffn_");
        let name = name.replace("input_layernorm", "attn_norm").replace("post_attention_layernorm", "ffn_norm");
        (name.replace("_proj", ""), shape.to_vec(), values)
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The nearest number below in size that the type has.
fn rounded(value: f32, stored: Stored) -> f32 {
    match stored {
        Stored::F32 => value,
        Stored::F16 if value.abs() < 1e-4 => 0.0,
        Stored::F16 => f32::from_bits(value.to_bits() & 0xffff_e000),
        Stored::Bf16 => f32::from_bits(value.to_bits() & 0xffff_0000),
        Stored::Q8_0 => (value * 256.0).round().clamp(-127.0, 127.0) / 256.0,
    }
}

/// The bytes of a number that [`rounded`] made.
fn encoded(value: f32, stored: Stored) -> Vec<u8> {
    let bits = value.to_bits();
    match stored {
        Stored::F32 => bits.to_le_bytes().to_vec(),
        Stored::Q8_0 => unreachable!("not one by one"),
        Stored::Bf16 => ((bits >> 16) as u16).to_le_bytes().to_vec(),
        Stored::F16 => {
            let exponent = (bits >> 23 & 255) as i32 - 112;
            let magnitude = if exponent <= 0 { 0 } else { (exponent as u32) << 10 | bits >> 13 & 1023 };
            ((bits >> 16 & 0x8000 | magnitude) as u16).to_le_bytes().to_vec()
        }
    }
}

/// 32 multiples of 1/256, behind that number in half precision.
fn encoded_block(values: &[f32; 32]) -> Vec<u8> {
    let numbers = values.iter().map(|value| (value * 256.0) as i8 as u8);
    [0x00, 0x1c].into_iter().chain(numbers).collect()
}

/// A folder of this test's own, empty.
pub(crate) fn fresh_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}
