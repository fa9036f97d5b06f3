//! Errors: an object of the caller's with a status, a message and a hint.

use std::ffi::{CString, c_char};

use torchless::backend::BackendPreference;

use crate::types::{MOST_AXES, Status};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{what} is NULL")]
    Null { what: &'static str },
    #[error("`{what}` has {length} elements, and its pointer is NULL")]
    NullArray { what: String, length: usize },
    #[error("the pointer of `{what}` is not aligned for its type")]
    Misaligned { what: String },
    #[error("`{what}` has {length} elements, more than memory can have")]
    TooLong { what: String, length: usize },
    #[error("{what} is not UTF-8")]
    NotUtf8 { what: &'static str },
    #[error("`{name}` has the type {found}, which is not a type of numbers")]
    Type { name: String, found: i32 },
    #[error("the offsets of `{name}` have the type {found}, and must be integers")]
    OffsetsType { name: String, found: i32 },
    #[error("value {place} of `{name}` is {found}, and truth values are 0 or 1")]
    NotABool { name: String, place: usize, found: u8 },
    #[error("value {place} of `{name}` is {value}, and fixed integers are below 2^53")]
    Inexact { name: String, place: usize, value: i64 },
    #[error("a column of `{name}` has the step {step}")]
    Step { name: String, step: usize },
    #[error("axis {axis} of `{name}` has the size {size}")]
    Size { name: String, axis: usize, size: i64 },
    #[error("`{name}` has {found} axes")]
    Axes { name: String, found: i32 },
    #[error("{found} is not a precision")]
    Precision { found: i32 },
    #[error("{found} is not a form of weights")]
    Weights { found: i32 },
    #[error("`{name}` is not a device")]
    UnknownDevice { name: String },
    #[error("there is no {what} {index}: the model has {n}")]
    NoSuchPort { what: &'static str, index: usize, n: usize, status: Status },
    #[error("the model has no output `{name}`")]
    UnknownOutput { name: String, known: Vec<String> },
    #[error("the input `{name}` has no gradient")]
    NoGradient { name: String, known: Vec<String> },
    #[error("output `{name}` has {found} axes, and at most {MOST_AXES} can be shown")]
    OutputAxes { name: String, found: usize },
    #[error("output `{name}` is of type {expected}, and its buffer of type {found}")]
    BufferType { name: String, found: i32, expected: i32 },
    #[error("output `{name}` has {needed} numbers, and its buffer has room for {capacity}")]
    BufferSize { name: String, needed: usize, capacity: usize },
    #[error("another thread is using the scratch")]
    Busy,
    #[error("another thread is using the histograms")]
    BusyHistograms,
    #[error("{found} does not say what happens to events outside of all bins")]
    Flow { found: i32 },
    #[error("{found} is not a transform of a score")]
    Transform { found: i32 },
    #[error("score: `against` goes with ratios")]
    NoRatio,
    #[error("the weights have the type {found}, and must be numbers")]
    WeightsType { found: i32 },
    #[error("the histograms have {expected} bins, and the memory for one has {found}")]
    Bins { found: usize, expected: usize },
    #[error("there is no variation `{name}`")]
    UnknownVariation { name: String, known: Vec<String> },
    #[error("variation `{name}`")]
    InVariation { name: String, source: Box<Failure> },
    #[error("a defect of torchless: {message}")]
    Panic { message: String },
    #[error("a name in the model has a zero byte")]
    ZeroByte,
    #[error(transparent)]
    Torchless(#[from] torchless::Error),
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        match self {
            Failure::Null { .. } | Failure::NullArray { .. } => Status::NullPointer,
            Failure::NoSuchPort { status, .. } => *status,
            Failure::UnknownOutput { .. }
            | Failure::NoGradient { .. }
            | Failure::OutputAxes { .. }
            | Failure::BufferType { .. }
            | Failure::BufferSize { .. } => Status::Output,
            Failure::Bins { .. } => Status::Output,
            Failure::InVariation { source, .. } => source.status(),
            Failure::Busy | Failure::BusyHistograms => Status::Busy,
            Failure::Panic { .. } => Status::Internal,
            Failure::ZeroByte => Status::Model,
            Failure::Torchless(error) => of_library(error),
            _ => Status::Input,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Failure::UnknownOutput { known, .. } => Some(format!("outputs of the model: {}", known.join(", "))),
            Failure::NoGradient { known, .. } => Some(format!("inputs with a gradient: {}", known.join(", "))),
            Failure::Step { .. } => Some("the step is not 0, and 1 for truth values".to_owned()),
            Failure::Busy => Some("give each thread a scratch of its own".to_owned()),
            Failure::BusyHistograms => Some("one scratch with several threads fills them".to_owned()),
            Failure::Flow { .. } => Some("0 drops them, 1 merges them with the first and the last bin".to_owned()),
            Failure::Transform { .. } => Some("0 to 3: torchless_transform in the header lists them".to_owned()),
            Failure::UnknownVariation { known, .. } => Some(format!("variations: {}", known.join(", "))),
            Failure::InVariation { source, .. } => source.hint(),
            Failure::Precision { .. } => Some("0 is single precision, 1 is double precision".to_owned()),
            Failure::Weights { .. } => Some("0 is f32, 1 is f16, 2 is bf16, 3 is int8".to_owned()),
            Failure::UnknownDevice { .. } => {
                let known: Vec<&str> = BackendPreference::offered().map(BackendPreference::name).collect();
                Some(format!("it is one of {}", known.join(", ")))
            }
            Failure::Torchless(error) => error.hint().map(in_words_of_c),
            _ => None,
        }
    }

    /// Returns the message, with those reasons of the reasons that it does not have.
    fn message(&self) -> String {
        let mut message = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let reason = error.to_string();
            if !message.ends_with(&reason) {
                message.push_str(": ");
                message.push_str(&reason);
            }
            source = error.source();
        }
        message
    }
}

/// Returns the kind of an error of the library.
fn of_library(error: &torchless::Error) -> Status {
    use torchless::Error;
    match error {
        Error::Gradient(_) => Status::Output,
        Error::Unreadable { .. } | Error::Malformed { .. } => Status::File,
        Error::EncoderInput { .. }
        | Error::Histogram(_)
        | Error::StorageOfDouble { .. }
        | Error::EncoderOnCpuOnly { .. } => Status::Input,
        Error::InVariation { source, .. } => of_library(source),
        Error::NoBackend { .. } | Error::Device(_) | Error::DeviceRefused { .. } => Status::Device,
        _ => Status::Model,
    }
}

/// Returns the command's advice in words of C.
fn in_words_of_c(hint: &str) -> String {
    hint.replace("`torchless info`", "`torchless_input_port`").replace("`--device cpu`", "the device `cpu`")
}

/// `torchless_error`.
#[derive(Debug)]
pub struct CError {
    status: Status,
    message: CString,
    hint: Option<CString>,
}

/// Returns a text of C; zero bytes are left out.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

impl CError {
    pub(crate) fn new(failure: &Failure) -> CError {
        CError {
            status: failure.status(),
            message: c_text(&failure.message()),
            hint: failure.hint().as_deref().map(c_text),
        }
    }
}

/// Returns the kind of an error.
///
/// # Safety
///
/// As the header says: NULL, or an error that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_error_status(error: *const CError) -> i32 {
    // SAFETY: NULL, or a live error, as the header says.
    unsafe { error.as_ref() }.map_or(Status::Ok, |error| error.status) as i32
}

/// Returns the message of an error.
///
/// # Safety
///
/// As the header says: NULL, or an error that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_error_message(error: *const CError) -> *const c_char {
    // SAFETY: NULL, or a live error, as the header says.
    unsafe { error.as_ref() }.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// Returns the advice of an error, or NULL.
///
/// # Safety
///
/// As the header says: NULL, or an error that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_error_hint(error: *const CError) -> *const c_char {
    // SAFETY: NULL, or a live error, as the header says.
    unsafe { error.as_ref() }.and_then(|error| error.hint.as_ref()).map_or(std::ptr::null(), |hint| hint.as_ptr())
}

/// Frees an error.
///
/// # Safety
///
/// As the header says: NULL, or an error that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_error_free(error: *mut CError) {
    if !error.is_null() {
        // SAFETY: `call` has made it by `Box::into_raw`, and the caller gives it back once.
        drop(unsafe { Box::from_raw(error) });
    }
}
