//! The interface as C++ sees it: the header against the library, an example, and the mistakes of
//! callers. Where there is no C++ compiler, what needs one says so and is ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use torchless::Threads;
use torchless::backend::{Backend, BackendPreference};
use torchless::encoder::{
    Column, EncodeOptions, Encoder, EncoderEvents, EncoderOptions, InputValues, Offsets, OutputValues, RaggedInput,
    ScratchPool,
};
use torchless_c::{
    CColumn, CEvents, CFraction, CInput, COutput, CPort, CRagged, CScore, CVariation, MOST_AXES, Status,
};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../torchless/tests/encoders/part.onnx");

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(CRATE).join(path)).expect("a source")
}

/// Returns the names that follow `before` and end with `(`.
fn functions(text: &str, before: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.split('(').next().unwrap_or_default().trim().to_owned();
    text.split(before).skip(1).map(|rest| format!("torchless_{}", name(rest))).collect()
}

#[test]
fn the_header_declares_every_exported_function_and_no_other() {
    let header = read("include/torchless.h");
    let code: String = header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
    let declared: BTreeSet<String> = code
        .split(';')
        .filter(|statement| statement.trim_end().ends_with(')'))
        .filter_map(|statement| {
            let start = statement.split('(').next()?.trim_end();
            start.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next_back().map(str::to_owned)
        })
        .collect();
    let sources: String = ["src/model.rs", "src/encode.rs", "src/histograms.rs", "src/error.rs"].map(read).concat();
    assert_eq!(declared, functions(&sources, "extern \"C\" fn torchless_"));
    assert_eq!(sources.matches("no_mangle").count(), declared.len());
}

fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

fn folder() -> PathBuf {
    // One for all runs: a library of the profile `dev` has a hundred megabytes.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torchless-c");
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}

/// Returns where the header and the libraries were installed, as `make c-library` does.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        // Cargo puts the libraries beside the program of the tests.
        let program = std::env::current_exe().expect("a program");
        let built = program.parent().expect("a folder");
        let prefix = folder().join("prefix");
        let mut install = Command::new("sh");
        install.arg(Path::new(CRATE).join("install.sh")).arg(built).arg(&prefix).arg("0.0.0");
        let done = install.status().expect("a shell");
        assert!(done.success());
        prefix
    })
}

/// Returns what pkg-config says, or what it would say.
fn flags(options: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(options).arg("torchless").env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        Err(_) => {
            let (include, lib) = (prefix().join("include"), prefix().join("lib"));
            vec![format!("-I{}", include.display()), format!("-L{}", lib.display()), "-ltorchless_c".into()]
        }
    }
}

