//! Exceptions and invalid limits of a controller: they end its simulation, and the exception, with its traceback, is
//! raised to the caller.
//!
//! The engine gets a line of text, through the [`SimulationScope`] of the simulating thread. The exception is stored here until
//! the call to which this text returns takes it.

use narrows_base::Time;
use narrows_congestion::SimulationScope;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_ulong;
use std::sync::{Mutex, MutexGuard, PoisonError};

create_exception!(
    narrows,
    ControllerError,
    PyRuntimeError,
    "A controller raised or set an impossible limit: which one, in which method, at which simulated time. What it \
     raised is the cause, with its own traceback."
);

/// Maximum number of stored exceptions; the oldest are dropped.
const MAX_WAITING: usize = 64;

thread_local! {
    static FAILED: RefCell<Option<String>> = const { RefCell::new(None) };
    static SIMULATES: Cell<bool> = const { Cell::new(false) };
}

static RAISED: Mutex<VecDeque<Raised>> = Mutex::new(VecDeque::new());

struct Raised {
    text: String,
    name: &'static str,
    error: PyErr,
}

fn raised() -> MutexGuard<'static, VecDeque<Raised>> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Simulations of Python controllers hold the GIL from beginning to end: taking it for each acknowledgement would cost
/// more than the acknowledgement. The interpreter releases it now and then.
pub const INTERPRETED: SimulationScope = SimulationScope { enter: enter_attached, failure };
/// Compiled controllers need no GIL.
pub const COMPILED: SimulationScope = SimulationScope { enter, failure };

fn enter_attached(simulation: &mut dyn FnMut()) {
    Python::attach(|py| {
        // The thread's identifier in Python; without one, the simulation cannot be interrupted.
        let thread = py.import("threading").and_then(|t| t.call_method0("get_ident")?.extract());
        let thread: Option<c_ulong> = thread.ok();
        running().extend(thread);
        enter(simulation);
        if let Some(thread) = thread {
            running().retain(|t| *t != thread);
        }
    });
}

/// Threads that are simulating Python controllers, by their identifiers in Python.
static RUNNING: Mutex<Vec<c_ulong>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<c_ulong>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises `KeyboardInterrupt` in the controllers' methods that are running: a method that does not return would prevent
/// its simulation from checking the stop flag.
pub fn interrupt(py: Python<'_>) {
    let raised = py.get_type::<PyKeyboardInterrupt>();
    for thread in running().iter() {
        #[allow(unsafe_code)]
        // SAFETY: the GIL is held, and the identifier of a thread that has ended is ignored.
        unsafe {
            ffi::PyThreadState_SetAsyncExc(*thread as _, raised.as_ptr());
        }
    }
}

fn enter(simulation: &mut dyn FnMut()) {
    FAILED.take();
    let outer = SIMULATES.replace(true);
    simulation();
    SIMULATES.set(outer);
    FAILED.take();
}

fn failure() -> Option<String> {
    FAILED.with_borrow(Clone::clone)
}

/// A failure of a controller.
pub enum Fault {
    /// A method raised an exception.
    Raised(PyErr),
    /// A limit is invalid. Contains its value and the valid range.
    Limit(String),
}

impl From<PyErr> for Fault {
    fn from(e: PyErr) -> Fault {
        Fault::Raised(e)
    }
}

/// Ends the simulation of this thread, if it is one, and stores the exception for its caller.
pub fn record(name: &'static str, method: &str, now: Time, fault: Fault) {
    let simulated = if SIMULATES.get() { " of simulated time" } else { "" };
    let place = format!("{method} at {:.6} s{simulated}", now.as_secs_f64());
    let (text, cause) = match fault {
        Fault::Limit(what) => (format!("controller '{name}' after {place}: {what}"), None),
        Fault::Raised(e) => Python::attach(|py| {
            let kind =
                e.get_type(py).name().map_or_else(|_| "an exception".into(), |n| n.to_string());
            let said = e.value(py).str().map_or_else(|_| String::new(), |s| s.to_string());
            let said = said.lines().next().unwrap_or_default();
            let colon = if said.is_empty() { "" } else { ": " };
            (format!("controller '{name}' raised in {place}: {kind}{colon}{said}"), Some(e))
        }),
    };
    let error = ControllerError::new_err(text.clone());
    if cause.is_some() {
        Python::attach(|py| error.set_cause(py, cause));
    }
    FAILED.with_borrow_mut(|failed| {
        failed.get_or_insert_with(|| text.clone());
    });
    let mut waiting = raised();
    if waiting.len() == MAX_WAITING {
        waiting.pop_front();
    }
    waiting.push_back(Raised { text, name, error });
}

/// The exception for an error of the laboratory: the controller's, if its text occurs in the error.
pub fn error(text: String, otherwise: fn(String) -> PyErr) -> PyErr {
    let mut waiting = raised();
    match waiting.iter().position(|r| text.contains(&r.text)) {
        Some(i) => waiting.remove(i).map_or_else(|| otherwise(text), |r| r.error),
        None => otherwise(text),
    }
}

/// Drops exceptions of a controller from earlier calls: several of their simulations may have failed.
pub fn forget(name: &str) {
    let (left, stays): (VecDeque<Raised>, VecDeque<Raised>) =
        std::mem::take(&mut *raised()).into_iter().partition(|r| r.name == name);
    raised().extend(stays);
    // After the lock is released, since dropping an exception may run Python code.
    drop(left);
}

/// Whether a controller of that name has raised outside of simulations.
pub fn has_failed(name: &str) -> bool {
    raised().iter().any(|r| r.name == name)
}

/// The exception that this controller raised outside of simulations.
pub fn take(name: &str) -> Option<PyErr> {
    let mut waiting = raised();
    let i = waiting.iter().position(|r| r.name == name)?;
    waiting.remove(i).map(|r| r.error)
}
