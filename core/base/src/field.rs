//! Checks of specifications that programs fill in field by field, and the error that names the field.

use crate::spec::SpecError;
use crate::time::Duration;
use std::fmt;

/// A field of a specification has an impossible value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FieldError {
    /// Path of the field within the checked specification: `links[3].config.delay`.
    pub field: String,
    /// Why the value was rejected, and the expected value.
    pub why: String,
}

impl FieldError {
    /// An error at `field`. `why` names the fault and the expected value.
    pub fn new(field: impl Into<String>, why: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), why: why.into() }
    }
    /// The same error with the field's path prefixed: `field` becomes `part.field`.
    #[must_use]
    pub fn within(self, part: &str) -> FieldError {
        FieldError { field: format!("{part}.{}", self.field), why: self.why }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}
impl std::error::Error for FieldError {}

impl From<FieldError> for SpecError {
    fn from(e: FieldError) -> SpecError {
        SpecError::new(e.to_string())
    }
}

/// Checks that a probability lies in [0, 1].
///
/// # Errors
/// It lies outside, or is NaN.
pub fn probability(field: &str, p: f64) -> Result<(), FieldError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("{p} is not a probability: 0 to 1 is expected")))
}

/// Checks that a whole number lies in `[min, max]`.
///
/// # Errors
/// It lies outside.
pub fn whole(field: &str, n: u64, min: u64, max: u64) -> Result<(), FieldError> {
    if (min..=max).contains(&n) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("{n} is not between {min} and {max}")))
}

/// Checks that a number lies in `[min, max]`, where `max` may be infinite.
///
/// # Errors
/// It lies outside, or is NaN.
pub fn number(field: &str, x: f64, min: f64, max: f64) -> Result<(), FieldError> {
    if (min..=max).contains(&x) {
        return Ok(());
    }
    let why = match max.is_finite() {
        true => format!("{x} is not between {min} and {max}"),
        false => format!("{x} is not a number of at least {min}"),
    };
    Err(FieldError::new(field, why))
}

/// Checks that a time is at most `max`.
///
/// # Errors
/// It is longer.
pub fn at_most(field: &str, d: Duration, max: Duration) -> Result<(), FieldError> {
    if d <= max {
        return Ok(());
    }
    Err(FieldError::new(field, format!("{d} is longer than {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_number_is_refused_for_every_field() {
        assert!(probability("p", f64::NAN).is_err());
        assert!(number("x", f64::NAN, 0.0, f64::INFINITY).is_err());
        assert!(probability("p", 7.0).is_err() && probability("p", -0.1).is_err());
        assert!(
            probability("p", 1.0).is_ok() && number("x", f64::INFINITY, 0.0, f64::INFINITY).is_ok()
        );
    }

    #[test]
    fn the_path_to_a_field_grows_outwards() {
        let e = FieldError::new("loss", "7 is too much").within("config").within("links[3]");
        assert_eq!(e.to_string(), "links[3].config.loss: 7 is too much");
    }
}
