//! The constants that kernels are launched with.
//!
//! `layout_fields.rs` has the only list; the build script makes the C++ text of it,
//! `kernels/layout.h`. The encoders' kernels have a list of their own, and use these macros, too.

/// The type of a field for the host.
macro_rules! field {
    (uint) => {
        u32
    };
    (real) => {
        f32
    };
}

/// The bits of a field; `real` is single precision on every device here.
macro_rules! bits {
    (uint, $value:expr) => {
        $value
    };
    (real, $value:expr) => {
        $value.to_bits()
    };
}

/// Declares a struct of numbers for host and kernels alike.
macro_rules! constants {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $field:ident: $type:ident,)* }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub(super) struct $name {
            $($(#[doc = $doc])* pub(super) $field: $crate::device::layout::field!($type),)*
        }

        impl $name {
            const N_FIELDS: usize = [$(stringify!($field)),*].len();

            /// Returns the fields in order, as a launch hands them over.
            pub(super) fn words(&self) -> [u32; Self::N_FIELDS] {
                [$($crate::device::layout::bits!($type, self.$field)),*]
            }
        }
    };
}

/// Declares numbers that mean the same to host and kernels.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident = $value:expr,)*) => {
        $($(#[doc = $doc])* pub(super) const $name: u32 = $value;)*
    };
}

pub(crate) use {bits, constants, field, numbers};

include!("layout_fields.rs");

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernels_see_the_same_structs() {
        let committed = include_str!("../../kernels/layout.h");
        assert_eq!(committed, include_str!(concat!(env!("OUT_DIR"), "/transformer_layout.h")));
        assert_eq!(committed.matches("\nSTRUCT(").count(), 7);
    }
}
