//! The tests of ns-core through its public interface, in one binary.

mod formulas;
mod nonlinearity;
mod sensitivity;
mod templates;
