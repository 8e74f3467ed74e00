//! A Python class, or another factory of controllers, while it is lent.

use pyo3::{Py, PyAny};

pub struct Class {
    pub name: &'static str,
    /// Called with the parameters of a specification.
    pub factory: Py<PyAny>,
    /// Attributes that are columns of its time series.
    pub variables: &'static [&'static str],
}
