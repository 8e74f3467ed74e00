//! A FIFO queue with an average of its length, as in RED (Floyd and Jacobson 1993); RED and the
//! congestion-warning router are built on it.

use super::fifo::Fifo;
use super::packet::QueuedPacket;
use narrows_base::{Time, math};

/// The queue, and the exponentially weighted average of its length at arrivals.
pub(super) struct Averaged {
    pub fifo: Fifo,
    /// In packets.
    pub average: f64,
    /// When the queue became empty, if it is.
    pub idle_since: Option<Time>,
    /// If bytes are averaged: the number that counts as one packet.
    per_packet: Option<f64>,
}

impl Averaged {
    /// Averages packets, or bytes divided by `per_packet` if that is given.
    pub fn new(fifo: Fifo, per_packet: Option<f64>) -> Averaged {
        Averaged { fifo, average: 0.0, idle_since: Some(Time::ZERO), per_packet }
    }

    /// The present queue length in packets.
    pub fn queue(&self) -> f64 {
        self.per_packet.map_or(self.fifo.len() as f64, |bytes| self.fifo.bytes() as f64 / bytes)
    }

    /// Updates the average at an arrival, before the packet is enqueued. Idle time counts as if
    /// small packets had arrived at `packets_per_s` (Floyd and Jacobson 1993).
    #[inline]
    pub fn arrival(&mut self, now: Time, weight: f64, packets_per_s: f64) -> f64 {
        if let Some(since) = self.idle_since.take() {
            // Rounded down to whole arrivals.
            let m = (now.since(since).as_secs_f64() * packets_per_s) as u64;
            if m > 0 && self.average > 0.0 {
                self.average *= math::pow(1.0 - weight, m as f64);
            }
        }
        let queue = self.queue();
        self.average += weight * (queue - self.average);
        queue
    }

    /// Takes out the packet to transmit next, with its arrival time.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, QueuedPacket)> {
        let head = self.fifo.pop();
        if head.is_none() {
            self.idle_since = Some(now);
        }
        head
    }
}