/// Compiles `source`, and returns the program.
fn compile(source: &str, name: &str, more: &[String]) -> PathBuf {
    let program = folder().join(name);
    let mut command = Command::new(compiler());
    command.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    command.arg(Path::new(CRATE).join(source)).args(more).arg("-o").arg(&program);
    let done = command.output().expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn run(program: &Path, arguments: &[&Path]) -> String {
    let library = prefix().join("lib");
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", &library).env("DYLD_LIBRARY_PATH", &library);
    let done = command.output().expect("the program");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{said}");
    said
}

#[test]
#[cfg_attr(no_cpp_compiler, ignore = "needs a C++ compiler")]
fn the_example_scores_jets_in_sixteen_threads() {
    let shared = compile("examples/jets.cpp", "jets", &flags(&["--cflags", "--libs"]));
    let said = run(&shared, &[Path::new(MODEL)]);
    assert!(said.starts_with("jet 0: ") && said.ends_with("16 threads on cpu: the same bits\n"), "{said}");
    // The header is one of C, too.
    compile_c("header", "#include <torchless.h>\nint main(void) { return torchless_version() == 0; }\n");
}

/// Compiles a program of C, which is not linked.
fn compile_c(name: &str, source: &str) {
    let path = folder().join(name).with_extension("c");
    std::fs::write(&path, source).expect("a file");
    let mut command = Command::new(compiler());
    command.args(["-x", "c", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"]).arg(&path);
    let done = command.args(flags(&["--cflags"])).arg("-o").arg(path.with_extension("o")).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
#[cfg_attr(no_cpp_compiler, ignore = "needs a C compiler")]
fn the_code_of_the_page_on_histograms_is_c() {
    let page = read("../../torchless/docs/histograms.md");
    let block = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let parameters = "const torchless_model *model, torchless_scratch *scratch, torchless_events events, \
        torchless_events scaled, torchless_events none, const double *edges, size_t n_edges, \
        const double *weights, const double *pileup_up, size_t n_events, double *values, double *variances";
    let start = "torchless_error *error;\ntorchless_histograms *histograms;";
    let declared = format!("void page({parameters});\nvoid page({parameters}) {{\n{start}\n");
    compile_c("page", &format!("#include <torchless.h>\n{declared}{block}}}\n"));
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(no_cpp_compiler, ignore = "needs a C++ compiler")]
fn the_static_library_gives_the_same_answer() {
    let library = prefix().join("lib/libtorchless_c.a").display().to_string();
    let mut flags = flags(&["--cflags"]);
    flags.truncate(1);
    flags.extend([library, "-lm".into(), "-ldl".into()]);
    let program = compile("examples/jets.cpp", "jets-static", &flags);
    let shared = compile("examples/jets.cpp", "jets-shared", &self::flags(&["--cflags", "--libs"]));
    assert_eq!(run(&program, &[Path::new(MODEL)]), run(&shared, &[Path::new(MODEL)]));
}

/// Jets of the test's own: offsets, rows of x and v, and the same padded to 20 particles.
struct Jets {
    offsets: Vec<i64>,
    x: Vec<f32>,
    v: Vec<f32>,
}

const LENGTHS: [usize; 12] = [3, 20, 1, 7, 8, 9, 16, 2, 19, 5, 11, 4];

fn jets() -> Jets {
    let mut jets = Jets { offsets: vec![0], x: Vec::new(), v: Vec::new() };
    for (jet, length) in LENGTHS.into_iter().enumerate() {
        for particle in 0..length {
            let angle = |factor: f32| (1.0 + factor * (3 * jet + particle) as f32).sin();
            let (px, py, pz) = (20.0 * angle(0.7), 15.0 * angle(1.3), 30.0 * angle(0.3));
            jets.v.extend([px, py, pz, (px * px + py * py + pz * pz + 0.02).sqrt()]);
            jets.x.extend((0..5).map(|feature| angle(0.1 + feature as f32)));
        }
        jets.offsets.push((jets.x.len() / 5) as i64);
    }
    jets
}

impl Jets {
    fn padded(&self, rows: &[f32], width: usize) -> Vec<f32> {
        let mut padded = vec![0.0; LENGTHS.len() * width * 20];
        for (jet, places) in self.offsets.windows(2).enumerate() {
            for (particle, row) in
                rows[places[0] as usize * width..places[1] as usize * width].chunks(width).enumerate()
            {
                for (column, value) in row.iter().enumerate() {
                    padded[(jet * width + column) * 20 + particle] = *value;
                }
            }
        }
        padded
    }

    fn write(&self, path: &Path) {
        let mut bytes = Vec::new();
        bytes.extend((LENGTHS.len() as i64).to_ne_bytes());
        bytes.extend((*self.offsets.last().expect("offsets")).to_ne_bytes());
        bytes.extend(self.offsets.iter().flat_map(|offset| offset.to_ne_bytes()));
        for numbers in [&self.x, &self.v, &self.padded(&self.x, 5), &self.padded(&self.v, 4)] {
            bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        }
        bytes.extend(LENGTHS.into_iter().flat_map(|length| (0..20).map(move |place| u8::from(place < length))));
        std::fs::write(path, bytes).expect("a writable folder");
    }

    fn logits(&self, device: BackendPreference) -> Vec<f32> {
        let options = EncoderOptions { device, ..EncoderOptions::default() };
        let model = Encoder::open_with(MODEL, &options).expect("a model");
        let [x, v] = [(&self.x, 5), (&self.v, 4)].map(|(rows, width)| Column::of_rows(InputValues::F32(rows), width));
        let ragged = |name, columns| RaggedInput { name, offsets: Offsets::I64(&self.offsets), columns };
        let ragged = [ragged("x", &x[..]), ragged("v", &v[..])];
        let options = EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() };
        let events = EncoderEvents { dense: &[], ragged: &ragged };
        let outputs = model.encode_events(&Threads::new(1), &ScratchPool::new(), events, &options).expect("outputs");
        let OutputValues::F32(values) = &outputs[0].values else { panic!("single precision") };
        values.clone()
    }
}

/// The layout of the structures as Rust has it.
fn layout() -> BTreeMap<&'static str, usize> {
    BTreeMap::from([
        ("torchless_port", size_of::<CPort>()),
        ("torchless_port.type", offset_of!(CPort, type_)),
        ("torchless_port.n_axes", offset_of!(CPort, n_axes)),
        ("torchless_port.sizes", offset_of!(CPort, sizes)),
        ("torchless_port.size_names", offset_of!(CPort, size_names)),
        ("torchless_input", size_of::<CInput>()),
        ("torchless_input.type", offset_of!(CInput, type_)),
        ("torchless_input.n_axes", offset_of!(CInput, n_axes)),
        ("torchless_input.shape", offset_of!(CInput, shape)),
        ("torchless_input.data", offset_of!(CInput, data)),
        ("torchless_column", size_of::<CColumn>()),
        ("torchless_column.data", offset_of!(CColumn, data)),
        ("torchless_column.n_particles", offset_of!(CColumn, n_particles)),
        ("torchless_column.step", offset_of!(CColumn, step)),
        ("torchless_ragged", size_of::<CRagged>()),
        ("torchless_ragged.offsets_type", offset_of!(CRagged, offsets_type)),
        ("torchless_ragged.offsets", offset_of!(CRagged, offsets)),
        ("torchless_ragged.n_events", offset_of!(CRagged, n_events)),
        ("torchless_ragged.columns", offset_of!(CRagged, columns)),
        ("torchless_ragged.n_columns", offset_of!(CRagged, n_columns)),
        ("torchless_events", size_of::<CEvents>()),
        ("torchless_events.n_dense", offset_of!(CEvents, n_dense)),
        ("torchless_events.ragged", offset_of!(CEvents, ragged)),
        ("torchless_events.n_ragged", offset_of!(CEvents, n_ragged)),
        ("torchless_fraction", size_of::<CFraction>()),
        ("torchless_fraction.fraction", offset_of!(CFraction, fraction)),
        ("torchless_score", size_of::<CScore>()),
        ("torchless_score.column", offset_of!(CScore, column)),
        ("torchless_score.transform", offset_of!(CScore, transform)),
        ("torchless_score.against", offset_of!(CScore, against)),
        ("torchless_score.n_against", offset_of!(CScore, n_against)),
        ("torchless_variation", size_of::<CVariation>()),
        ("torchless_variation.events", offset_of!(CVariation, events)),
        ("torchless_variation.weights_type", offset_of!(CVariation, weights_type)),
        ("torchless_variation.weights", offset_of!(CVariation, weights)),
        ("torchless_variation.n_weights", offset_of!(CVariation, n_weights)),
        ("torchless_output", size_of::<COutput>()),
        ("torchless_output.buffer", offset_of!(COutput, buffer)),
        ("torchless_output.capacity", offset_of!(COutput, capacity)),
        ("torchless_output.buffer_type", offset_of!(COutput, buffer_type)),
        ("torchless_output.type", offset_of!(COutput, type_)),
        ("torchless_output.data", offset_of!(COutput, data)),
        ("torchless_output.shape", offset_of!(COutput, shape)),
        ("torchless_output.n_axes", offset_of!(COutput, n_axes)),
    ])
}

/// A model of one node that devices do not compute.
fn refused_model() -> Vec<u8> {
    let field = |number: u8, body: &[u8]| [&[number << 3 | 2, body.len() as u8], body].concat();
    let port = |name: &[u8]| {
        let size = field(1, &[1 << 3, 4]);
        let tensor = field(1, &[vec![1 << 3, 1], field(2, &size)].concat());
        [field(1, name), field(2, &tensor)].concat()
    };
    let node = [field(1, b"x"), field(2, b"y"), field(3, b"the angle"), field(4, b"Atan")].concat();
    let graph = [field(1, &node), field(11, &port(b"x")), field(12, &port(b"y"))].concat();
    [field(7, &graph), field(8, &[2 << 3, 17])].concat()
}

#[test]
#[cfg_attr(no_cpp_compiler, ignore = "needs a C++ compiler")]
fn callers_see_the_bits_of_rust_the_layout_and_their_mistakes() {
    let program = compile("tests/interface.cpp", "interface", &flags(&["--cflags", "--libs"]));
    let (jets, file, output) = (jets(), folder().join("jets.bin"), folder().join("logits.bin"));
    jets.write(&file);
    let refused = folder().join("refused.onnx");
    std::fs::write(&refused, refused_model()).expect("a file");
    let said = run(&program, &[Path::new(MODEL), &file, &output, &refused]);
    assert!(said.ends_with("every check passed\n"), "{said}");
    let words = said.lines().filter_map(|line| line.strip_prefix("layout ")?.split_once(' '));
    let found: BTreeMap<&str, usize> = words.map(|(name, number)| (name, number.parse().expect("a number"))).collect();
    assert_eq!(found, layout());
    let constants = said.lines().find_map(|line| line.strip_prefix("constants ")).expect("constants");
    let statuses = [Status::Ok, Status::NullPointer, Status::File, Status::Model, Status::Input, Status::Output];
    let statuses =
        statuses.into_iter().chain([Status::Busy, Status::Internal, Status::Device]).map(|status| status as i32);
    use torchless_c::{TYPE_BOOL, TYPE_FLOAT32, TYPE_FLOAT64, TYPE_INT32, TYPE_INT64, TYPE_UINT32};
    let types = [TYPE_FLOAT32, TYPE_FLOAT64, TYPE_INT64, TYPE_BOOL, TYPE_INT32, TYPE_UINT32, MOST_AXES as i32];
    let expected: Vec<String> = statuses.chain(types).map(|number| number.to_string()).collect();
    assert_eq!(constants, expected.join(" "));
    let found = std::fs::read(output).expect("logits");
    let devices = [BackendPreference::Cpu, BackendPreference::Device(Backend::Emulated)];
    for (found, device) in found.chunks(found.len() / 2).zip(devices) {
        let bytes: Vec<u8> = jets.logits(device).iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert!(found == bytes, "C++ and Rust differ on {device}");
    }
}
