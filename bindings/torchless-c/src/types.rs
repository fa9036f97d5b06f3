//! Structures and numbers that C sees, as `torchless.h` declares them.

use std::ffi::{c_char, c_void};

/// The kind of an error; the header's constants are the discriminants.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No error.
    Ok = 0,
    /// A pointer that must not be NULL.
    NullPointer = 1,
    /// A file that cannot be read, or that is not ONNX.
    File = 2,
    /// An operator or a shape that is not computed.
    Model = 3,
    /// Inputs that do not fit the model or each other.
    Input = 4,
    /// An output that the model does not have, or memory for it that is too small.
    Output = 5,
    /// A scratch, or histograms, that another thread is using.
    Busy = 6,
    /// A defect of the library.
    Internal = 7,
    /// A device that is not there, or that fails.
    Device = 8,
}

/// `float`.
pub const TYPE_FLOAT32: i32 = 1;
/// `double`.
pub const TYPE_FLOAT64: i32 = 2;
/// `int64_t`.
pub const TYPE_INT64: i32 = 3;
/// Bytes of 0 and 1.
pub const TYPE_BOOL: i32 = 4;
/// `int32_t`, of offsets only.
pub const TYPE_INT32: i32 = 5;
/// `uint32_t`, of offsets only.
pub const TYPE_UINT32: i32 = 6;

/// The most axes of an output.
pub const MOST_AXES: usize = 8;

/// `torchless_port`.
#[repr(C)]
#[derive(Debug)]
pub struct CPort {
    /// Its name.
    pub name: *const c_char,
    /// The type of its elements.
    pub type_: i32,
    /// Axes, or -1.
    pub n_axes: i32,
    /// Their sizes, or -1.
    pub sizes: *const i64,
    /// Their names.
    pub size_names: *const *const c_char,
}

/// `torchless_input`.
#[repr(C)]
#[derive(Debug)]
pub struct CInput {
    /// Its name.
    pub name: *const c_char,
    /// The type of its numbers.
    pub type_: i32,
    /// The number of axes.
    pub n_axes: i32,
    /// Their sizes.
    pub shape: *const i64,
    /// The numbers.
    pub data: *const c_void,
}

/// `torchless_column`.
#[repr(C)]
#[derive(Debug)]
pub struct CColumn {
    /// The type of its numbers.
    pub type_: i32,
    /// The first particle's number.
    pub data: *const c_void,
    /// Particles of all events.
    pub n_particles: usize,
    /// Numbers from a particle to the next.
    pub step: usize,
}

/// `torchless_ragged`.
#[repr(C)]
#[derive(Debug)]
pub struct CRagged {
    /// Its name.
    pub name: *const c_char,
    /// The type of offsets.
    pub offsets_type: i32,
    /// One more than there are events.
    pub offsets: *const c_void,
    /// The number of events.
    pub n_events: usize,
    /// The columns.
    pub columns: *const CColumn,
    /// The number of columns.
    pub n_columns: usize,
}

/// `torchless_events`.
#[repr(C)]
#[derive(Debug)]
pub struct CEvents {
    /// Inputs whose events have one shape.
    pub dense: *const CInput,
    /// How many.
    pub n_dense: usize,
    /// Inputs whose events have different numbers of particles.
    pub ragged: *const CRagged,
    /// How many.
    pub n_ragged: usize,
}

/// `torchless_fraction`.
#[repr(C)]
#[derive(Debug)]
pub struct CFraction {
    /// The column of a class.
    pub column: usize,
    /// Its fraction.
    pub fraction: f64,
}

/// `torchless_score`.
#[repr(C)]
#[derive(Debug)]
pub struct CScore {
    /// The output, or NULL.
    pub output: *const c_char,
    /// The column.
    pub column: usize,
    /// What is made of it.
    pub transform: i32,
    /// Fractions of other columns.
    pub against: *const CFraction,
    /// How many.
    pub n_against: usize,
}

/// `torchless_variation`.
#[repr(C)]
#[derive(Debug)]
pub struct CVariation {
    /// Its name.
    pub name: *const c_char,
    /// Its inputs.
    pub events: CEvents,
    /// The type of the weights.
    pub weights_type: i32,
    /// A weight of each event, or NULL.
    pub weights: *const c_void,
    /// How many.
    pub n_weights: usize,
}

/// `torchless_output`.
#[repr(C)]
#[derive(Debug)]
pub struct COutput {
    /// Its name.
    pub name: *const c_char,
    /// The caller's memory, or NULL.
    pub buffer: *mut c_void,
    /// The numbers for which it has room.
    pub capacity: usize,
    /// The type of those.
    pub buffer_type: i32,
    /// The type of `data`.
    pub type_: i32,
    /// The numbers.
    pub data: *const c_void,
    /// Sizes of axes.
    pub shape: [i64; MOST_AXES],
    /// The number of axes.
    pub n_axes: i32,
}
