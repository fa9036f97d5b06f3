//! Puts the kernels' text together, compares their layout with the fields in Rust, and compiles
//! them for emulation on the host, where the feature `emulated` asks for that.

mod fields {
    use ns_device_build::{constants, numbers};

    include!("src/accel/layout_fields.rs");

    pub(crate) fn structs() -> Vec<String> {
        vec![Layout(), Task()]
    }
}

fn main() {
    ns_device_build::KernelText::new("src/accel/layout_fields.rs", &fields::structs(), &fields::numbers())
        .write("likelihood");
    #[cfg(feature = "emulated")]
    ns_device_build::Emulation::new("kernels/emulated.cpp").compile("ns_compute_kernels");
}
