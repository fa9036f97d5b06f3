//! Errors as Python exceptions: one class for each kind of problem, each with its hint.

use nextstat::error::SettingsError;
use nextstat::exclusion::ExclusionError;
use nextstat::fits::FitsFileError;
use nextstat::tables::TableError;
use nextstat::{Face, Hint};
use ns_compute::accel::AccelError;
use ns_core::CompileError;
use ns_device::{DeviceName, DeviceNameError};
use ns_inference::toys::ToysError;
use ns_translate::{DocumentError, SourceError, full_message};
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(nextstat, NextstatError, PyValueError, "A problem with the input; `hint` has advice, or None.");
create_exception!(
    nextstat,
    WorkspaceError,
    NextstatError,
    "A document that is not valid, with the place of the problem."
);
create_exception!(nextstat, ModelError, NextstatError, "A workspace that is not a valid model.");
create_exception!(
    nextstat,
    ParameterError,
    NextstatError,
    "A parameter that the model does not have, or a setting that is not valid for it."
);
create_exception!(nextstat, DataError, NextstatError, "Data that do not belong to the model.");
create_exception!(
    nextstat,
    DeviceError,
    NextstatError,
    "A device that this build or this machine does not have, that fails its tests, or that failed."
);
create_exception!(nextstat, ToyError, NextstatError, "Toys that cannot be thrown.");
create_exception!(
    nextstat,
    GradientError,
    NextstatError,
    "A value or a gradient that is not available: a fit failed, or there is no derivative."
);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let base = py.get_type::<NextstatError>();
    // Errors without advice have the attribute too.
    base.setattr("hint", py.None())?;
    module.add("NextstatError", base)?;
    module.add("WorkspaceError", py.get_type::<WorkspaceError>())?;
    module.add("ModelError", py.get_type::<ModelError>())?;
    module.add("ParameterError", py.get_type::<ParameterError>())?;
    module.add("DataError", py.get_type::<DataError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("GradientError", py.get_type::<GradientError>())?;
    module.add("ToyError", py.get_type::<ToyError>())
}

/// Returns `error` with its hint on a line of its own, and as an attribute.
pub(crate) fn with_hint(py: Python<'_>, error: PyErr, hint: Option<String>) -> PyErr {
    // Tracebacks print notes as they are.
    let hint = hint.map(|hint| ns_terminal::escape(&hint).into_owned());
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

/// Returns the exception of a document's error.
pub(crate) fn document(py: Python<'_>, error: &DocumentError) -> PyErr {
    if let DocumentError::Source(SourceError::Unreadable { name, source, .. }) = error {
        let made = unreadable(name, source).unwrap_or_else(|| PyOSError::new_err(full_message(error)));
        return with_hint(py, made, error.hint(Face::Library));
    }
    with_hint(py, WorkspaceError::new_err(full_message(error)), error.hint(Face::Library))
}

/// Returns the system's error about a file as Python has it.
///
/// Its class is that of the number; it has `errno`, `strerror` and `filename`.
fn unreadable(name: &str, source: &std::io::Error) -> Option<PyErr> {
    let number = source.raw_os_error()?;
    let text = source.to_string();
    let reason = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text).to_owned();
    Some(PyOSError::new_err((number, reason, name.trim_matches('`').to_owned())))
}

/// Returns the exception of a model's error.
///
/// Its attribute `fault` has the kind where a caller tells kinds apart, else None.
pub(crate) fn compile(py: Python<'_>, error: &CompileError) -> PyErr {
    let fault = match error {
        CompileError::ModifierLength { .. } => Some("ModifierLength"),
        CompileError::IncompatibleKinds { .. } => Some("IncompatibleKinds"),
        CompileError::ShapeFactorLength { .. } => Some("ShapeFactorLength"),
        _ => None,
    };
    let made = with_hint(py, ModelError::new_err(full_message(error)), error.hint(Face::Library));
    match made.value(py).setattr("fault", fault) {
        // Exceptions take attributes; without one it is raised all the same.
        Ok(()) | Err(_) => made,
    }
}

/// Returns the exception of a parameter that cannot be the one of interest.
pub(crate) fn poi(py: Python<'_>, error: &CompileError) -> PyErr {
    parameter(py, full_message(error), error.hint(Face::Library))
}

