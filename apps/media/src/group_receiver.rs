//! The receiving end of a multicast stream, without a socket. It chooses its groups by TEAR's rate with the rules of
//! `narrows_congestion::multicast` (Jayaram 2001, sections 2.3, 3.1 and 3.2), and has a jitter buffer without repeats.

use crate::group_packet::{Head, data, read_packet};
use crate::packet::{HEAD, extended, of_layer};
use crate::playing::{Looks, Playing};
use crate::shown::LayerStatistics;
use narrows_base::{Duration, RandomKey, Rate, Spec, Time};
use narrows_congestion::PathHints;
use narrows_congestion::layers::MAX_LAYERS;
use narrows_congestion::multicast::{LayerPacket, LayerReceiver};
use narrows_transport::Protocol;
use std::net::IpAddr;

/// Silence after which a sender counts as gone and another one is accepted.
const GONE: Duration = Duration::from_secs(5);
/// Silence of a sender's former session after which its new session is accepted.
const RESTART: Duration = Duration::from_millis(500);
/// Maximum distance of a packet's number from the highest number; others are invalid.
const MAX_AHEAD: u64 = 4096;
/// Consecutive invalid packets after which the sender is assumed to have restarted.
const STRANGE: u32 = 100;
/// IP and UDP headers of a packet, in bytes.
const HEADERS: usize = 28;

/// A change of the received stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupChange {
    /// A sender was found. Contains the rates of its layers in kbit/s.
    Heard(Vec<u32>),
    /// Number of layers to receive from now on, and TEAR's rate in bit/s.
    Level(usize, u64),
    /// The sender has been silent for too long.
    Gone,
}

struct GroupSession {
    from: IpAddr,
    session: u64,
    rates: Vec<u32>,
    tear: LayerReceiver,
    /// The highest number received in each layer.
    highest: [Option<u64>; MAX_LAYERS],
    strange: u32,
    last: Time,
}

/// The receiving end of a multicast stream.
pub struct GroupReceiver {
    latency: Duration,
    rtt: Duration,
    heard: Option<GroupSession>,
    layers: LayerStatistics,
    refused: u64,
}

/// A TEAR receiver over layers of these rates in bit/s.
fn tear(rates: &[f64], rtt: Duration) -> Option<LayerReceiver> {
    let protocol = Protocol::read(&Spec::named("tear"), 1500).ok()?;
    let key = RandomKey::from_seed(0);
    let environment = protocol.environment(protocol.packet_bytes(), key, PathHints::default());
    Some(LayerReceiver::new(protocol.receiver_side(&environment)?, rates, rtt))
}

impl GroupReceiver {
    /// Datagrams are released at the path's shortest delay plus `latency`. `rtt` is the round-trip time that TEAR
    /// assumes for a path without queueing.
    pub fn new(latency: Duration, rtt: Duration) -> GroupReceiver {
        let layers = LayerStatistics::new(1, latency);
        GroupReceiver { latency, rtt, heard: None, layers, refused: 0 }
    }

    /// Number of layers to receive; 1 before a sender is found.
    pub fn level(&self) -> usize {
        self.heard.as_ref().map_or(1, |heard| heard.tear.level())
    }
    /// The jitter buffers of the layers, with their counters.
    pub fn layers(&self) -> &LayerStatistics {
        &self.layers
    }
    /// State for an observer; `None` if there is no sender.
    pub fn look(&mut self, looks: &mut Looks, now: Time) -> Option<Playing> {
        let heard = self.heard.as_ref()?;
        looks.of(heard.session);
        let playing = looks.look(now, &mut self.layers, self.latency, Duration::ZERO);
        let tear = Some(Rate::from_bps_f64(heard.tear.rate()));
        Some(Playing { tear, ..playing })
    }
    /// Packets that were invalid, of another sender, or out of range.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Handles an arriving packet.
    pub fn on_packet(&mut self, now: Time, from: IpAddr, bytes: &mut [u8]) -> Option<GroupChange> {
        let length = bytes.len();
        let Some((head, message)) = read_packet(bytes) else {
            self.refused += 1;
            return None;
        };
        let is_same = |heard: &GroupSession| heard.from == from && heard.session == head.session;
        let change = match &self.heard {
            Some(heard) if is_same(heard) => None,
            Some(heard) if heard.from != from || now.since(heard.last) < RESTART => {
                self.refused += 1;
                return None;
            }
            // A restarted sender, or the first one.
            _ => Some(self.begin(now, from, &head)?),
        };
        let level = self.on_data(now, length, &head, message);
        change.or(level)
    }

