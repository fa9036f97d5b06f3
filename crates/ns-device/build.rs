//! Compiles the emulation runtime and the self-test's kernels, where the feature `emulated` asks
//! for them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "emulated")]
    {
        // The kernels first: a linker that reads libraries in order then finds what they call.
        ns_device_build::Emulation::new("kernels/emulated.cpp").compile("ns_device_kernels");
        ns_device_build::compile_runtime();
    }
}
