//! Packet-pair probing in the handshake, before the first data packet.
//!
//! Three larger SYNs directly follow the first one. A server replies to each without keeping state. The spacing of the
//! replies is the serialisation time of the slowest link. This is the packet pair of the RRTP thesis (section 3.2), one
//! round trip earlier than with data. If the first SYN is lost, the next one opens the connection.

use narrows_base::{Duration, Time};
use narrows_congestion::Dispersion;

/// Number of probes after the first SYN. All of them fit into a queue of two full packets.
const PROBES: u32 = 3;
/// UDP payload of each probe in bytes.
pub const PROBE_BYTES: u16 = 500;
/// A later reply belongs to a SYN that was repeated after 0.3 s. So a path slower than 84 kbit/s is not measured.
const MAX_DISPERSION: Duration = Duration::from_millis(150);
/// Bytes of IP and UDP headers.
const HEADERS: u16 = 28;

/// The probes of an attempt and their replies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketPair {
    wanted: bool,
    left: u32,
    came: u32,
    first: Time,
    last: Time,
}

impl PacketPair {
    /// Without probes if not `wanted`, because the rate is known.
    pub(crate) fn new(wanted: bool) -> PacketPair {
        PacketPair { wanted, left: if wanted { PROBES } else { 0 }, ..PacketPair::default() }
    }
    /// Whether the next probe is to be sent, after the first SYN.
    pub(crate) fn is_due(&self) -> bool {
        self.left > 0
    }
    /// Counts a sent probe.
    pub(crate) fn on_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
    /// Discards the measurement when the attempt restarts.
    pub(crate) fn spoil(&mut self) {
        *self = PacketPair::default();
    }
    /// Counts a reply to a SYN.
    pub(crate) fn on_answer(&mut self, now: Time) {
        if self.came == 0 {
            self.first = now;
        }
        if now.since(self.first) > MAX_DISPERSION {
            return;
        }
        self.came += 1;
        self.last = now;
    }
    /// The measurement, if every SYN got exactly one reply. Otherwise the missing one is unknown.
    pub(crate) fn dispersion(&self, rtt: Duration) -> Option<Dispersion> {
        let bits = f64::from(PROBES) * f64::from(PROBE_BYTES + HEADERS) * 8.0;
        (self.wanted && self.came == 1 + PROBES).then(|| Dispersion {
            rtt,
            bits,
            took: self.last.since(self.first),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(packet_pair: &mut PacketPair, times: u64) -> Option<f64> {
        (0..times)
            .for_each(|i| packet_pair.on_answer(Time::from_nanos(70_000_000 + i * 5_280_000)));
        let dispersion = packet_pair.dispersion(Duration::from_millis(60))?;
        Some(dispersion.bits / dispersion.took.as_secs_f64())
    }

    #[test]
    fn answers_to_all_tell_the_rate_and_others_nothing() {
        let mut left = PacketPair::new(true);
        let sent = std::iter::from_fn(|| left.is_due().then(|| left.on_sent())).count();
        assert_eq!(sent, 3);
        let rate = answered(&mut left.clone(), 4).unwrap();
        assert!((rate / 800e3 - 1.0).abs() < 1e-9, "{rate}");
        assert_eq!(answered(&mut left.clone(), 3), None, "one was lost");
        assert_eq!(answered(&mut left.clone(), 5), None, "one was doubled");
        let mut late = left;
        assert_eq!(answered(&mut late, 3), None);
        late.on_answer(Time::from_nanos(370_000_000));
        assert!(late.dispersion(Duration::ZERO).is_none(), "the answer to another SYN");
        left.spoil();
        assert_eq!(answered(&mut left, 4), None, "it began again");
        assert!(!PacketPair::new(false).is_due());
        assert_eq!(answered(&mut PacketPair::new(false), 1), None);
    }
}
