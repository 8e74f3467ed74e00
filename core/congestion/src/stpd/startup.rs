//! How a connection begins: slow start until a queue forms, then the path is drained once.
//!
//! The controller computes its queue from the smallest RTT that it measured. A flow that joins while other flows keep
//! packets queued counts these as part of the path, keeps its own on top of them, and so gets more than its share for
//! its whole duration. So it first lets the other flows drain their packets, and then measures the path without its
//! own:
//!
//! ```text
//! SLOW    the window grows by one per packet, until a queue forms or a packet is lost to one
//! HOLD    it stays for a round: the other flows measure the queue and take their packets out of it
//! DRAIN   it is a quarter for two rounds: in the first the packets in flight leave, in the second the path is measured
//! REGROW  it grows as in slow start to what it was
//! ```
//!
//! Without HOLD the other flows have no time to react: with ten on 10 Mbit/s the least share is 0.7 of an equal one, as
//! without a drain; with HOLD it is 0.99. A later timeout restarts without a drain, since the path has been measured.

use crate::{Ack, bounded};

/// The share of the window that is left to drain the path.
const DRAINED: f64 = 0.25;

/// Where the start is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StartStage {
    Slow,
    Hold,
    DrainFlight,
    Drained,
    Regrow,
    /// Start-up is over: the controller sets the window.
    Over,
}

/// Behaviour at the beginning of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StpdStartup {
    /// Slow start and one drain of the path.
    Drain,
    /// Slow start.
    Slow,
    /// Control from the first packet.
    Control,
}

/// Start-up of a connection, or after a timeout.
#[derive(Clone, Debug)]
pub(super) struct StpdStart {
    kind: StpdStartup,
    stage: StartStage,
    /// Packets to be delivered until the round is over.
    left: u64,
    /// Window before the drain; 0 before the first drain.
    resume: f64,
    /// A loss has shown that the buffer is full.
    full: bool,
}

impl StpdStart {
    pub fn new(kind: StpdStartup) -> StpdStart {
        let stage = if kind == StpdStartup::Control { StartStage::Over } else { StartStage::Slow };
        StpdStart { kind, stage, left: 0, resume: 0.0, full: false }
    }

    /// The window after an ACK with `buffered` packets of the flow in the queue; `None` if the controller sets it.
    pub fn on_ack(&mut self, cwnd: f64, ack: &Ack, buffered: f64) -> Option<f64> {
        let may_rise = (ack.window_limited || ack.in_recovery) && ack.newly_delivered > 0;
        let grown = if may_rise { bounded(cwnd + 1.0, 1.0) } else { cwnd };
        match self.stage {
            StartStage::Over => None,
            StartStage::Slow => {
                // A queue of a quarter of the window shows that the pipe is full.
                if !self.full && buffered < (ack.sent_since as f64 / 4.0).max(1.0) {
                    return Some(grown);
                }
                if self.kind == StpdStartup::Slow || self.resume > 0.0 {
                    self.stage = StartStage::Over;
                    return None;
                }
                self.left = ack.sent_since;
                self.stage = StartStage::Hold;
                Some(cwnd)
            }
            StartStage::Hold | StartStage::DrainFlight | StartStage::Drained => {
                if !self.ends_round(ack) {
                    return Some(cwnd);
                }
                if self.stage == StartStage::Hold {
                    self.stage = StartStage::DrainFlight;
                    self.resume = cwnd;
                    return Some(bounded(cwnd * DRAINED, 1.0));
                }
                let measured = self.stage == StartStage::Drained;
                self.stage = if measured { StartStage::Regrow } else { StartStage::Drained };
                Some(cwnd)
            }
            // The queue is ignored here: sending at twice the path's rate builds up a queue of half a round trip.
            StartStage::Regrow if cwnd < self.resume => Some(grown.min(self.resume)),
            StartStage::Regrow => {
                self.stage = StartStage::Over;
                None
            }
        }
    }

    /// Whether everything that was sent before the round began has been delivered.
    fn ends_round(&mut self, ack: &Ack) -> bool {
        if ack.newly_delivered == 0 || self.left > ack.newly_delivered {
            self.left -= ack.newly_delivered.min(self.left);
            return false;
        }
        self.left = ack.sent_since;
        true
    }

    /// A loss while packets queue shows that the buffer is smaller than the quarter at which slow start ends.
    pub fn on_loss(&mut self, buffered: f64) {
        self.full |= buffered >= 1.0 && self.stage == StartStage::Slow;
    }

    /// The window restarts.
    pub fn on_timeout(&mut self) {
        *self = StpdStart { resume: self.resume, ..StpdStart::new(self.kind) };
    }
}
