//! A class of Python, or what makes an object like one, while it is lent.

use pyo3::{Py, PyAny};

pub struct Class {
    pub name: &'static str,
    /// Called with the parameters that a specification gives.
    pub factory: Py<PyAny>,
    /// Attributes that are columns of its time series.
    pub variables: &'static [&'static str],
}
