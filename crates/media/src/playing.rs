//! What observers are told of a stream that is received while it goes on: figures alone, no byte of what is carried.

use crate::meter::Counts;
use crate::receiver::{Received, Receiver};
use crate::shown::Layers;
use narrows_base::{Duration, Rate, Time};

/// Observers are told so often: 20 times a second.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Told what is known.
pub type Observer = Box<dyn Fn(&Playing) + Send + Sync>;

/// What is known of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playing {
    /// Which stream: counters begin anew with each.
    pub stream: u64,
    /// The latency that it has.
    pub latency: Duration,
    /// Counters over all layers.
    pub received: Received,
    /// Counters of the base layer's frames.
    pub counts: Counts,
    /// The longest delay of its frames that became whole since the last look, beyond the path's shortest time.
    pub frame_delay: Option<Duration>,
    /// The longest time without a packet since the last look.
    pub quiet: Duration,
    /// Smoothed round-trip time; zero if it is not known.
    pub rtt: Duration,
    /// Layers that there are, and
    pub layers: usize,
    /// that the sender has.
    pub of: usize,
    /// The rate by which groups of IP multicast are joined and left.
    pub tear: Option<Rate>,
}

/// Looks at a stream for an observer.
#[derive(Debug)]
pub struct Looks {
    stream: u64,
    next: Time,
    /// The last packet, and the longest pause between two since the last look.
    last: Option<Time>,
    quiet: Duration,
}

impl Looks {
    /// Of this stream, from now on.
    pub fn new(stream: u64, now: Time) -> Looks {
        Looks { stream, next: now + LOOK_EVERY, last: None, quiet: Duration::ZERO }
    }

    /// From now on it is of this stream.
    pub fn of(&mut self, stream: u64) {
        self.stream = stream;
    }

    /// When the next look is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// A packet arrived.
    pub fn on_packet(&mut self, arrival: Time) {
        let since = self.last.map_or(Duration::ZERO, |last| arrival.since(last));
        self.quiet = self.quiet.max(since);
        self.last = self.last.max(Some(arrival));
    }

    /// Whether a look is due; the next one is later then.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.next <= now;
        if is_due {
            self.next = now + LOOK_EVERY;
        }
        is_due
    }

    /// What is known now, of a stream with this latency, where a round trip takes `rtt`.
    pub fn look(
        &mut self,
        now: Time,
        layers: &mut Layers,
        latency: Duration,
        rtt: Duration,
    ) -> Playing {
        let pause = self.last.map_or(Duration::ZERO, |last| now.since(last));
        let quiet = std::mem::take(&mut self.quiet).max(pause);
        layers.look(now);
        let frame_delay = layers.take_longest_frame();
        let base = layers.receivers().first().map(Receiver::meter);
        Playing {
            stream: self.stream,
            latency,
            received: layers.received(),
            counts: base.map(|meter| meter.counts()).unwrap_or_default(),
            frame_delay,
            quiet,
            rtt,
            layers: layers.shown().layers,
            of: layers.receivers().len(),
            tear: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Data;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn data(number: u32) -> Vec<u8> {
        let (part, last_part, frame, begins_frame) = (0, 0, number + 1, true);
        let stamp = at(10 * u64::from(number));
        Data { number, part, last_part, stamp, frame, begins_frame, payload: b"x" }.bytes()
    }

    #[test]
    fn a_look_has_the_longest_pause_and_the_longest_frame_since_the_one_before() {
        let latency = Duration::from_millis(100);
        let mut layers = Layers::new(1, latency);
        let mut looks = Looks::new(7, at(0));
        let mut all = Vec::new();
        for ms in 0..500 {
            let number = (ms / 10) as u32;
            // 5 ms each, but for one that takes 60.
            let arrives = if number == 20 { 260 } else { 10 * (ms / 10) + 5 };
            if ms == arrives && number != 20 || ms == 260 {
                let number = if ms == 260 { 20 } else { number };
                layers.on_message(at(ms), &mut data(number));
                looks.on_packet(at(ms));
            }
            while layers.release(at(ms)).is_some() {}
            if looks.is_due(at(ms)) {
                all.push(looks.look(at(ms), &mut layers, latency, Duration::ZERO));
            }
        }
        assert!(all.iter().all(|p| p.stream == 7 && p.layers == 1 && p.of == 1));
        let delays: Vec<_> =
            all.iter().map(|p| p.frame_delay.map(|d| d.as_nanos() / 1_000_000)).collect();
        assert_eq!(delays.iter().filter(|d| **d == Some(55)).count(), 1, "{delays:?}");
        assert_eq!(delays.last(), Some(&Some(0)));
        let quiet = all.iter().map(|p| p.quiet).max().unwrap();
        assert_eq!(quiet, Duration::from_millis(20));
    }
}
