//! Statistics of a received stream for observers. They contain figures only, no payload.

use crate::meter::FrameCounts;
use crate::receiver::{MediaLayerReceiver, ReceiverCounters};
use crate::shown::LayerStatistics;
use narrows_base::{Duration, Rate, Time};

/// Interval of the observer's calls: 20 times a second.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Callback for the statistics.
pub type Observer = Box<dyn Fn(&Playing) + Send + Sync>;

/// Current statistics of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playing {
    /// Number of the stream; counters begin anew with each.
    pub stream: u64,
    /// The stream's latency.
    pub latency: Duration,
    /// Sum of the counters of all layers.
    pub received: ReceiverCounters,
    /// Counters of the base layer's frames.
    pub counts: FrameCounts,
    /// The longest delay of base layer frames completed since the last look, beyond the path's shortest delay.
    pub frame_delay: Option<Duration>,
    /// The longest time without a packet since the last look.
    pub quiet: Duration,
    /// Smoothed round-trip time; zero if it is not known.
    pub rtt: Duration,
    /// Number of layers present now.
    pub layers: usize,
    /// Number of the sender's layers.
    pub of: usize,
    /// TEAR's rate, by which multicast groups are joined and left; absent for unicast.
    pub tear: Option<Rate>,
}

/// Collects statistics between two looks at a stream.
#[derive(Debug)]
pub struct Looks {
    stream: u64,
    next: Time,
    /// Arrival of the last packet; below, the longest pause between two packets since the last look.
    last: Option<Time>,
    quiet: Duration,
}

impl Looks {
    /// Begins to observe this stream.
    pub fn new(stream: u64, now: Time) -> Looks {
        Looks { stream, next: now + LOOK_EVERY, last: None, quiet: Duration::ZERO }
    }

    /// Continues with this stream.
    pub fn of(&mut self, stream: u64) {
        self.stream = stream;
    }

    /// Time of the next look.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Records the arrival of a packet.
    pub fn on_packet(&mut self, arrival: Time) {
        let since = self.last.map_or(Duration::ZERO, |last| arrival.since(last));
        self.quiet = self.quiet.max(since);
        self.last = self.last.max(Some(arrival));
    }

    /// Whether a look is due. If so, schedules the next one.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.next <= now;
        if is_due {
            self.next = now + LOOK_EVERY;
        }
        is_due
    }

    /// The current statistics of a stream with this latency and round-trip time.
    pub fn look(
        &mut self,
        now: Time,
        layers: &mut LayerStatistics,
        latency: Duration,
        rtt: Duration,
    ) -> Playing {
        let pause = self.last.map_or(Duration::ZERO, |last| now.since(last));
        let quiet = std::mem::take(&mut self.quiet).max(pause);
        layers.look(now);
        let frame_delay = layers.take_longest_frame();
        let base = layers.receivers().first().map(MediaLayerReceiver::meter);
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
    use crate::packet::DataPart;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn data(number: u32) -> Vec<u8> {
        let part = 0;
        let last_part = 0;
        let frame = number + 1;
        let begins_frame = true;
        let stamp = at(10 * u64::from(number));
        DataPart { number, part, last_part, stamp, frame, begins_frame, payload: b"x" }.bytes()
    }

    #[test]
    fn sample_has_longest_pause_and_frame_since_the_previous() {
        let latency = Duration::from_millis(100);
        let mut layers = LayerStatistics::new(1, latency);
        let mut looks = Looks::new(7, at(0));
        let mut all = Vec::new();
        for ms in 0..500 {
            let number = (ms / 10) as u32;
            // Each packet takes 5 ms, except one that takes 60 ms.
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
