//! `encode`: events of NumPy's files in, an encoder's outputs out; and what `info` says of one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use ns_terminal::escape;
use serde_json::json;

use crate::cli::args::EncodeArgs;
use crate::cli::{CliError, print_json, print_text};
use crate::cpu::Threads;
use crate::encoder::{
    EncodeOptions, Encoder, EncoderInput, EncoderOptions, EncoderOutput, EncoderPort, EncoderPrecision, InputValues,
    OutputValues,
};
use crate::files::npy::{self, Array, Numbers};

pub(super) fn run(args: &EncodeArgs) -> Result<(), CliError> {
    let precision = if args.double { EncoderPrecision::Double } else { EncoderPrecision::Single };
    let model = Encoder::open_with(&args.model, &EncoderOptions { precision, fixed: Vec::new() })?;
    let arrays = npy::read(&args.inputs)?;
    let ports = model.inputs();
    let inputs = ports.iter().map(|port| input(args, port, &arrays, ports.len())).collect::<Result<Vec<_>, _>>()?;
    let threads = Threads::new(args.threads);
    let options = EncodeOptions { events_at_once: args.batch, mask: args.mask.clone() };
    let start = Instant::now();
    let outputs = model.encode(&threads, &inputs, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let shapes: BTreeMap<String, Vec<usize>> =
        outputs.iter().map(|output| (output.name.clone(), output.shape.clone())).collect();
    write(&args.output, outputs)?;
    let n_events = inputs.first().and_then(|input| input.shape.first()).copied().unwrap_or(0);
    if args.json {
        return print_json(&json!({ "events": n_events, "seconds": seconds, "outputs": shapes }));
    }
    for (name, shape) in shapes {
        print_text(&format!("{:<20} {shape:?}\n", escape(&name)))?;
    }
    eprintln!("{n_events} events in {seconds:.3} s");
    Ok(())
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
    let values = match &array.numbers {
        Numbers::F32(values) => InputValues::F32(values),
        Numbers::F64(values) => InputValues::F64(values),
        Numbers::I64(values) => InputValues::I64(values),
        Numbers::Bool(values) => InputValues::Bool(values),
    };
    Ok(EncoderInput { name: &port.name, shape: &array.shape, values })
}

fn write(path: &Path, outputs: Vec<EncoderOutput>) -> Result<(), CliError> {
    let failed = |source: io::Error| CliError::Output { path: path.to_owned(), source };
    let is_archive = path.extension().is_some_and(|extension| extension == "npz");
    if !is_archive && outputs.len() != 1 {
        return Err(CliError::OneOutput { path: path.to_owned(), n_outputs: outputs.len() });
    }
    let array = |output: EncoderOutput| {
        let numbers = match output.values {
            OutputValues::F32(values) => Numbers::F32(values),
            OutputValues::F64(values) => Numbers::F64(values),
            OutputValues::I64(values) => Numbers::I64(values),
        };
        (output.name, Array { shape: output.shape, numbers })
    };
    let arrays: Vec<(String, Array)> = outputs.into_iter().map(array).collect();
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    match &arrays[..] {
        [(_, only)] if !is_archive => npy::write(&mut out, only).map_err(failed)?,
        arrays => npy::write_archive(&mut out, arrays).map_err(failed)?,
    }
    out.flush().map_err(failed)
}

/// Says what an ONNX file is.
pub(super) fn info(path: &Path, as_json: bool) -> Result<(), CliError> {
    let model = Encoder::open(path)?;
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
        "architecture": "onnx",
        "inputs": describe(model.inputs()),
        "outputs": describe(model.outputs()),
        "nodes": n_nodes,
        "nodes_after_simplification": n_left,
        "weight_bytes": model.weight_bytes(),
        "instruction_set": Threads::new(1).instruction_set().name(),
    });
    if as_json {
        return print_json(&answer);
    }
    let object = answer.as_object().map(|object| object.iter()).into_iter().flatten();
    object.into_iter().try_for_each(|(name, value)| print_text(&format!("{name:<28} {}\n", escape(&value.to_string()))))
}
