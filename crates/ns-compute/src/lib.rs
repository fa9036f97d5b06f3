//! Fast evaluators of a compiled model.
