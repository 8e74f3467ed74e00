//! The receiving end of a stream that is sent to groups, without a socket: which groups it is in, by TEAR's rate, with the rules
//! of `narrows_transport::multicast` (S4 sections 2.3, 3.1 and 3.2), and a jitter buffer without repeats.

use crate::group_packet::{Head, data, read_packet};
use crate::packet::{HEAD, extended, of_layer};
use crate::playing::{Looks, Playing};
use crate::shown::Layers;
use narrows_base::{Duration, Packet, RandomKey, Rate, Spec, Time};
use narrows_congestion::{Feedback, PathHints};
use narrows_transport::datagram::header::{self, Data as Fields};
use narrows_transport::layers::MAX_LAYERS;
use narrows_transport::multicast::Receiver as Session;
use narrows_transport::{Preset, Protocol};
use std::net::IpAddr;

/// A sender of which nothing has come for so long is gone, and another may be heard.
const GONE: Duration = Duration::from_secs(5);
/// A sender that has been started again is heard if its former self has said nothing for so long.
const RESTART: Duration = Duration::from_millis(500);
/// Numbers may be ahead by so many; more are another stream's.
const MAX_AHEAD: u64 = 4096;
/// So many such packets in succession, and the sender has begun anew.
const STRANGE: u32 = 100;
/// IP and UDP headers of a packet.
const HEADERS: usize = 28;

/// A change of what is received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A sender is heard, which sends layers of these rates in kbit/s.
    Heard(Vec<u32>),
    /// So many layers are received now, and TEAR's rate in bit/s is this.
    Level(usize, u64),
    /// Nothing more is heard of the sender.
    Gone,
}

struct Heard {
    from: IpAddr,
    session: u64,
    rates: Vec<u32>,
    tear: Session,
    /// The highest number of each layer.
    highest: [Option<u64>; MAX_LAYERS],
    strange: u32,
    last: Time,
}

/// The receiving end.
pub struct GroupReceiver {
    latency: Duration,
    rtt: Duration,
    heard: Option<Heard>,
    layers: Layers,
    refused: u64,
}

/// TEAR's receiver side over layers of these rates in bit/s.
fn tear(rates: &[f64], rtt: Duration) -> Option<Session> {
    let protocol = Protocol::read(&Spec::named("tear"), Preset::Rfc, 1500).ok()?;
    let key = RandomKey::from_seed(0);
    let environment = protocol.environment(protocol.packet_bytes(), key, PathHints::default());
    Some(Session::new(protocol.receiver_side(&environment)?, rates, rtt))
}

impl GroupReceiver {
    /// Releases what was stamped so long ago, beyond what the path takes at least; TEAR takes `rtt` for the round trip of
    /// an empty path.
    pub fn new(latency: Duration, rtt: Duration) -> GroupReceiver {
        let layers = Layers::new(1, latency);
        GroupReceiver { latency, rtt, heard: None, layers, refused: 0 }
    }

    /// Layers that are received: the base layer, before a sender is heard.
    pub fn level(&self) -> usize {
        self.heard.as_ref().map_or(1, |heard| heard.tear.level())
    }
    /// The layers, and what came of them.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }
    /// What observers are told now, if a sender is heard.
    pub fn look(&mut self, looks: &mut Looks, now: Time) -> Option<Playing> {
        let heard = self.heard.as_ref()?;
        looks.of(heard.session);
        let playing = looks.look(now, &mut self.layers, self.latency, Duration::ZERO);
        let tear = Some(Rate::from_bps_f64(heard.tear.rate()));
        Some(Playing { tear, ..playing })
    }
    /// Packets that were none, of another sender, or of strange numbers.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// A packet arrived.
    pub fn on_packet(&mut self, now: Time, from: IpAddr, bytes: &mut [u8]) -> Option<Change> {
        let length = bytes.len();
        let Some((head, message)) = read_packet(bytes) else {
            self.refused += 1;
            return None;
        };
        let is_same = |heard: &Heard| heard.from == from && heard.session == head.session;
        let change = match &self.heard {
            Some(heard) if is_same(heard) => None,
            Some(heard) if heard.from != from || now.since(heard.last) < RESTART => {
                self.refused += 1;
                return None;
            }
            // The same machine has begun anew, or nobody was heard.
            _ => Some(self.begin(now, from, &head)?),
        };
        let level = self.on_data(now, length, &head, message);
        change.or(level)
    }

    fn begin(&mut self, now: Time, from: IpAddr, head: &Head) -> Option<Change> {
        // Another layer's packet does not say what there is.
        let rates: Vec<f64> = head.rates.iter().map(|rate| 1e3 * f64::from(*rate)).collect();
        if rates.is_empty() {
            self.refused += 1;
            return None;
        }
        self.layers = Layers::new(rates.len(), self.latency);
        self.heard = Some(Heard {
            from,
            session: head.session,
            rates: head.rates.clone(),
            tear: tear(&rates, self.rtt)?,
            highest: [None; MAX_LAYERS],
            strange: 0,
            last: now,
        });
        Some(Change::Heard(head.rates.clone()))
    }

