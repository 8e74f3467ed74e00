//! Long work in the background: the GIL is released, Ctrl-C stops the work, and progress is reported.

use crate::controller;
use crate::errors::guarded;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Interval of checks for Ctrl-C and of progress reports.
const POLL: Duration = Duration::from_millis(50);

/// Stop flag and progress of the work.
#[derive(Default)]
pub struct Watch {
    /// Set to request a stop.
    pub stop: AtomicBool,
    /// The finished fraction, as the bits of an `f64`.
    fraction: AtomicU64,
}

impl Watch {
    /// Sets the finished fraction.
    pub fn tell(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }
}

/// Runs `work` in a thread while this one waits without the GIL. `progress` is called with the finished fraction. An
/// exception of a signal handler or of `progress` stops the work and is raised here.
pub fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> PyResult<T> + Send,
) -> PyResult<T> {
    let watch = Watch::default();
    std::thread::scope(|scope| {
        let (tell, finished) = channel();
        // A receiver may be used by only one thread at a time; the closure that waits without the GIL must be `Send`.
        let finished = Mutex::new(finished);
        let watch = &watch;
        let worker = std::thread::Builder::new().name("narrows".into());
        let begun = worker.spawn_scoped(scope, move || {
            // The receiver is gone only after a panic of the waiting thread.
            let _ = tell.send(guarded(|| work(watch)));
        });
        begun.map_err(|e| PyRuntimeError::new_err(format!("no thread could be started: {e}")))?;
        let mut raised = None;
        loop {
            let wait =
                || finished.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL);
            match py.detach(wait) {
                Ok(result) => return raised.map_or(result, Err),
                Err(RecvTimeoutError::Disconnected) => {
                    let lost = "the thread of a simulation ended without a result";
                    return Err(PyRuntimeError::new_err(lost));
                }
                // A stop was requested, but the work continues.
                Err(RecvTimeoutError::Timeout) if raised.is_some() => controller::interrupt(py),
                Err(RecvTimeoutError::Timeout) => {
                    let fraction = f64::from_bits(watch.fraction.load(Ordering::Relaxed));
                    let called = progress.map_or(Ok(()), |p| p.call1((fraction,)).map(drop));
                    if let Err(e) = py.check_signals().and(called) {
                        watch.stop.store(true, Ordering::Relaxed);
                        raised = Some(e);
                    }
                }
            }
        }
    })
}
