//! The one-line link: `RATE,DELAY[,key=value]*`, or a name from [`crate::links`].
//!
//! ```text
//!   sender --access--> [queue | rate] --delay--> (loss) --egress--> receiver
//!          <--access--          reverse-…         <--egress--
//! ```

use crate::access_link::AccessLink;
use crate::keys::{self, REVERSE};
use crate::link_direction::{self, LinkDirection, QueueSize};
use crate::links;
use narrows_base::{Duration, SpecError, spec};
use narrows_link::QueueLimit;
use std::fmt;
use std::path::Path;

/// A dumbbell's shape in short, for error messages and help.
pub const FORM: &str =
    "a link is RATE,DELAY[,key=value]*, such as 1.5Mbit/s,80ms,queue=30p,loss=1%, or a name";

/// No host is later than a tick of an old scheduler (100 Hz), however slow the link.
pub const MAX_HOST_DELAY: Duration = Duration::from_millis(10);

/// A bottleneck with each flow's own links before and after it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Data's direction.
    pub forward: LinkDirection,
    /// Acknowledgements' direction.
    pub back: LinkDirection,
    /// Each flow's own link before the bottleneck.
    pub access: Option<AccessLink>,
    /// Each flow's own link after the bottleneck.
    pub egress: Option<AccessLink>,
    /// Up to so much later each data packet leaves its host; `None` where nothing is said.
    pub host_delay: Option<Duration>,
}

impl Link {
    /// Reads a specification; trace files are found from `folder`.
    ///
    /// # Errors
    /// One line that says where, what, and what would be right.
    pub fn parse(text: &str, folder: &Path) -> Result<Link, SpecError> {
        Link::parse_with(text, &[], folder)
    }

