//! Models: opened, described, shared by threads, freed.

use std::ffi::{CString, c_char};
use std::path::Path;

use torchless::backend::BackendPreference;
use torchless::encoder::{
    Dimension, Encoder, EncoderOptions, EncoderPort, EncoderPrecision, FixedInput, InputValues, WeightStorage,
};

use crate::border::{array, call, numbers, object, text};
use crate::error::{CError, Failure};
use crate::types::{CInput, CPort, Status, TYPE_BOOL, TYPE_FLOAT32, TYPE_INT64};

/// `torchless_model`.
#[derive(Debug)]
pub struct Model {
    pub(crate) encoder: Encoder,
    /// The name of what computes it.
    device: CString,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

/// What a model declares, in memory that C may look at.
#[derive(Debug)]
struct Port {
    name: CString,
    type_: i32,
    sizes: Option<Vec<i64>>,
    /// Owned by `name_texts`.
    size_names: Vec<NamePointer>,
    #[expect(dead_code, reason = "`size_names` leads to it")]
    name_texts: Vec<CString>,
}

/// The address of a text that never changes.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct NamePointer(*const c_char);

// SAFETY: the text is immutable, and lives as long as the port that has its address.
#[expect(unsafe_code, reason = "addresses of immutable texts")]
unsafe impl Send for NamePointer {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "addresses of immutable texts")]
unsafe impl Sync for NamePointer {}

impl Port {
    fn new(port: EncoderPort) -> Result<Port, Failure> {
        let text = |text: String| CString::new(text).map_err(|_| Failure::ZeroByte);
        let type_ = match port.elements {
            "integers" => TYPE_INT64,
            "truth values" => TYPE_BOOL,
            _ => TYPE_FLOAT32,
        };
        let size = |dimension: &Dimension| match dimension {
            Dimension::Fixed(size) => i64::try_from(*size).unwrap_or(i64::MAX),
            Dimension::Named(_) => -1,
        };
        let sizes = port.dimensions.as_ref().map(|dimensions| dimensions.iter().map(size).collect());
        let name = |dimension: Dimension| match dimension {
            Dimension::Fixed(_) => text(String::new()),
            Dimension::Named(name) => text(name),
        };
        let name_texts: Vec<CString> = port.dimensions.into_iter().flatten().map(name).collect::<Result<_, _>>()?;
        let size_names = name_texts.iter().map(|name| NamePointer(name.as_ptr())).collect();
        Ok(Port { name: text(port.name)?, type_, sizes, size_names, name_texts })
    }

    fn show(&self) -> CPort {
        CPort {
            name: self.name.as_ptr(),
            type_: self.type_,
            n_axes: self.sizes.as_ref().map_or(-1, |sizes| i32::try_from(sizes.len()).unwrap_or(i32::MAX)),
            sizes: self.sizes.as_ref().map_or(std::ptr::null(), Vec::as_ptr),
            size_names: self.size_names.as_ptr().cast(),
        }
    }
}

/// An input with a shape of its own.
pub(crate) struct DenseParts<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: InputValues<'a>,
}

/// Returns an input of C.
///
/// # Safety
///
/// Its pointers are as the header says, during `'a`.
#[expect(unsafe_code, reason = "the border to C: an input")]
pub(crate) unsafe fn input<'a>(input: &CInput) -> Result<DenseParts<'a>, Failure> {
    // SAFETY: as the header says.
    let name = unsafe { text("the name of an input", input.name)? };
    let too_many = || Failure::Axes { name: name.to_owned(), found: input.n_axes };
    let n_axes = usize::try_from(input.n_axes).ok().filter(|&n_axes| n_axes <= 64).ok_or_else(too_many)?;
    // SAFETY: as the header says.
    let sizes = unsafe { array(name, input.shape, n_axes)? };
    let size = |(axis, &size): (usize, &i64)| {
        usize::try_from(size).map_err(|_| Failure::Size { name: name.to_owned(), axis, size })
    };
    let shape = sizes.iter().enumerate().map(size).collect::<Result<Vec<usize>, _>>()?;
    let length = shape.iter().try_fold(1_usize, |length, &size| length.checked_mul(size));
    let length = length.ok_or_else(|| Failure::TooLong { what: name.to_owned(), length: usize::MAX })?;
    // SAFETY: as the header says.
    let values = unsafe { numbers(name, input.type_, input.data, length)? };
    Ok(DenseParts { name, shape, values })
}

