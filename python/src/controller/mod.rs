//! Controllers that are Python classes: added to the lists by name during a call ([`lent`]), called by the engine
//! ([`interpreted`], or [`compiled`] by numba), with their exceptions passed to the caller ([`failure`]).

mod class;
mod compiled;
mod events;
mod failure;
mod interpreted;
mod lent;
mod limits;

pub use failure::{error, has_failed, interrupt};

use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ControllerError", m.py().get_type::<failure::ControllerError>())?;
    m.add_class::<lent::Loan>()?;
    m.add_function(wrap_pyfunction!(lent::lend, m)?)?;
    m.add_function(wrap_pyfunction!(lent::take_failure, m)?)?;
    m.add_function(wrap_pyfunction!(compiled::layouts, m)?)?;
    events::register(m)
}
