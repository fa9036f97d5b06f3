//! What the library and the command do, held against references that were not made here and against plain twins.

mod command;
mod devices;
mod docs;
mod generation_blocks;
mod hostile;
mod hostile_templates;
mod hostile_tensors;
mod kernel_vectors;
mod mistakes;
mod models;
mod modules;
mod original_names;
mod properties;
mod reference;
mod rounded;
mod support;
mod text;
mod twin;
