//! The tests of ns-core through its public interface, in one binary.

mod nonlinearity;
mod sensitivity;
mod templates;