pub(crate) fn toys(error: &ToysError) -> PyErr {
    ToyError::new_err(full_message(error))
}

pub(crate) fn gradient(py: Python<'_>, message: String, hint: Option<String>) -> PyErr {
    with_hint(py, GradientError::new_err(message), hint)
}

pub(crate) fn parameter(py: Python<'_>, message: String, hint: Option<String>) -> PyErr {
    with_hint(py, ParameterError::new_err(message), hint)
}

/// Returns the exception of a device that is not available, or not for this model.
pub(crate) fn device(py: Python<'_>, error: &AccelError) -> PyErr {
    with_hint(py, DeviceError::new_err(full_message(error)), error.hint())
}

/// Returns the device called `name`, or the exception of a name that no device has.
pub(crate) fn device_name(py: Python<'_>, name: &str) -> PyResult<DeviceName> {
    name.parse().map_err(|error: DeviceNameError| {
        let message = match &error {
            DeviceNameError::Backend(_) => format!("unknown device `{name}`"),
            DeviceNameError::Number { .. } => error.to_string(),
        };
        with_hint(py, DeviceError::new_err(message), Some(error.hint()))
    })
}

/// Returns the exception of a device that stopped during a session.
pub(crate) fn lost_device(py: Python<'_>, reason: &str) -> PyErr {
    with_hint(
        py,
        DeviceError::new_err(format!("the device failed: {reason}")),
        Some("`device=\"cpu\"` does without it".to_owned()),
    )
}

/// Returns an error of the library as the exception of its kind.
pub(crate) fn library(py: Python<'_>, error: &nextstat::Error) -> PyErr {
    let message = error.message(Face::Library);
    let made = match error {
        nextstat::Error::Document(error) => return document(py, error),
        nextstat::Error::Compile(error) => return compile(py, error),
        nextstat::Error::Combine { .. } | nextstat::Error::NothingToCombine => WorkspaceError::new_err(message),
        nextstat::Error::DataSets(_) | nextstat::Error::Settings(SettingsError::InvalidData(_)) => {
            DataError::new_err(message)
        }
        nextstat::Error::TooLarge(_) => return PyMemoryError::new_err(message),
        nextstat::Error::Toys(error) => return toys(error),
        nextstat::Error::NoThrowingPoint { .. } => ToyError::new_err(message),
        nextstat::Error::Device(error) => return device(py, error),
        nextstat::Error::DeviceFailed { .. } | nextstat::Error::OnCpuOnly { .. } => DeviceError::new_err(message),
        _ => ParameterError::new_err(message),
    };
    with_hint(py, made, error.hint(Face::Library))
}

/// Returns the exception of a grid of signals without exclusion contours.
pub(crate) fn exclusion(py: Python<'_>, error: &ExclusionError) -> PyErr {
    let made = match error {
        ExclusionError::NotJson { .. } | ExclusionError::NotAGrid { .. } | ExclusionError::BadValue { .. } => {
            WorkspaceError::new_err(error.to_string())
        }
        _ => ParameterError::new_err(error.to_string()),
    };
    with_hint(py, made, error.hint(Face::Library))
}

/// Returns the exception of files that do not have the fits of data sets.
pub(crate) fn fits_file(py: Python<'_>, error: &FitsFileError) -> PyErr {
    with_hint(py, ToyError::new_err(full_message(error)), error.hint(Face::Library))
}

/// Returns the exception of a document without such a table.
pub(crate) fn table(py: Python<'_>, error: &TableError) -> PyErr {
    let made = match error {
        TableError::NoSuchTable { .. } | TableError::NoSuchRow { .. } | TableError::Missing { .. } => {
            ParameterError::new_err(error.to_string())
        }
        _ => WorkspaceError::new_err(error.to_string()),
    };
    with_hint(py, made, error.hint(Face::Library))
}

/// Returns the exception of settings that do not fit the model.
pub(crate) fn settings(py: Python<'_>, error: &SettingsError) -> PyErr {
    with_hint(py, ParameterError::new_err(error.message(Face::Library)), error.hint(Face::Library))
}

pub(crate) fn data(message: String) -> PyErr {
    DataError::new_err(message)
}
