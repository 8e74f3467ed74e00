//! The compiled part of the Python package `narrows`: arguments come in as text, results go out as tables. What
//! people use is above it, in `python/narrows`.

mod compare;
mod controller;
mod env;
mod errors;
mod outcome;
mod packed;
mod real;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;

// Controllers in Python rely on the lock while a simulation runs: a free-threaded interpreter turns it on again, and says so.
#[pymodule(gil_used = true)]
fn _narrows(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    compare::register(m)?;
    controller::register(m)?;
    real::register(m)?;
    env::register(m)?;
    outcome::register(m)?;
    sweep::register(m)?;
    table::register(m)?;
    Ok(())
}
