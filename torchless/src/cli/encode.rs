//! `encode`: events of NumPy's files in, an encoder's outputs out; and what `info` says of one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ns_terminal::escape;
use serde_json::json;

use crate::cli::args::EncodeArgs;
use crate::cli::{CliError, print_json, print_text};
use crate::cpu::Threads;
use crate::encoder;
use crate::encoder::{
    Column, EncodeOptions, Encoder, EncoderEvents, EncoderInput, EncoderOptions, EncoderOutput, EncoderPort,
    EncoderPrecision, GradientTarget, InputGradient, InputValues, Offsets, OutputValues, RaggedInput, ScratchPool,
};
use crate::error::{Error, InputProblem};
use crate::files::npy::{self, Array, Numbers};
use crate::preference::BackendPreference;

pub(super) fn run(args: &EncodeArgs) -> Result<(), CliError> {
    if args.gradients.as_ref() == Some(&args.output) {
        return Err(CliError::SameFile { path: args.output.clone() });
    }
    for path in [&args.output].into_iter().chain(&args.gradients) {
        check_output(path)?;
        for read in [&args.model, &args.inputs] {
            if is_same_file(path, read) {
                return Err(CliError::Overwrites { path: path.clone() });
            }
        }
    }
    let precision = if args.double { EncoderPrecision::Double } else { EncoderPrecision::Single };
    let (weights, device) = (args.weights.0, args.device.0);
    if let (Some(backend), Some(_)) = (device.backend(), &args.gradients) {
        return Err(Error::EncoderOnCpuOnly { what: "gradients", device: backend.name() }.into());
    }
    let options = EncoderOptions { precision, weights, device, ..EncoderOptions::default() };
    let model = Encoder::open_with(&args.model, &options)?;
    let n_outputs = model.outputs().len();
    if n_outputs != 1 && !is_archive(&args.output) {
        return Err(CliError::OneOutput { path: args.output.clone(), n_outputs });
    }
    let arrays = npy::read(&args.inputs)?;
    let ports = model.inputs();
    let columns = ports.iter().map(|port| ragged_columns(args, port, &arrays)).collect::<Result<Vec<_>, _>>()?;
    let ragged: Vec<RaggedInput<'_>> = ports
        .iter()
        .zip(&columns)
        .filter_map(|(port, columns)| {
            let (offsets, columns) = columns.as_ref()?;
            Some(RaggedInput { name: &port.name, offsets: Offsets::I64(offsets), columns })
        })
        .collect();
    // The mask of ragged inputs may be left out.
    let is_dense = |port: &&EncoderPort| {
        let is_made = !ragged.is_empty() && Some(&port.name) == args.mask.as_ref() && !arrays.contains_key(&port.name);
        !is_made && ragged.iter().all(|input| input.name != port.name)
    };
    let dense = ports.iter().filter(is_dense).map(|port| input(args, port, &arrays, ports.len()));
    let dense = dense.collect::<Result<Vec<_>, _>>()?;
    if let Some(mask) = args.mask.as_ref().and_then(|name| arrays.get(name)) {
        check_mask(args, mask)?;
    }
    let threads = Threads::new(args.threads);
    let options = EncodeOptions { events_at_once: args.batch, mask: args.mask.clone() };
    let start = Instant::now();
    let events = EncoderEvents { dense: &dense, ragged: &ragged };
    let pool = ScratchPool::new();
    let (outputs, gradients) = match &args.gradients {
        None => (model.encode_events(&threads, &pool, events, &options)?, None),
        Some(path) => {
            let target = GradientTarget::Column { output: args.gradients_of.as_deref(), column: args.column };
            let found = model.gradients(&threads, &pool, events, &target, &options)?;
            (found.outputs, Some((path, found.inputs)))
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let shapes: BTreeMap<String, Vec<usize>> =
        outputs.iter().map(|output| (output.name.clone(), output.shape.clone())).collect();
    write(&args.output, outputs)?;
    if let Some((path, gradients)) = gradients {
        write_gradients(path, gradients)?;
    }
    let n_ragged = ragged.first().map(|input| input.offsets.len().saturating_sub(1));
    let n_events = n_ragged.or_else(|| dense.first()?.shape.first().copied()).unwrap_or(0);
    if args.json {
        return print_json(&json!({
            "events": n_events,
            "seconds": seconds,
            "outputs": shapes,
            "weights": model.weights().name(),
            "approximate": model.is_approximate(),
            "device": model.device_name(),
        }));
    }
    for (name, shape) in shapes {
        print_text(&format!("{:<20} {shape:?}\n", escape(&name)))?;
    }
    if model.is_approximate() {
        print_text("approximate          weights and inputs of products are rounded to int8\n")?;
    }
    eprintln!("{n_events} events in {seconds:.3} s");
    Ok(())
}

/// Refuses a path that cannot be written, before anything is computed for it. What is there stays
/// as it is, and nothing is left where nothing is.
fn check_output(path: &Path) -> Result<(), CliError> {
    let failed = |source: io::Error| CliError::Output { path: path.to_owned(), source };
    let is_new = match path.metadata() {
        Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(found) if found.is_file() => false,
        // A pipe may wait for its reader.
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(failed(error)),
    };
    File::options().write(true).create(is_new).truncate(false).open(path).map_err(failed)?;
    match is_new {
        // Where a link leads to, and not the link.
        true => path.canonicalize().and_then(std::fs::remove_file).map_err(failed),
        // What is written first lies beside it.
        false => match place_and_part(path) {
            Some((_, part)) => File::create(&part).and_then(|_| std::fs::remove_file(&part)).map_err(failed),
            None => Ok(()),
        },
    }
}

/// Returns whether two paths lead to one file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Returns the file that a path leads to, and one beside it that is written first; `None` where
/// something else is, such as a pipe.
fn place_and_part(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = place.file_name().filter(|_| place.is_file() || !place.exists())?;
    let mut part = OsString::from(".");
    part.push(name);
    part.push(format!(".{}.partial", std::process::id()));
    let part = place.with_file_name(part);
    Some((place, part))
}

/// Writes a file beside its place, and moves it there when it is whole: after a failure the place
/// has what it had. What is not a file, such as a pipe, is written as it is.
fn write_whole(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), CliError> {
    let failed = |source: io::Error| CliError::Output { path: path.to_owned(), source };
    let fill = |to: &Path| {
        let mut out = BufWriter::new(File::create(to)?);
        write(&mut out)?;
        out.flush()
    };
    let Some((place, part)) = place_and_part(path) else { return fill(path).map_err(failed) };
    let keep_permissions = || match place.metadata() {
        Ok(before) => std::fs::set_permissions(&part, before.permissions()),
        Err(_) => Ok(()),
    };
    let done = fill(&part).and_then(|()| keep_permissions()).and_then(|()| std::fs::rename(&part, &place));
    if done.is_err() {
        // What failed is reported; a part that cannot be removed is not worth another error.
        let _ = std::fs::remove_file(&part);
    }
    done.map_err(failed)
}

/// Refuses a mask without a particle in any event of the file.
fn check_mask(args: &EncodeArgs, mask: &Array) -> Result<(), CliError> {
    let is_empty = match &mask.numbers {
        Numbers::F32(values) => values.iter().all(|value| *value == 0.0),
        Numbers::F64(values) => values.iter().all(|value| *value == 0.0),
        Numbers::I64(values) => values.iter().all(|value| *value == 0),
        Numbers::Bool(values) => values.iter().all(|value| !value),
    };
    match mask.shape.first() {
        Some(1..) if is_empty => {
            Err(CliError::NoParticles { path: args.inputs.clone(), mask: args.mask.clone().unwrap_or_default() })
        }
        _ => Ok(()),
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
}

/// Returns the array of an input.
fn input<'a>(
    args: &EncodeArgs,
    port: &'a EncoderPort,
    arrays: &'a BTreeMap<String, Array>,
    n_inputs: usize,
) -> Result<EncoderInput<'a>, CliError> {
    // An array without a name is the one of a model with one input.
    let unnamed = || if n_inputs == 1 { arrays.get("") } else { None };
    let array = arrays.get(&port.name).or_else(unnamed);
    let array = array.ok_or_else(|| CliError::NoArray { path: args.inputs.clone(), name: port.name.clone() })?;
    Ok(EncoderInput { name: &port.name, shape: &array.shape, values: values(array) })
}

fn values(array: &Array) -> InputValues<'_> {
    match &array.numbers {
        Numbers::F32(values) => InputValues::F32(values),
        Numbers::F64(values) => InputValues::F64(values),
        Numbers::I64(values) => InputValues::I64(values),
        Numbers::Bool(values) => InputValues::Bool(values),
    }
}

