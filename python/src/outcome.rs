//! Results of comparisons and scenarios.

use crate::packed::{Packed, pack, unpack};
use crate::table::Table;
use narrows_lab::Outcome as Found;
use narrows_report::variables::{of_measures, of_series};
use narrows_report::{html, json, output, picture, seeds, series, summary};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::PathBuf;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Outcome>()
}

/// A simulated scenario, with its results.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Outcome {
    /// Text of the scenario file.
    pub toml: String,
    pub found: Found,
}

#[pymethods]
impl Outcome {
    /// Restores an outcome for pickle and copy.
    #[new]
    fn new(toml: String, packed: Packed) -> Outcome {
        Outcome { toml, found: unpack(packed) }
    }

    /// Decomposes the outcome for pickle and copy.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String, Packed)) {
        (py.get_type::<Outcome>(), (self.toml.clone(), pack(&self.found)))
    }

    /// The output of `--json`.
    fn json(&self) -> String {
        json::outcome(&self.found).to_string()
    }

    fn means(&self) -> PyResult<Table> {
        Table::new(summary::means(&self.found), of_measures)
    }

    fn seeds(&self) -> PyResult<Table> {
        Table::new(seeds::table(&self.found).unwrap_or_default(), of_measures)
    }

    fn flows(&self) -> PyResult<Table> {
        Table::new(summary::flows(&self.found), of_measures)
    }

    fn series(&self) -> PyResult<Table> {
        Table::new(series::table(&self.found), of_series(&self.found))
    }

    /// The command's table.
    fn text(&self) -> String {
        summary::table(&self.found, None)
    }

    /// Text of `comparison.svg`.
    fn svg(&self) -> String {
        picture::svg(&self.found)
    }

    /// Text of `report.html`.
    fn html(&self) -> String {
        html::html(&self.found)
    }

    /// Text of the scenario file.
    fn toml(&self) -> &str {
        &self.toml
    }

    /// Writes the files that the command writes.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        let write =
            || output::check_folder(&folder).and_then(|()| output::write_all(&self.found, &folder));
        py.detach(write).map_err(PyOSError::new_err)
    }
}
