//! Tables that any reader of Arrow can use without a copy: the Arrow PyCapsule interface.

use crate::packed::kept;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use narrows_report::columns::{Columns, Values};
use narrows_report::variables::Explained;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use std::collections::HashMap;
use std::sync::Arc;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Table>()
}

/// A decomposed column: name, unit, meaning, `text`, `whole` or `number`, and its values.
type Packed<'py> = (String, String, String, String, Vec<Bound<'py, PyAny>>);

/// A table in Arrow's memory format.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Table(RecordBatch);

impl Table {
    /// A table of the columns, with explanations from `explain`.
    pub fn new(columns: Columns, explain: impl Fn(&str) -> Explained) -> PyResult<Table> {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
            columns.0.into_iter().map(|(name, values)| column(name, values, &explain)).unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map(Table).map_err(cannot)
    }
}

fn column(name: String, values: Values, explain: impl Fn(&str) -> Explained) -> (Field, ArrayRef) {
    let (kind, array): (DataType, ArrayRef) = match values {
        Values::Text(x) => (DataType::Utf8, Arc::new(StringArray::from(x))),
        Values::Whole(x) => {
            let x: Vec<i64> = x.into_iter().map(|n| n as i64).collect();
            (DataType::Int64, Arc::new(Int64Array::from(x)))
        }
        // An absent number is null, as in the files.
        Values::Number(x) if x.iter().all(|v| v.is_finite()) => {
            (DataType::Float64, Arc::new(Float64Array::from(x)))
        }
        Values::Number(x) => {
            let x = x.into_iter().map(|v| v.is_finite().then_some(v));
            (DataType::Float64, Arc::new(Float64Array::from_iter(x)))
        }
    };
    let explained = explain(&name);
    let nullable = kind == DataType::Float64;
    let metadata = explained.into_iter().flat_map(|(unit, meaning)| {
        [("unit", unit.to_string()), ("meaning", meaning)].map(|(k, v)| (k.to_string(), v))
    });
    let metadata: HashMap<String, String> = metadata.filter(|(_, v)| !v.is_empty()).collect();
    (Field::new(name, kind, nullable).with_metadata(metadata), array)
}

fn cannot(e: ArrowError) -> PyErr {
    PyRuntimeError::new_err(e.to_string())
}

#[pymethods]
impl Table {
    /// Restores a table for pickle and copy.
    #[new]
    fn unpacked(columns: Vec<Packed<'_>>) -> PyResult<Table> {
        let mut explained = HashMap::new();
        let mut unpacked = Vec::new();
        for (name, unit, meaning, kind, values) in columns {
            let values = values.iter();
            let values = match kind.as_str() {
                "text" => Values::Text(values.map(|v| v.extract()).collect::<PyResult<_>>()?),
                "whole" => {
                    let whole = values.map(|v| v.extract::<i64>().map(|n| n as u64));
                    Values::Whole(whole.collect::<PyResult<_>>()?)
                }
                _ => {
                    let number = |v: &Bound<'_, PyAny>| v.extract::<Option<f64>>();
                    let number = values.map(|v| Ok(number(v)?.unwrap_or(f64::NAN)));
                    Values::Number(number.collect::<PyResult<_>>()?)
                }
            };
            if !unit.is_empty() || !meaning.is_empty() {
                explained.insert(name.clone(), (kept(&unit), meaning));
            }
            unpacked.push((name, values));
        }
        Table::new(Columns(unpacked), |name| explained.get(name).cloned())
    }

    /// Decomposes the table for pickle and copy.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, (Vec<Packed<'py>>,))> {
        let schema = self.0.schema();
        let one = |((name, unit, meaning), field): ((String, String, String), &Arc<Field>)| {
            let kind = match field.data_type() {
                DataType::Utf8 => "text",
                DataType::Int64 => "whole",
                _ => "number",
            };
            let values = self.column(py, &name)?;
            Ok((name, unit, meaning, kind.to_string(), values))
        };
        let columns = self.columns().into_iter().zip(schema.fields()).map(one);
        Ok((py.get_type::<Table>(), (columns.collect::<PyResult<_>>()?,)))
    }

    /// The table as a stream of one batch, which shares its memory.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore a request for other types.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(cannot)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Name, unit and meaning of every column.
    fn columns(&self) -> Vec<(String, String, String)> {
        let schema = self.0.schema();
        let of = |f: &Arc<Field>| {
            let says = |key| f.metadata().get(key).cloned().unwrap_or_default();
            (f.name().clone(), says("unit"), says("meaning"))
        };
        schema.fields().iter().map(of).collect()
    }

    /// A column's values; `None` for absent ones.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(column) = self.0.column_by_name(name) else {
            return Err(pyo3::exceptions::PyKeyError::new_err(name.to_string()));
        };
        let any = column.as_any();
        if let Some(x) = any.downcast_ref::<StringArray>() {
            x.iter().map(|v| Ok(v.into_pyobject(py)?.into_any())).collect()
        } else if let Some(x) = any.downcast_ref::<Int64Array>() {
            x.iter().map(|v| Ok(v.into_pyobject(py)?.into_any())).collect()
        } else if let Some(x) = any.downcast_ref::<Float64Array>() {
            x.iter().map(|v| Ok(v.into_pyobject(py)?.into_any())).collect()
        } else {
            Err(PyRuntimeError::new_err("a column of an unknown type"))
        }
    }
}
