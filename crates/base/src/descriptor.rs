//! Descriptors: the name, parameters, source and validation status of a controller, recovery, queue, loss process,
//! traffic source or link.
//!
//! There is one list of descriptors per kind. The parser, help, documentation, tests and sweeps all read it.

use crate::spec::{Spec, SpecError};
use crate::units::{self, Unit};

/// How far a part has been checked against published numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Status {
    /// It agrees with published numbers or with a reference implementation; the text names them.
    Validated(&'static str),
    /// It was compared and differs; the text says where and why.
    Differs(&'static str),
    /// It has not been compared with published numbers yet.
    NotValidated,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Validated(by) => write!(f, "validated: {by}"),
            Status::Differs(why) => write!(f, "differs: {why}"),
            Status::NotValidated => f.write_str("not validated"),
        }
    }
}

/// One parameter of a part.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name that users write.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What values it takes.
    pub kind: ParamKind,
    /// Where the default comes from: RFC section, paper section or reference implementation.
    pub origin: &'static str,
}

/// The values that a parameter takes. Numbers are held in the base of their unit: seconds, bytes,
/// bit/s, fractions.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A number in `[min, max]`, both in the unit's base.
    Number {
        /// Its unit; values are held in the unit's base.
        unit: Unit,
        /// Smallest legal value.
        min: f64,
        /// Largest legal value.
        max: f64,
        /// Value if the user gives none.
        default: f64,
    },
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
    /// A list of whole numbers, given without a name; empty by default.
    Integers,
}

/// Describes one part that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name that users write.
    pub name: &'static str,
    /// What it is, in one line, for tables and help.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// What it measures (controllers), or what it takes as input (other parts).
    pub senses: &'static str,
    /// What it controls (controllers), or what it does (other parts).
    pub sets: &'static str,
    /// Its parameters, in the order in which unnamed arguments fill them.
    pub params: &'static [Param],
    /// How far it has been checked.
    pub status: Status,
}

/// A quantity recorded over time: one column of a time series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The column's name. A time in seconds ends with `_s`, a rate in bit/s with `_bps`.
    pub name: &'static str,
    /// The unit, or empty if it has none.
    pub unit: &'static str,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// Names of the values 0, 1, 2 …, if the variable is a state.
    pub states: &'static [&'static str],
}

impl Variable {
    /// A numeric quantity; `unit` is empty where it has none.
    pub const fn new(name: &'static str, unit: &'static str, meaning: &'static str) -> Variable {
        Variable { name, unit, meaning, states: &[] }
    }
    /// A state, numbered in the order of `states`.
    pub const fn state(
        name: &'static str,
        meaning: &'static str,
        states: &'static [&'static str],
    ) -> Variable {
        Variable { name, unit: "", meaning, states }
    }
    /// The meaning and the names of the states, in one line.
    pub fn explained(&self) -> String {
        if self.states.is_empty() {
            return self.meaning.to_string();
        }
        let states: Vec<String> =
            self.states.iter().enumerate().map(|(i, s)| format!("{i} {s}")).collect();
        format!("{}: {}", self.meaning, states.join(", "))
    }
}

/// The values of a part's parameters: what the user gave, and defaults for the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    params: Vec<(&'static str, Value)>,
    integers: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64, bool),
    Choice(&'static str, bool),
}

impl Settings {
    /// The defaults of all parameters.
    pub fn defaults(params: &[Param]) -> Settings {
        let params = params
            .iter()
            .filter_map(|p| match p.kind {
                ParamKind::Number { default, .. } => Some((p.name, Value::Number(default, false))),
                ParamKind::Choice(words) => Some((p.name, Value::Choice(words[0], false))),
                ParamKind::Integers => None,
            })
            .collect();
        Settings { params, integers: Vec::new() }
    }

    /// Reads the arguments of `spec` for a part with `params`.
    ///
    /// # Errors
    /// An unknown parameter, a value of the wrong form, or one out of range; the message names it
    /// and says what is expected.
    pub fn read(spec: &Spec, params: &[Param]) -> Result<Settings, SpecError> {
        let mut settings = Settings::defaults(params);
        let takes_integers = params.iter().any(|p| matches!(p.kind, ParamKind::Integers));
        let mut unnamed = 0;
        for (key, text) in &spec.args {
            let param = match key {
                Some(key) => params.iter().find(|p| p.name == key).ok_or_else(|| {
                    let names: Vec<&str> = params.iter().map(|p| p.name).collect();
                    SpecError::unknown(&format!("parameter of {}", spec.name), key, &names)
                })?,
                None if takes_integers => {
                    settings.integers.push(text.parse().map_err(|_| {
                        SpecError::new(format!("{}: '{text}' is not a whole number", spec.name))
                    })?);
                    continue;
                }
                None if params.iter().any(|p| p.name == text) => {
                    return Err(SpecError::new(format!(
                        "{0}: {text} has no value; write {0}({text}=…)",
                        spec.name
                    )));
                }
                None => {
                    unnamed += 1;
                    params.get(unnamed - 1).ok_or_else(|| {
                        SpecError::new(format!("{}: there is no place for '{text}'", spec.name))
                    })?
                }
            };
            let value = match param.kind {
                ParamKind::Number { unit, min, max, .. } => {
                    let x = units::number(text, unit).map_err(|e| {
                        SpecError::new(format!("{}({}=…): {e}", spec.name, param.name))
                    })?;
                    if !(min..=max).contains(&x) {
                        return Err(SpecError::new(format!(
                            "{}({}={text}): must be between {} and {}",
                            spec.name,
                            param.name,
                            unit.show(min),
                            unit.show(max)
                        )));
                    }
                    Value::Number(x, true)
                }
                ParamKind::Choice(words) => {
                    let word = words.iter().find(|w| *w == text).ok_or_else(|| {
                        SpecError::unknown(
                            &format!("value of {}({}=…)", spec.name, param.name),
                            text,
                            words,
                        )
                    })?;
                    Value::Choice(word, true)
                }
                ParamKind::Integers => {
                    return Err(SpecError::new(format!(
                        "{}: write the numbers without a name, as in {}(2000,2001)",
                        spec.name, spec.name
                    )));
                }
            };
            settings.put(param.name, value);
        }
        Ok(settings)
    }

    fn put(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.params.iter_mut().find(|(n, _)| *n == name) {
            slot.1 = value;
        }
    }

    /// A number's value in its unit's base.
    ///
    /// # Panics
    /// If the part declares no number of this name. That is a bug in the part; the test that builds
    /// every listed part finds it.
    pub fn number(&self, name: &str) -> f64 {
        match self.params.iter().find(|(n, _)| *n == name) {
            Some((_, Value::Number(x, _))) => *x,
            _ => panic!("no number named {name} in this descriptor"),
        }
    }
    /// The word chosen for this parameter.
    ///
    /// # Panics
    /// As [`Settings::number`].
    pub fn choice(&self, name: &str) -> &'static str {
        match self.params.iter().find(|(n, _)| *n == name) {
            Some((_, Value::Choice(w, _))) => w,
            _ => panic!("no choice named {name} in this descriptor"),
        }
    }
    /// Whether the user gave this parameter, even if with the value of its default.
    pub fn given(&self, name: &str) -> bool {
        self.params.iter().any(|(n, v)| {
            *n == name && matches!(v, Value::Number(_, true) | Value::Choice(_, true))
        })
    }
    /// The whole numbers given without a name ([`ParamKind::Integers`]).
    pub fn integers(&self) -> &[u64] {
        &self.integers
    }
}
