//! The tests of ns-compute through its public interface, in one binary.

mod against_reference;
mod batch;
mod devices;
mod differentiable;
mod formulas;
mod layers;
mod yield_rules;
