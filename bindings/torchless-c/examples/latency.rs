//! Measures calls of one event: the plan alone, the interface of Rust, and that of C over it.
//!
//! `cargo run --release --package torchless-c --example latency -- mlp.onnx`: for a model with the
//! input `x` of shape [1, 3], so that little is computed. `scripts/torchless_encoders.py latency`
//! measures Python.

use std::ffi::CString;
use std::time::Instant;

use torchless::Threads;
use torchless::encoder::{
    EncodeOptions, Encoder, EncoderEvents, EncoderInput, EncoderScratch, InputValues, ScratchPool,
};
use torchless_c::{
    CEvents, CInput, COutput, MOST_AXES, TYPE_FLOAT32, torchless_encode, torchless_model_free, torchless_open,
    torchless_scratch_free, torchless_scratch_new,
};

const CALLS: u32 = 20_000;

/// Returns nanoseconds of one call: the least of seven runs.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let mut run = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..7).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a model")?;
    let model = Encoder::open(&path)?;
    let input = EncoderInput { name: "x", shape: &[1, 3], values: InputValues::F32(&[0.5, -1.0, 2.0]) };
    let mut scratch = EncoderScratch::new();
    let run = nanoseconds(|| {
        let _ = std::hint::black_box(model.run(&mut scratch, &[input]));
    });
    let (threads, pool, options) = (Threads::new(1), ScratchPool::new(), EncodeOptions::default());
    let encode = nanoseconds(|| {
        let events = EncoderEvents { dense: &[input], ragged: &[] };
        let _ = std::hint::black_box(model.encode_events(&threads, &pool, events, &options));
    });
    let c = of_c(&path)?;
    println!("Encoder::run {run:.0} ns, Encoder::encode_events {encode:.0} ns, torchless_encode {c:.0} ns");
    Ok(())
}

#[expect(unsafe_code, reason = "calls as C makes them")]
fn of_c(path: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let (path, name, output_name) = (CString::new(path)?, CString::new("x")?, CString::new("logits")?);
    let (mut model, mut scratch) = (std::ptr::null_mut(), std::ptr::null_mut());
    let none = std::ptr::null_mut();
    // SAFETY: every pointer leads to a value of this function.
    let opened = unsafe {
        torchless_open(path.as_ptr(), 0, std::ptr::null(), 0, &raw mut model, none)
            + torchless_scratch_new(1, &raw mut scratch, none)
    };
    if opened != 0 {
        return Err("the model cannot be opened".into());
    }
    let (numbers, shape, mut logits) = ([0.5_f32, -1.0, 2.0], [1_i64, 3], [0.0_f32; 2]);
    let data = numbers.as_ptr().cast();
    let input = CInput { name: name.as_ptr(), type_: TYPE_FLOAT32, n_axes: 2, shape: shape.as_ptr(), data };
    let events = CEvents { dense: &raw const input, n_dense: 1, ragged: std::ptr::null(), n_ragged: 0 };
    let mut output = COutput {
        name: output_name.as_ptr(),
        buffer: logits.as_mut_ptr().cast(),
        capacity: logits.len(),
        buffer_type: TYPE_FLOAT32,
        type_: 0,
        data: std::ptr::null(),
        shape: [0; MOST_AXES],
        n_axes: 0,
    };
    let mut failed = 0;
    let time = nanoseconds(|| {
        // SAFETY: as above.
        failed += unsafe {
            torchless_encode(model, scratch, &raw const events, std::ptr::null(), 0, &raw mut output, 1, none)
        };
    });
    // SAFETY: both were made above, and are used no more.
    unsafe {
        torchless_model_free(model);
        torchless_scratch_free(scratch);
    }
    if failed == 0 { Ok(time) } else { Err("a call failed".into()) }
}
