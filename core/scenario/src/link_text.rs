//! The one-line link: `RATE,DELAY[,key=value]*`, or a name from [`crate::links`]; read and written.

use crate::keys::{self, REVERSE};
use crate::link::BottleneckLink;
use crate::link_direction::{LinkDirection, QueueSize};
#[cfg(feature = "simulator")]
use crate::user_links;
use crate::{links, values};
use narrows_base::{Duration, SpecError, spec, units};
use std::fmt;
use std::path::Path;

/// The form of a link, for error messages and help.
const FORM: &str =
    "a link is RATE,DELAY[,key=value]*, such as 1.5Mbit/s,80ms,queue=30p,loss=1%, or a name";

impl BottleneckLink {
    /// Reads a specification; trace files are found from `folder`.
    ///
    /// # Errors
    /// One line that gives the place, the error, and the expected form.
    pub fn parse(text: &str, folder: &Path) -> Result<BottleneckLink, SpecError> {
        BottleneckLink::parse_with(text, &[], folder)
    }

    /// The same, with these keys in place of the specification's own.
    ///
    /// # Errors
    /// As [`BottleneckLink::parse`].
    pub fn parse_with(
        text: &str,
        varied: &[(&str, &str)],
        folder: &Path,
    ) -> Result<BottleneckLink, SpecError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SpecError::new(format!("the link is empty; {FORM}")));
        }
        let pieces = spec::split(text)?;
        let first = pieces[0].trim();
        // A name may be followed by keys that replace its own: `geo,loss=1%`.
        let numeric = first.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            || first == values::UNLIMITED;
        let base;
        let (own, given) = if numeric {
            (pieces, Vec::new())
        } else {
            base = named(first)?;
            (spec::split(&base)?, pieces[1..].to_vec())
        };
        let mut keys = overridden(&own[own.len().min(2)..], &given)?;
        let replaced = [pairs(&given)?.as_slice(), varied].concat();
        keys.retain(|(k, _)| varied.iter().all(|(v, _)| v != k));
        keys.extend(varied);
        follows_its_trace(&keys, &replaced)?;
        let second = own.get(1).map_or("", |s| s.trim());
        let rate = values::rate(own[0].trim()).map_err(|e| match values::rate(second) {
            Ok(_) if values::delay(first).is_ok() => {
                SpecError::new(format!("the rate comes first: {second},{first}"))
            }
            _ => e,
        })?;
        if let Some(rtt) = second.strip_prefix("rtt=").map(values::delay).transpose()? {
            let half = values::time_text(Duration::from_nanos(rtt.as_nanos() / 2));
            return Err(SpecError::new(format!(
                "'{second}': the delay of a link is one way, half the RTT: {first},{half}"
            )));
        }
        if second.is_empty() || second.contains('=') {
            return Err(SpecError::new(format!("the delay is missing after '{first}'; {FORM}")));
        }
        let delay = values::delay(second)?;
        let forward = LinkDirection::new(rate, delay, QueueSize::Usual);
        let mut link = BottleneckLink {
            reverse: forward.clone(),
            forward,
            access: None,
            egress: None,
            host_delay: None,
        };
        let (reverse, forward): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|(key, _)| key.starts_with(REVERSE));
        for (key, value) in forward {
            let set = match (keys::find(key), keys::find_link_key(key)) {
                (Some(key), _) => (key.set)(&mut link.forward, value, folder),
                (None, Some(key)) => (key.set)(&mut link, value),
                (None, None) => return Err(unknown_key(key)),
            };
            set.map_err(|e| e.at(&format!("{key}={value}")))?;
        }
        // The other direction's defaults follow from this one's.
        link.reverse = link.forward.mirrored();
        for (key, value) in reverse {
            let known = key.strip_prefix(REVERSE).and_then(keys::find);
            let known = known.ok_or_else(|| unknown_key(key))?;
            (known.set)(&mut link.reverse, value, folder)
                .map_err(|e| e.at(&format!("{key}={value}")))?;
        }
        Ok(link)
    }
}

/// The specification of a named link: a built-in one, or one of the user.
fn named(name: &str) -> Result<String, SpecError> {
    if let Ok(own) = links::find(name) {
        return Ok(own.spec.into());
    }
    #[cfg(feature = "simulator")]
    let names = match user_links::find(name)? {
        Some(spec) => return Ok(spec),
        None => user_links::names(),
    };
    #[cfg(not(feature = "simulator"))]
    let names = Vec::new();
    links::find_among(name, &names).map(|l| l.spec.into())
}

fn unknown_key(key: &str) -> SpecError {
    if key == "rtt" {
        return SpecError::new("unknown key of a link 'rtt'; its delay is one way, half the RTT");
    }
    let known = keys::every_name();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    SpecError::unknown("key of a link", key, &known)
}

/// A link's own keys, replaced by the given ones where both exist.
fn overridden<'a>(
    own: &[&'a str],
    given: &[&'a str],
) -> Result<Vec<(&'a str, &'a str)>, SpecError> {
    let given = pairs(given)?;
    let mut out: Vec<(&str, &str)> =
        pairs(own)?.into_iter().filter(|(k, _)| given.iter().all(|(g, _)| g != k)).collect();
    out.extend(given);
    Ok(out)
}

/// Refuses a rate in place of that of a link with a trace: it would have no effect.
fn follows_its_trace(keys: &[(&str, &str)], replaced: &[(&str, &str)]) -> Result<(), SpecError> {
    for (rate, trace) in [("rate", "trace"), ("reverse-rate", "reverse-trace")] {
        let given = |key| replaced.iter().any(|(k, _)| *k == key);
        if let Some((_, own)) = keys.iter().find(|(k, _)| *k == trace)
            && given(rate)
            && !given(trace)
        {
            let e = format!("{rate}: the link follows {trace}={own}, which sets its rate");
            return Err(SpecError::new(format!("{e}; give another {trace}=")));
        }
    }
    Ok(())
}

fn pairs<'a>(pieces: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, SpecError> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for piece in pieces {
        let (key, value) = piece.split_once('=').ok_or_else(|| {
            SpecError::new(format!("'{}' is not key=value; {FORM}", piece.trim()))
        })?;
        let key = key.trim();
        let value = value.trim();
        if value.is_empty() {
            return Err(SpecError::new(format!("'{key}=' has no value")));
        }
        if out.iter().any(|(k, _)| *k == key) {
            return Err(SpecError::new(format!("'{key}' is given twice")));
        }
        out.push((key, value));
    }
    Ok(out)
}

impl fmt::Display for BottleneckLink {
    /// The specification in full; it reads back to the same link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forward = self.forward.pairs();
        write!(f, "{},{}", forward[0].1, forward[1].1)?;
        for (key, value) in &forward[2..] {
            write!(f, ",{key}={}", short(value))?;
        }
        for key in &keys::LINK_KEYS {
            if let Some(value) = (key.text)(self) {
                write!(f, ",{}={value}", key.name)?;
            }
        }
        let same = self.forward.mirrored().pairs();
        for (key, value) in self.reverse.pairs() {
            if !same.contains(&(key, value.clone())) {
                write!(f, ",{REVERSE}{key}={}", short(&value))?;
            }
        }
        Ok(())
    }
}

/// `1%` for `uniform(1%)`, if it reads back.
fn short(value: &str) -> &str {
    value
        .strip_prefix("uniform(")
        .and_then(|t| t.strip_suffix(')'))
        .filter(|p| units::share("loss", p).is_ok())
        .unwrap_or(value)
}
