//! Descriptors: name, parameters, source and status of a controller, recovery, queue, loss process, source or link.
//!
//! One list of descriptors per kind drives the parser, help, documentation, Python, fuzzing and sweeps.

use crate::spec::{Spec, SpecError};
use crate::units::{self, Unit};

/// How far a part has been checked against published numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Status {
    /// Agrees with published numbers or a reference implementation; says which.
    Validated(&'static str),
    /// Checked, and differs; says where and why.
    Differs(&'static str),
    /// Matches no published number yet.
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
    /// Where the default comes from: RFC section, paper section, source.
    pub origin: &'static str,
}

/// What values a parameter takes. Numbers are held in the unit's base: seconds, bytes, bit/s,
/// fractions.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A number in `[min, max]`.
    Number {
        /// Its unit; values are held in the unit's base.
        unit: Unit,
        /// Smallest legal value.
        min: f64,
        /// Largest legal value.
        max: f64,
        /// Value when not given.
        default: f64,
    },
    /// One of some words; the first is the default.
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
    /// What it senses (controllers), or takes as input.
    pub senses: &'static str,
    /// What it sets (controllers), or does.
    pub sets: &'static str,
    /// Its parameters, in the order in which unnamed arguments fill them.
    pub params: &'static [Param],
    /// How far it has been checked.
    pub status: Status,
}

/// A quantity that is followed over time: a column of the tables of time series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The column's name. A time in seconds ends with `_s`, a rate in bit/s with `_bps`.
    pub name: &'static str,
    /// Empty where it has none.
    pub unit: &'static str,
    /// One line: what it is.
    pub meaning: &'static str,
    /// What the values 0, 1, 2 … are called, where they stand for states.
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
    /// The meaning in one line, with the names of the states.
    pub fn explained(&self) -> String {
        if self.states.is_empty() {
            return self.meaning.to_string();
        }
        let states: Vec<String> =
            self.states.iter().enumerate().map(|(i, s)| format!("{i} {s}")).collect();
        format!("{}: {}", self.meaning, states.join(", "))
    }
}

/// Values of a part's parameters: given ones over defaults.
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
    /// All defaults.
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
    /// An unknown parameter, a value of the wrong form, or one out of range; the message says
    /// which, and what would be right.
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
    /// If the part has no such number: a mistake in the part's own code, which the test that
    /// builds every listed part finds.
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
    /// Whether the user gave this parameter; false if it has its default.
    pub fn given(&self, name: &str) -> bool {
        self.params.iter().any(|(n, v)| {
            *n == name && matches!(v, Value::Number(_, true) | Value::Choice(_, true))
        })
    }
    /// The unnamed whole numbers.
    pub fn integers(&self) -> &[u64] {
        &self.integers
    }
}
