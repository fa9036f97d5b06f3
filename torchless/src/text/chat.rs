//! Chat templates: messages in, the text that a model was trained on out. Jinja as Hugging Face
//! renders it.

use std::fmt::Write as _;
use std::path::PathBuf;

use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, Value, context};
use serde::{Deserialize, Serialize};

use super::chat_blocks::without_generation;
use super::chat_limits;
use super::tokenizer::Tokenizer;
use crate::error::{Error, quoted_sentence};
use crate::files::{json, read_text};
use crate::model::{Model, Source};

/// One message of a conversation. Further fields, such as calls of tools, are refused: a template
/// that asks for them would take the wrong branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// The text of the message.
    pub content: String,
}

/// A model's template and the tokens that it writes.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    path: PathBuf,
    template: String,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Reads the template that comes with `model`.
    pub fn of(model: &Model) -> Result<ChatTemplate, Error> {
        match &model.source {
            Source::Folder(folder) => {
                of_folder(folder.join("tokenizer_config.json"), folder.join("chat_template.jinja"))
            }
            Source::Gguf(keys) => {
                let path = keys.path().to_owned();
                let template = keys.text("tokenizer.chat_template")?.map(str::to_owned);
                let template = template.ok_or_else(|| Error::NoChatTemplate { path: path.clone() })?;
                let tokenizer = Tokenizer::of(model)?;
                let token = |id: Option<u32>| id.and_then(|id| tokenizer.token(id)).unwrap_or_default();
                let bos = token(keys.token("tokenizer.ggml.bos_token_id")?);
                let eos = token(keys.token("tokenizer.ggml.eos_token_id")?);
                Ok(ChatTemplate { path, template, bos, eos })
            }
        }
    }

    /// Renders `messages`, ready for the answer if `wants_answer`.
    pub fn render(&self, messages: &[Message], wants_answer: bool) -> Result<String, Error> {
        let mut environment = Environment::new();
        environment.add_function("raise_exception", |message: String| -> Result<Value, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", now);
        environment.add_filter("tojson", |value: Value, named: Kwargs| -> Result<Value, minijinja::Error> {
            let indent: Option<usize> = named.get("indent")?;
            named.assert_all_used()?;
            indent
                .map_or_else(|| python_json(&value), |indent| indented_json(&value, indent.min(64)))
                .map(Value::from_safe_string)
                .map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))
        });
        let rendered = chat_limits::render(
            environment,
            &without_generation(&self.template),
            context! { messages, add_generation_prompt => wants_answer, bos_token => self.bos, eos_token => self.eos,
            // As if the caller gave none.
            tools => (), documents => () },
        );
        let message = |error: minijinja::Error| quoted_sentence(&error.to_string());
        rendered.map_err(|error| Error::ChatTemplate { path: self.path.clone(), message: message(error) })
    }
}

/// Formats the local time as `strftime` does.
fn now(format: &str) -> Result<String, minijinja::Error> {
    let (mut text, time) = (String::new(), chrono::Local::now());
    write!(text, "{}", time.format(format)).map_err(|_| {
        minijinja::Error::new(ErrorKind::InvalidOperation, format!("`{format}` is not a valid time format"))
    })?;
    Ok(text)
}

/// Writes JSON as Python's `json.dumps` indents it.
fn indented_json(value: &Value, indent: usize) -> Result<String, serde_json::Error> {
    let (spaces, mut bytes) = (" ".repeat(indent), Vec::new());
    let formatter = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes JSON as Python's `json.dumps` spaces it.
fn python_json(value: &Value) -> Result<String, serde_json::Error> {
    struct Spaced;
    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + std::io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }
        fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }
        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn of_folder(config_path: PathBuf, template_path: PathBuf) -> Result<ChatTemplate, Error> {
    let config: serde_json::Value = match config_path.exists() {
        true => json::read(&config_path)?,
        false => serde_json::Value::Null,
    };
    // A token is text, or an object that has it as `content`.
    let token = |name: &str| {
        let token = &config[name];
        token.as_str().or(token["content"].as_str()).unwrap_or_default().to_owned()
    };
    let (bos, eos) = (token("bos_token"), token("eos_token"));
    if template_path.exists() {
        return Ok(ChatTemplate { template: read_text(&template_path)?, path: template_path, bos, eos });
    }
    let template = match &config["chat_template"] {
        serde_json::Value::String(template) => Some(template.clone()),
        serde_json::Value::Array(named) => {
            let default = named.iter().find(|entry| entry["name"] == "default");
            default.and_then(|entry| entry["template"].as_str()).map(str::to_owned)
        }
        _ => None,
    };
    match template {
        Some(template) => Ok(ChatTemplate { path: config_path, template, bos, eos }),
        None => Err(Error::NoChatTemplate { path: config_path }),
    }
}
