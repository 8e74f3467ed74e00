//! One direction of a link as users describe it: the values behind `queue=30p`, `loss=1%`, ….
//!
//! Shared by the one-line link specification and by scenario files, so that a key means the same
//! in both.

use crate::{keys, text_file};
use narrows_base::units::{self, Unit};
use narrows_base::{Duration, Rate, Spec, SpecError};
use narrows_link::{Impairments, LinkConfig, LossSpec, QueueConfig, QueueLimit, Trace, queue};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No router's queue is smaller than this many packets unless somebody says so.
pub const MIN_QUEUE_PACKETS: u64 = 10;

/// Room in a queue, before a bandwidth-delay product has become a number of packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueSize {
    /// A fixed limit.
    Fixed(QueueLimit),
    /// So many times rate × base RTT, rounded up to whole packets.
    Bdp(f64),
    /// The same, but at least so many packets: `max(1bdp,5p)`.
    AtLeast(f64, u64),
    /// What a link has when nothing is said: one such product, at least [`MIN_QUEUE_PACKETS`] packets.
    Usual,
}

/// Where a run enters a trace, which repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceStart {
    /// This far into it.
    At(Duration),
    /// Anywhere, drawn per seed.
    Random,
}

/// One direction of a link as specified.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    /// Serialisation rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Waiting room.
    pub queue_size: QueueSize,
    /// Queue management; `None` is drop-tail.
    pub aqm: Option<Spec>,
    /// Losses.
    pub loss: Vec<LossSpec>,
    /// Delivery opportunities that replace the rate, and the file that they came from.
    pub trace: Option<(PathBuf, Arc<Trace>)>,
    /// Where runs enter the trace; `None` is its beginning, unless a comparison says otherwise.
    pub trace_start: Option<TraceStart>,
    /// Jitter, reordering, duplication, corruption.
    pub impairments: Impairments,
}

impl LinkDirection {
    /// Without losses.
    pub fn new(rate: Rate, delay: Duration, queue_size: QueueSize) -> LinkDirection {
        LinkDirection {
            rate,
            delay,
            queue_size,
            aqm: None,
            loss: Vec::new(),
            trace: None,
            trace_start: None,
            impairments: Impairments::default(),
        }
    }

    /// What the other direction is when nothing is said: same rate, delay and queue, no loss.
    pub fn mirrored(&self) -> LinkDirection {
        LinkDirection {
            aqm: self.aqm.clone(),
            ..LinkDirection::new(self.rate, self.delay, self.queue_size)
        }
    }

    /// Sets what a key of [`keys::KEYS`] says; files are found from `folder`.
    ///
    /// # Errors
    /// An unknown key, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str, folder: &Path) -> Result<(), SpecError> {
        match keys::find(key) {
            Some(key) => (key.set)(self, value, folder),
            None => Err(SpecError::unknown("key", key, &keys::NAMES)),
        }
    }

    /// Rate in bit/s, of the trace if there is one.
    pub fn mean_bps(&self) -> f64 {
        self.trace.as_ref().map_or(self.rate.as_bps() as f64, |t| t.1.mean_bps())
    }

    /// The room for this base RTT and these packets.
    pub fn limit(&self, base_rtt: Duration, packet_bytes: u32) -> QueueLimit {
        match self.queue_size {
            QueueSize::Fixed(limit) => limit,
            QueueSize::Bdp(factor) => {
                QueueLimit::Packets(bdp_packets(self.mean_bps(), base_rtt, packet_bytes, factor))
            }
            QueueSize::AtLeast(factor, fewest) => {
                let product = bdp_packets(self.mean_bps(), base_rtt, packet_bytes, factor);
                QueueLimit::Packets(product.max(fewest))
            }
            QueueSize::Usual => {
                let product = bdp_packets(self.mean_bps(), base_rtt, packet_bytes, 1.0);
                QueueLimit::Packets(product.max(MIN_QUEUE_PACKETS))
            }
        }
    }

    /// For the simulator.
    pub fn config(&self, base_rtt: Duration, packet_bytes: u32, changes: bool) -> LinkConfig {
        LinkConfig {
            rate: self.rate,
            trace: self.trace.as_ref().map(|t| t.1.clone()),
            delay: self.delay,
            queue: QueueConfig { limit: self.limit(base_rtt, packet_bytes), aqm: self.aqm.clone() },
            loss: self.loss.clone(),
            impairments: self.impairments,
            changes,
        }
    }

    /// Keys and values that [`LinkDirection::set`] reads back to the same way.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        keys::KEYS.iter().filter_map(|k| Some((k.name, (k.text)(self)?))).collect()
    }
}

/// `factor` × rate × base RTT in whole packets, rounded up.
pub fn bdp_packets(bps: f64, base_rtt: Duration, packet_bytes: u32, factor: f64) -> u64 {
    let bits = f64::from(packet_bytes.max(1)) * 8.0;
    let packets = bps * (base_rtt.as_nanos() as f64) * factor / 1e9 / bits;
    // 1.5 Mbit/s × 0.16 s is 30 packets, not 31: a float's last digits are not a packet.
    (packets - packets * 1e-12).ceil() as u64
}

/// A rate; the message for a range says where ranges belong.
pub(crate) fn rate(text: &str) -> Result<Rate, SpecError> {
    no_range(text)?;
    units::rate(text)
}

