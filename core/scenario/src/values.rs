//! The syntax of the values of a link: `queue=30p`, `loss=1%`, `trace=FILE`. Every value can be written and read back
//! unchanged.

use crate::link_direction::{MIN_QUEUE_PACKETS, QueueSize, TraceStart};
use crate::text_file;
use narrows_base::rate::MAX_RATE;
use narrows_base::units::{self, Unit};
use narrows_base::{Duration, Rate, Spec, SpecError};
use narrows_link::{LossSpec, PolicerConfig, QueueConfig, QueueLimit, Trace, cellular, queue};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rate of a link without transmission time.
pub const UNLIMITED: &str = "unlimited";

/// A rate, or [`UNLIMITED`]: the largest rate, at which a packet of 1500 bytes takes 12 ps. The message for a range
/// explains where ranges are permitted.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn rate(text: &str) -> Result<Rate, SpecError> {
    no_range(text)?;
    if text.trim() == UNLIMITED {
        return Ok(MAX_RATE);
    }
    units::rate(text)
}

/// A time; the message for a range explains where ranges are permitted.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn delay(text: &str) -> Result<Duration, SpecError> {
    no_range(text)?;
    let d = units::duration(text)?;
    if d >= MAX_DELAY {
        return Err(SpecError::new(format!("'{text}' is longer than ten years")));
    }
    Ok(d)
}

/// Limit on all times of a run: ten years.
pub const MAX_DELAY: Duration = narrows_link::MAX_TIME;

fn no_range(text: &str) -> Result<(), SpecError> {
    if text.contains("..") {
        return Err(SpecError::new(format!(
            "'{text}': a range belongs in access= or egress=, where it is drawn per flow"
        )));
    }
    Ok(())
}

/// `30p`, `45kB`, `1bdp`, `max(1bdp,5p)`, `max(5p,45kB)`, `packets(1bdp,5p)` or `unlimited`.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn queue_size(text: &str) -> Result<QueueSize, SpecError> {
    const FORMS: &str = "a queue is written as 30p, 45kB, 1bdp, max(1bdp,5p), max(5p,45kB), packets(1bdp,5p) or unlimited";
    let t = text.trim();
    if let Some(inner) = t.strip_prefix("max(").and_then(|t| t.strip_suffix(')')) {
        let parts = inner.split_once(',').map(|(a, b)| (queue_size(a), queue_size(b)));
        return match parts {
            Some((Ok(QueueSize::Bdp(x)), Ok(QueueSize::Fixed(QueueLimit::Packets(n))))) => {
                Ok(QueueSize::AtLeast(x, n))
            }
            Some((
                Ok(QueueSize::Fixed(QueueLimit::Packets(packets))),
                Ok(QueueSize::Fixed(QueueLimit::Bytes(bytes))),
            )) => Ok(QueueSize::Fixed(QueueLimit::Either { packets, bytes })),
            _ => Err(SpecError::new(format!("'{t}': {FORMS}"))),
        };
    }
    if let Some(inner) = t.strip_prefix("packets(").and_then(|t| t.strip_suffix(')')) {
        let (product, fewest) = inner.split_once(',').unwrap_or((inner, "0p"));
        return match (queue_size(product), queue_size(fewest)) {
            (Ok(QueueSize::Bdp(x)), Ok(QueueSize::Fixed(QueueLimit::Packets(n)))) => {
                Ok(QueueSize::InPackets(x, n))
            }
            _ => Err(SpecError::new(format!("'{t}': {FORMS}"))),
        };
    }
    if t == "unlimited" {
        return Ok(QueueSize::Fixed(QueueLimit::Unlimited));
    }
    if let Some(number) = t.strip_suffix("bdp").or_else(|| t.strip_suffix("BDP")) {
        let factor = if number.is_empty() { Ok(1.0) } else { units::number(number, Unit::None) };
        return match factor {
            Ok(x) if (0.0..=1e9).contains(&x) => Ok(QueueSize::Bdp(x)),
            _ => Err(SpecError::new(format!("'{t}': {FORMS}"))),
        };
    }
    if let Some(number) = t.strip_suffix('p') {
        let packets = number.trim().parse::<u64>();
        return packets.map(|n| QueueSize::Fixed(QueueLimit::Packets(n))).map_err(|_| {
            SpecError::new(format!("'{t}' is not a whole number of packets; {FORMS}"))
        });
    }
    if t.parse::<f64>().is_ok() {
        return Err(SpecError::new(format!("'{t}' has no unit; {FORMS}")));
    }
    if !t.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return Err(SpecError::new(format!("'{t}': {FORMS}")));
    }
    let bytes = units::number(t, Unit::Bytes)?;
    Ok(QueueSize::Fixed(QueueLimit::Bytes(bytes.round() as u64)))
}

/// Queue management, as a discipline with its parameters: `red(min=5p)`.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn aqm(text: &str) -> Result<Option<Spec>, SpecError> {
    let spec = Spec::parse(text)?;
    let config = QueueConfig { limit: QueueLimit::Unlimited, aqm: Some(spec.clone()) };
    queue::limit(&config)?;
    Ok(Some(spec))
}

/// Longest trace file: 64 MB, some ten million delivery opportunities.
pub const MAX_TRACE: u64 = 64_000_000;

