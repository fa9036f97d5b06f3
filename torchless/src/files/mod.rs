//! What model files contain, read without trust: every length and shape is checked against the
//! file.

pub(crate) mod gguf;
pub(crate) mod hugging_face;
pub(crate) mod json;
mod mapped;
pub(crate) mod npy;
pub(crate) mod safetensors;
mod tensors;

pub(crate) use mapped::{MappedFile, read_text};
pub(crate) use tensors::Tensors;