    fn on_data(&mut self, now: Time, length: usize, head: &Head, message: &[u8]) -> Option<Change> {
        let (heard, data) = (self.heard.as_mut()?, data(message)?);
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
        // On the way when its layer was left: the next number of it begins anew.
        if head.layer >= before {
            return None;
        }
        *highest = Some(highest.map_or(number, |h| h.max(number)));
        let mut packet = Packet {
            seq: number,
            stamp: data.stamp,
            number: 0,
            random_key: 0,
            sack: [(0, 0); 3],
            flow: 0,
            size: (length + HEADERS).min(usize::from(u16::MAX)) as u16,
            hop: 0,
            flags: 0,
        };
        let fields = Fields {
            payload: (message.len().saturating_sub(HEAD)).min(usize::from(u16::MAX)) as u16,
            least_unacked: 0,
            offset: head.layer as u64,
            feedback: Feedback::NONE,
            spacing: Duration::ZERO,
        };
        header::write_data(&mut packet, &fields);
        heard.tear.on_arrival(now, &packet);
        let change = heard.change(before);
        self.layers.on_message(now, &mut of_layer(head.layer, message.to_vec()));
        self.changed(change)
    }

    /// The time of [`next_timeout`](GroupReceiver::next_timeout) has come.
    pub fn on_timeout(&mut self, now: Time) -> Option<Change> {
        self.layers.look(now);
        let heard = self.heard.as_mut()?;
        if now.since(heard.last) >= GONE {
            self.heard = None;
            return Some(Change::Gone);
        }
        if heard.tear.next_timeout() > now {
            return None;
        }
        let before = heard.tear.level();
        heard.tear.on_timeout(now);
        let change = heard.change(before);
        self.changed(change)
    }

    /// What is not received is not missing.
    fn changed(&mut self, change: Option<Change>) -> Option<Change> {
        if let Some(Change::Level(level, _)) = &change {
            self.layers.pause_from(*level);
        }
        change
    }

    /// When something is to be released, or TEAR's timer fires.
    pub fn next_timeout(&self) -> Time {
        let timer = self.heard.as_ref().map_or(Time::NEVER, |heard| heard.tear.next_timeout());
        self.layers.due().min(timer)
    }
    /// A datagram that is due, and its layer; to be called until there is none.
    pub fn release(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        self.layers.release(now)
    }
}

impl Heard {
    fn change(&mut self, before: usize) -> Option<Change> {
        let level = self.tear.level();
        // A layer that is joined again begins anew.
        self.highest.iter_mut().skip(level).for_each(|highest| *highest = None);
        (level != before).then(|| Change::Level(level, self.tear.rate() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_packet::write;
    use crate::packet::Data;

    const RATES: [u32; 3] = [200, 400, 1400];
    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn receiver() -> GroupReceiver {
        GroupReceiver::new(Duration::from_millis(200), Duration::from_millis(100))
    }
    fn packet(session: u64, layer: usize, number: u32, stamp: Time) -> Vec<u8> {
        let (part, last_part, frame, begins_frame) = (0, 0, number, true);
        let payload = &[layer as u8; 1000];
        let data = Data { number, part, last_part, stamp, frame, begins_frame, payload };
        let rates = if layer == 0 { RATES.to_vec() } else { Vec::new() };
        write(&Head { session, layer, rates }, data.bytes())
    }

    /// Layers as they are sent for a minute, over a link of this rate with a queue of 30 kB; what is not joined does not come.
    /// Returns the level at each second.
    fn minute(link: f64) -> (Vec<usize>, GroupReceiver) {
        let (mut receiver, mut levels) = (receiver(), Vec::new());
        let (mut free, mut numbers, mut owed) = (0.0f64, [0u32; 3], [0.0f64; 3]);
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
    fn a_receiver_is_in_as_many_groups_as_its_link_carries() {
        let mut means = Vec::new();
        for (link, most) in [(0.3e6, 1.7), (1e6, 2.7), (3e6, 3.0)] {
            let (levels, receiver) = minute(link);
            let late = &levels[20..];
            let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
            assert!(mean <= most, "{link}: {levels:?}");
            let received = receiver.layers().received();
            assert!(receiver.refused() == 0 && received.parts > 1000);
            // What was not joined is not missing.
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
        // An upper layer's packet does not say what there is.
        assert_eq!(receiver.on_packet(at(0), FROM, &mut packet(1, 1, 0, at(0))), None);
        let heard = Some(Change::Heard(RATES.to_vec()));
        assert_eq!(receiver.on_packet(at(0), FROM, &mut packet(1, 0, 0, at(0))), heard);
        assert_eq!(receiver.on_packet(at(1), other, &mut packet(2, 0, 0, at(1))), None);
        assert_eq!(receiver.refused(), 2);
        assert_eq!(receiver.on_timeout(at(5000)), Some(Change::Gone));
        assert_eq!(receiver.on_packet(at(5001), other, &mut packet(2, 0, 0, at(1))), heard);
        // The same machine, which has been started again.
        assert_eq!(receiver.on_packet(at(5400), other, &mut packet(3, 0, 0, at(2))), None);
        assert_eq!(receiver.on_packet(at(5501), other, &mut packet(3, 0, 0, at(2))), heard);
    }

    #[test]
    fn numbers_from_far_ahead_change_nothing_until_there_is_nothing_else() {
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