/// The trace of a file, and its absolute path; a relative one is found from the folder. `cellular(...)` is a model
/// ([`cellular`]); its text replaces the path.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn trace(text: &str, folder: &Path) -> Result<(PathBuf, Arc<Trace>), SpecError> {
    if let Some(trace) = cellular::read(text) {
        return Ok((text.trim().into(), Arc::new(trace?)));
    }
    let path = folder.join(text);
    let shown = path.display();
    let content = text_file::read(&path, MAX_TRACE, "trace")?;
    let trace = Trace::parse(&content).map_err(|e| e.at(&format!("trace '{shown}'")))?;
    // A saved scenario must find the file from any folder.
    let path = std::path::absolute(&path).unwrap_or(path);
    Ok((path, Arc::new(trace)))
}

/// `2s` or `random`.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn trace_start(text: &str) -> Result<TraceStart, SpecError> {
    if text.trim() == "random" {
        return Ok(TraceStart::Random);
    }
    delay(text).map(TraceStart::At).map_err(|e| {
        SpecError::new(format!("{e}; trace-start is a time into the trace, such as 0s, or random"))
    })
}

/// Writes a place in a trace so that it reads back exactly.
pub fn trace_start_text(start: TraceStart) -> String {
    match start {
        TraceStart::Random => "random".into(),
        TraceStart::At(d) => time_text(d),
    }
}

/// `1300B`, also without its unit, or `unlimited`: the MTU of a link.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn mtu(text: &str) -> Result<u32, SpecError> {
    const FORM: &str =
        "an MTU is written as 1300B (68 to 65535 bytes, headers included), or unlimited";
    let text = text.trim();
    if text == UNLIMITED {
        return Ok(u32::MAX);
    }
    let bytes = text.parse::<f64>().or_else(|_| units::number(text, Unit::Bytes));
    let bytes = bytes.ok().filter(|b| (68.0..=65_535.0).contains(b) && b.fract() == 0.0);
    bytes.map(|b| b as u32).ok_or_else(|| SpecError::new(format!("'{text}': {FORM}")))
}

/// Writes an MTU so that it reads back exactly.
pub fn mtu_text(mtu: u32) -> String {
    if mtu == u32::MAX { UNLIMITED.into() } else { format!("{mtu}B") }
}

/// `10Mbit/s/15kB`: rate and bucket of a policer.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub fn policer(text: &str) -> Result<PolicerConfig, SpecError> {
    const FORM: &str = "a policer is written as 10Mbit/s/15kB: its rate and its bucket";
    let wrong = |why: &str| SpecError::new(format!("'{text}': {why}; {FORM}"));
    let (tokens, burst) = text.trim().rsplit_once('/').ok_or_else(|| SpecError::new(FORM))?;
    let burst = match burst.trim().parse::<f64>() {
        Ok(_) => return Err(wrong("the bucket has no unit")),
        Err(_) => units::number(burst, Unit::Bytes).map_err(|e| wrong(&e.to_string()))?,
    };
    if !(1.0..=1e12).contains(&burst) {
        return Err(wrong("a bucket holds 1 byte to 1 TB"));
    }
    let rate = rate(tokens).map_err(|e| wrong(&e.to_string()))?;
    Ok(PolicerConfig { rate, burst: burst.round() as u64 })
}

/// Writes a policer so that it reads back exactly.
pub fn policer_text(policer: &PolicerConfig) -> String {
    format!("{}/{}", rate_text(policer.rate), Unit::Bytes.show(policer.burst as f64))
}

/// Writes all loss processes as one text.
pub fn loss_text(loss: &[LossSpec]) -> String {
    if loss.is_empty() {
        return "none".into();
    }
    // `uniform(1%)` reads back as well as 1%, with the same meaning.
    let texts: Vec<String> = loss.iter().map(LossSpec::text).collect();
    texts.join("+")
}

/// Writes a rate so that it reads back exactly.
pub fn rate_text(rate: Rate) -> String {
    if rate == MAX_RATE {
        return UNLIMITED.into();
    }
    let text = rate.to_string();
    if units::rate(&text) == Ok(rate) { text } else { format!("{}bit/s", rate.as_bps()) }
}

/// Writes a time so that it reads back exactly.
pub fn time_text(d: Duration) -> String {
    let text = d.to_string();
    if units::duration(&text) == Ok(d) { text } else { format!("{}ns", d.as_nanos()) }
}

/// Writes a queue's size.
pub fn queue_text(queue_size: QueueSize) -> String {
    match queue_size {
        QueueSize::Fixed(QueueLimit::Unlimited) => "unlimited".into(),
        QueueSize::Fixed(QueueLimit::Packets(n)) => format!("{n}p"),
        QueueSize::Fixed(QueueLimit::Bytes(n)) => format!("{n}B"),
        QueueSize::Fixed(QueueLimit::Either { packets, bytes }) => {
            format!("max({packets}p,{bytes}B)")
        }
        QueueSize::Bdp(x) => format!("{x}bdp"),
        QueueSize::InPackets(x, 0) => format!("packets({x}bdp)"),
        QueueSize::InPackets(x, n) => format!("packets({x}bdp,{n}p)"),
        QueueSize::AtLeast(x, n) => format!("max({x}bdp,{n}p)"),
        QueueSize::Usual => queue_text(QueueSize::AtLeast(1.0, MIN_QUEUE_PACKETS)),
    }
}
