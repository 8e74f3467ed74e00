//! Packet-pair probing in the handshake, before the first data packet.
//!
//! Three larger SYNs directly follow the first START. A server replies to each without keeping state. The spacing of the
//! replies is the serialisation time of the slowest link. This is the packet pair of the RRTP thesis (section 3.2), one
//! round trip earlier than with data.

use narrows_base::{Duration, Time};
use narrows_congestion::Dispersion;

/// Number of probes after the first START. All of them fit into a queue of two full packets.
const PROBES: u32 = 3;
/// UDP payload of each probe in bytes.
pub const PROBE_BYTES: u16 = 500;
/// Longest time from the first reply to the last. So a path slower than 56 kbit/s is not measured.
const MAX_DISPERSION: Duration = Duration::from_millis(150);
/// Bytes of IP and UDP headers.
const HEADERS: u16 = 28;

/// The probes of an attempt and their replies.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketPair {
    wanted: bool,
    left: u32,
    came: u32,
    sent: Time,
    first: Time,
    last: Time,
}

impl PacketPair {
    /// Without probes if not `wanted`, because the rate is known.
    pub fn new(wanted: bool) -> PacketPair {
        PacketPair { wanted, left: if wanted { PROBES } else { 0 }, ..PacketPair::default() }
    }
    /// Whether the next probe is to be sent, after the first START.
    pub fn is_due(&self) -> bool {
        self.left > 0
    }
    /// Counts a sent probe.
    pub fn on_sent(&mut self, now: Time) {
        if self.left == PROBES {
            self.sent = now;
        }
        self.left = self.left.saturating_sub(1);
    }
    /// Counts a reply to a probe.
    pub fn on_answer(&mut self, now: Time) {
        if self.came == 0 {
            self.first = now;
        }
        if now.since(self.first) > MAX_DISPERSION {
            return;
        }
        self.came += 1;
        self.last = now;
    }
    /// The measurement, once every probe has its reply. It is returned once. No probe is sent twice, so their RTT is
    /// certain.
    pub fn take(&mut self) -> Option<Dispersion> {
        let rtt = self.first.since(self.sent);
        let took = self.last.since(self.first);
        let is_complete = self.wanted && self.came == PROBES;
        self.wanted &= !is_complete;
        let bits = f64::from(PROBES - 1) * f64::from(PROBE_BYTES + HEADERS) * 8.0;
        is_complete.then_some(Dispersion { rtt, bits, took })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(packet_pair: &mut PacketPair, times: u64) -> Option<f64> {
        (0..times)
            .for_each(|i| packet_pair.on_answer(Time::from_nanos(70_000_000 + i * 5_280_000)));
        let dispersion = packet_pair.take()?;
        assert_eq!(dispersion.rtt, Duration::from_millis(60));
        assert_eq!(packet_pair.take(), None, "once");
        Some(dispersion.bits / dispersion.took.as_secs_f64())
    }

    #[test]
    fn only_complete_answers_give_the_rate() {
        let mut left = PacketPair::new(true);
        let sent = std::iter::from_fn(|| {
            left.is_due().then(|| left.on_sent(Time::from_nanos(10_000_000)))
        })
        .count();
        assert_eq!(sent, 3);
        let rate = answered(&mut left.clone(), 3).unwrap();
        assert!((rate / 800e3 - 1.0).abs() < 1e-9, "{rate}");
        assert_eq!(answered(&mut left.clone(), 2), None, "one was lost");
        assert_eq!(answered(&mut left.clone(), 4), None, "a reply of another attempt");
        let mut late = left;
        assert_eq!(answered(&mut late, 2), None);
        late.on_answer(Time::from_nanos(370_000_000));
        assert!(late.take().is_none(), "the answer came too late");
        assert!(!PacketPair::new(false).is_due());
        assert_eq!(answered(&mut PacketPair::new(false), 1), None);
    }
}
