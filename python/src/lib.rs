//! The compiled part of the Python package `narrows`: arguments are texts, results are tables. The public interface is
//! above it, in `python/narrows`.

mod compare;
mod controller;
mod env;
mod errors;
mod outcome;
mod packed;
mod real;
mod scorecard;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;

// Python controllers rely on the GIL during a simulation: a free-threaded interpreter enables it again, with a warning.
#[pymodule(gil_used = true)]
fn _narrows(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    narrows_printed::add(narrows_sim::Registry::new()).install().map_err(errors::spec)?;
    errors::register(m)?;
    compare::register(m)?;
    controller::register(m)?;
    real::register(m)?;
    env::register(m)?;
    outcome::register(m)?;
    scorecard::register(m)?;
    sweep::register(m)?;
    table::register(m)?;
    Ok(())
}
