//! The vocabulary and the mathematics of HistFactory models, for every other crate to stand on.
//!
//! A [`spec::Workspace`] is a model as written; [`compile`](compile::compile) turns it into a [`Model`] of flat arrays, where
//! every check is made and every name becomes an index. No I/O, no threads, no unsafe code.

pub mod spec;
