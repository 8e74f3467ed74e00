//! Reports when a TCP's buffers limit it rather than its congestion control: which buffer, for how long, and the sysctl
//! that enlarges it.

use crate::outcome::ProtocolOutcome;
use crate::recommendation::{list, percent};

/// Share of the time from which a buffer is reported.
const BINDS: f64 = 0.1;
/// Bytes of Linux's send buffer per byte in flight: 4 MiB hold 2.75 MB (`LINUX_SEND_BUFFER` of `sim`).
const SEND_BUFFER_PER_BYTE: f64 = 1.53;
/// Bytes of its receive buffer per byte of the window: half of it is for data (`tcp_adv_win_scale` 1).
const RECEIVE_BUFFER_PER_BYTE: f64 = 2.0;
/// BDPs that buffers should hold: one on the path and one in the bottleneck's queue.
const BDPS: f64 = 2.0;
/// Linux's largest buffers by default: `tcp_wmem` and `tcp_rmem`, in bytes.
const LARGEST: (f64, f64) = ((4u64 << 20) as f64, (6u64 << 20) as f64);
/// Application bytes of a full segment over Ethernet, with timestamps.
pub const SEGMENT: f64 = 1448.0;
const MIB: f64 = (1u64 << 20) as f64;

/// Share of the time in which a buffer was the limit.
pub fn share(r: &ProtocolOutcome) -> f64 {
    let of = |name| r.measure(name).map_or(0.0, |e| if e.mean.is_finite() { e.mean } else { 0.0 });
    of("sndbuf_limited") + of("rwnd_limited")
}

/// Whether a buffer is to be reported.
pub fn bind(r: &ProtocolOutcome) -> bool {
    share(r) >= BINDS
}

/// The settings that permit this many bytes in flight, at the sender and at the receiver.
pub fn sysctls(flight_bytes: f64) -> String {
    let max = |factor: f64, min: f64| {
        ((flight_bytes * factor).max(min) / MIB).ceil() as u64 * (MIB as u64)
    };
    format!(
        "net.ipv4.tcp_wmem='4096 16384 {}' at the sender and net.ipv4.tcp_rmem='4096 131072 {}' at the receiver",
        max(SEND_BUFFER_PER_BYTE, LARGEST.0),
        max(RECEIVE_BUFFER_PER_BYTE, LARGEST.1)
    )
}

/// One or two sentences if buffers limit any of these over a bottleneck of `capacity_bps`.
pub fn sentence<'a>(
    results: impl Iterator<Item = &'a ProtocolOutcome>,
    capacity_bps: f64,
) -> Option<String> {
    let bound: Vec<&ProtocolOutcome> = results.filter(|r| bind(r)).collect();
    let first = *bound.first()?;
    let sends = |r: &ProtocolOutcome| r.measure("sndbuf_limited").is_some_and(|e| e.mean >= BINDS);
    let which = match (bound.iter().any(|r| sends(r)), bound.iter().all(|r| sends(r))) {
        (true, true) => "the send buffer binds",
        (false, _) => "the receive window binds",
        _ => "send buffer or receive window bind",
    };
    let names: Vec<String> = bound
        .iter()
        .map(|r| format!("{} ({} of the time)", r.title(), percent(share(r))))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rtt_s = |r: &&ProtocolOutcome| r.measure("rtt_s_min").map_or(f64::NAN, |e| e.mean);
    let floor = bound.iter().map(rtt_s).fold(f64::INFINITY, f64::min);
    let bdp = capacity_bps * floor / 8.0;
    let mut text = format!("Not the congestion control but {which} {}", list(&names));
    if !bdp.is_finite() {
        return Some(
            text + ": net.ipv4.tcp_wmem and net.ipv4.tcp_rmem set the most that is in flight.",
        );
    }
    let name = first.protocol.split('(').next().unwrap_or_default();
    text += &format!(
        ": the path holds {:.3} MB. sysctl {} lift it; {name}(receive-window={:.0}) simulates that.",
        bdp * 1e-6,
        sysctls(BDPS * bdp),
        (BDPS * bdp / SEGMENT).ceil()
    );
    Some(text)
}

/// The limit that held a sender back for most of its time, for a table.
pub fn limited_by(r: &ProtocolOutcome) -> Option<&'static str> {
    const NAMES: [(&str, &str); 5] = [
        ("cwnd_limited", "cwnd"),
        ("pacing_limited", "pacing"),
        ("sndbuf_limited", "sndbuf"),
        ("rwnd_limited", "rwnd"),
        ("app_limited", "app"),
    ];
    let of = |name| r.measure(name).map_or(f64::NAN, |e| e.mean);
    let known = NAMES.iter().filter(|n| of(n.0).is_finite());
    known.max_by(|a, b| of(a.0).total_cmp(&of(b.0))).map(|n| n.1)
}
