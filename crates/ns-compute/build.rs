//! Compiles the kernels for emulation on the host, where the feature `emulated` asks for them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "emulated")]
    ns_device_build::Emulation::new("kernels/emulated.cpp").compile("ns_compute_kernels");
}
