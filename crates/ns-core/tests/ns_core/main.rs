//! The tests of ns-core through its public interface, in one binary.

mod formula_models;
mod formulas;
mod nonlinearity;
mod sensitivity;
mod templates;
mod yield_rules;
