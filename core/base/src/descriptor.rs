//! Descriptors: the name, parameters, source and validation status of a controller, recovery, queue, loss process,
//! traffic source or link.
//!
//! There is one list of descriptors per kind. The parser, help, documentation, tests and sweeps all read it.

use crate::spec::{Spec, SpecError};
use crate::units::{self, Unit};
use std::sync::atomic::{AtomicU32, Ordering};

/// How far a part has been checked against published numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Status {
    /// It agrees with published numbers or with a reference implementation; the text names them.
    Validated(&'static str),
    /// Results were compared and differ. The text names the difference and its cause.
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
    /// The parameter's effect, in one line.
    pub help: &'static str,
    /// The permitted values and the default.
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
        /// Default value.
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
    /// Description in one line, for tables and help.
    pub summary: &'static str,
    /// Paper or RFC.
    pub source: &'static str,
    /// Signals that a controller measures, or the input of another part.
    pub senses: &'static str,
    /// Limits that a controller sets, or the effect of another part.
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
    /// The unit; empty for a number without a unit.
    pub unit: &'static str,
    /// Meaning in one line.
    pub meaning: &'static str,
    /// Names of the values 0, 1, 2 …, if the variable is a state.
    pub states: &'static [&'static str],
}

impl Variable {
    /// A numeric quantity. `unit` is empty for a number without a unit.
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

/// The values of a part's parameters: those that the user set, and defaults for the rest.
///
/// Each access is recorded, so that [`Settings::refuse_unread`] can report settings without an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    params: Vec<ParameterSlot>,
    integers: Vec<u64>,
}

#[derive(Debug)]
struct ParameterSlot {
    name: &'static str,
    value: ParameterValue,
    given: bool,
    /// 0: not read; 1: read; n + 1: read in steps of 1/n.
    used: AtomicU32,
}

impl Clone for ParameterSlot {
    fn clone(&self) -> ParameterSlot {
        ParameterSlot { used: AtomicU32::new(self.used.load(Ordering::Relaxed)), ..*self }
    }
}

