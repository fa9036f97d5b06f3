//! Events in, outputs into the caller's memory or that of a scratch.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, TryLockError};

use torchless::Threads;
use torchless::encoder::{
    Column, EncodeOptions, EncoderEvents, EncoderInput, EncoderOutput, GradientTarget, InputGradient, Offsets,
    OutputValues, RaggedInput, ScratchPool,
};

use crate::border::{array, array_mut, call, numbers, object, offsets, text};
use crate::error::{CError, Failure};
use crate::model::{DenseParts, Model, input};
use crate::types::{CEvents, COutput, CRagged, MOST_AXES, TYPE_BOOL, TYPE_FLOAT32, TYPE_FLOAT64, TYPE_INT64};

/// `torchless_scratch`.
#[derive(Debug)]
pub struct Scratch(Mutex<Memory>);

/// What one thread needs, locked while a call uses it.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) threads: Threads,
    pub(crate) pool: ScratchPool,
    /// Of the last call: the caller has their addresses.
    outputs: Vec<EncoderOutput>,
    gradients: Vec<EncoderOutput>,
}

/// Makes a scratch.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_scratch_new(
    n_threads: usize,
    scratch: *mut *mut Scratch,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let place = unsafe { array_mut("scratch", scratch, 1)? };
        place[0] = std::ptr::null_mut();
        let (threads, pool) = (Threads::new(n_threads), ScratchPool::new());
        let memory = Memory { threads, pool, outputs: Vec::new(), gradients: Vec::new() };
        place[0] = Box::into_raw(Box::new(Scratch(Mutex::new(memory))));
        Ok(())
    })
}

/// Frees a scratch.
///
/// # Safety
///
/// As the header says: NULL, or a scratch that no thread uses.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_scratch_free(scratch: *mut Scratch) {
    if !scratch.is_null() {
        // SAFETY: `torchless_scratch_new` has made it by `Box::into_raw`, and the caller gives it
        // back once.
        drop(unsafe { Box::from_raw(scratch) });
    }
}

/// Computes outputs.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_encode(
    model: *const Model,
    scratch: *mut Scratch,
    events: *const CEvents,
    mask: *const c_char,
    events_at_once: usize,
    outputs: *mut COutput,
    n_outputs: usize,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let (model, scratch) = unsafe { (object("the model", model)?, object("the scratch", scratch.cast_const())?) };
        let mut memory = scratch.lock()?;
        // SAFETY: as the header says.
        let (options, events, asked) = unsafe {
            let options = encode_options(mask, events_at_once)?;
            (options, object("the structure of events", events)?, array_mut("outputs", outputs, n_outputs)?)
        };
        // SAFETY: as the header says.
        unsafe { check_outputs(asked, model)? };
        // Outputs of the last call, which may be inputs of this one, are dropped after it.
        // SAFETY: as the header says.
        memory.outputs = unsafe {
            with_events(events, |events| {
                Ok(model.encoder.encode_events(&memory.threads, &memory.pool, events, &options)?)
            })?
        };
        for output in asked {
            // SAFETY: as the header says.
            unsafe { hand_over(output, &memory.outputs)? };
        }
        Ok(())
    })
}

/// Computes outputs, and gradients of a column of one of them.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_gradients(
    model: *const Model,
    scratch: *mut Scratch,
    events: *const CEvents,
    mask: *const c_char,
    events_at_once: usize,
    differentiated: *const c_char,
    column: usize,
    outputs: *mut COutput,
    n_outputs: usize,
    gradients: *mut COutput,
    n_gradients: usize,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let (model, scratch) = unsafe { (object("the model", model)?, object("the scratch", scratch.cast_const())?) };
        let mut memory = scratch.lock()?;
        // SAFETY: as the header says.
        let (options, events, asked, wanted, output) = unsafe {
            let options = encode_options(mask, events_at_once)?;
            let output = if differentiated.is_null() { None } else { Some(text("the output", differentiated)?) };
            let asked = array_mut("outputs", outputs, n_outputs)?;
            let wanted = array_mut("gradients", gradients, n_gradients)?;
            (options, object("the structure of events", events)?, asked, wanted, output)
        };
        wanted.iter_mut().for_each(clear);
        // SAFETY: as the header says.
        unsafe {
            check_outputs(asked, model)?;
            check_gradients(wanted, model, &options)?;
        }
        let target = GradientTarget::Column { output, column };
        // Those of the last call, which may be inputs of this one, are dropped after it.
        // SAFETY: as the header says.
        let found = unsafe {
            with_events(events, |events| {
                Ok(model.encoder.gradients(&memory.threads, &memory.pool, events, &target, &options)?)
            })?
        };
        let of_input =
            |InputGradient { name, shape, values }| EncoderOutput { name, shape, values: OutputValues::F64(values) };
        (memory.outputs, memory.gradients) = (found.outputs, found.inputs.into_iter().map(of_input).collect());
        for output in asked {
            // SAFETY: as the header says.
            unsafe { hand_over(output, &memory.outputs)? };
        }
        for gradient in wanted {
            // SAFETY: as the header says.
            unsafe { hand_over(gradient, &memory.gradients)? };
        }
        Ok(())
    })
}

