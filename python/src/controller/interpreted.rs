//! A controller with methods in Python.

use super::class::Class;
use super::events::{Ack, DispersionEvent, HintsEvent, Loss, PacketOutcomeEvent, Start, Timeout};
use super::failure::{self, Fault};
use super::limits;
use narrows_base::{Duration, Time};
use narrows_congestion as congestion;
use narrows_congestion::{
    CloneController, CongestionEvent, Controller, Environment, PathEvent, SendLimits,
};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// An object of the user's class, for one flow.
pub struct Interpreted {
    class: Arc<Class>,
    object: Py<PyAny>,
    methods: Methods,
    /// The acknowledgement and the arguments of each call; reused, so that no memory is allocated.
    ack: Py<Ack>,
    arguments: Py<PyTuple>,
    has_rate: bool,
    has_ssthresh: bool,
    limits: SendLimits,
    next_tick: Time,
    failed: bool,
}

/// Bound methods, looked up once.
struct Methods {
    on_ack: Py<PyAny>,
    on_loss: Option<Py<PyAny>>,
    on_rto: Option<Py<PyAny>>,
    on_outcome: Option<Py<PyAny>>,
    on_hints: Option<Py<PyAny>>,
    on_dispersion: Option<Py<PyAny>>,
    on_tick: Option<Py<PyAny>>,
    next_tick: Option<Py<PyAny>>,
}

impl Methods {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Methods> {
        let optional = |name| object.getattr_opt(name).map(|m| m.map(Bound::unbind));
        Ok(Methods {
            on_ack: object.getattr("on_ack")?.unbind(),
            on_loss: optional("on_loss")?,
            on_rto: optional("on_rto")?,
            on_outcome: optional("on_outcome")?,
            on_hints: optional("on_hints")?,
            on_dispersion: optional("on_dispersion")?,
            on_tick: optional("on_tick")?,
            next_tick: optional("next_tick")?,
        })
    }
}

fn fresh_ack(py: Python<'_>) -> PyResult<(Py<Ack>, Py<PyTuple>)> {
    // A placeholder before the first acknowledgement.
    let none = congestion::Ack::of_packet(Time::ZERO, Duration::ZERO, Duration::ZERO);
    let ack = Py::new(py, Ack(none))?;
    let arguments = PyTuple::new(py, [&ack])?.unbind();
    Ok((ack, arguments))
}

/// References to an [`Ack`] without those of the user: this controller's and that of the arguments.
const OWN_REFERENCES: isize = 2;

#[allow(unsafe_code)]
fn references(ack: &Bound<'_, Ack>) -> isize {
    // SAFETY: a bound object is alive, and the GIL is held.
    unsafe { ffi::Py_REFCNT(ack.as_ptr()) }
}

impl Interpreted {
    /// A new object for a flow; an exception of the class ends the simulation.
    pub fn build(
        class: &Arc<Class>,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> Box<dyn Controller> {
        Python::attach(|py| {
            let made = Interpreted::new(py, class, arguments, environment);
            match made {
                Ok(made) => Box::new(made) as Box<dyn Controller>,
                Err(fault) => {
                    failure::record(class.name, "its constructor", Time::ZERO, fault);
                    Box::new(Failed)
                }
            }
        })
    }

    fn new(
        py: Python<'_>,
        class: &Arc<Class>,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> Result<Interpreted, Fault> {
        let object = ConstructorParameter::object(py, &class.factory, arguments, environment)?;
        let (ack, tuple) = fresh_ack(py)?;
        let mut made = Interpreted {
            class: class.clone(),
            methods: Methods::of(&object)?,
            has_rate: object.hasattr("pacing_rate")?,
            has_ssthresh: object.hasattr("ssthresh")?,
            object: object.unbind(),
            ack,
            arguments: tuple,
            limits: SendLimits::unpaced(1.0),
            next_tick: Time::NEVER,
            failed: false,
        };
        made.read(py, None)?;
        Ok(made)
    }

    /// Reads its limits, and the time of its next tick.
    fn read(&mut self, py: Python<'_>, ticked: Option<Time>) -> Result<(), Fault> {
        let object = self.object.bind(py);
        let number = |name: &str, value: Bound<'_, PyAny>| -> Result<f64, Fault> {
            value.extract().map_err(|_| {
                let shown = value.repr().map_or_else(|_| "?".into(), |r| r.to_string());
                let shown: String = shown.chars().take(60).collect();
                Fault::Limit(format!("{name} is {shown}, which is not a number"))
            })
        };
        let cwnd = number("cwnd", object.getattr(intern!(py, "cwnd"))?)?;
        let optional = |name: &str, value: Bound<'_, PyAny>| {
            if value.is_none() { Ok(None) } else { number(name, value).map(Some) }
        };
        let rate = match self.has_rate {
            true => optional("pacing_rate", object.getattr(intern!(py, "pacing_rate"))?)?,
            false => None,
        };
        let ssthresh = match self.has_ssthresh {
            true => optional("ssthresh", object.getattr(intern!(py, "ssthresh"))?)?,
            false => None,
        };
        self.limits = limits::checked(cwnd, rate, ssthresh).map_err(Fault::Limit)?;
        if let Some(next_tick) = &self.methods.next_tick {
            let next = optional("next_tick()", next_tick.call0(py)?.into_bound(py))?;
            self.next_tick = limits::checked_tick(next, ticked).map_err(Fault::Limit)?;
        }
        Ok(())
    }

