//! Python classes as controllers: they are available by name during a call that uses them.

use super::class::Class;
use super::compiled::{Compiled, CompiledLayout};
use super::failure::{self, COMPILED, INTERPRETED};
use super::interpreted::{ConstructorParameter, Failed, Interpreted};
use crate::errors::{SpecError, spec};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};
use narrows_congestion::{Controller, ControllerEntry, Environment};
use narrows_sim as sim;
use narrows_sim::protocol::{ProtocolEntry, STREAM_PREFIX};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A class while it is lent.
#[derive(Clone)]
struct LentClass {
    class: Arc<Class>,
    /// Its compiled methods, if it is compiled.
    layout: Option<CompiledLayout>,
}

/// Description of a class by the package's Python code: see `_inspect` in `controller.py`.
#[derive(FromPyObject, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Shape {
    name: String,
    summary: String,
    source: String,
    /// Name and kind (`float`, `int` or `bool`) of each parameter.
    parameters: Vec<(String, String)>,
    /// Name, unit and meaning of each variable.
    variables: Vec<(String, String, String)>,
    version: u64,
    is_compiled: bool,
}

/// Entries that live as long as the process, as names in the lists do; each shape has one, which is reused.
struct Entries {
    controller: ControllerEntry,
    over_tcp: ProtocolEntry,
    over_rrtp: ProtocolEntry,
    variables: &'static [&'static str],
    /// The class, while it is lent.
    lent: &'static Mutex<Option<LentClass>>,
}

/// A class that is lent at present.
struct InUse {
    /// Number of calls that use it.
    calls: usize,
    factory: Py<PyAny>,
    shape: Shape,
    entries: &'static Entries,
    _loan: sim::Loan,
}

#[derive(Default)]
struct LentClasses {
    entries: BTreeMap<Shape, &'static Entries>,
    in_use: BTreeMap<String, InUse>,
}

static KNOWN: Mutex<Option<LentClasses>> = Mutex::new(None);

/// Calls `look` with the table. While it waits for the lock, the GIL is released, since the lock's holder may need it.
fn known<T>(py: Python<'_>, look: impl FnOnce(&mut LentClasses) -> T) -> T {
    let mut known = KNOWN.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    look(known.get_or_insert_default())
}

fn leaked(text: &str) -> &'static str {
    String::leak(text.to_string())
}

impl Entries {
    fn new(shape: &Shape) -> &'static Entries {
        let name = leaked(&shape.name);
        let params = shape.parameters.iter().map(|(parameter, kind)| Param {
            name: leaked(parameter),
            help: "of its constructor",
            kind: match kind.as_str() {
                "bool" => ParamKind::Choice(&["off", "on"]),
                // The constructor has its own default: parameters that are not given are not passed.
                _ => ParamKind::Number {
                    unit: Unit::None,
                    min: f64::MIN,
                    max: f64::MAX,
                    default: 0.0,
                },
            },
            origin: "its class",
        });
        let params: &'static [Param] = Vec::leak(params.collect());
        let kinds: &'static [String] =
            Vec::leak(shape.parameters.iter().map(|(_, kind)| kind.clone()).collect());
        let variables = shape.variables.iter().map(|(name, unit, meaning)| {
            Variable::new(leaked(name), leaked(unit), leaked(meaning))
        });
        let variables: &'static [Variable] = Vec::leak(variables.collect());
        let descriptor: &'static Descriptor = Box::leak(Box::new(Descriptor {
            name,
            summary: leaked(&shape.summary),
            source: leaked(&shape.source),
            senses: "what its class asks for",
            sets: "window, and a pacing rate if it has one",
            params,
            status: Status::NotValidated,
        }));
        let lent: &'static Mutex<Option<LentClass>> = Box::leak(Box::default());
        let build = move |settings: &Settings, environment: &Environment| {
            let lent = lent.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(LentClass { class, layout }) = lent else {
                return Box::new(Failed) as Box<dyn Controller>;
            };
            let given = params.iter().zip(kinds).filter(|(p, _)| settings.given(p.name));
            let given: Vec<_> = given.map(|(p, kind)| (p.name, value(settings, p, kind))).collect();
            match &layout {
                Some(layout) => Compiled::build(&class, layout, &given, environment),
                None => Interpreted::build(&class, &given, environment),
            }
        };
        let scope = if shape.is_compiled { COMPILED } else { INTERPRETED };
        let controller = ControllerEntry::from_closure(descriptor, Box::leak(Box::new(build)))
            .with_variables(variables)
            .with_scope(scope)
            .with_version(shape.version);
        let names = variables.iter().map(|v| v.name).collect();
        Box::leak(Box::new(Entries {
            controller,
            over_tcp: ProtocolEntry::tcp(name, name, "sack", descriptor.summary),
            over_rrtp: ProtocolEntry::stream(
                leaked(&format!("{STREAM_PREFIX}{name}")),
                name,
                descriptor.summary,
            ),
            variables: Vec::leak(names),
            lent,
        }))
    }

    fn put(&self, lent: Option<LentClass>) {
        let before = {
            let mut place = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, lent)
        };
        // After the lock is released, since dropping a class may run Python code.
        drop(before);
    }
}

