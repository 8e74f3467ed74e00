//! Single packets of a flow, for its sequence plot.

use std::collections::VecDeque;

/// Most points of packets that were sent or acknowledged without incident; the newest are kept.
const MAX_ORDINARY: usize = 16_384;
/// Most points of lost and retransmitted packets, the interesting ones.
const MAX_NOTABLE: usize = 8_192;
/// Ordinary points per update; of more, every second or third is kept.
const MAX_PER_UPDATE: usize = 128;

/// Events of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Sent for the first time.
    Sent,
    /// Acknowledged by the receiver.
    Acknowledged,
    /// Sent again after a loss.
    Retransmitted,
    /// Dropped by a queue.
    Dropped,
    /// Lost on a link.
    Lost,
}

/// A point of the plot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketPoint {
    /// Time of the event, us.
    pub time_us: i64,
    /// Sequence or packet number.
    pub number: u64,
    /// Event.
    pub kind: PacketKind,
}

/// The points of one flow.
#[derive(Debug, Default)]
pub struct PacketPoints {
    ordinary: VecDeque<PacketPoint>,
    notable: VecDeque<PacketPoint>,
    update: Vec<PacketPoint>,
    /// Points so far, ordinary and notable.
    pushed: (u64, u64),
}

impl PacketPoints {
    /// Adds a point of the current update.
    pub fn push(&mut self, point: PacketPoint) {
        if matches!(point.kind, PacketKind::Sent | PacketKind::Acknowledged) {
            self.update.push(point);
        } else {
            bounded(&mut self.notable, point, MAX_NOTABLE);
            self.pushed.1 += 1;
        }
    }

    /// Completes the update.
    pub fn end_update(&mut self) {
        let step = self.update.len().div_ceil(MAX_PER_UPDATE).max(1);
        for point in self.update.drain(..).step_by(step) {
            bounded(&mut self.ordinary, point, MAX_ORDINARY);
            self.pushed.0 += 1;
        }
    }

    /// Number of points so far, ordinary and notable.
    pub fn pushed(&self) -> (u64, u64) {
        self.pushed
    }

    /// The stored points after `seen`.
    pub fn since(&self, seen: (u64, u64)) -> impl Iterator<Item = &PacketPoint> {
        let new = |pushed: u64, seen, ring: &VecDeque<PacketPoint>| {
            let lacking = usize::try_from(pushed.saturating_sub(seen)).unwrap_or(usize::MAX);
            ring.len().saturating_sub(lacking)
        };
        let ordinary = new(self.pushed.0, seen.0, &self.ordinary);
        let notable = new(self.pushed.1, seen.1, &self.notable);
        self.ordinary.iter().skip(ordinary).chain(self.notable.iter().skip(notable))
    }
}

fn bounded(ring: &mut VecDeque<PacketPoint>, point: PacketPoint, max: usize) {
    if ring.len() == max {
        ring.pop_front();
    }
    ring.push_back(point);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points are bounded at any rate, and ordinary packets never replace losses.
    #[test]
    fn a_fast_flow_is_thinned_and_its_losses_stay() {
        let mut packets = PacketPoints::default();
        let point = |n: u64, kind| PacketPoint { time_us: n as i64, number: n, kind };
        packets.push(point(0, PacketKind::Lost));
        for update in 0..1000 {
            for n in 0..1000 {
                packets.push(point(update * 1000 + n, PacketKind::Sent));
            }
            packets.end_update();
        }
        let kept: Vec<_> = packets.since((0, 0)).collect();
        assert_eq!(kept.len(), MAX_ORDINARY + 1);
        assert!(kept.iter().any(|p| p.kind == PacketKind::Lost));
        assert!(packets.since(packets.pushed()).next().is_none());
        let before = packets.pushed();
        packets.push(point(1, PacketKind::Dropped));
        assert_eq!(packets.since(before).count(), 1);
    }
}
