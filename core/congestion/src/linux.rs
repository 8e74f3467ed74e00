//! Linux's congestion control: a file per algorithm as in Linux 6.1, and, here, Reno's growth in whole segments as in
//! Linux 2.6 and ns-2's TCP/Linux.
//!
//! Controllers with reference numbers from there use the latter (veno, westwood+). The window is a whole number. A
//! counter of ACKs adds 1 to it after `cwnd + 1` ACKs, and slow start still runs at `cwnd == ssthresh`. Both differ
//! from RFC 5681 by less than a segment per round trip.

pub mod cubic;
pub mod reno;
pub mod vegas;
pub mod veno;
pub mod westwood;
mod window;

use crate::{Dialect, Environment, bounded};
use narrows_base::descriptor::ParamKind;
use narrows_base::{Param, Settings};

/// The parameter that chooses between Linux's algorithm and the other one, called `other`.
pub const fn like(choices: &'static [&'static str]) -> Param {
    Param {
        name: "like",
        help: "variant: Linux 6.1's, or the one that the descriptor names",
        kind: ParamKind::Choice(choices),
        origin: "linux in preset linux",
    }
}

/// Whether Linux's algorithm is meant.
pub fn is_meant(settings: &Settings, environment: &Environment) -> bool {
    match settings.choice("like") {
        "linux" => true,
        "preset" => environment.dialect == Dialect::Linux,
        _ => false,
    }
}

/// Segments of one ACK that the counters below process one by one.
pub const MAX_COUNTED: u64 = 64;

/// A whole window, its ACK counter and its threshold.
#[derive(Clone, Debug)]
pub struct WholeWindow {
    pub cwnd: u64,
    pub ssthresh: f64,
    /// ACKs towards the next segment (`snd_cwnd_cnt`).
    count: u64,
}

impl WholeWindow {
    pub fn new(initial_window: f64, ssthresh: f64) -> WholeWindow {
        WholeWindow { cwnd: bounded(initial_window, 1.0) as u64, ssthresh, count: 0 }
    }

    pub fn slow_start(&self) -> bool {
        self.cwnd as f64 <= self.ssthresh
    }

    /// Counts an ACK; true after each window of ACKs.
    pub fn count(&mut self) -> bool {
        let full = self.count >= self.cwnd;
        self.count = if full { 0 } else { self.count + 1 };
        full
    }

    pub fn raise(&mut self) {
        self.cwnd = self.cwnd.saturating_add(1);
    }

    /// Growth by one ACK.
    pub fn reno(&mut self) {
        if self.slow_start() || self.count() {
            self.raise();
        }
    }

    /// Sets the window and resets the count.
    pub fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(1);
        self.count = 0;
    }
}
