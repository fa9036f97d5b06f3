//! Concatenates the kernels of a crate, and generates the header of the structs that they are
//! launched with from fields in Rust.
//!
//! The fields are in a Rust file of `constants!` and `numbers!` alone, which the crate includes
//! with its own macros and the build script with these:
//!
//! ```
//! mod fields {
//!     use ns_device_build::{constants, numbers};
//!     constants! {
//!         /// What is scaled.
//!         ScaleLayout {
//!             /// how many there are
//!             n,
//!             /// what they are multiplied with
//!             factor: real,
//!         }
//!     }
//!     numbers! {
//!         /// numbers of a row
//!         WIDTH = 8,
//!     }
//! }
//! assert_eq!(
//!     fields::ScaleLayout(),
//!     "// What is scaled.\nSTRUCT(ScaleLayout) {\n    uint n;  // how many there are\n    real factor;  // what they are multiplied with\n};\n"
//! );
//! assert_eq!(fields::numbers(), "#define WIDTH 8u // numbers of a row\n");
//! ```

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Defines a function that returns the C++ text of a struct; fields without a type are `uint`s.
#[macro_export]
macro_rules! constants {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $field:ident $(: $type:ident)?,)* }) => {
        #[expect(non_snake_case, reason = "the function is the text of the struct of its name")]
        pub(crate) fn $name() -> String {
            let mut text = String::new();
            $(text += &format!("//{}\n", $about);)*
            text += concat!("STRUCT(", stringify!($name), ") {\n");
            $(
                let of_field = concat!($(stringify!($type),)? "");
                let of_field = if of_field.is_empty() { "uint" } else { of_field };
                text += &format!("    {of_field} {};  //{}\n", stringify!($field), concat!($($doc),*));
            )*
            text + "};\n"
        }
    };
}

/// Defines a function `numbers` that returns the C++ text of numbers.
#[macro_export]
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident = $value:expr,)*) => {
        pub(crate) fn numbers() -> String {
            let mut text = String::new();
            $(text += &format!("#define {} {}u //{}\n", stringify!($name), $value as u32, concat!($($doc),*));)*
            text
        }
    };
}

/// The kernels of the crate that is being built: `all.h` in its folder `kernels`, or in another
/// one, with all that it includes.
#[derive(Debug)]
pub struct KernelText {
    folder: &'static Path,
    /// The Rust file of the fields.
    fields: &'static str,
    layout: String,
}

impl KernelText {
    /// Describes the kernels whose header of structs is generated from `fields`.
    pub fn new(fields: &'static str, structs: &[String], numbers: &str) -> KernelText {
        let about = format!("// Generated from {fields} by the build script; do not edit.");
        let layout = format!("{about}\n\n{}\n{numbers}", structs.join("\n"));
        KernelText { folder: Path::new("kernels"), fields, layout }
    }

    /// Takes the kernels of another folder than `kernels`.
    #[must_use]
    pub fn in_folder(self, folder: &'static str) -> KernelText {
        KernelText { folder: Path::new(folder), ..self }
    }

    /// Writes the dialect and all headers as `name.metal`, and the header of structs as
    /// `name_layout.h`, to the folder of the build script.
    ///
    /// # Panics
    ///
    /// If the committed header is outdated and `UPDATE_LAYOUT` is not set; if a file cannot be read
    /// or written.
    pub fn write(&self, name: &str) {
        let dialect = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ns-device/kernels/dialect.h");
        for path in [Path::new("build.rs"), Path::new("kernels"), self.folder, Path::new(self.fields), &dialect] {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        println!("cargo::rerun-if-env-changed=UPDATE_LAYOUT");
        self.check_layout();
        let text = read(&dialect) + &expanded(self.folder, "all.h");
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
        fs::write(out.join(format!("{name}.metal")), text).expect("OUT_DIR can be written to");
        fs::write(out.join(format!("{name}_layout.h")), &self.layout).expect("OUT_DIR can be written to");
    }

    fn check_layout(&self) {
        let (path, fields) = (self.folder.join("layout.h"), self.fields);
        if fs::read_to_string(&path).ok().as_ref() != Some(&self.layout) {
            let package = env::var("CARGO_PKG_NAME").expect("Cargo sets it");
            let hint = format!("hint: `UPDATE_LAYOUT=1 cargo build -p {package}` writes it; then `make ptx`");
            assert!(
                env::var_os("UPDATE_LAYOUT").is_some(),
                "{} is outdated: {fields} has changed\n{hint}",
                path.display()
            );
            fs::write(&path, &self.layout).expect("the header can be written");
        }
    }
}

/// Returns the text of a header with those that it includes in their places. One that is included
/// again, with other macros, is there again.
fn expanded(folder: &Path, header: &str) -> String {
    let mut text = String::new();
    for line in read(&folder.join(header)).lines() {
        match line.strip_prefix("#include ") {
            Some(included) => text += &expanded(folder, included.trim_matches('"')),
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
