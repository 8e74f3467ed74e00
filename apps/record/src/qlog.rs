//! `connection-N.sqlog`: one connection's events in the form of qlog 0.3
//! (draft-ietf-quic-qlog-main-schema-03 and draft-ietf-quic-qlog-quic-events-03), as JSON text
//! sequences (RFC 7464): every record begins with a record separator and ends with a line feed.
//!
//! `rrtp` is not QUIC: `packet_type` is `1RTT` because tools support that value, numbers are those in the packets'
//! headers, frames are sealed and not listed. Losses are counts (`packet_lost` with `count`), because their numbers are
//! not at hand outside of the endpoint.

use narrows_base::Time;
use narrows_net::tap::ConnectionOpened;
use narrows_transport::connection::{Closed, Stats};
use narrows_wire::header::ShortHeader;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::net::SocketAddr;

/// Bytes after which packets are no longer listed one by one.
const MAX_BYTES: u64 = 256 << 20;
const SEPARATOR: u8 = 0x1e;

/// The header of a file.
#[derive(Clone, Debug)]
pub struct Beginning<'a> {
    pub title: &'a str,
    /// The endpoint's name.
    pub name: &'a str,
    pub protocol: &'a str,
    pub opened: &'a ConnectionOpened,
    /// Nanoseconds since 1970 at which times begin.
    pub start: u64,
}

#[derive(Serialize)]
struct QlogEvent<'a, D> {
    time: f64,
    name: &'a str,
    data: D,
}

#[derive(Serialize)]
struct PacketData {
    header: HeaderData,
    raw: Raw,
}

#[derive(Serialize)]
struct HeaderData {
    packet_type: &'static str,
    packet_number: u64,
}

#[derive(Serialize)]
struct Raw {
    length: usize,
}

/// The file of one connection.
pub struct QlogFile<W: Write> {
    to: W,
    buffer: Vec<u8>,
    bytes: u64,
    max: u64,
    /// The highest numbers received and sent so far.
    highest: [Option<u64>; 2],
    /// Packets received and sent, and their UDP payload in bytes.
    pub packets: [(u64, u64); 2],
    /// Packets that are not listed because the file is full.
    pub beyond: u64,
    last: Stats,
}

