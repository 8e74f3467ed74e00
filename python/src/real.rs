//! Protocols outside of the simulation: over UDP sockets of this machine, and in the kernel's TCP.

use crate::controller;
use crate::errors::SpecError;
use crate::work;
use narrows_speed::{MeasuredRun, SimVsReal};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::Ordering;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(loopback, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_class::<kernel::InKernel>()?;
    Ok(())
}

fn observed<'py>(py: Python<'py>, seen: &MeasuredRun) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("goodput_bps", seen.goodput_bps)?;
    found.set_item("rtt_s", seen.rtt_s)?;
    found.set_item("wait_s", seen.wait_s)?;
    found.set_item("offered", seen.offered)?;
    Ok(found)
}

/// One transfer over real sockets through a relay that emulates the link, and the same in simulation.
#[pyfunction]
pub fn loopback<'py>(
    py: Python<'py>,
    protocol: String,
    link: String,
    seconds: f64,
    packet: u32,
    seed: u64,
) -> PyResult<[Bound<'py, PyDict>; 2]> {
    if !(0.1..=3600.0).contains(&seconds) {
        return Err(SpecError::new_err(format!(
            "seconds is {seconds}; from 0.1 to 3600 are possible"
        )));
    }
    let both = SimVsReal { protocol, link, packet, seconds };
    both.check().map_err(SpecError::new_err)?;
    let python_error = |e| controller::error(e, SpecError::new_err);
    let [real, simulated] = work::run(py, None, move |watch| {
        let simulated = both.simulated(seed).map_err(python_error)?;
        let name = both.protocol.trim_start_matches("rrtp+").split('(').next().unwrap_or_default();
        let goes_on = || !watch.stop.load(Ordering::Relaxed) && !controller::has_failed(name);
        let (real, _) = both.real_while(seed, &goes_on).map_err(python_error)?;
        Ok([real, simulated])
    })?;
    Ok([observed(py, &real)?, observed(py, &simulated)?])
}

/// Controllers in the kernel's TCP, by eBPF.
#[cfg(target_os = "linux")]
mod kernel {
    use crate::errors::SpecError;
    use narrows_kernel::{Agent, Choice, Error};
    use pyo3::exceptions::{PyOSError, PyPermissionError};
    use pyo3::prelude::*;
    use std::sync::{Mutex, PoisonError};

    /// A controller in the kernel's list of congestion controls, until it is unloaded.
    #[pyclass(frozen, module = "narrows._narrows")]
    pub struct InKernel {
        #[pyo3(get)]
        name: String,
        agent: Mutex<Option<Agent>>,
    }

    fn error(e: &Error) -> PyErr {
        let text = e.to_string();
        match e {
            Error::NotPermitted => PyPermissionError::new_err(text),
            Error::Specification(_) | Error::NeedsRrtp(_) | Error::Unresponsive(_) => {
                SpecError::new_err(text)
            }
            _ => PyOSError::new_err(text),
        }
    }

    #[pymethods]
    impl InKernel {
        #[new]
        fn new(py: Python<'_>, specification: &str) -> PyResult<InKernel> {
            let choice = Choice::new(specification).map_err(|e| error(&e))?;
            // Without the GIL, which the agent's first calls may need.
            let loaded = py.detach(|| Agent::load(choice));
            let (name, agent) = loaded.map_err(|e| error(&e))?;
            Ok(InKernel { name, agent: Mutex::new(Some(agent)) })
        }
        /// Unloads it. Its connections continue as Reno.
        fn unload(&self, py: Python<'_>) {
            let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner).take();
            py.detach(|| drop(agent));
        }
    }
}
