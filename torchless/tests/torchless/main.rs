//! Compares the library and the command with references that other programs made, and with plain
//! reference implementations.

mod command;
mod devices;
mod docs;
mod encoders;
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
mod random_model;
mod reference;
mod rounded;
mod sharing;
mod support;
mod templates;
mod text;