impl PartialEq for ParameterSlot {
    fn eq(&self, other: &ParameterSlot) -> bool {
        (self.name, self.value, self.given) == (other.name, other.value, other.given)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ParameterValue {
    Number(f64),
    Choice(&'static str),
}

impl Settings {
    /// The defaults of all parameters.
    pub fn defaults(params: &[Param]) -> Settings {
        let params = params
            .iter()
            .filter_map(|p| {
                let value = match p.kind {
                    ParamKind::Number { default, .. } => ParameterValue::Number(default),
                    ParamKind::Choice(words) => ParameterValue::Choice(words[0]),
                    ParamKind::Integers => return None,
                };
                Some(ParameterSlot { name: p.name, value, given: false, used: AtomicU32::new(0) })
            })
            .collect();
        Settings { params, integers: Vec::new() }
    }

    /// Reads the arguments of `spec` for a part with `params`.
    ///
    /// # Errors
    /// The error names an unknown parameter, a malformed value, or a value out of range, and the expected values.
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
                    ParameterValue::Number(x)
                }
                ParamKind::Choice(words) => {
                    let word = words.iter().find(|w| *w == text).ok_or_else(|| {
                        SpecError::unknown(
                            &format!("value of {}({}=…)", spec.name, param.name),
                            text,
                            words,
                        )
                    })?;
                    ParameterValue::Choice(word)
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

    fn put(&mut self, name: &str, value: ParameterValue) {
        if let Some(slot) = self.params.iter_mut().find(|s| s.name == name) {
            slot.value = value;
            slot.given = true;
        }
    }

    fn slot(&self, name: &str) -> Option<&ParameterSlot> {
        self.params.iter().find(|s| s.name == name)
    }

    /// A number's value in its unit's base.
    ///
    /// # Panics
    /// If the part declares no number of this name. That is a bug in the part; the test that builds
    /// every listed part finds it.
    pub fn number(&self, name: &str) -> f64 {
        match self.slot(name) {
            Some(ParameterSlot { value: ParameterValue::Number(x), used, .. }) => {
                used.fetch_max(1, Ordering::Relaxed);
                *x
            }
            _ => panic!("no number named {name} in this descriptor"),
        }
    }
    /// A number in steps of `1/per`, for a part that counts in these: [`Settings::refuse_unread`] refuses a value between
    /// two steps.
    ///
    /// # Panics
    /// As [`Settings::number`].
    pub fn steps(&self, name: &str, per: u16) -> u64 {
        let x = self.number(name);
        if let Some(slot) = self.slot(name) {
            slot.used.store(u32::from(per) + 1, Ordering::Relaxed);
        }
        (x * f64::from(per)).round() as u64
    }
    /// The word chosen for this parameter.
    ///
    /// # Panics
    /// As [`Settings::number`].
    pub fn choice(&self, name: &str) -> &'static str {
        match self.slot(name) {
            Some(ParameterSlot { value: ParameterValue::Choice(word), used, .. }) => {
                used.fetch_max(1, Ordering::Relaxed);
                word
            }
            _ => panic!("no choice named {name} in this descriptor"),
        }
    }
    /// Whether the user gave this parameter, even if with the value of its default.
    pub fn given(&self, name: &str) -> bool {
        self.slot(name).is_some_and(|s| s.given)
    }

    /// Refuses a given parameter that `build` does not read from these settings, and a number between the
    /// [steps](Settings::steps) of its reader. The error names the choices with which the parameter is read.
    ///
    /// # Errors
    /// One line about the first such parameter.
    pub fn refuse_unread(
        &self,
        part: &str,
        params: &[Param],
        build: impl Fn(&Settings),
    ) -> Result<(), SpecError> {
        if self.params.iter().all(|s| !s.given) {
            return Ok(());
        }
        build(self);
        let is_read = |s: &ParameterSlot| s.used.load(Ordering::Relaxed) > 0;
        for slot in self.params.iter().filter(|s| s.given) {
            let per = f64::from(slot.used.load(Ordering::Relaxed).saturating_sub(1));
            if let ParameterValue::Number(x) = slot.value
                && per > 0.0
                && (x * per).fract() != 0.0
            {
                let name = slot.name;
                let step = 1.0 / per;
                return Err(SpecError::new(format!(
                    "{part}({name}={x}): must be a multiple of {step} here"
                )));
            }
        }
        let Some(unread) = self.params.iter().find(|s| s.given && !is_read(s)) else {
            return Ok(());
        };
        let mut with = Vec::new();
        for p in params {
            let ParamKind::Choice(words) = p.kind else { continue };
            for word in words.iter().filter(|_| p.name != unread.name) {
                let mut other = self.clone();
                other.put(p.name, ParameterValue::Choice(word));
                other.params.iter_mut().for_each(|s| *s.used.get_mut() = 0);
                build(&other);
                if other.slot(unread.name).is_some_and(is_read) {
                    with.push(format!("{}={word}", p.name));
                }
            }
        }
        let name = unread.name;
        let instead = match with.as_slice() {
            [] => String::new(),
            all => format!("; it does with {}", all.join(" or ")),
        };
        Err(SpecError::new(format!("{part}: {name} has no effect here{instead}")))
    }

    /// The whole numbers given without a name ([`ParamKind::Integers`]).
    pub fn integers(&self) -> &[u64] {
        &self.integers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param {
            name: "mode",
            help: "",
            kind: ParamKind::Choice(&["steady", "random"]),
            origin: "",
        },
        Param {
            name: "spread",
            help: "",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 9.0, default: 1.0 },
            origin: "",
        },
        Param {
            name: "count",
            help: "",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 9.0, default: 1.0 },
            origin: "",
        },
    ];

    fn check(text: &str) -> Result<(), String> {
        let settings = Settings::read(&Spec::parse(text).unwrap(), PARAMS).unwrap();
        let build = |s: &Settings| {
            s.steps("count", 2);
            if s.choice("mode") == "random" {
                s.number("spread");
            }
        };
        settings.refuse_unread("part", PARAMS, build).map_err(|e| e.to_string())
    }

    #[test]
    fn unread_parameter_is_refused_with_the_parts_that_read_it() {
        assert_eq!(check("part"), Ok(()));
        assert_eq!(check("part(mode=random,spread=2)"), Ok(()));
        let refusal = check("part(spread=2)").unwrap_err();
        assert_eq!(refusal, "part: spread has no effect here; it does with mode=random");
        assert!(check("part(mode=steady,spread=1)").is_err(), "given with its default, too");
    }

    #[test]
    fn a_value_between_two_steps_is_refused() {
        assert_eq!(check("part(count=2.5)"), Ok(()));
        let refusal = check("part(count=2.25)").unwrap_err();
        assert_eq!(refusal, "part(count=2.25): must be a multiple of 0.5 here");
    }
}
