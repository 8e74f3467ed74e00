//! Packets in flight and lost in all at the time when a packet was sent (P.tx_in_flight and P.lost of the draft). Kept
//! as 64 snapshots per round instead of a record per packet.

use crate::Sent;
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Snapshots are a 64th of a round apart, and are kept for four rounds.
const PER_ROUND: u64 = 64;
const MAX_SNAPSHOTS: usize = 4 * PER_ROUND as usize;
/// Time without a sent packet after which a sender is idle, before the first RTT sample.
const IDLE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at: Time,
    in_flight: u64,
    lost: u64,
}

#[derive(Clone, Debug, Default)]
pub struct DeliveryHistory {
    snapshots: VecDeque<Snapshot>,
    last_sent: Option<Time>,
    idle: bool,
}

impl DeliveryHistory {
    /// A packet is sent; `lost` segments have been lost in all.
    pub fn sent(&mut self, sent: &Sent, lost: u64, srtt: Duration) {
        let pause = if srtt == Duration::ZERO { IDLE } else { srtt };
        self.idle = self.last_sent.is_some_and(|last| sent.now.since(last) > pause);
        self.last_sent = Some(sent.now);
        let part = srtt.as_nanos() / PER_ROUND;
        let due = self.snapshots.back().is_none_or(|s| sent.now.since(s.at).as_nanos() >= part);
        if due {
            if self.snapshots.len() >= MAX_SNAPSHOTS {
                self.snapshots.pop_front();
            }
            self.snapshots.push_back(Snapshot { at: sent.now, in_flight: sent.outstanding, lost });
        } else if let Some(last) = self.snapshots.back_mut() {
            // Until the next snapshot: the largest that was in flight.
            last.in_flight = last.in_flight.max(sent.outstanding);
        }
    }

    /// Whether the last packet was the first after an RTT without one.
    pub fn was_idle(&self) -> bool {
        self.idle
    }

    /// Segments in flight, and segments lost in total, when the packet sent at that time was sent.
    pub fn at(&self, sent: Time) -> (f64, u64) {
        let index = self.snapshots.partition_point(|s| s.at <= sent);
        let snapshot = self.snapshots.get(index.saturating_sub(1));
        snapshot.map_or((0.0, 0), |s| (s.in_flight as f64, s.lost))
    }
}
