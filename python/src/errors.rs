//! Errors as Python exceptions.

use narrows_base as base;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(
    narrows,
    SpecError,
    PyValueError,
    "An argument is wrong: what, where, and what would be right, as the command says it."
);

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("SpecError", m.py().get_type::<SpecError>())
}

/// An error in the input.
pub fn spec(e: base::SpecError) -> PyErr {
    SpecError::new_err(e.to_string())
}

/// Runs work that must not unwind into Python: a panic becomes a `PanicException`, which `except Exception` does not
/// catch.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => {
            let why = (panic.downcast_ref::<String>().map(String::as_str))
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no reason given");
            Err(PyRuntimeError::new_err(format!("a fault in narrows, not in your input: {why}")))
        }
    }
}
