//! The limits that files are read within.

/// The most bytes that a histogram may have, packed or unpacked: 16 million bins and their errors.
pub const OBJECT_LIMIT: u64 = 256 << 20;
