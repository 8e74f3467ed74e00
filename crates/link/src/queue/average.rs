//! A queue in order of arrival that keeps an average of its own length, as RED does (Floyd and
//! Jacobson 1993): what RED and the congestion-warning router build on.

use super::QueuedPacket;
use super::fifo::Fifo;
use narrows_base::{Time, math};

/// The queue, and its exponentially weighted average over arrivals.
pub(super) struct Averaged {
    pub fifo: Fifo,
    /// In packets.
    pub average: f64,
    /// Since when nothing has waited, if nothing does.
    pub idle_since: Option<Time>,
    /// Where bytes are averaged: how many count as one packet.
    per_packet: Option<f64>,
}

impl Averaged {
    /// Counts packets or, where `per_packet` is given, bytes over it.
    pub fn new(fifo: Fifo, per_packet: Option<f64>) -> Averaged {
        Averaged { fifo, average: 0.0, idle_since: Some(Time::ZERO), per_packet }
    }

    /// What waits now, in packets.
    pub fn queue(&self) -> f64 {
        self.per_packet.map_or(self.fifo.len() as f64, |bytes| self.fifo.bytes() as f64 / bytes)
    }

    /// An arrival takes the average over what it finds, as if small packets had come at
    /// `packets_per_s` while the link was idle.
    #[inline]
    pub fn arrival(&mut self, now: Time, weight: f64, packets_per_s: f64) -> f64 {
        if let Some(since) = self.idle_since.take() {
            // Counted in whole arrivals.
            let m = (now.since(since).as_secs_f64() * packets_per_s) as u64;
            if m > 0 && self.average > 0.0 {
                self.average *= math::pow(1.0 - weight, m as f64);
            }
        }
        let queue = self.queue();
        self.average += weight * (queue - self.average);
        queue
    }

    /// The packet to transmit next, and when it came.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, QueuedPacket)> {
        let head = self.fifo.pop();
        if head.is_none() {
            self.idle_since = Some(now);
        }
        head
    }
}
