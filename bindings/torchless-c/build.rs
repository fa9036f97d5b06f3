//! Looks for a C++ compiler, which tests need.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CXX");
    println!("cargo::rustc-check-cfg=cfg(no_cpp_compiler)");
    let name = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if !Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("cargo::rustc-cfg=no_cpp_compiler");
    }
}
