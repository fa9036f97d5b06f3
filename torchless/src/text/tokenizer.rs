//! Text and token ids: the tokenizer of a folder or a GGUF file, and text that grows token by token
//! without splitting a character.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokenizers::Tokenizer as Inner;

use crate::error::{Error, Problem};
use crate::files::gguf::Keys;
use crate::model::{Model, Source};

/// How words are found before they are merged, in the words of `tokenizers`.
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// How text is treated before its bytes are merged.
#[derive(Default)]
struct Cut {
    normalizer: Value,
    /// What splits it; without a pattern of its own GPT-2's follows.
    split: Option<Value>,
    has_pattern: bool,
    /// Whether a word that is a token stays whole, whatever the merges would do.
    ignores_merges: bool,
    /// Whether texts begin with the BOS token if the file does not specify it.
    adds_bos: bool,
}

impl Cut {
    /// Returns how text is cut, by the name that GGUF files have for it (`tokenizer.ggml.pre`), as
    /// the models' own tokenizers do it.
    fn named(pre: &str) -> Option<Cut> {
        let pattern = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        let with = |text: &str| Cut { split: Some(pattern(text)), has_pattern: true, ..Cut::default() };
        Some(match pre {
            "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2" => {
                Cut { ignores_merges: true, adds_bos: true, ..with(LLAMA_3) }
            }
            "tekken" => Cut { ignores_merges: true, adds_bos: true, ..with(TEKKEN) },
            "qwen2" => Cut { normalizer: json!({ "type": "NFC" }), ..with(QWEN_2) },
            "deepseek-r1-qwen" => with(QWEN_2),
            "smollm" => Cut { split: Some(json!({ "type": "Digits", "individual_digits": true })), ..Cut::default() },
            "gpt-2" | "default" => Cut::default(),
            _ => return None,
        })
    }
}

/// Turns text into token ids and back.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Inner,
    path: PathBuf,
}