impl Scratch {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Memory>, Failure> {
        match self.0.try_lock() {
            Ok(memory) => Ok(memory),
            // A panic has left it; nothing of it is half done that the next call does not make
            // anew.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Failure::Busy),
        }
    }
}

/// Returns the options of a call.
///
/// # Safety
///
/// The mask is as the header says.
#[expect(unsafe_code, reason = "the border to C: the name of the mask")]
pub(crate) unsafe fn encode_options(mask: *const c_char, events_at_once: usize) -> Result<EncodeOptions, Failure> {
    let mut options = EncodeOptions::default();
    if events_at_once > 0 {
        options.events_at_once = events_at_once;
    }
    if !mask.is_null() {
        // SAFETY: as the header says.
        options.mask = Some(unsafe { text("the mask", mask)? }.to_owned());
    }
    Ok(options)
}

fn clear(output: &mut COutput) {
    (output.data, output.n_axes, output.type_) = (std::ptr::null(), 0, 0);
}

/// Refuses outputs that the model does not have.
///
/// # Safety
///
/// Their names are as the header says.
#[expect(unsafe_code, reason = "the border to C: names of outputs")]
unsafe fn check_outputs(asked: &mut [COutput], model: &Model) -> Result<(), Failure> {
    for output in asked {
        clear(output);
        // SAFETY: as the header says.
        let name = unsafe { text("the name of an output", output.name)? };
        let known: Vec<String> = model.encoder.outputs().into_iter().map(|port| port.name).collect();
        if !known.iter().any(|known| known == name) {
            return Err(Failure::UnknownOutput { name: name.to_owned(), known });
        }
    }
    Ok(())
}

/// Refuses gradients with respect to what has none, and buffers for numbers of another type.
///
/// # Safety
///
/// Their names are as the header says.
#[expect(unsafe_code, reason = "the border to C: names of inputs")]
unsafe fn check_gradients(wanted: &[COutput], model: &Model, options: &EncodeOptions) -> Result<(), Failure> {
    for gradient in wanted {
        // SAFETY: as the header says.
        let name = unsafe { text("the name of an input", gradient.name)? };
        let known = model.encoder.inputs_with_gradients(options);
        if !known.iter().any(|known| known == name) {
            return Err(Failure::NoGradient { name: name.to_owned(), known });
        }
        if !gradient.buffer.is_null() && gradient.buffer_type != TYPE_FLOAT64 {
            let (name, found, expected) = (name.to_owned(), gradient.buffer_type, TYPE_FLOAT64);
            return Err(Failure::BufferType { name, found, expected });
        }
    }
    Ok(())
}

/// Calls `work` with what `events` lead to.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C: inputs")]
unsafe fn with_events<R>(
    events: &CEvents,
    work: impl FnOnce(EncoderEvents<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // SAFETY: as the header says.
    let parts = unsafe { EventParts::of(events)? };
    let (dense, ragged) = (parts.dense(), parts.ragged());
    work(EncoderEvents { dense: &dense, ragged: &ragged })
}

/// Inputs whose shapes and columns have a place.
pub(crate) struct EventParts<'a> {
    dense: Vec<DenseParts<'a>>,
    ragged: Vec<RaggedParts<'a>>,
}

impl<'a> EventParts<'a> {
    /// Returns what `events` lead to.
    ///
    /// # Safety
    ///
    /// The pointers are as the header says, during `'a`.
    #[expect(unsafe_code, reason = "the border to C: inputs")]
    pub(crate) unsafe fn of(events: &CEvents) -> Result<EventParts<'a>, Failure> {
        // SAFETY: as the header says.
        let (dense, ragged) = unsafe {
            (array("dense", events.dense, events.n_dense)?, array("ragged", events.ragged, events.n_ragged)?)
        };
        // SAFETY: as the header says.
        let dense = dense.iter().map(|given| unsafe { input(given) }).collect::<Result<_, _>>()?;
        // SAFETY: as the header says.
        let ragged = ragged.iter().map(|given| unsafe { ragged_parts(given) }).collect::<Result<_, _>>()?;
        Ok(EventParts { dense, ragged })
    }

    pub(crate) fn dense(&self) -> Vec<EncoderInput<'_>> {
        self.dense
            .iter()
            .map(|parts| EncoderInput { name: parts.name, shape: &parts.shape, values: parts.values })
            .collect()
    }

    pub(crate) fn ragged(&self) -> Vec<RaggedInput<'_>> {
        self.ragged
            .iter()
            .map(|parts| RaggedInput { name: parts.name, offsets: parts.offsets, columns: &parts.columns })
            .collect()
    }
}