    /// The same, with these keys in place of the specification's own.
    ///
    /// # Errors
    /// As [`Link::parse`].
    pub fn parse_with(
        text: &str,
        varied: &[(&str, &str)],
        folder: &Path,
    ) -> Result<Link, SpecError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SpecError::new(format!("the link is empty; {FORM}")));
        }
        let pieces = spec::split(text)?;
        let first = pieces[0].trim();
        // A name may be followed by keys that replace its own: `geo,loss=1%`.
        let numeric = first.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let base;
        let (own, given) = if numeric {
            (pieces, Vec::new())
        } else {
            base = links::find(first)?.spec;
            (spec::split(base)?, pieces[1..].to_vec())
        };
        let mut keys = overridden(&own[own.len().min(2)..], &given)?;
        keys.retain(|(k, _)| varied.iter().all(|(v, _)| v != k));
        keys.extend(varied);
        let rate = link_direction::rate(own[0].trim())?;
        let second = own.get(1).map_or("", |s| s.trim());
        if second.is_empty() || second.contains('=') {
            return Err(SpecError::new(format!("the delay is missing after '{first}'; {FORM}")));
        }
        let delay = link_direction::delay(second)?;
        let forward = LinkDirection::new(rate, delay, QueueSize::Usual);
        let mut link =
            Link { back: forward.clone(), forward, access: None, egress: None, host_delay: None };
        let (back, there): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|(key, _)| key.starts_with(REVERSE));
        for (key, value) in there {
            let set = match (keys::find(key), keys::find_link_key(key)) {
                (Some(key), _) => (key.set)(&mut link.forward, value, folder),
                (None, Some(key)) => (key.set)(&mut link, value),
                (None, None) => return Err(unknown_key(key)),
            };
            set.map_err(|e| e.at(&format!("{key}={value}")))?;
        }
        // What the other direction is without keys of its own follows from this one's.
        link.back = link.forward.mirrored();
        for (key, value) in back {
            let known = key.strip_prefix(REVERSE).and_then(keys::find);
            let known = known.ok_or_else(|| unknown_key(key))?;
            (known.set)(&mut link.back, value, folder)
                .map_err(|e| e.at(&format!("{key}={value}")))?;
        }
        Ok(link)
    }

    /// All one-way delays there and back; ranges count with their middle.
    pub fn base_rtt(&self) -> Duration {
        let own = |side: &Option<AccessLink>| {
            side.map_or(Duration::ZERO, |s| s.mean_delay().saturating_mul(2))
        };
        self.forward.delay + self.back.delay + own(&self.access) + own(&self.egress)
    }

    /// The bottleneck alone, for what has one link each way: the delays of `access` and `egress`, ranges
    /// with their middle, become its own. Being faster than it, they do nothing else to one flow
    /// but space its packets.
    ///
    /// # Errors
    /// One of them is not faster.
    pub fn folded(mut self) -> Result<Link, SpecError> {
        for (name, side) in [("access", self.access.take()), ("egress", self.egress.take())] {
            let Some(side) = side else { continue };
            for way in [&mut self.forward, &mut self.back] {
                way.delay += side.mean_delay();
                if (side.least_rate().as_bps() as f64) < way.mean_bps() {
                    return Err(SpecError::new(format!(
                        "{name}= must be faster than the link here: there is one link each way, which \
                         takes over its delay"
                    )));
                }
            }
        }
        Ok(self)
    }

    /// How late a host sends a packet at most when nothing is said: one packet's transmission time on
    /// the bottleneck, at most [`MAX_HOST_DELAY`].
    pub fn usual_host_delay(&self, packet_bytes: u32) -> Duration {
        let seconds = 8.0 * f64::from(packet_bytes) / self.forward.mean_bps();
        Duration::from_secs_f64(seconds.min(MAX_HOST_DELAY.as_secs_f64()))
    }

    /// The same link with its queues as numbers of packets or bytes, never as products.
    #[must_use]
    pub fn resolved(mut self, packet_bytes: u32) -> Link {
        let rtt = self.base_rtt();
        for way in [&mut self.forward, &mut self.back] {
            way.queue_size = QueueSize::Fixed(way.limit(rtt, packet_bytes));
        }
        self
    }

    /// One line for readers: rate, base RTT, their product, buffer, loss.
    pub fn describe(&self, packet_bytes: u32) -> String {
        let rtt = self.base_rtt();
        let bdp = link_direction::bdp_packets(self.forward.mean_bps(), rtt, packet_bytes, 1.0);
        let rate = match &self.forward.trace {
            Some((_, t)) => format!("{:.3} Mbit/s on average (trace)", t.mean_bps() / 1e6),
            None => link_direction::rate_text(self.forward.rate),
        };
        let buffer = match self.forward.limit(rtt, packet_bytes) {
            QueueLimit::Unlimited => "unlimited".to_string(),
            QueueLimit::Packets(n) => format!("{n} packets"),
            QueueLimit::Bytes(n) => format!("{n} B"),
        };
        let managed =
            self.forward.aqm.as_ref().map_or(String::new(), |aqm| format!(" under {aqm}"));
        let loss = if self.forward.loss.is_empty() {
            "no random loss".to_string()
        } else {
            format!("loss {}", short_loss(&self.forward))
        };
        format!(
            "{rate}, base RTT {rtt}, bandwidth-delay product {bdp} packets, buffer {buffer}{managed}, {loss}"
        )
    }
}

fn short_loss(way: &LinkDirection) -> String {
    let text = link_direction::loss_text(&way.loss);
    match text.strip_prefix("uniform(").and_then(|t| t.strip_suffix(')')) {
        Some(p) if !p.contains(['(', '+', '=']) => p.to_string(),
        _ => text,
    }
}

fn unknown_key(key: &str) -> SpecError {
    let known = keys::every_name();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    SpecError::unknown("key of a link", key, &known)
}

/// A link's own keys with the given ones in their place.
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

fn pairs<'a>(pieces: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, SpecError> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for piece in pieces {
        let (key, value) = piece.split_once('=').ok_or_else(|| {
            SpecError::new(format!("'{}' is not key=value; {FORM}", piece.trim()))
        })?;
        let (key, value) = (key.trim(), value.trim());
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

impl fmt::Display for Link {
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
        for (key, value) in self.back.pairs() {
            if !same.contains(&(key, value.clone())) {
                write!(f, ",{REVERSE}{key}={}", short(&value))?;
            }
        }
        Ok(())
    }
}

/// `1%` for `uniform(1%)`.
fn short(value: &str) -> &str {
    value
        .strip_prefix("uniform(")
        .and_then(|t| t.strip_suffix(')'))
        .filter(|p| p.starts_with(|c: char| c.is_ascii_digit()) && !p.contains(['(', ')', '+']))
        .unwrap_or(value)
}