/// Numbers of a particle, at most.
const MOST_COLUMNS: usize = 1 << 20;

/// Offsets of a ragged input, and its columns.
type Ragged<'a> = (&'a [i64], Vec<Column<'a>>);

/// Returns the arrays `NAME.offsets` and `NAME`, which has a row of each particle, if there are
/// both.
fn ragged_columns<'a>(
    args: &EncodeArgs,
    port: &EncoderPort,
    arrays: &'a BTreeMap<String, Array>,
) -> Result<Option<Ragged<'a>>, CliError> {
    let name = format!("{}.offsets", port.name);
    let Some(offsets) = arrays.get(&name) else { return Ok(None) };
    let (Numbers::I64(numbers), [_]) = (&offsets.numbers, &offsets.shape[..]) else {
        let problem = InputProblem::Kind { expected: "integers in one axis" };
        return Err(Error::EncoderInput { name, problem }.into());
    };
    let rows = arrays.get(&port.name);
    let rows = rows.ok_or_else(|| CliError::NoArray { path: args.inputs.clone(), name: port.name.clone() })?;
    let n_columns = rows.shape.iter().skip(1).try_fold(1_usize, |product, &size| product.checked_mul(size));
    // Empty rows may claim any width; a number of columns that the model does not have is refused
    // later.
    let n_columns = n_columns.filter(|&n_columns| n_columns <= MOST_COLUMNS).unwrap_or(0);
    Ok(Some((numbers, Column::of_rows(values(rows), n_columns))))
}

