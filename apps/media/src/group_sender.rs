//! The sending end of a multicast stream, without a socket. It sends every layer regardless of losses, up to a total
//! rate, with the base layer first.

use crate::group_packet::{Head, head, write};
use crate::sender::{MediaLayerSender, PathMeasurements, SenderCounters};
use narrows_base::{Duration, Rate, Time};

/// Packets that have waited longer are dropped.
const LONGEST: Duration = Duration::from_millis(500);
/// IPv6 and UDP headers in bytes; those of IPv4 are shorter.
const HEADERS: usize = 48;
/// UDP payload that fits into an Ethernet frame.
const MAX_PACKET: usize = 1452;

/// All layers of a multicast stream.
#[derive(Debug)]
pub struct GroupSender {
    session: u64,
    rates: Vec<u32>,
    layers: Vec<MediaLayerSender>,
    total: Rate,
    /// Earliest departure of the next packet.
    due: Time,
}

impl GroupSender {
    /// Layers of these rates, the base layer first; together they are limited to `total`, including headers.
    pub fn new(session: u64, rates: &[Rate], total: Rate) -> GroupSender {
        let kbit = |rate: &Rate| (rate.as_bps() / 1000).clamp(1, u64::from(u32::MAX)) as u32;
        GroupSender {
            session,
            rates: rates.iter().map(kbit).collect(),
            layers: rates.iter().map(|_| MediaLayerSender::new(LONGEST)).collect(),
            total,
            due: Time::ZERO,
        }
    }

    /// Sum of the counters of all layers.
    pub fn sent(&self) -> SenderCounters {
        self.layers.iter().fold(SenderCounters::default(), |sum, layer| sum.and(&layer.sent()))
    }

    /// Handles a datagram of this layer.
    pub fn on_datagram(&mut self, now: Time, layer: usize, datagram: &[u8]) {
        if let Some(sender) = self.layers.get_mut(layer) {
            sender.on_datagram(now, datagram, MAX_PACKET - head(self.rates.len()));
        }
    }

    /// The next packet that may leave now, with its layer.
    pub fn next(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        if now < self.due {
            return None;
        }
        let mut all = self.layers.iter_mut().enumerate();
        let (layer, message) = all.find_map(|(layer, one)| {
            Some((layer, one.next(now, PathMeasurements::default())?.message))
        })?;
        let rates = if layer == 0 { self.rates.clone() } else { Vec::new() };
        let packet = write(&Head { session: self.session, layer, rates }, message);
        let seconds = ((packet.len() + HEADERS) * 8) as f64 / self.total.as_bps().max(1) as f64;
        // After a late timer, allow a burst of at most 5 ms.
        let since = self.due.max(Time::ZERO + now.since(Time::ZERO + Duration::from_millis(5)));
        self.due = since + Duration::from_secs_f64(seconds);
        Some((layer, packet))
    }

    /// Time at which the next packet may leave; `Time::NEVER` if no packet waits.
    pub fn next_timeout(&self) -> Time {
        if self.layers.iter().any(MediaLayerSender::is_waiting) { self.due } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_packet::read_packet;

    #[test]
    fn total_rate_bounds_sending_and_base_layer_stays_whole() {
        let rates = [Rate::from_bps(400_000), Rate::from_bps(400_000)];
        let mut sender = GroupSender::new(7, &rates, Rate::from_bps(1_000_000));
        let mut bytes = 0;
        let mut base = 0;
        for ms in 0..10_000u64 {
            let now = Time::ZERO + Duration::from_millis(ms);
            // The upper layer's encoder sends eight times as much as it should.
            for (layer, every) in [(0, 20), (1, 2)] {
                if ms % every == 0 {
                    sender.on_datagram(now, layer, &[0; 1000]);
                }
            }
            while let Some((layer, mut packet)) = sender.next(now) {
                bytes += packet.len() + HEADERS;
                base += u64::from(layer == 0);
                let (head, _) = read_packet(&mut packet).unwrap();
                assert_eq!((head.session, head.rates.is_empty()), (7, layer > 0));
            }
        }
        assert!(bytes as f64 * 8.0 / 10.0 < 1.01e6, "{bytes}");
        assert!(base >= 499 && sender.sent().dropped.all() > 2000, "{base}, {:?}", sender.sent());
    }

    #[test]
    fn empty_queue_sets_no_timer() {
        let mut sender = GroupSender::new(1, &[Rate::from_bps(1)], Rate::from_bps(1_000_000));
        assert!(sender.next_timeout().is_never());
        sender.on_datagram(Time::ZERO, 0, b"media");
        assert!(sender.next(Time::ZERO + sender.next_timeout().since(Time::ZERO)).is_some());
        assert!(sender.next_timeout().is_never());
    }
}
