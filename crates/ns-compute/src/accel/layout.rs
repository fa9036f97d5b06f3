//! The constants of kernel launches: sizes, rules, and the place of each table and of each piece of
//! working memory.
//!
//! `layout_fields.rs` has the only list; the build script makes the C++ text of it,
//! `kernels/layout.h`.

/// Declares a struct of `u32` fields for host and kernels alike.
macro_rules! constants {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $field:ident,)* }) => {
        $(#[doc = $about])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(crate) struct $name {
            $($(#[doc = $doc])* pub(crate) $field: u32,)*
        }

        impl $name {
            /// Returns the fields with their names.
            #[cfg(test)]
            pub(crate) fn fields_mut(&mut self) -> Vec<(&'static str, &mut u32)> {
                vec![$((stringify!($field), &mut self.$field)),*]
            }

            /// Returns the fields in order, as a launch hands them over.
            pub(crate) fn words(&self) -> Vec<u32> {
                vec![$(self.$field),*]
            }
        }
    };
}

/// Declares numbers that mean the same to host and kernels.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident = $value:expr,)*) => {
        $($(#[doc = $doc])* pub(crate) const $name: u32 = $value;)*
        /// Some of them are used by kernels only.
        const _: &[u32] = &[$($name),*];
    };
}

include!("layout_fields.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_see_the_same_structs() {
        let committed = include_str!("../../kernels/layout.h");
        assert_eq!(committed, include_str!(concat!(env!("OUT_DIR"), "/likelihood_layout.h")));
        let n_fields = Layout::default().fields_mut().len() + Task::default().fields_mut().len();
        assert_eq!(committed.matches("    uint ").count(), n_fields);
        assert!(size_of::<Layout>() <= 4096, "kernels take no larger struct");
    }
}
