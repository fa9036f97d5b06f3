//! Puts the kernels' text together, holds their layout against the fields in Rust, and compiles them for emulation on the host, where the feature
//! `emulated` asks for that.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Makes the C++ text of a struct.
macro_rules! constants {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $field:ident: $type:ident,)* }) => {
        fn $name() -> String {
            let mut text = String::new();
            $(text += &format!("//{}\n", $about);)*
            text += concat!("struct ", stringify!($name), " {\n");
            $(text += &format!("    {} {};  //{}\n", stringify!($type), stringify!($field), concat!($($doc),*));)*
            text + "};\n"
        }
    };
}

/// Makes the C++ text of numbers.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident = $value:expr,)*) => {
        fn numbers() -> String {
            let mut text = String::new();
            $(text += &format!("#define {} {}u //{}\n", stringify!($name), $value as u32, concat!($($doc),*));)*
            text
        }
    };
}

#[expect(non_snake_case, reason = "each function is the text of the struct of its name")]
mod fields {
    include!("src/device/layout_fields.rs");

    pub(crate) fn header() -> String {
        let about = "// Generated from src/device/layout_fields.rs by the build script; do not edit.";
        let structs = [
            ProductLayout(),
            EmbeddingLayout(),
            RowLayout(),
            ElementLayout(),
            GateLayout(),
            RopeLayout(),
            AttentionLayout(),
        ];
        format!("{about}\n\n{}\n{}", structs.join("\n"), numbers())
    }
}

fn main() {
    for path in ["build.rs", "kernels", "src/device/layout_fields.rs", DIALECT] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=UPDATE_LAYOUT");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    check_layout(&out);
    write_text(&out);
    #[cfg(feature = "emulated")]
    ns_device_build::Emulation::new("kernels/emulated.cpp").compile("torchless_kernels");
}

const DIALECT: &str = "../ns-device/kernels/dialect.h";

/// Refuses to build with a header that is not that of the fields, or writes it where `UPDATE_LAYOUT` is set.
fn check_layout(out: &Path) {
    let (path, text) = ("kernels/layout.h", fields::header());
    if fs::read_to_string(path).ok().as_ref() != Some(&text) {
        let hint = "hint: `UPDATE_LAYOUT=1 cargo build -p torchless` writes it; then `make ptx`";
        assert!(env::var_os("UPDATE_LAYOUT").is_some(), "{path} is not that of src/device/layout_fields.rs\n{hint}");
        fs::write(path, &text).expect("the header can be written");
    }
    fs::write(out.join("layout.h"), text).expect("OUT_DIR can be written to");
}

/// The dialect and all headers in one text, in the order of `kernels/all.h`, for compilers that take no includes.
fn write_text(out: &Path) {
    let mut text = read(Path::new(DIALECT));
    for line in read(Path::new("kernels/all.h")).lines() {
        if let Some(name) = line.strip_prefix("#include ") {
            text += &read(&Path::new("kernels").join(name.trim_matches('"')));
        }
    }
    fs::write(out.join("transformer.metal"), text).expect("OUT_DIR can be written to");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