/// Returns the fixed inputs of C.
///
/// # Safety
///
/// Their pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C: fixed inputs")]
unsafe fn fixed_inputs(inputs: &[CInput]) -> Result<Vec<FixedInput>, Failure> {
    let one = |given: &CInput| {
        // SAFETY: as the header says.
        let DenseParts { name, shape, values } = unsafe { input(given)? };
        let (name, values) = (name.to_owned(), to_f64(name, values)?);
        Ok(FixedInput { name, shape, values })
    };
    inputs.iter().map(one).collect()
}

/// Refuses integers that are not numbers of double precision.
fn to_f64(name: &str, values: InputValues<'_>) -> Result<Vec<f64>, Failure> {
    let exact = |(place, &value): (usize, &i64)| match value.unsigned_abs() < 1 << f64::MANTISSA_DIGITS {
        true => Ok(value as f64),
        false => Err(Failure::Inexact { name: name.to_owned(), place, value }),
    };
    Ok(match values {
        InputValues::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
        InputValues::F64(values) => values.to_vec(),
        InputValues::I64(values) => values.iter().enumerate().map(exact).collect::<Result<_, _>>()?,
        InputValues::Bool(values) => values.iter().map(|&value| f64::from(u8::from(value))).collect(),
    })
}

/// Returns the version.
#[expect(unsafe_code, reason = "the name that C calls")]
#[unsafe(no_mangle)]
pub extern "C" fn torchless_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens a model.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_open(
    path: *const c_char,
    precision: i32,
    fixed: *const CInput,
    n_fixed: usize,
    model: *mut *mut Model,
    error: *mut *mut CError,
) -> i32 {
    // SAFETY: as the header says.
    unsafe { torchless_open_with_weights(path, precision, 0, fixed, n_fixed, model, error) }
}

/// Returns what is to compute; NULL is the default.
///
/// # Safety
///
/// As the header says: NULL, or a text.
#[expect(unsafe_code, reason = "the border to C: a name")]
unsafe fn preference(device: *const c_char) -> Result<BackendPreference, Failure> {
    if device.is_null() {
        return Ok(BackendPreference::default());
    }
    // SAFETY: as the header says.
    let name = unsafe { text("the name of a device", device)? };
    BackendPreference::named(name).ok_or_else(|| Failure::UnknownDevice { name: name.to_owned() })
}

/// Opens a model whose matrices are stored as asked for.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_open_with_weights(
    path: *const c_char,
    precision: i32,
    weights: i32,
    fixed: *const CInput,
    n_fixed: usize,
    model: *mut *mut Model,
    error: *mut *mut CError,
) -> i32 {
    let device = std::ptr::null();
    // SAFETY: as the header says.
    unsafe { torchless_open_on_device(path, precision, weights, device, fixed, n_fixed, model, error) }
}

/// Opens a model that a device is to compute.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_open_on_device(
    path: *const c_char,
    precision: i32,
    weights: i32,
    device: *const c_char,
    fixed: *const CInput,
    n_fixed: usize,
    model: *mut *mut Model,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let place = unsafe { crate::border::array_mut("model", model, 1)? };
        place[0] = std::ptr::null_mut();
        // SAFETY: as the header says.
        let (path, inputs) = unsafe { (text("the path", path)?, array("fixed", fixed, n_fixed)?) };
        let precision = match precision {
            0 => EncoderPrecision::Single,
            1 => EncoderPrecision::Double,
            found => return Err(Failure::Precision { found }),
        };
        let known = usize::try_from(weights).ok().and_then(|index| WeightStorage::ALL.get(index));
        let weights = *known.ok_or(Failure::Weights { found: weights })?;
        // SAFETY: as the header says.
        let (fixed, device) = unsafe { (fixed_inputs(inputs)?, preference(device)?) };
        let encoder = Encoder::open_with(Path::new(path), &EncoderOptions { precision, weights, fixed, device })?;
        let device = CString::new(encoder.device_name()).map_err(|_| Failure::ZeroByte)?;
        let ports = |ports: Vec<EncoderPort>| ports.into_iter().map(Port::new).collect::<Result<Vec<_>, _>>();
        let (inputs, outputs) = (ports(encoder.inputs())?, ports(encoder.outputs())?);
        place[0] = Box::into_raw(Box::new(Model { encoder, device, inputs, outputs }));
        Ok(())
    })
}

