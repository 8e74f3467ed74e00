//! Outcomes of packets in the order of sending, for controllers that go by packet numbers.

use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Packets without outcome that are kept: ten seconds at 100 Mbit/s.
const MAX_PACKETS: usize = 1 << 17;

/// A packet whose outcome is not reported yet.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent: Time,
    bytes: u64,
    /// Whether it was lost, once that is known.
    is_lost: Option<bool>,
}

/// A packet with its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resolved {
    pub(super) sequence: u64,
    pub(super) sent: Time,
    pub(super) bytes: u64,
    pub(super) is_lost: bool,
}

/// Sent packets in order. The three packet number spaces of a connection begin at 0 each, so packets get sequence numbers
/// of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    packets: VecDeque<Packet>,
    /// Sequence number of the first of them.
    first: u64,
    /// Send time of the newest acknowledged packet.
    newest_acked: Time,
}

impl Outcomes {
    pub(super) fn sent(&mut self, now: Time, number: u64, bytes: u64) {
        if self.packets.len() >= MAX_PACKETS {
            self.packets.pop_front();
            self.first += 1;
        }
        self.packets.push_back(Packet { number, sent: now, bytes, is_lost: None });
    }

    pub(super) fn acked(&mut self, number: u64, sent: Time) {
        self.newest_acked = self.newest_acked.max(sent);
        let is_it = |p: &&mut Packet| p.number == number && p.sent == sent;
        if let Some(packet) = self.packets.iter_mut().find(is_it) {
            packet.is_lost = Some(false);
        }
    }

    /// A loss is reported without its send time. Of several packets with this number the oldest is meant, since the
    /// spaces with few packets come first.
    pub(super) fn lost(&mut self, number: u64) {
        let is_it = |p: &&mut Packet| p.number == number && p.is_lost.is_none();
        if let Some(packet) = self.packets.iter_mut().find(is_it) {
            packet.is_lost = Some(true);
        }
    }

    /// The packets whose outcome is known, up to the first whose is not. Of an MTU probe, and of packets whose keys were
    /// discarded, no loss is ever reported: they are skipped when packets sent two smoothed RTTs later have arrived.
    /// Loss detection would have found them after 9/8 (RFC 9002 section 6.1.2).
    pub(super) fn resolved(&mut self, srtt: Duration) -> Vec<Resolved> {
        let mut resolved = Vec::new();
        while let Some(packet) = self.packets.front() {
            let is_forgotten = self.newest_acked.since(packet.sent) > srtt.saturating_mul(2);
            match packet.is_lost {
                Some(is_lost) => resolved.push(Resolved {
                    sequence: self.first,
                    sent: packet.sent,
                    bytes: packet.bytes,
                    is_lost,
                }),
                None if is_forgotten && srtt > Duration::ZERO => {}
                None => break,
            }
            self.packets.pop_front();
            self.first += 1;
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn outcomes_come_in_order_of_sending() {
        let mut log = Outcomes::default();
        for number in 0..4 {
            log.sent(at(number), number, 1200);
        }
        let srtt = Duration::from_millis(50);
        log.acked(1, at(1));
        assert!(log.resolved(srtt).is_empty());
        log.lost(0);
        let outcomes: Vec<_> = log.resolved(srtt).iter().map(|r| (r.sequence, r.is_lost)).collect();
        assert_eq!(outcomes, [(0, true), (1, false)]);
    }

    #[test]
    fn packet_without_report_does_not_stop_later_ones() {
        let mut log = Outcomes::default();
        log.sent(at(0), 0, 1200);
        log.sent(at(90), 1, 1200);
        log.sent(at(110), 2, 1200);
        let srtt = Duration::from_millis(50);
        log.acked(1, at(90));
        assert!(log.resolved(srtt).is_empty());
        log.acked(2, at(110));
        let sequences: Vec<_> = log.resolved(srtt).iter().map(|r| r.sequence).collect();
        assert_eq!(sequences, [1, 2]);
    }

    #[test]
    fn number_used_in_two_spaces_is_told_apart() {
        let mut log = Outcomes::default();
        log.sent(at(0), 0, 1200);
        log.sent(at(9), 0, 1200);
        log.acked(0, at(9));
        log.acked(0, at(0));
        assert_eq!(log.resolved(Duration::from_millis(50)).len(), 2);
    }
}
