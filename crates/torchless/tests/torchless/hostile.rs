//! Damaged and dishonest files: an error that names file and field, never a panic.
