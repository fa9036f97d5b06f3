//! `replay TEXT [OPTION…] RECORDING…`: repeats recorded launches on an OpenCL device, with kernels
//! that it compiles from TEXT, and compares what they write with the recordings. A real may differ
//! by 1e-12 in double precision and by 1e-5 in single precision, relative to the larger of 1 and
//! its magnitude; NaN is equal to NaN.
//!
//! - `--scratch KERNEL=INDEX`: an argument that the kernel uses for itself, which is not compared.
//!
//! The device is the first one, without its self-test, so that no launch but the recorded ones is
//! made. Buffers that nothing had written before the launch are left as they are, so that a driver
//! that looks for reads of unwritten memory finds them; what the recorded launch did not write is
//! not compared. Prints a line for each kernel; exit code 1 where something differs, 2 where
//! something fails.

use ns_device::{Backend, Buffer, Device, Kernel, KernelArgument, KernelModule, LaunchDims, OpenOptions, Precision};
use ns_ptx::recording::reals;
use ns_ptx::{Argument, Recording};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

/// A kernel of the text.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    module: &'static KernelModule,
    name: &'static str,
}

impl Kernel for Recorded {
    fn module(&self) -> &'static KernelModule {
        self.module
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

#[derive(Default)]
struct Options {
    text: PathBuf,
    recordings: Vec<PathBuf>,
    /// Indices of arguments by kernel.
    scratch: HashMap<String, HashSet<usize>>,
}

/// What is known of a kernel after its launches.
#[derive(Default)]
struct Tally {
    n_launches: usize,
    worst: f64,
    failures: Vec<String>,
}

/// A buffer on the device.
enum Uploaded {
    Constants(Vec<u8>),
    Read(Buffer<u8>),
    Written(Buffer<u8>),
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|options| replay(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut paths = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            let (kernel, value) = value.split_once('=').ok_or_else(|| format!("`{value}` is not KERNEL=VALUE"))?;
            Ok::<_, String>((kernel.to_owned(), value.to_owned()))
        };
        match word.as_str() {
            "--scratch" => {
                let (kernel, index) = value()?;
                options.scratch.entry(kernel).or_default().insert(index.parse()?);
            }
            _ => paths.push(PathBuf::from(word)),
        }
    }
    let mut paths = paths.into_iter();
    options.text = paths.next().ok_or("usage: replay TEXT [OPTION…] RECORDING…")?;
    options.recordings = paths.collect();
    Ok(options)
}

/// Repeats the recordings and returns whether all agree.
fn replay(options: &Options) -> Result<bool, Failure> {
    let source: &'static str = std::fs::read_to_string(&options.text)?.leak();
    let module: &'static KernelModule = Box::leak(Box::new(KernelModule {
        name: "recorded",
        ptx_f64: None,
        ptx_f32: None,
        source: Some(source),
        emulated: &[],
    }));
    let mut devices: HashMap<u32, Device> = HashMap::new();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for path in &options.recordings {
        let recording = Recording::read(&std::fs::read(path)?).map_err(|e| format!("`{}`: {e}", path.display()))?;
        let precision = if recording.real_bytes == 8 { Precision::Double } else { Precision::Single };
        let device = match devices.entry(recording.real_bytes) {
            Entry::Occupied(opened) => opened.into_mut(),
            Entry::Vacant(place) => {
                let options = OpenOptions { precision: Some(precision), untested: true, ..OpenOptions::default() };
                place.insert(Device::open_with(Backend::OpenCl, 0, &options)?)
            }
        };
        let kernel = Recorded { module, name: recording.kernel.clone().leak() };
        let tally = tallies.entry(format!("{}_{precision}", recording.kernel)).or_default();
        tally.n_launches += 1;
        let written = launch(device, kernel, &recording)?;
        // The next launch gets memory that nothing has written.
        device.trim();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        compare(options, &recording, &written, &name, tally);
    }
    let mut good = !tallies.is_empty();
    for (kernel, tally) in tallies {
        println!("{kernel}: {} launches, at most {:.1e} from the recordings", tally.n_launches, tally.worst);
        for failure in &tally.failures {
            println!("  {failure}");
        }
        good &= tally.failures.is_empty();
    }
    Ok(good)
}

/// Makes a launch and returns what it wrote, by argument.
fn launch(device: &Device, kernel: Recorded, recording: &Recording) -> Result<HashMap<usize, Vec<u8>>, Failure> {
    let mut uploaded = Vec::new();
    for argument in &recording.arguments {
        uploaded.push(match argument {
            Argument::Constants(bytes) => Uploaded::Constants(bytes.clone()),
            Argument::Read(bytes) => Uploaded::Read(device.upload(bytes)?),
            // The emulation fills memory that was not written with this byte.
            Argument::Written { before, .. } if before.iter().all(|&byte| byte == 0xff) => {
                Uploaded::Written(device.uninitialised(before.len())?)
            }
            Argument::Written { before, .. } => Uploaded::Written(device.upload(before)?),
        });
    }
    let arguments: Vec<KernelArgument<'_>> = uploaded
        .iter_mut()
        .map(|argument| match argument {
            Uploaded::Constants(bytes) => KernelArgument::constants(bytes),
            Uploaded::Read(buffer) => KernelArgument::read(buffer),
            Uploaded::Written(buffer) => KernelArgument::write(buffer),
        })
        .collect();
    let Recording { blocks, lanes, shared_reals, .. } = *recording;
    device.launch(kernel, LaunchDims { blocks, lanes, shared_reals }, &arguments)?;
    drop(arguments);
    let mut written = HashMap::new();
    for (index, argument) in uploaded.iter().enumerate() {
        if let Uploaded::Written(buffer) = argument {
            written.insert(index, buffer.download()?);
        }
    }
    Ok(written)
}

/// Compares what a launch wrote with what was recorded.
fn compare(options: &Options, recording: &Recording, written: &HashMap<usize, Vec<u8>>, name: &str, tally: &mut Tally) {
    let tolerance = if recording.real_bytes == 8 { 1e-12 } else { 1e-5 };
    let scratch = options.scratch.get(&recording.kernel);
    for (index, argument) in recording.arguments.iter().enumerate() {
        let Argument::Written { after, .. } = argument else { continue };
        if scratch.is_some_and(|indices| indices.contains(&index)) {
            continue;
        }
        let [is, should_be] = [&written[&index], after].map(|bytes| reals(bytes, recording.real_bytes));
        for (place, (is, should_be)) in is.into_iter().zip(should_be).enumerate() {
            if was_not_written(should_be, recording.real_bytes) {
                continue;
            }
            let difference = difference(is, should_be);
            if difference.is_finite() {
                tally.worst = tally.worst.max(difference);
            }
            if difference > tolerance {
                tally.failures.push(format!("{name}: argument {index} at {place} is {is:e}, recorded {should_be:e}"));
                break;
            }
        }
    }
}

/// Returns `true` for the bits that memory has which the emulation gave out and no launch wrote.
fn was_not_written(real: f64, real_bytes: u32) -> bool {
    if real_bytes == 8 { real.to_bits() == u64::MAX } else { (real as f32).to_bits() == u32::MAX }
}

/// Returns the difference of two reals, relative to the larger of 1 and the magnitude of the
/// second.
fn difference(is: f64, should_be: f64) -> f64 {
    if is == should_be || (is.is_nan() && should_be.is_nan()) {
        return 0.0;
    }
    let difference = (is - should_be).abs() / should_be.abs().max(1.0);
    if difference.is_nan() { f64::INFINITY } else { difference }
}
