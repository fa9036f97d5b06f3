//! Inputs of events as Python gives them: arrays that are read where they are.

use pyo3::prelude::*;
use torchless::encoder::{Column, EncoderInput, RaggedInput};

use crate::arrays::Array;

/// An input as Python gives it: its name and its array.
pub(crate) type GivenDense<'py> = (String, Bound<'py, PyAny>);

/// A ragged input as Python gives it: its name, offsets and arrays of columns.
pub(crate) type GivenRagged<'py> = (String, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>);

/// Inputs whose arrays are read.
pub(crate) struct InputArrays<'py> {
    dense: Vec<(String, Array<'py>)>,
    ragged: Vec<RaggedArrays<'py>>,
}

/// A ragged input whose arrays are read.
struct RaggedArrays<'py> {
    name: String,
    offsets: Array<'py>,
    columns: Vec<Array<'py>>,
}

impl<'py> InputArrays<'py> {
    /// Reads the arrays of inputs.
    pub(crate) fn new(dense: Vec<GivenDense<'py>>, ragged: Vec<GivenRagged<'py>>) -> PyResult<InputArrays<'py>> {
        let dense = dense.into_iter().map(|(name, array)| {
            let array = Array::new(&name, &array)?;
            Ok((name, array))
        });
        let ragged = ragged.into_iter().map(|(name, offsets, columns)| {
            let columns = columns.iter().map(|array| Array::new(&name, array)).collect::<PyResult<Vec<_>>>()?;
            Ok(RaggedArrays { offsets: Array::new(&name, &offsets)?, columns, name })
        });
        Ok(InputArrays { dense: dense.collect::<PyResult<_>>()?, ragged: ragged.collect::<PyResult<_>>()? })
    }

    /// Returns the inputs whose events have one shape.
    pub(crate) fn dense(&self, py: Python<'_>) -> PyResult<Vec<EncoderInput<'_>>> {
        self.dense
            .iter()
            .map(|(name, array)| Ok(EncoderInput { name, shape: array.shape(), values: array.values(py, name)? }))
            .collect()
    }

    /// Returns the columns of every ragged input.
    pub(crate) fn columns(&self, py: Python<'_>) -> PyResult<Vec<Vec<Column<'_>>>> {
        self.ragged
            .iter()
            .map(|arrays| {
                let columns = arrays.columns.iter().map(|array| array.columns(py, &arrays.name));
                Ok(columns.collect::<PyResult<Vec<_>>>()?.concat())
            })
            .collect()
    }

    /// Returns the ragged inputs, whose columns are `columns`.
    pub(crate) fn ragged<'a>(
        &'a self,
        py: Python<'_>,
        columns: &'a [Vec<Column<'a>>],
    ) -> PyResult<Vec<RaggedInput<'a>>> {
        self.ragged
            .iter()
            .zip(columns)
            .map(|(arrays, columns)| {
                Ok(RaggedInput { name: &arrays.name, offsets: arrays.offsets.offsets(py, &arrays.name)?, columns })
            })
            .collect()
    }
}
