//! Encoders: models that other programs made, and what they compute for them.

mod checkpoints;
mod histograms;
mod hostile;
mod models;
mod node_tests;
mod npz;
mod ragged;
