//! Errors as Python exceptions, each with its hint.

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use torchless::backend::BackendPreference;
use torchless::encoder::WeightStorage;

create_exception!(
    torchless,
    TorchlessError,
    PyValueError,
    "A problem with a model or its inputs; `hint` has advice, or None."
);
create_exception!(
    torchless,
    ModelError,
    TorchlessError,
    "A file that is not a valid model, or an operator or a shape that is not computed."
);
create_exception!(torchless, InputError, TorchlessError, "Inputs that do not fit the model or each other.");
create_exception!(torchless, DeviceError, TorchlessError, "A device that is not there, or that fails.");

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let base = py.get_type::<TorchlessError>();
    // Errors without advice have the attribute too.
    base.setattr("hint", py.None())?;
    module.add("TorchlessError", base)?;
    module.add("ModelError", py.get_type::<ModelError>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add_function(wrap_pyfunction!(input_error, module)?)
}

/// Returns an error with its hint.
#[pyfunction]
#[pyo3(signature = (message, hint))]
pub(crate) fn input_error(py: Python<'_>, message: String, hint: Option<&str>) -> PyErr {
    with_hint(py, InputError::new_err(message), hint)
}

/// Returns `error` with its hint on a line of its own, and as an attribute.
fn with_hint(py: Python<'_>, error: PyErr, hint: Option<&str>) -> PyErr {
    // Tracebacks print notes as they are.
    let hint = hint.map(|hint| ns_terminal::escape(hint).into_owned());
    let value = error.value(py);
    let set = value.setattr("hint", hint.as_deref()).and_then(|()| match hint {
        Some(hint) => value.call_method1("add_note", (format!("hint: {hint}"),)).map(|_| ()),
        None => Ok(()),
    });
    match set {
        // `add_note` is newer than the oldest supported Python; the attribute is there anyway.
        Ok(()) | Err(_) => error,
    }
}

/// Returns an error of arrays with the variation that they belong to.
pub(crate) fn in_variation(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<InputError>(py) {
        return error;
    }
    let value = error.value(py);
    let hint: Option<String> = value.getattr("hint").and_then(|hint| hint.extract()).unwrap_or_default();
    input_error(py, format!("variation `{}`: {value}", ns_terminal::escape(name)), hint.as_deref())
}

/// Returns the error of a form of weights that there is not.
pub(crate) fn unknown_weights(py: Python<'_>, found: &str) -> PyErr {
    unknown_choice(py, "weights", found, WeightStorage::ALL.into_iter().map(WeightStorage::name))
}

/// Returns the error of a device that is not offered.
pub(crate) fn unknown_device(py: Python<'_>, found: &str) -> PyErr {
    unknown_choice(py, "device", found, BackendPreference::offered().map(BackendPreference::name))
}

fn unknown_choice(py: Python<'_>, option: &str, found: &str, known: impl Iterator<Item = &'static str>) -> PyErr {
    let known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
    let hint = format!("it is one of {}", known.join(", "));
    input_error(py, format!("`{option}` is '{}'", ns_terminal::escape(found)), Some(&hint))
}

/// Returns whether an error is about what was given with a model, and not about the model.
fn is_of_inputs(error: &torchless::Error) -> bool {
    match error {
        torchless::Error::EncoderInput { .. }
        | torchless::Error::Histogram(_)
        | torchless::Error::Gradient(_)
        | torchless::Error::StorageOfDouble { .. }
        | torchless::Error::EncoderOnCpuOnly { .. } => true,
        torchless::Error::InVariation { source, .. } => is_of_inputs(source),
        _ => false,
    }
}

/// Returns an error of the library as the exception of its kind.
pub(crate) fn library(py: Python<'_>, error: &torchless::Error) -> PyErr {
    let mut message = error.to_string();
    let made = match error {
        torchless::Error::Unreadable { path, source } => {
            if let Some(number) = source.raw_os_error() {
                // The class of the number, with `errno`, `strerror` and `filename`.
                let text = source.to_string();
                let reason = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text).to_owned();
                return PyOSError::new_err((number, reason, path.display().to_string()));
            }
            message.push_str(&format!(": {source}"));
            PyOSError::new_err(message)
        }
        error if is_of_inputs(error) => InputError::new_err(message),
        error if is_of_device(error) => DeviceError::new_err(message),
        _ => ModelError::new_err(message),
    };
    with_hint(py, made, error.hint().map(in_words_of_python).as_deref())
}

/// Returns whether an error is about a device, and not about what it is to compute.
fn is_of_device(error: &torchless::Error) -> bool {
    match error {
        torchless::Error::NoBackend { .. } | torchless::Error::Device(_) | torchless::Error::DeviceRefused { .. } => {
            true
        }
        torchless::Error::InVariation { source, .. } => is_of_device(source),
        _ => false,
    }
}

/// Returns the command's advice in words of Python.
fn in_words_of_python(hint: &str) -> String {
    hint.replace("`torchless info`", "`Encoder.inputs`").replace("`--device cpu`", "`device=\"cpu\"`")
}
