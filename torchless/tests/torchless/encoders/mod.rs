//! Encoders: models that other programs made, and what they compute for them.

mod checkpoints;
mod devices;
mod gradients;
mod histograms;
mod hostile;
mod models;
mod node_tests;
mod npz;
mod ragged;
mod refusals;
mod sharing;
mod storage;