fn value(settings: &Settings, param: &Param, kind: &str) -> ConstructorParameter {
    match kind {
        "bool" => ConstructorParameter::Bool(settings.choice(param.name) == "on"),
        "int" => ConstructorParameter::Int(settings.number(param.name) as i64),
        _ => ConstructorParameter::Float(settings.number(param.name)),
    }
}

/// A class that is available by its name until this is released.
#[pyclass(frozen, module = "narrows._narrows")]
pub struct Loan {
    name: String,
    is_released: Mutex<bool>,
}

#[pymethods]
impl Loan {
    fn release(&self, py: Python<'_>) {
        let mut is_released = self.is_released.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_released, true) {
            return;
        }
        let ended = known(py, |known| {
            let in_use = known.in_use.get_mut(&self.name)?;
            in_use.calls -= 1;
            (in_use.calls == 0).then(|| known.in_use.remove(&self.name)).flatten()
        });
        if let Some(ended) = ended {
            ended.entries.put(None);
        }
    }
}

/// The exception that this controller raised outside of simulations.
#[pyfunction]
pub fn take_failure<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    failure::take(name).map(|e| e.into_value(py).into_bound(py).into_any())
}

impl Drop for Loan {
    fn drop(&mut self) {
        Python::attach(|py| self.release(py));
    }
}

/// Makes a class available by its name; `description` is the result of `_inspect`.
#[pyfunction]
pub fn lend(py: Python<'_>, description: &Bound<'_, PyAny>) -> PyResult<Loan> {
    let shape: Shape = description.extract()?;
    let factory: Py<PyAny> = description.getattr("factory")?.unbind();
    let layout: Option<CompiledLayout> = description.getattr("layout")?.extract()?;
    let name = shape.name.clone();
    let lent = known(py, |known| {
        if let Some(in_use) = known.in_use.get_mut(&name) {
            if in_use.factory.is(&factory) && in_use.shape == shape {
                in_use.calls += 1;
                return Ok(());
            }
            return Err(SpecError::new_err(format!(
                "two controllers are called '{name}' at the same time; give one of them another 'name', or write \
                 a parameter's value as '{name}(parameter=value)'"
            )));
        }
        failure::forget(&name);
        let entries = *known.entries.entry(shape.clone()).or_insert_with(|| Entries::new(&shape));
        let class = Arc::new(Class {
            name: entries.controller.descriptor.name,
            factory: factory.clone_ref(py),
            variables: entries.variables,
        });
        entries.put(Some(LentClass { class, layout }));
        match sim::Loan::new(&entries.controller, &entries.over_tcp, &entries.over_rrtp) {
            Ok(loan) => {
                let in_use = InUse { calls: 1, factory, shape, entries, _loan: loan };
                known.in_use.insert(name.clone(), in_use);
                Ok(())
            }
            Err(e) => {
                entries.put(None);
                Err(spec(e))
            }
        }
    });
    lent?;
    let loan = Loan { name, is_released: Mutex::new(false) };
    // It was built once, to determine its requirements.
    match failure::take(&loan.name) {
        Some(error) => {
            loan.release(py);
            Err(error)
        }
        None => Ok(loan),
    }
}
