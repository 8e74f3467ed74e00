//! The receiving end of a stream in layers, without a socket: a [`Receiver`] for each, and which layers there were.

use crate::packet::{of_layer, take_layer};
use crate::receiver::{Received, Receiver};
use narrows_base::{Duration, Time};
use narrows_transport::layers::MAX_LAYERS;

/// A layer of which nothing has come for so long is not there.
const GONE: Duration = Duration::from_secs(1);

/// All layers of a stream; of one that has none, it is the base layer.
#[derive(Debug)]
pub struct Layers {
    receivers: Vec<Receiver>,
    /// When something of each layer came last.
    last: [Option<Time>; MAX_LAYERS],
    /// Messages of layers that there are not.
    refused: u64,
    shown: Shown,
    looked: Option<Time>,
}

/// Which layers there were.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shown {
    /// Layers that are there: all up to the highest of which something came in the last second.
    pub layers: usize,
    /// How often that changed.
    pub switches: u64,
    /// Seconds with each layer there, summed over layers.
    layer_seconds: f64,
    seconds: f64,
}

impl Shown {
    /// Mean number of layers over time.
    pub fn mean(&self) -> f64 {
        if self.seconds > 0.0 { self.layer_seconds / self.seconds } else { 0.0 }
    }
}

impl Layers {
    /// So many layers, at least one, which release what was stamped so long ago, beyond what the path takes at least.
    pub fn new(layers: usize, latency: Duration) -> Layers {
        let layers = layers.clamp(1, MAX_LAYERS);
        Layers {
            receivers: (0..layers).map(|_| Receiver::one_of(layers, latency)).collect(),
            last: [None; MAX_LAYERS],
            refused: 0,
            shown: Shown::default(),
            looked: None,
        }
    }

    /// The receivers of the layers, the base layer first.
    pub fn receivers(&self) -> &[Receiver] {
        &self.receivers
    }
    /// Which layers there were.
    pub fn shown(&self) -> Shown {
        self.shown
    }
    /// Counters over all layers.
    pub fn received(&self) -> Received {
        let first = Received { refused: self.refused, ..Received::default() };
        self.receivers.iter().fold(first, |sum, one| sum.and(&one.received()))
    }

    /// As of the base layer's [`Meter::take_longest_frame`](crate::meter::Meter::take_longest_frame).
    pub fn take_longest_frame(&mut self) -> Option<Duration> {
        self.receivers.first_mut()?.take_longest_frame()
    }

    /// A message arrived then.
    pub fn on_message(&mut self, arrival: Time, message: &mut [u8]) {
        let layer = take_layer(message).filter(|layer| *layer < self.receivers.len());
        let one = layer
            .and_then(|layer| Some((self.receivers.get_mut(layer)?, self.last.get_mut(layer)?)));
        let Some((receiver, last)) = one else {
            self.refused += 1;
            return;
        };
        receiver.on_message(arrival, message);
        *last = Some(last.map_or(arrival, |last| last.max(arrival)));
    }

    /// Nothing comes of this layer and those above it until further notice.
    pub fn pause_from(&mut self, layer: usize) {
        self.receivers.iter_mut().skip(layer).for_each(Receiver::pause);
    }

    /// Counts which layers are there; to be called some times a second.
    pub fn look(&mut self, now: Time) {
        let is_there = |last: &Option<Time>| last.is_some_and(|last| now.since(last) <= GONE);
        let layers = self.last.iter().rposition(is_there).map_or(0, |highest| highest + 1);
        let gone = self.looked.replace(now).map_or(0.0, |at| now.since(at).as_secs_f64());
        let before = std::mem::replace(&mut self.shown.layers, layers);
        if before > 0 {
            self.shown.seconds += gone;
            self.shown.layer_seconds += gone * before as f64;
            self.shown.switches += u64::from(layers != before);
        }
    }

    /// When something is to be released.
    pub fn due(&self) -> Time {
        self.receivers.iter().map(Receiver::due).min().unwrap_or(Time::NEVER)
    }
    /// When something is to be released or asked for.
    pub fn next_timeout(&self) -> Time {
        self.receivers.iter().map(Receiver::next_timeout).min().unwrap_or(Time::NEVER)
    }
    /// A datagram that is due, and its layer; to be called until there is none.
    pub fn release(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        let mut all = self.receivers.iter_mut().enumerate();
        all.find_map(|(layer, one)| Some((layer, one.release(now)?)))
    }
    /// A request for what is missing, the base layer's first, where a round trip takes `rtt` (zero: not known).
    pub fn ask(&mut self, now: Time, rtt: Duration) -> Option<Vec<u8>> {
        let mut all = self.receivers.iter_mut().enumerate();
        all.find_map(|(layer, one)| Some(of_layer(layer, one.ask(now, rtt)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Data;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn data(layer: usize, number: u32, stamp: Time) -> Vec<u8> {
        let (part, last_part, frame, begins_frame) = (0, 0, number, true);
        let payload = &[layer as u8];
        of_layer(
            layer,
            Data { number, part, last_part, stamp, frame, begins_frame, payload }.bytes(),
        )
    }

    #[test]
    fn each_layer_is_released_and_asked_for_by_itself() {
        let mut layers = Layers::new(2, Duration::from_millis(100));
        for (layer, number) in [(1, 0), (0, 0), (1, 2), (0, 2), (2, 0)] {
            layers.on_message(at(30), &mut data(layer, number, at(0)));
        }
        let asked = std::iter::from_fn(|| layers.ask(at(40), Duration::from_millis(20)));
        let asked: Vec<_> = asked.filter_map(|mut message| take_layer(&mut message)).collect();
        assert_eq!(asked, [0, 1]);
        let all: Vec<_> = std::iter::from_fn(|| layers.release(at(130))).collect();
        assert_eq!(all, [(0, vec![0]), (0, vec![0]), (1, vec![1]), (1, vec![1])]);
        // The third layer was not announced.
        assert_eq!(layers.received().refused, 1);
    }

    #[test]
    fn a_layer_that_stops_is_a_switch_and_one_that_pauses_is_none() {
        let mut layers = Layers::new(3, Duration::from_millis(100));
        for ms in (0..20_000u64).step_by(40) {
            for layer in 0..3 {
                let stops = layer == 2 && ms >= 10_000;
                let pauses = layer == 1 && (5000..5500).contains(&ms);
                if !stops && !pauses {
                    layers.on_message(at(ms), &mut data(layer, (ms / 40) as u32, at(ms)));
                }
            }
            layers.look(at(ms));
            while layers.release(at(ms)).is_some() {}
        }
        let shown = layers.shown();
        assert_eq!((shown.layers, shown.switches), (2, 1));
        assert!((2.5..2.6).contains(&shown.mean()), "{}", shown.mean());
    }
}