impl Tokenizer {
    /// Opens the tokenizer that comes with `model`.
    pub fn of(model: &Model) -> Result<Tokenizer, Error> {
        match &model.source {
            Source::Folder(folder) => {
                let path = folder.join("tokenizer.json");
                if !path.exists() {
                    return Err(Error::NoTokenizer { path });
                }
                let text = crate::files::read_text(&path)?;
                crate::files::json::refuse_duplicate_keys(&text)
                    .map_err(|problem| Error::malformed(&path, "the tokenizer", problem))?;
                Self::parse(&path, &text)
            }
            Source::Gguf(keys) => Self::parse(keys.path(), &of_gguf(keys)?.to_string()),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Tokenizer, Error> {
        let problem = |error: tokenizers::Error| {
            Error::malformed(path, "the tokenizer", Problem::Json { message: error.to_string() })
        };
        let mut inner: Inner = text.parse().map_err(problem)?;
        // Files keep how batches were cut and filled in training; a prompt is neither.
        inner.with_padding(None).with_truncation(None).map_err(problem)?;
        Ok(Tokenizer { inner, path: path.to_owned() })
    }

    fn error(&self, error: &tokenizers::Error) -> Error {
        Error::Tokenizer { path: self.path.clone(), message: error.to_string() }
    }

    /// Returns the ids of `text`, with what the tokenizer puts before and after it if
    /// `with_special`.
    pub fn encode(&self, text: &str, with_special: bool) -> Result<Vec<u32>, Error> {
        let encoding = self.inner.encode_fast(text, with_special).map_err(|error| self.error(&error))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the text of `ids`, special tokens written out or left out.
    pub fn decode(&self, ids: &[u32], with_special: bool) -> Result<String, Error> {
        self.inner.decode(ids, !with_special).map_err(|error| self.error(&error))
    }

    /// Returns the text of a token in the vocabulary.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Returns the id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

/// Makes the `tokenizer.json` that a GGUF file's keys describe.
fn of_gguf(keys: &Keys) -> Result<Value, Error> {
    let kind = keys.text("tokenizer.ggml.model")?;
    let kind = kind.ok_or_else(|| Error::NoTokenizer { path: keys.path().to_owned() })?;
    let tokens = keys.texts("tokenizer.ggml.tokens")?.ok_or_else(|| keys.missing_key("tokenizer.ggml.tokens"))?;
    let types = keys.numbers("tokenizer.ggml.token_type")?.unwrap_or_default();
    let unsupported = |field: &str, what, found: &str| {
        Error::malformed(keys.path(), format!("`{field}`"), Problem::Unsupported { what, found: found.into() })
    };
    let mut document = match kind {
        "gpt2" => byte_level(keys, &tokens, unsupported)?,
        "llama" => sentence_piece(keys, &tokens, &types)?,
        other => return Err(unsupported("tokenizer.ggml.model", "the tokenizer", other)),
    };
    // 3: control; 4: user-defined.
    let added = tokens.iter().enumerate().zip(&types).filter(|(_, kind)| matches!(**kind, 3.0 | 4.0));
    let added = added.map(|((id, content), kind)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": *kind == 3.0 })
    });
    document["added_tokens"] = added.collect();
    document["version"] = "1.0".into();
    let pre = keys.text("tokenizer.ggml.pre")?.unwrap_or("default");
    // As llama.cpp does if the file does not specify it.
    let is_usual = kind == "llama" || Cut::named(pre).is_some_and(|cut| cut.adds_bos);
    let end = |id: &str, adds: bool| -> Result<Option<(u32, &str)>, Error> {
        let id = keys.token(id)?.filter(|_| adds);
        Ok(id.and_then(|id| Some((id, *tokens.get(id as usize)?))))
    };
    let bos = end("tokenizer.ggml.bos_token_id", keys.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(is_usual))?;
    let eos = end("tokenizer.ggml.eos_token_id", keys.flag("tokenizer.ggml.add_eos_token")?.unwrap_or(false))?;
    if bos.is_some() || eos.is_some() {
        let special = |(_, token): (u32, &str)| json!({ "SpecialToken": { "id": token, "type_id": 0 } });
        let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
        let single: Vec<Value> = bos.map(special).into_iter().chain([text]).chain(eos.map(special)).collect();
        let ends = bos.into_iter().chain(eos);
        let ends = ends.map(|(id, token)| (token.to_owned(), json!({ "id": token, "ids": [id], "tokens": [token] })));
        document["post_processor"] = json!({
            "type": "TemplateProcessing",
            "single": single,
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": ends.collect::<Value>()
        });
    }
    Ok(document)
}

fn vocabulary(tokens: &[&str]) -> Value {
    tokens.iter().enumerate().map(|(id, token)| ((*token).to_owned(), Value::from(id))).collect()
}

/// Makes a tokenizer of byte-level pairs, as GPT-2 has them.
fn byte_level(
    keys: &Keys,
    tokens: &[&str],
    unsupported: impl Fn(&str, &'static str, &str) -> Error,
) -> Result<Value, Error> {
    let merges = keys.texts("tokenizer.ggml.merges")?.ok_or_else(|| keys.missing_key("tokenizer.ggml.merges"))?;
    let pre = keys.text("tokenizer.ggml.pre")?.unwrap_or("default");
    let cut = Cut::named(pre).ok_or_else(|| unsupported("tokenizer.ggml.pre", "the way to split text", pre))?;
    let bytes =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": !cut.has_pattern });
    let pretokenizers: Vec<Value> = cut.split.into_iter().chain([bytes.clone()]).collect();
    Ok(json!({
        "normalizer": cut.normalizer,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": pretokenizers },
        "decoder": bytes,
        "model": { "type": "BPE", "vocab": vocabulary(tokens), "merges": merges, "ignore_merges": cut.ignores_merges }
    }))
}

/// Makes SentencePiece's pairs with bytes for what is unknown: the merges follow from the scores.
fn sentence_piece(keys: &Keys, tokens: &[&str], types: &[f64]) -> Result<Value, Error> {
    let scores = keys.numbers("tokenizer.ggml.scores")?.ok_or_else(|| keys.missing_key("tokenizer.ggml.scores"))?;
    let ids: std::collections::HashMap<&str, usize> =
        tokens.iter().enumerate().map(|(id, token)| (*token, id)).collect();
    let mut merges: Vec<(f64, usize, usize)> = Vec::new();
    for (id, token) in tokens.iter().enumerate() {
        // 1: normal.
        if types.get(id).is_some_and(|kind| *kind != 1.0) {
            continue;
        }
        for (at, _) in token.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..at]), ids.get(&token[at..])) {
                merges.push((scores.get(id).copied().unwrap_or(0.0), left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let merges: Vec<[&str; 2]> = merges.into_iter().map(|(_, left, right)| [tokens[left], tokens[right]]).collect();
    let unknown = types.iter().position(|kind| *kind == 2.0).and_then(|id| tokens.get(id));
    let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    let adds_space = keys.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let prepend = adds_space.then(|| json!({ "type": "Prepend", "prepend": "▁" }));
    let normalizers: Vec<Value> = prepend.into_iter().chain([replace]).collect();
    let strip = adds_space.then(|| json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    let decoders: Vec<Value> = [
        json!({ "type": "Replace", "pattern": { "String": "▁" }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ]
    .into_iter()
    .chain(strip)
    .collect();
    Ok(json!({
        "normalizer": { "type": "Sequence", "normalizers": normalizers },
        "decoder": { "type": "Sequence", "decoders": decoders },
        "model": { "type": "BPE", "vocab": vocabulary(tokens), "merges": merges, "unk_token": unknown,
            "fuse_unk": true, "byte_fallback": true }
    }))
}

/// Text that grows token by token. A character that is spread over tokens is returned when it is
/// whole.
#[derive(Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    ids: Vec<u32>,
    /// Ids before this are context only: some tokenizers write a token differently at the beginning
    /// of a text.
    first: usize,
    /// Ids before this have been written.
    written: usize,
    /// Text that could become a stop string.
    pending: String,
    stops: Vec<String>,
    is_stopped: bool,
}

impl<'a> TextStream<'a> {
    /// Returns an empty text that ends before any of `stops`.
    pub fn new(tokenizer: &'a Tokenizer, stops: &[String]) -> TextStream<'a> {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        TextStream {
            tokenizer,
            ids: Vec::new(),
            first: 0,
            written: 0,
            pending: String::new(),
            stops,
            is_stopped: false,
        }
    }

    /// Returns whether a stop string was found; no more text follows.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Adds `id`, and returns the text that is certain now.
    pub fn push(&mut self, id: u32) -> Result<String, Error> {
        self.ids.push(id);
        let fresh = self.fresh(false)?;
        Ok(self.release(&fresh, false))
    }

    /// Returns the rest of the text. Bytes that do not form a character become U+FFFD.
    pub fn finish(&mut self) -> Result<String, Error> {
        let fresh = self.fresh(true)?;
        Ok(self.release(&fresh, true))
    }

    /// Returns the text of the ids since the last call, if it is whole characters.
    fn fresh(&mut self, is_last: bool) -> Result<String, Error> {
        let before = self.tokenizer.decode(&self.ids[self.first..self.written], false)?;
        let now = self.tokenizer.decode(&self.ids[self.first..], false)?;
        let is_whole = now.len() > before.len() && !now.ends_with('\u{fffd}');
        if !is_whole && !is_last {
            return Ok(String::new());
        }
        self.first = self.written;
        self.written = self.ids.len();
        Ok(now.get(before.len()..).unwrap_or_default().to_owned())
    }

    fn release(&mut self, fresh: &str, is_last: bool) -> String {
        if self.is_stopped {
            return String::new();
        }
        self.pending.push_str(fresh);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.pending.find(stop.as_str())).min() {
            self.is_stopped = true;
            self.pending.truncate(at);
            return std::mem::take(&mut self.pending);
        }
        let could_be_stop = |at: usize| self.stops.iter().any(|stop| stop.starts_with(&self.pending[at..]));
        let boundaries = self.pending.char_indices().map(|(at, _)| at);
        let keep_from = match is_last {
            true => self.pending.len(),
            false => boundaries.into_iter().find(|&at| could_be_stop(at)).unwrap_or(self.pending.len()),
        };
        let kept = self.pending.split_off(keep_from);
        std::mem::replace(&mut self.pending, kept)
    }
}
