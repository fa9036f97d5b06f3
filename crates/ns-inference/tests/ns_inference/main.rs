//! Tests of every procedure: against independent implementations, exhaustive searches, published
//! numbers, and against each other.

mod accelerators;
mod common;
mod constraint_terms;
mod coverage;
mod data_sets;
mod differentiable;
mod fits;
mod formulas;
mod goodness;
mod hypothesis_tests;
mod interpolation_rules;
mod joint_models;
mod layers;
mod minima;
mod rankings;
mod scans;
mod toy_coverage;
mod toy_importance;
mod toy_intervals;
mod toy_limits;
mod toys;
mod yield_rules;
mod yields;
