//! The C interface of encoders: handles, structures of C, and functions that never unwind.
//!
//! `include/torchless.h` documents every function. Each is a call of one function of
//! `torchless::encoder`; what crosses the border is checked in `border`. A test compares the header
//! with the structures and functions here.

mod border;
mod encode;
mod error;
mod histograms;
mod model;
mod types;

pub use encode::{Scratch, torchless_encode, torchless_gradients, torchless_scratch_free, torchless_scratch_new};
pub use error::{CError, torchless_error_free, torchless_error_hint, torchless_error_message, torchless_error_status};
pub use histograms::{
    Histograms, torchless_histogram, torchless_histograms_fill, torchless_histograms_free, torchless_histograms_new,
};
pub use model::{
    Model, torchless_device, torchless_input_port, torchless_is_approximate, torchless_model_free, torchless_n_inputs,
    torchless_n_outputs, torchless_open, torchless_open_on_device, torchless_open_with_weights, torchless_output_port,
    torchless_version,
};
pub use types::{
    CColumn, CEvents, CFraction, CInput, COutput, CPort, CRagged, CScore, CVariation, MOST_AXES, Status, TYPE_BOOL,
    TYPE_FLOAT32, TYPE_FLOAT64, TYPE_INT32, TYPE_INT64, TYPE_UINT32,
};

// Handles go from thread to thread as plain pointers, which the compiler does not check otherwise.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Model>();
    is_shared::<Scratch>();
    is_shared::<Histograms>();
};