/// Frees a model.
///
/// # Safety
///
/// As the header says: NULL, or a model that no thread uses.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_model_free(model: *mut Model) {
    if !model.is_null() {
        // SAFETY: `torchless_open` has made it by `Box::into_raw`, and the caller gives it back
        // once.
        drop(unsafe { Box::from_raw(model) });
    }
}

/// Returns the name of what computes a model, or NULL for NULL.
///
/// # Safety
///
/// As the header says: NULL, or a model that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_device(model: *const Model) -> *const c_char {
    // SAFETY: NULL, or a live model, as the header says.
    unsafe { model.as_ref() }.map_or(std::ptr::null(), |model| model.device.as_ptr())
}

/// Returns 1 if weights and the inputs of products are rounded to bytes, else 0.
///
/// # Safety
///
/// As the header says: NULL, or a model that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_is_approximate(model: *const Model) -> i32 {
    // SAFETY: NULL, or a live model, as the header says.
    unsafe { model.as_ref() }.map_or(0, |model| i32::from(model.encoder.is_approximate()))
}

/// Returns the number of inputs.
///
/// # Safety
///
/// As the header says: NULL, or a model that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_n_inputs(model: *const Model) -> usize {
    // SAFETY: NULL, or a live model, as the header says.
    unsafe { model.as_ref() }.map_or(0, |model| model.inputs.len())
}

/// Returns the number of outputs.
///
/// # Safety
///
/// As the header says: NULL, or a model that was not freed.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_n_outputs(model: *const Model) -> usize {
    // SAFETY: NULL, or a live model, as the header says.
    unsafe { model.as_ref() }.map_or(0, |model| model.outputs.len())
}

/// Describes an input.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_input_port(
    model: *const Model,
    index: usize,
    port: *mut CPort,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let model = unsafe { object("the model", model)? };
        let refuse = |n| Failure::NoSuchPort { what: "input", index, n, status: Status::Input };
        // SAFETY: as the header says.
        unsafe { show(&model.inputs, index, refuse, port) }
    })
}

/// Describes an output.
///
/// # Safety
///
/// The pointers are as the header says.
#[expect(unsafe_code, reason = "the border to C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn torchless_output_port(
    model: *const Model,
    index: usize,
    port: *mut CPort,
    error: *mut *mut CError,
) -> i32 {
    call(error, || {
        // SAFETY: as the header says.
        let model = unsafe { object("the model", model)? };
        let refuse = |n| Failure::NoSuchPort { what: "output", index, n, status: Status::Output };
        // SAFETY: as the header says.
        unsafe { show(&model.outputs, index, refuse, port) }
    })
}

/// Writes port `index` of `ports` to memory of C, which need not be initialised. Where there is no
/// such port, `refuse` returns the error for the number of `ports`.
///
/// # Safety
///
/// `to` is NULL, or can be written to.
#[expect(unsafe_code, reason = "the border to C: memory that is written")]
unsafe fn show(
    ports: &[Port],
    index: usize,
    refuse: impl FnOnce(usize) -> Failure,
    to: *mut CPort,
) -> Result<(), Failure> {
    let port = ports.get(index).ok_or_else(|| refuse(ports.len()))?;
    if to.is_null() {
        return Err(Failure::Null { what: "the port" });
    }
    if !to.is_aligned() {
        return Err(Failure::Misaligned { what: "port".to_owned() });
    }
    // SAFETY: not NULL and aligned; the header asks for memory that can be written to.
    unsafe { to.write(port.show()) };
    Ok(())
}