    fn begin(&mut self, now: Time, from: IpAddr, head: &Head) -> Option<GroupChange> {
        // Only packets of the base layer contain the rates.
        let rates: Vec<f64> = head.rates.iter().map(|rate| 1e3 * f64::from(*rate)).collect();
        if rates.is_empty() {
            self.refused += 1;
            return None;
        }
        self.layers = LayerStatistics::new(rates.len(), self.latency);
        self.heard = Some(GroupSession {
            from,
            session: head.session,
            rates: head.rates.clone(),
            tear: tear(&rates, self.rtt)?,
            highest: [None; MAX_LAYERS],
            strange: 0,
            last: now,
        });
        Some(GroupChange::Heard(head.rates.clone()))
    }

    fn on_data(
        &mut self,
        now: Time,
        length: usize,
        head: &Head,
        message: &[u8],
    ) -> Option<GroupChange> {
        let heard = self.heard.as_mut()?;
        let data = data(message)?;
        let highest = heard.highest.get_mut(head.layer)?;
        let number =
            highest.map_or(u64::from(data.number) + (1 << 32), |h| extended(data.number, h));
        let is_strange = highest.is_some_and(|h| number.abs_diff(h) > MAX_AHEAD);
        let is_other = !head.rates.is_empty() && head.rates != heard.rates;
        if is_strange || is_other || head.layer >= heard.rates.len() {
            self.refused += 1;
            heard.strange += 1;
            if heard.strange >= STRANGE {
                self.heard = None;
            }
            return None;
        }
        heard.strange = 0;
        heard.last = now;
        let before = heard.tear.level();
        // The packet was under way when its layer was left. The layer's numbers begin anew when it is joined again.
        if head.layer >= before {
            return None;
        }
        *highest = Some(highest.map_or(number, |h| h.max(number)));
        let whole = length + HEADERS;
        let packet = LayerPacket {
            layer: head.layer,
            number,
            sent: data.stamp,
            bytes: whole.min(usize::from(u16::MAX)) as u32,
            payload: message.len().saturating_sub(HEAD).min(usize::from(u16::MAX)) as u32,
            marked: false,
        };
        heard.tear.on_arrival(now, &packet);
        let change = heard.change(before);
        self.layers.on_message(now, &mut of_layer(head.layer, message.to_vec()));
        self.changed(change)
    }

    /// Call this at the time of [`next_timeout`](GroupReceiver::next_timeout).
    pub fn on_timeout(&mut self, now: Time) -> Option<GroupChange> {
        self.layers.look(now);
        let heard = self.heard.as_mut()?;
        if now.since(heard.last) >= GONE {
            self.heard = None;
            return Some(GroupChange::Gone);
        }
        if heard.tear.next_timeout() > now {
            return None;
        }
        let before = heard.tear.level();
        heard.tear.on_timeout(now);
        let change = heard.change(before);
        self.changed(change)
    }

    /// Pauses the layers that are no longer received, so that their packets do not count as missing.
    fn changed(&mut self, change: Option<GroupChange>) -> Option<GroupChange> {
        if let Some(GroupChange::Level(level, _)) = &change {
            self.layers.pause_from(*level);
        }
        change
    }

    /// Time of the next release or of TEAR's timer.
    pub fn next_timeout(&self) -> Time {
        let timer = self.heard.as_ref().map_or(Time::NEVER, |heard| heard.tear.next_timeout());
        self.layers.due().min(timer)
    }
    /// The next due datagram and its layer. Call it until it returns `None`.
    pub fn release(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        self.layers.release(now)
    }
}

