//! The constants that the encoders' kernels are launched with.
//!
//! `layout_fields.rs` has the only list; the build script makes the C++ text of it,
//! `kernels/encoder/layout.h`.

use crate::device::layout::{constants, numbers};

include!("layout_fields.rs");

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernels_see_the_same_structs() {
        let committed = include_str!("../../../kernels/encoder/layout.h");
        assert_eq!(committed, include_str!(concat!(env!("OUT_DIR"), "/encoder_layout.h")));
        assert_eq!(committed.matches("\nSTRUCT(").count(), 13);
    }
}
