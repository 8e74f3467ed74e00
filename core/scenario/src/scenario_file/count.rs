//! The number of flows of a group: a number, or an expression of a variable of the file.

use narrows_base::SpecError;
use serde::de::{Deserialize, Deserializer, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// `4`, `"n"`, `"n/2"` (rounded up) or `"2*n"`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CountExpression {
    /// A number in the file.
    Number(i64),
    /// An expression of a variable.
    Text(String),
}

impl CountExpression {
    /// The number, given the variables.
    ///
    /// # Errors
    /// A variable that does not exist, or another form.
    pub fn value(&self, variables: &BTreeMap<String, Spanned<i64>>) -> Result<i64, SpecError> {
        let text = match self {
            CountExpression::Number(n) => return Ok(*n),
            CountExpression::Text(text) => text.trim(),
        };
        let form = || {
            let e = format!("count = \"{text}\": a number, a variable \"n\", \"n/2\" or \"2*n\"");
            SpecError::new(e)
        };
        let factor = |t: &str| t.trim().parse::<i64>().ok().filter(|k| *k > 0).ok_or_else(form);
        let (name, times, over) = if let Some((name, over)) = text.split_once('/') {
            (name.trim(), 1, factor(over)?)
        } else if let Some((times, name)) = text.split_once('*') {
            (name.trim(), factor(times)?, 1)
        } else {
            (text, 1, 1)
        };
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(form());
        }
        let Some(value) = variables.get(name) else {
            let known: Vec<&str> = variables.keys().map(String::as_str).collect();
            return Err(SpecError::unknown("variable", name, &known).at("count"));
        };
        let value = value.get_ref().saturating_mul(times);
        // Rounded up: half of one flow is one flow.
        Ok(value.div_euclid(over).saturating_add(i64::from(value.rem_euclid(over) > 0)))
    }
}

impl<'de> Deserialize<'de> for CountExpression {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<CountExpression, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = CountExpression;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or a variable")
            }
            fn visit_i64<E>(self, n: i64) -> Result<CountExpression, E> {
                Ok(CountExpression::Number(n))
            }
            fn visit_str<E>(self, text: &str) -> Result<CountExpression, E> {
                Ok(CountExpression::Text(text.to_string()))
            }
        }
        d.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, n: i64) -> Result<i64, SpecError> {
        let variables = BTreeMap::from([("n".to_string(), Spanned::new(0..0, n))]);
        CountExpression::Text(text.into()).value(&variables)
    }

    #[test]
    fn a_count_follows_its_variable() {
        assert_eq!(of("n", 5), Ok(5));
        assert_eq!(of("n/2", 5), Ok(3), "rounded up");
        assert_eq!(of("n/2", 4), Ok(2));
        assert_eq!(of("3*n", 5), Ok(15));
        assert_eq!(of("2*n", i64::MAX), Ok(i64::MAX), "no overflow");
    }

    #[test]
    fn malformed_count_is_refused() {
        for (bad, hint) in [
            ("m", "unknown variable 'm'"),
            ("n/0", "\"n/2\""),
            ("n/-2", "\"n/2\""),
            ("x*n", "\"n/2\""),
            ("", "\"n/2\""),
            ("4", "\"n/2\""),
        ] {
            let e = of(bad, 1).unwrap_err().to_string();
            assert!(e.contains(hint), "{bad:?}: {e}");
        }
    }
}