/// A ragged input whose columns have a place.
struct RaggedParts<'a> {
    name: &'a str,
    offsets: Offsets<'a>,
    columns: Vec<Column<'a>>,
}

/// Returns what a ragged input of C leads to.
///
/// # Safety
///
/// Its pointers are as the header says, during `'a`.
#[expect(unsafe_code, reason = "the border to C: ragged inputs")]
unsafe fn ragged_parts<'a>(given: &CRagged) -> Result<RaggedParts<'a>, Failure> {
    // SAFETY: as the header says.
    let name = unsafe { text("the name of a ragged input", given.name)? };
    let too_long = |length| Failure::TooLong { what: name.to_owned(), length };
    let n_offsets = given.n_events.checked_add(1).ok_or_else(|| too_long(given.n_events))?;
    // SAFETY: as the header says.
    let (offsets, columns) = unsafe {
        (offsets(name, given.offsets_type, given.offsets, n_offsets)?, array(name, given.columns, given.n_columns)?)
    };
    let mut read = Vec::with_capacity(columns.len());
    for column in columns {
        let step = column.step;
        if step == 0 || (step > 1 && column.type_ == TYPE_BOOL) {
            return Err(Failure::Step { name: name.to_owned(), step });
        }
        let length = match column.n_particles.checked_sub(1) {
            Some(last) => last.checked_mul(step).and_then(|last| last.checked_add(1)).ok_or_else(|| too_long(last))?,
            None => 0,
        };
        // SAFETY: as the header says; with a step, what lies between is memory of the same
        // structures.
        let values = unsafe { numbers(name, column.type_, column.data, length)? };
        read.push(Column { values, first: 0, step });
    }
    Ok(RaggedParts { name, offsets, columns: read })
}

/// Writes one of `outputs` to the caller's memory, or its address.
///
/// # Safety
///
/// The pointers of `to` are as the header says.
#[expect(unsafe_code, reason = "the border to C: outputs")]
unsafe fn hand_over(to: &mut COutput, outputs: &[EncoderOutput]) -> Result<(), Failure> {
    // SAFETY: as the header says.
    let name = unsafe { text("the name of an output", to.name)? };
    let found = outputs.iter().find(|output| output.name == name);
    let found = found.ok_or_else(|| Failure::UnknownOutput { name: name.to_owned(), known: Vec::new() })?;
    let n_axes = found.shape.len();
    if n_axes > MOST_AXES {
        return Err(Failure::OutputAxes { name: name.to_owned(), found: n_axes });
    }
    to.shape = [0; MOST_AXES];
    for (to, &size) in to.shape.iter_mut().zip(&found.shape) {
        *to = i64::try_from(size).unwrap_or(i64::MAX);
    }
    to.n_axes = n_axes as i32;
    let (type_, data) = match &found.values {
        OutputValues::F32(values) => (TYPE_FLOAT32, values.as_ptr().cast::<c_void>()),
        OutputValues::F64(values) => (TYPE_FLOAT64, values.as_ptr().cast()),
        OutputValues::I64(values) => (TYPE_INT64, values.as_ptr().cast()),
    };
    to.type_ = type_;
    if to.buffer.is_null() {
        to.data = data;
        return Ok(());
    }
    if to.buffer_type != type_ {
        return Err(Failure::BufferType { name: name.to_owned(), found: to.buffer_type, expected: type_ });
    }
    // SAFETY: as the header says, the buffer has room for `capacity` numbers of its type.
    unsafe {
        match &found.values {
            OutputValues::F32(values) => copy(name, values, to)?,
            OutputValues::F64(values) => copy(name, values, to)?,
            OutputValues::I64(values) => copy(name, values, to)?,
        }
    }
    to.data = to.buffer;
    Ok(())
}

/// Copies numbers to a buffer of their type.
///
/// # Safety
///
/// The buffer of `to` has room for `capacity` numbers of type `T`, and nothing else uses them.
#[expect(unsafe_code, reason = "the border to C: the caller's memory")]
unsafe fn copy<T: Copy>(name: &str, values: &[T], to: &COutput) -> Result<(), Failure> {
    if values.len() > to.capacity {
        let (needed, capacity) = (values.len(), to.capacity);
        return Err(Failure::BufferSize { name: name.to_owned(), needed, capacity });
    }
    let buffer = to.buffer.cast::<T>();
    if !buffer.is_aligned() {
        return Err(Failure::Misaligned { what: name.to_owned() });
    }
    // SAFETY: the buffer is aligned and has room, as the caller promises; it is not memory of ours.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), buffer, values.len()) };
    Ok(())
}
