//! Options of both sides, and functions that both sides or both presets use.

use crate::equation::Equation;
use crate::{Dialect, Environment, SendLimits, bounded};
use narrows_base::{Rate, Settings};

/// The user's options, for sender and receiver side.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub ns2: bool,
    pub intervals: usize,
    pub discount: bool,
    pub oscillation: bool,
    pub min_rto: f64,
    pub q: f64,
    pub reorder: u32,
    pub conservative: bool,
    pub equation: Equation,
    /// s: bytes of a full packet on the wire.
    pub packet: f64,
}

impl Options {
    pub fn read(s: &Settings, environment: &Environment) -> Options {
        let ns2 = match s.choice("preset") {
            "ns2" => true,
            "rfc" => false,
            _ => environment.dialect == Dialect::Ns2,
        };
        let or = |name: &str, ns2_default: f64| {
            if ns2 && !s.given(name) { ns2_default } else { s.number(name) }
        };
        Options {
            ns2,
            intervals: s.number("intervals") as usize,
            discount: s.choice("discount") == "on",
            oscillation: s.choice("oscillation") == "on",
            min_rto: s.number("min-rto"),
            q: or("q", 0.95),
            reorder: or("reorder", 1.0) as u32,
            conservative: ns2 && s.choice("conservative") == "on",
            equation: Equation { b: s.number("b"), capped: ns2 },
            packet: f64::from(environment.packet_bytes.max(1)),
        }
    }
    /// t_RTO of the equation, in seconds; `reported` is the estimate of ns-2's sender.
    pub fn rto(&self, rtt: f64, reported: f64) -> f64 {
        let rto = if self.ns2 { reported } else { 4.0 * rtt };
        rto.max(self.min_rto)
    }
    /// W_init in bytes (RFC 5348 section 4.2); ns-2 counts whole packets (RFC 3390).
    pub fn initial_window(&self) -> f64 {
        let s = self.packet;
        if !self.ns2 {
            return (4.0 * s).min((2.0 * s).max(4380.0));
        }
        s * match s {
            s if s <= 1095.0 => 4.0,
            s if s < 2190.0 => 3.0,
            _ => 2.0,
        }
    }
}

/// Paced at this many bytes per second, without a window.
pub fn paced(bytes_per_s: f64) -> SendLimits {
    let rate = Rate::from_bps_f64(bounded(bytes_per_s * 8.0, 1.0));
    SendLimits::paced(f64::INFINITY, rate)
}

/// Variables of both senders: rate and receive rate in bytes per second, p, the mean RTT.
pub fn show(put: &mut dyn FnMut(&'static str, f64), rate: f64, p: f64, rtt: f64, recv: f64) {
    put("rate_bps", rate * 8.0);
    put("loss_event_rate", p);
    put("srtt_s", rtt);
    put("receive_rate_bps", recv * 8.0);
}

/// Report rounds are counted modulo 2^16.
pub fn from_round(x: f64) -> u16 {
    x as u16
}

/// Whether round `a` is later than round `b`.
pub fn rounds_later(a: u16, b: u16) -> bool {
    let ahead = a.wrapping_sub(b);
    ahead != 0 && ahead < 1 << 15
}