fn write(path: &Path, outputs: Vec<EncoderOutput>) -> Result<(), CliError> {
    let array = |output: EncoderOutput| {
        let numbers = match output.values {
            OutputValues::F32(values) => Numbers::F32(values),
            OutputValues::F64(values) => Numbers::F64(values),
            OutputValues::I64(values) => Numbers::I64(values),
        };
        (output.name, Array { shape: output.shape, numbers })
    };
    let arrays: Vec<(String, Array)> = outputs.into_iter().map(array).collect();
    write_whole(path, |out| match &arrays[..] {
        [(_, only)] if !is_archive(path) => npy::write(out, only),
        arrays => npy::write_archive(out, arrays),
    })
}

/// Writes gradients by the names of their inputs.
fn write_gradients(path: &Path, gradients: Vec<InputGradient>) -> Result<(), CliError> {
    let array = |InputGradient { name, shape, values }| (name, Array { shape, numbers: Numbers::F64(values) });
    let arrays: Vec<(String, Array)> = gradients.into_iter().map(array).collect();
    write_whole(path, |out| npy::write_archive(out, &arrays))
}

/// Describes what is to compute a model, and what the model takes of a device's memory. A model
/// that fits is put there, so that a step without a kernel is refused.
fn with_device(model: Encoder, preference: BackendPreference) -> Result<(Encoder, serde_json::Value), CliError> {
    let Some(device) = encoder::open_device(preference)? else {
        let set = Threads::new(1).instruction_set().name();
        return Ok((model, json!({ "name": "cpu", "instruction_set": set })));
    };
    let (weights, available) = (model.weight_bytes() as u64, device.memory().map_err(Error::from)?.free);
    let fits = weights <= available;
    let mut answer = json!({
        "name": device.backend().name(),
        "model": device.properties().name,
        "precision": device.precision().to_string(),
        "memory": { "weights": weights, "available": available },
        "fits": fits,
    });
    if !fits {
        return Ok((model, answer));
    }
    let model = model.on_device(&device)?;
    answer["computes"] = "every step".into();
    Ok((model, answer))
}

/// Prints what an encoder takes and gives, and what is to compute it.
pub(super) fn info(path: &Path, preference: BackendPreference, as_json: bool) -> Result<(), CliError> {
    let (model, device) = with_device(Encoder::open(path)?, preference)?;
    let describe = |ports: Vec<EncoderPort>| -> Vec<String> {
        let one = |port: EncoderPort| {
            let sizes = |sizes: Vec<_>| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let shape = port.dimensions.map_or("any shape".to_owned(), |dimensions| format!("[{}]", sizes(dimensions)));
            format!("{} {shape} of {}", port.name, port.elements)
        };
        ports.into_iter().map(one).collect()
    };
    let [n_nodes, n_left] = model.n_nodes();
    let answer = json!({
        "architecture": model.architecture(),
        "inputs": describe(model.inputs()),
        "outputs": describe(model.outputs()),
        "nodes": n_nodes,
        "nodes_after_simplification": n_left,
        "weight_bytes": model.weight_bytes(),
        "device": device,
    });
    if as_json {
        return print_json(&answer);
    }
    let object = answer.as_object().map(|object| object.iter()).into_iter().flatten();
    object.into_iter().try_for_each(|(name, value)| print_text(&format!("{name:<28} {}\n", escape(&value.to_string()))))
}