impl<W: Write> QlogFile<W> {
    pub fn new(to: W, b: &Beginning<'_>) -> io::Result<QlogFile<W>> {
        let mut events = QlogFile {
            to,
            buffer: Vec::new(),
            bytes: 0,
            max: MAX_BYTES,
            highest: [None; 2],
            packets: [(0, 0); 2],
            beyond: 0,
            last: Stats::default(),
        };
        let vantage = if b.opened.dialled { "client" } else { "server" };
        let group = format!("{:08x}{:08x}", b.opened.id.0, b.opened.peer_id.0);
        let head = json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": b.title,
            "description": concat!("written by narrows ", env!("CARGO_PKG_VERSION")),
            "trace": {
                "vantage_point": { "name": b.name, "type": vantage },
                "common_fields": {
                    "time_format": "relative",
                    "reference_time": b.start as f64 * 1e-6,
                    "protocol_type": ["RRTP"],
                    "group_id": group,
                },
                "configuration": { "controller": b.protocol },
            },
        });
        events.record(&head)?;
        Ok(events)
    }

    fn record(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(SEPARATOR);
        serde_json::to_writer(&mut self.buffer, what)?;
        self.buffer.push(b'\n');
        self.bytes += self.buffer.len() as u64;
        self.to.write_all(&self.buffer)
    }

    fn event(&mut self, at: f64, name: &str, data: impl Serialize) -> io::Result<()> {
        // To the nanosecond.
        let time = (at * 1e6).round() / 1e6;
        self.record(&QlogEvent { time, name, data })
    }

    /// It has its keys. Times are in milliseconds since the beginning.
    pub fn opened(
        &mut self,
        at: f64,
        local: SocketAddr,
        opened: &ConnectionOpened,
    ) -> io::Result<()> {
        let (src, dst) =
            if opened.dialled { (local, opened.remote) } else { (opened.remote, local) };
        let data = json!({
            "ip_version": if dst.is_ipv4() { "v4" } else { "v6" },
            "src_ip": src.ip().to_string(),
            "dst_ip": dst.ip().to_string(),
            "protocol": "RRTP",
            "src_port": src.port(),
            "dst_port": dst.port(),
            "src_cid": format!("{:08x}", opened.id.0),
            "dst_cid": format!("{:08x}", opened.peer_id.0),
        });
        self.event(at, "connectivity:connection_started", data)
    }

    /// A data packet was sent or received.
    pub fn packet(
        &mut self,
        at: f64,
        sent: bool,
        header: &ShortHeader,
        length: usize,
    ) -> io::Result<()> {
        let way = usize::from(sent);
        let number = header.complete(self.highest[way]);
        self.highest[way] = self.highest[way].max(Some(number));
        self.packets[way].0 += 1;
        self.packets[way].1 += length as u64;
        if self.bytes >= self.max {
            self.beyond += 1;
            return Ok(());
        }
        let header = HeaderData { packet_type: "1RTT", packet_number: number };
        let name = if sent { "transport:packet_sent" } else { "transport:packet_received" };
        self.event(at, name, PacketData { header, raw: Raw { length } })
    }

    /// Writes the figures that changed since the last call.
    pub fn figures(&mut self, at: f64, now: &Stats) -> io::Result<()> {
        let before = std::mem::replace(&mut self.last, *now);
        let lost = now.counters.lost.saturating_sub(before.counters.lost);
        if lost > 0 {
            let data = json!({ "count": lost, "total": now.counters.lost });
            self.event(at, "recovery:packet_lost", data)?;
        }
        let mut data = Map::new();
        let old = metrics(&before);
        let new = metrics(now);
        let latest = latest(&before, now);
        for ((name, value), (_, was)) in new.into_iter().zip(old) {
            if value != was {
                data.extend(value.map(|v| (name.to_string(), v)));
            }
        }
        if let Some(latest) = latest {
            data.insert("latest_rtt".into(), json!(latest * 1e3));
        }
        if data.is_empty() {
            return Ok(());
        }
        self.event(at, "recovery:metrics_updated", data)
    }

    /// The connection has closed.
    pub fn closed(&mut self, at: f64, why: &Closed) -> io::Result<()> {
        let by = |owner: &str, trigger: &str| json!({ "owner": owner, "trigger": trigger });
        let coded = |owner: &str, code: u64, reason: &str| {
            // Codes from 256 on are the application's.
            let (kind, code) =
                if code >= 256 { ("application_code", code) } else { ("connection_code", code) };
            let trigger = if code == 0 || code >= 256 { "clean" } else { "error" };
            json!({ "owner": owner, kind: code, "reason": reason, "trigger": trigger })
        };
        let data = match why {
            Closed::Locally => by("local", "clean"),
            Closed::ByPeer { code, reason } => coded("remote", *code, reason),
            Closed::Fault { code, why } => coded("local", *code, why),
            Closed::Reset => by("remote", "stateless_reset"),
            Closed::TimedOut => by("local", "idle_timeout"),
            Closed::Version => by("local", "version_mismatch"),
            Closed::NoCommonProtocol { reason } => coded("local", 10, reason),
            Closed::UnknownProtocol { .. } => by("local", "unspecified"),
            Closed::NoAnswer { .. }
            | Closed::NoListener
            | Closed::SmallPath { .. }
            | Closed::WrongKey { .. }
            | Closed::Busy
            | Closed::GaveWay
            | Closed::Panicked { .. } => by("local", "error"),
        };
        self.event(at, "connectivity:connection_closed", data)
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The mean of the RTT samples between two calls, s.
pub fn latest(before: &Stats, now: &Stats) -> Option<f64> {
    let samples = now.rtt_samples.checked_sub(before.rtt_samples).filter(|n| *n > 0)?;
    let sum = now.rtt_sum.as_nanos().saturating_sub(before.rtt_sum.as_nanos());
    Some(sum as f64 * 1e-9 / samples as f64)
}

/// The metrics that qlog has names for; `None` before the first measurement.
fn metrics(s: &Stats) -> [(&'static str, Option<Value>); 6] {
    let finite = |x: f64| (x.is_finite() && x < 1e15).then(|| json!(x.round() as u64));
    let ms = |d: narrows_base::Duration| {
        (d > narrows_base::Duration::ZERO).then(|| json!(d.as_secs_f64() * 1e3))
    };
    let full = f64::from(s.datagram);
    [
        ("min_rtt", ms(s.min_rtt)),
        ("smoothed_rtt", ms(s.srtt)),
        ("congestion_window", finite(s.window * full)),
        ("bytes_in_flight", finite(s.flight as f64 * full)),
        ("packets_in_flight", Some(json!(s.flight))),
        ("pacing_rate", s.rate.and_then(|r| finite(r.as_bps() as f64))),
    ]
}

/// Nanoseconds since 1970 of a time by a clock that showed zero at `zero`.
pub fn wall(zero: u64, at: Time) -> u64 {
    zero.saturating_add(at.as_nanos())
}