/// A time; the message for a range says where ranges belong.
pub(crate) fn delay(text: &str) -> Result<Duration, SpecError> {
    no_range(text)?;
    let d = units::duration(text)?;
    if d >= MAX_DELAY {
        return Err(SpecError::new(format!("'{text}' is longer than ten years")));
    }
    Ok(d)
}

/// Longest time that any part of a run may have: ten years.
pub const MAX_DELAY: Duration = narrows_link::MAX_TIME;

fn no_range(text: &str) -> Result<(), SpecError> {
    if text.contains("..") {
        return Err(SpecError::new(format!(
            "'{text}': a range belongs in access= or egress=, where it is drawn per flow"
        )));
    }
    Ok(())
}

/// `30p`, `45kB`, `1bdp`, `max(1bdp,5p)` or `unlimited`.
pub(crate) fn queue_size(text: &str) -> Result<QueueSize, SpecError> {
    const FORMS: &str = "a queue is written as 30p, 45kB, 1bdp, max(1bdp,5p) or unlimited";
    let t = text.trim();
    if let Some(inner) = t.strip_prefix("max(").and_then(|t| t.strip_suffix(')')) {
        let parts = inner.split_once(',').map(|(a, b)| (queue_size(a), queue_size(b)));
        return match parts {
            Some((Ok(QueueSize::Bdp(x)), Ok(QueueSize::Fixed(QueueLimit::Packets(n))))) => {
                Ok(QueueSize::AtLeast(x, n))
            }
            _ => Err(SpecError::new(format!("'{t}': {FORMS}"))),
        };
    }
    if t == "unlimited" {
        return Ok(QueueSize::Fixed(QueueLimit::Unlimited));
    }
    if let Some(number) = t.strip_suffix("bdp") {
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

pub(crate) fn aqm(text: &str) -> Result<Option<Spec>, SpecError> {
    let spec = Spec::parse(text)?;
    let config = QueueConfig { limit: QueueLimit::Unlimited, aqm: Some(spec.clone()) };
    queue::limit(&config)?;
    Ok(Some(spec))
}

/// Longest trace file: 64 MB, some ten million delivery opportunities.
const MAX_TRACE: u64 = 64_000_000;

pub(crate) fn trace(text: &str, folder: &Path) -> Result<(PathBuf, Arc<Trace>), SpecError> {
    let path = folder.join(text);
    let shown = path.display();
    let content = text_file::read(&path, MAX_TRACE, "trace")?;
    let trace = Trace::parse(&content).map_err(|e| e.at(&format!("trace '{shown}'")))?;
    // A saved scenario must find the file from anywhere.
    let path = std::path::absolute(&path).unwrap_or(path);
    Ok((path, Arc::new(trace)))
}

pub(crate) fn trace_start(text: &str) -> Result<TraceStart, SpecError> {
    if text.trim() == "random" {
        return Ok(TraceStart::Random);
    }
    delay(text).map(TraceStart::At).map_err(|e| {
        SpecError::new(format!("{e}; trace-start is a time into the trace, such as 0s, or random"))
    })
}

pub(crate) fn trace_start_text(start: TraceStart) -> String {
    match start {
        TraceStart::Random => "random".into(),
        TraceStart::At(d) => time_text(d),
    }
}

/// What went wrong with a file, without the operating system's error number.
pub fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

pub(crate) fn reorder(text: &str) -> Result<(f64, Duration), SpecError> {
    let (p, late) = text.rsplit_once('/').ok_or_else(|| {
        SpecError::new(format!("'{text}': reordering is written as 1%/5ms: how often, how late"))
    })?;
    Ok((share(p)?, delay(late)?))
}

pub(crate) fn share(text: &str) -> Result<f64, SpecError> {
    let p = units::number(text, Unit::Fraction)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(SpecError::new(format!("'{text}' must be between 0 and 1 (100%)")));
    }
    Ok(p)
}

/// Losses as one text.
pub fn loss_text(loss: &[LossSpec]) -> String {
    if loss.is_empty() {
        return "none".into();
    }
    // `uniform(1%)` reads back, and is what 1% means.
    let texts: Vec<String> = loss.iter().map(LossSpec::text).collect();
    texts.join("+")
}

/// A rate that reads back exactly.
pub fn rate_text(rate: Rate) -> String {
    let text = rate.to_string();
    if units::rate(&text) == Ok(rate) { text } else { format!("{}bit/s", rate.as_bps()) }
}

/// A time that reads back exactly.
pub fn time_text(d: Duration) -> String {
    let text = d.to_string();
    if units::duration(&text) == Ok(d) { text } else { format!("{}ns", d.as_nanos()) }
}

/// A queue's room as text.
pub fn room_text(queue_size: QueueSize) -> String {
    match queue_size {
        QueueSize::Fixed(QueueLimit::Unlimited) => "unlimited".into(),
        QueueSize::Fixed(QueueLimit::Packets(n)) => format!("{n}p"),
        QueueSize::Fixed(QueueLimit::Bytes(n)) => format!("{n}B"),
        QueueSize::Bdp(x) => format!("{x}bdp"),
        QueueSize::AtLeast(x, n) => format!("max({x}bdp,{n}p)"),
        QueueSize::Usual => "1bdp".into(),
    }
}
