//! NumPy arrays as numbers of the library, without copies, and back.

use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use torchless::encoder::{Column, EncoderOutput, InputValues, Offsets, OutputValues};

use crate::error::input_error;

/// An array that Python has, read where it is.
pub(crate) enum Array<'py> {
    F32(PyReadonlyArrayDyn<'py, f32>),
    F64(PyReadonlyArrayDyn<'py, f64>),
    I64(PyReadonlyArrayDyn<'py, i64>),
    I32(PyReadonlyArrayDyn<'py, i32>),
    U32(PyReadonlyArrayDyn<'py, u32>),
    /// A copy: other bytes than 0 and 1 are possible in NumPy.
    Bool(Vec<bool>, Vec<usize>),
}

impl<'py> Array<'py> {
    /// Reads the array of the input `name`.
    pub(crate) fn new(name: &str, array: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
        fn of<'py, T: Element>(array: &Bound<'py, PyAny>) -> Option<PyReadonlyArrayDyn<'py, T>> {
            array.extract().ok()
        }
        if let Some(array) = of(array) {
            return Ok(Array::F32(array));
        }
        if let Some(array) = of(array) {
            return Ok(Array::F64(array));
        }
        if let Some(array) = of(array) {
            return Ok(Array::I64(array));
        }
        if let Some(array) = of(array) {
            return Ok(Array::I32(array));
        }
        if let Some(array) = of(array) {
            return Ok(Array::U32(array));
        }
        if of::<bool>(array).is_some() {
            let bytes: PyReadonlyArrayDyn<'py, u8> = array.call_method1("view", ("uint8",))?.extract()?;
            let values = bytes.as_slice()?.iter().map(|&byte| byte != 0).collect();
            return Ok(Array::Bool(values, bytes.shape().to_vec()));
        }
        let element = array.getattr("dtype")?.str()?;
        let message = format!("input `{name}`: arrays of {element} are not taken");
        Err(input_error(
            array.py(),
            message,
            Some("give numbers of single or double precision, integers or truth values"),
        ))
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Array::F32(array) => array.shape(),
            Array::F64(array) => array.shape(),
            Array::I64(array) => array.shape(),
            Array::I32(array) => array.shape(),
            Array::U32(array) => array.shape(),
            Array::Bool(_, shape) => shape,
        }
    }

    pub(crate) fn values(&self, py: Python<'_>, name: &str) -> PyResult<InputValues<'_>> {
        Ok(match self {
            Array::F32(array) => InputValues::F32(array.as_slice()?),
            Array::F64(array) => InputValues::F64(array.as_slice()?),
            Array::I64(array) => InputValues::I64(array.as_slice()?),
            Array::Bool(values, _) => InputValues::Bool(values),
            Array::I32(_) | Array::U32(_) => {
                return Err(input_error(py, format!("input `{name}`: it has integers of 32 bits"), None));
            }
        })
    }

    pub(crate) fn offsets(&self, py: Python<'_>, name: &str) -> PyResult<Offsets<'_>> {
        Ok(match self {
            Array::I64(array) => Offsets::I64(array.as_slice()?),
            Array::I32(array) => Offsets::I32(array.as_slice()?),
            Array::U32(array) => Offsets::U32(array.as_slice()?),
            _ => return Err(input_error(py, format!("input `{name}`: its offsets are not integers"), None)),
        })
    }

    /// Returns a column, or those of an array with a row of each particle.
    pub(crate) fn columns(&self, py: Python<'_>, name: &str) -> PyResult<Vec<Column<'_>>> {
        let values = self.values(py, name)?;
        match self.shape() {
            [] => Err(input_error(py, format!("input `{name}`: a column is a single number"), None)),
            [_] => Ok(vec![Column::contiguous(values)]),
            [_, sizes @ ..] => {
                let n_columns = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
                // A number of columns that the model does not have is refused later.
                let n_columns = n_columns.filter(|&n_columns| n_columns <= MOST_COLUMNS).unwrap_or(0);
                Ok(Column::of_rows(values, n_columns))
            }
        }
    }
}

/// Numbers of a particle, at most.
const MOST_COLUMNS: usize = 1 << 20;

/// Returns an output as an array, without a copy.
pub(crate) fn array(py: Python<'_>, output: EncoderOutput) -> PyResult<Bound<'_, PyAny>> {
    let shape = output.shape;
    Ok(match output.values {
        OutputValues::F32(values) => PyArray1::from_vec(py, values).reshape(shape)?.into_any(),
        OutputValues::F64(values) => PyArray1::from_vec(py, values).reshape(shape)?.into_any(),
        OutputValues::I64(values) => PyArray1::from_vec(py, values).reshape(shape)?.into_any(),
    })
}
