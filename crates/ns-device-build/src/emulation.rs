//! Compiles a crate's kernels for emulation on the host, from its build script.
//!
//! A client has one C++ file that includes the runtime, the dialect and its kernels, and exports
//! each kernel:
//!
//! ```cpp
//! #include "runtime.h"
//! namespace KERNELS {
//! #include "dialect.h"
//! #include "fit.h"
//! EXPORT(fit)
//! }
//! ```
//!
//! Its build script compiles it once per precision, which makes `fit_f64` and `fit_f32`:
//!
//! ```no_run
//! #[cfg(feature = "emulated")]
//! ns_device_build::Emulation::new("kernels/emulated.cpp").compile("my_kernels");
//! ```
//!
//! In Rust they are `unsafe extern "C" fn(*const Launch, *const *mut c_void)`, listed in the
//! crate's `KernelModule`. The runtime that they call comes with `ns-device`, feature `emulated`.
//!
//! `NEXTSTAT_KERNEL_FLAGS` holds more flags for the compiler, separated by spaces.

use std::path::{Path, PathBuf};

/// A C++ file of kernels, to be compiled for the host in double and in single precision.
#[derive(Debug, Clone)]
pub struct Emulation {
    source: PathBuf,
    flags: Vec<String>,
}

impl Emulation {
    /// Describes the file `source`, relative to the crate that is being built. Every header in its
    /// folder counts as a part of it.
    pub fn new(source: impl Into<PathBuf>) -> Emulation {
        Emulation { source: source.into(), flags: Vec::new() }
    }

    /// Adds a flag for the compiler.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Emulation {
        self.flags.push(flag.into());
        self
    }

    /// Compiles into static libraries `name_f64` and `name_f32` and tells Cargo to link them.
    pub fn compile(&self, name: &str) {
        let folder = self.source.parent().unwrap_or_else(|| Path::new("."));
        watch(folder);
        watch(&ns_device().join("kernels"));
        watch(&ns_device().join("emulation"));
        for (real, precision) in [("double", "f64"), ("float", "f32")] {
            let mut build = compiler();
            build.define("REAL", real).define("PRECISION", precision).include(folder).file(&self.source);
            for flag in &self.flags {
                build.flag(flag);
            }
            build.compile(&format!("{name}_{precision}"));
        }
    }
}

/// Compiles the runtime itself; for `ns-device` alone.
pub fn compile_runtime() {
    let folder = ns_device().join("emulation");
    watch(&folder);
    compiler().file(folder.join("runtime.cpp")).compile("ns_emulation");
}

/// Returns the compiler of kernels for the host: C++17, optimised, without contraction of products
/// and sums.
fn compiler() -> cc::Build {
    println!("cargo::rerun-if-env-changed=NEXTSTAT_KERNEL_FLAGS");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).debug(true).flag("-ffp-contract=off").flag("-pthread");
    build.flag_if_supported("-Wno-unused-function").flag_if_supported("-Wno-unused-parameter");
    build.include(ns_device().join("kernels")).include(ns_device().join("emulation"));
    for flag in std::env::var("NEXTSTAT_KERNEL_FLAGS").unwrap_or_default().split_whitespace() {
        build.flag(flag);
    }
    build
}

fn ns_device() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ns-device")
}

fn watch(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
}