impl GroupSession {
    fn change(&mut self, before: usize) -> Option<GroupChange> {
        let level = self.tear.level();
        // A layer that is joined again begins anew.
        self.highest.iter_mut().skip(level).for_each(|highest| *highest = None);
        (level != before).then(|| GroupChange::Level(level, self.tear.rate() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_packet::write;
    use crate::packet::DataPart;

    const RATES: [u32; 3] = [200, 400, 1400];
    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn receiver() -> GroupReceiver {
        GroupReceiver::new(Duration::from_millis(200), Duration::from_millis(100))
    }
    fn packet(session: u64, layer: usize, number: u32, stamp: Time) -> Vec<u8> {
        let part = 0;
        let last_part = 0;
        let frame = number;
        let begins_frame = true;
        let payload = &[layer as u8; 1000];
        let data = DataPart { number, part, last_part, stamp, frame, begins_frame, payload };
        let rates = if layer == 0 { RATES.to_vec() } else { Vec::new() };
        write(&Head { session, layer, rates }, data.bytes())
    }

    /// Sends all layers for a minute over a link of this rate with a queue of 30 kB. Only joined layers arrive. Returns
    /// the level at each second.
    fn minute(link: f64) -> (Vec<usize>, GroupReceiver) {
        let mut receiver = receiver();
        let mut levels = Vec::new();
        let mut free = 0.0f64;
        let mut numbers = [0u32; 3];
        let mut owed = [0.0f64; 3];
        let mut flying = std::collections::VecDeque::new();
        for ms in 0..60_000u64 {
            let now = Time::ZERO + Duration::from_millis(ms);
            let s = ms as f64 / 1e3;
            for layer in 0..3 {
                owed[layer] += f64::from(RATES[layer]) / 8.0 / 1000.0;
                while owed[layer] >= 1.0 {
                    owed[layer] -= 1.0;
                    let bytes = packet(1, layer, numbers[layer], now);
                    numbers[layer] += 1;
                    let size = (bytes.len() + HEADERS) as f64 * 8.0;
                    if layer < receiver.level() && (free - s).max(0.0) * link < 30e3 * 8.0 {
                        free = free.max(s) + size / link;
                        flying.push_back((free + 0.02, bytes));
                    }
                }
            }
            while flying.front().is_some_and(|(at, _)| *at <= s) {
                let (_, mut bytes) = flying.pop_front().unwrap();
                receiver.on_packet(now, FROM, &mut bytes);
            }
            receiver.on_timeout(now);
            while receiver.release(now).is_some() {}
            if ms % 1000 == 999 {
                levels.push(receiver.level());
            }
        }
        (levels, receiver)
    }

    #[test]
    fn receiver_joins_the_groups_that_its_link_carries() {
        let mut means = Vec::new();
        for (link, max) in [(0.3e6, 1.7), (1e6, 2.7), (3e6, 3.0)] {
            let (levels, receiver) = minute(link);
            let late = &levels[20..];
            let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
            assert!(mean <= max, "{link}: {levels:?}");
            let received = receiver.layers().received();
            assert!(receiver.refused() == 0 && received.parts > 1000);
            // Packets of layers that are not joined do not count as missing.
            assert!(received.missed < received.parts / 10, "{link}: {received:?}");
            means.push(mean);
        }
        assert!(means[0] < means[1] && means[1] < means[2] && means[2] > 2.5, "{means:?}");
    }

    #[test]
    fn another_sender_is_refused_until_the_first_is_gone() {
        let mut receiver = receiver();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let other = IpAddr::from([10, 0, 0, 9]);
        // A packet of an upper layer does not contain the rates.
        assert_eq!(receiver.on_packet(at(0), FROM, &mut packet(1, 1, 0, at(0))), None);
        let heard = Some(GroupChange::Heard(RATES.to_vec()));
        assert_eq!(receiver.on_packet(at(0), FROM, &mut packet(1, 0, 0, at(0))), heard);
        assert_eq!(receiver.on_packet(at(1), other, &mut packet(2, 0, 0, at(1))), None);
        assert_eq!(receiver.refused(), 2);
        assert_eq!(receiver.on_timeout(at(5000)), Some(GroupChange::Gone));
        assert_eq!(receiver.on_packet(at(5001), other, &mut packet(2, 0, 0, at(1))), heard);
        // The same sender after a restart.
        assert_eq!(receiver.on_packet(at(5400), other, &mut packet(3, 0, 0, at(2))), None);
        assert_eq!(receiver.on_packet(at(5501), other, &mut packet(3, 0, 0, at(2))), heard);
    }

    #[test]
    fn far_numbers_are_ignored_until_only_they_remain() {
        let mut receiver = receiver();
        let now = Time::ZERO;
        receiver.on_packet(now, FROM, &mut packet(1, 0, 0, now));
        for n in 0..STRANGE {
            assert_eq!(receiver.on_packet(now, FROM, &mut packet(1, 0, 1 << 30, now)), None, "{n}");
        }
        assert_eq!(receiver.refused(), u64::from(STRANGE));
        assert!(receiver.on_packet(now, FROM, &mut packet(1, 0, 1 << 30, now)).is_some());
    }
}