    /// Calls a method and reads the limits that it has set.
    fn call(
        &mut self,
        method: &'static str,
        now: Time,
        ticked: Option<Time>,
        call: impl FnOnce(&mut Self, Python<'_>) -> PyResult<()>,
    ) {
        if self.failed {
            return;
        }
        Python::attach(|py| {
            let done = call(self, py).map_err(Fault::from).and_then(|()| self.read(py, ticked));
            if let Err(fault) = done {
                self.failed = true;
                self.next_tick = Time::NEVER;
                failure::record(self.class.name, method, now, fault);
            }
        });
    }
}

impl Controller for Interpreted {
    fn on_ack(&mut self, ack: &congestion::Ack) {
        self.call("on_ack", ack.now, None, |this, py| {
            if references(this.ack.bind(py)) != OWN_REFERENCES {
                (this.ack, this.arguments) = fresh_ack(py)?;
            }
            this.ack.bind(py).try_borrow_mut()?.0 = *ack;
            this.methods.on_ack.bind(py).call1(this.arguments.bind(py)).map(drop)
        });
    }

    fn send_limits(&self) -> SendLimits {
        self.limits
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) if self.methods.on_loss.is_some() => {
                self.call("on_loss", recovery.now, None, |this, py| {
                    this.methods
                        .on_loss
                        .as_ref()
                        .map_or(Ok(()), |m| m.call1(py, (Loss(*recovery),)).map(drop))
                });
            }
            CongestionEvent::SlowStartRestart(restart) if self.methods.on_rto.is_some() => {
                self.call("on_rto", restart.now, None, |this, py| {
                    this.methods
                        .on_rto
                        .as_ref()
                        .map_or(Ok(()), |m| m.call1(py, (Timeout(*restart),)).map(drop))
                });
            }
            _ => {}
        }
    }

    fn on_packet_outcome(&mut self, outcome: &congestion::PacketOutcome) {
        if self.methods.on_outcome.is_some() {
            self.call("on_outcome", outcome.now, None, |this, py| {
                let method = this.methods.on_outcome.as_ref();
                method.map_or(Ok(()), |m| m.call1(py, (PacketOutcomeEvent(*outcome),)).map(drop))
            });
        }
    }

    fn on_path_event(&mut self, now: Time, event: &PathEvent) {
        match *event {
            PathEvent::Hints(hints) if self.methods.on_hints.is_some() => {
                self.call("on_hints", now, None, |this, py| {
                    let method = this.methods.on_hints.as_ref();
                    method.map_or(Ok(()), |m| m.call1(py, (HintsEvent(now, hints),)).map(drop))
                });
            }
            PathEvent::Dispersion(dispersion) if self.methods.on_dispersion.is_some() => {
                self.call("on_dispersion", now, None, |this, py| {
                    let method = this.methods.on_dispersion.as_ref();
                    let event = DispersionEvent(now, dispersion);
                    method.map_or(Ok(()), |m| m.call1(py, (event,)).map(drop))
                });
            }
            _ => {}
        }
    }

    fn on_tick(&mut self, now: Time) {
        self.call("on_tick", now, Some(now), |this, py| {
            let tick = this.methods.on_tick.as_ref();
            tick.map_or(Ok(()), |m| m.call1(py, (now.as_secs_f64(),)).map(drop))
        });
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if self.class.variables.is_empty() || self.failed {
            return;
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            for name in self.class.variables {
                // An attribute that is missing, or not a number, is a gap in the series.
                if let Ok(x) = object.getattr(*name).and_then(|value| value.extract()) {
                    put(name, x);
                }
            }
        });
    }
}

impl CloneController for Interpreted {
    fn clone_box(&self) -> Box<dyn Controller> {
        let copied = Python::attach(|py| -> PyResult<Interpreted> {
            let deepcopy = py.import("copy")?.getattr("deepcopy")?;
            let object = deepcopy.call1((&self.object,))?;
            let (ack, arguments) = fresh_ack(py)?;
            let class = self.class.clone();
            let methods = Methods::of(&object)?;
            let object = object.unbind();
            Ok(Interpreted { class, object, methods, ack, arguments, ..*self })
        });
        match copied {
            Ok(copy) => Box::new(copy),
            Err(e) => {
                failure::record(self.class.name, "copy.deepcopy", Time::ZERO, Fault::Raised(e));
                Box::new(Failed)
            }
        }
    }
}

/// A parameter of the constructor, as given by a specification.
#[derive(Clone, Copy, Debug)]
pub enum ConstructorParameter {
    Float(f64),
    Int(i64),
    Bool(bool),
}

impl ConstructorParameter {
    /// A new object of a class for a flow; calls `on_start`, if it exists.
    pub fn object<'py>(
        py: Python<'py>,
        factory: &Py<PyAny>,
        arguments: &[(&'static str, ConstructorParameter)],
        environment: &Environment,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = PyDict::new(py);
        for (name, value) in arguments {
            match value {
                ConstructorParameter::Float(x) => given.set_item(name, x)?,
                ConstructorParameter::Int(x) => given.set_item(name, x)?,
                ConstructorParameter::Bool(x) => given.set_item(name, x)?,
            }
        }
        let object = factory.bind(py).call((), Some(&given))?;
        if let Some(on_start) = object.getattr_opt("on_start")? {
            on_start.call1((Start(*environment),))?;
        }
        Ok(object)
    }
}

/// Replaces a controller that could not be created, until its simulation ends.
#[derive(Clone)]
pub struct Failed;

impl Controller for Failed {
    fn on_ack(&mut self, _: &congestion::Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(1.0)
    }
}
