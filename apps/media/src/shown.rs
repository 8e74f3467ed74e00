//! The receiving end of a layered stream, without a socket: a [`MediaLayerReceiver`] for each layer, and the number of layers
//! present.

use crate::packet::{of_layer, take_layer};
use crate::receiver::{MediaLayerReceiver, ReceiverCounters};
use narrows_base::{Duration, Time};
use narrows_congestion::layers::MAX_LAYERS;

/// Silence after which a layer counts as absent.
const GONE: Duration = Duration::from_secs(1);

/// All layers of a stream. A stream without layers has only the base layer.
#[derive(Debug)]
pub struct LayerStatistics {
    receivers: Vec<MediaLayerReceiver>,
    /// Last arrival of each layer.
    last: [Option<Time>; MAX_LAYERS],
    /// Messages of layers that do not exist.
    refused: u64,
    shown: PresentLayers,
    looked: Option<Time>,
}

/// Statistics of the layers present.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PresentLayers {
    /// Number of layers present: all up to the highest that received a packet in the last second.
    pub layers: usize,
    /// Number of times that this changed.
    pub switches: u64,
    /// Presence of all layers, in layer-seconds.
    layer_seconds: f64,
    seconds: f64,
}

impl PresentLayers {
    /// Time-average of the number of layers.
    pub fn mean(&self) -> f64 {
        if self.seconds > 0.0 { self.layer_seconds / self.seconds } else { 0.0 }
    }
}

impl LayerStatistics {
    /// `layers` layers, at least one, which release datagrams at the path's shortest delay plus `latency`.
    pub fn new(layers: usize, latency: Duration) -> LayerStatistics {
        let layers = layers.clamp(1, MAX_LAYERS);
        LayerStatistics {
            receivers: (0..layers).map(|_| MediaLayerReceiver::one_of(layers, latency)).collect(),
            last: [None; MAX_LAYERS],
            refused: 0,
            shown: PresentLayers::default(),
            looked: None,
        }
    }

    /// The receivers of the layers, the base layer first.
    pub fn receivers(&self) -> &[MediaLayerReceiver] {
        &self.receivers
    }
    /// Statistics of the layers present.
    pub fn shown(&self) -> PresentLayers {
        self.shown
    }
    /// Sum of the counters of all layers.
    pub fn received(&self) -> ReceiverCounters {
        let first = ReceiverCounters { refused: self.refused, ..ReceiverCounters::default() };
        self.receivers.iter().fold(first, |sum, one| sum.and(&one.received()))
    }

    /// As of the base layer's [`PlayoutMeter::take_longest_frame`](crate::meter::PlayoutMeter::take_longest_frame).
    pub fn take_longest_frame(&mut self) -> Option<Duration> {
        self.receivers.first_mut()?.take_longest_frame()
    }

    /// Handles a message, which has a layer mark.
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

    /// Pauses this layer and those above it, as their reception ends.
    pub fn pause_from(&mut self, layer: usize) {
        self.receivers.iter_mut().skip(layer).for_each(MediaLayerReceiver::pause);
    }

    /// Updates the statistics of the layers present. Call it several times a second.
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

    /// Time of the next release.
    pub fn due(&self) -> Time {
        self.receivers.iter().map(MediaLayerReceiver::due).min().unwrap_or(Time::NEVER)
    }
    /// Time of the next release or request.
    pub fn next_timeout(&self) -> Time {
        self.receivers.iter().map(MediaLayerReceiver::next_timeout).min().unwrap_or(Time::NEVER)
    }
    /// The next due datagram and its layer. Call it until it returns `None`.
    pub fn release(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        let mut all = self.receivers.iter_mut().enumerate();
        all.find_map(|(layer, one)| Some((layer, one.release(now)?)))
    }
    /// A request for missing packets, the base layer's first; `rtt` is zero if it is not known.
    pub fn ask(&mut self, now: Time, rtt: Duration) -> Option<Vec<u8>> {
        let mut all = self.receivers.iter_mut().enumerate();
        all.find_map(|(layer, one)| Some(of_layer(layer, one.ask(now, rtt)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::DataPart;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn data(layer: usize, number: u32, stamp: Time) -> Vec<u8> {
        let part = 0;
        let last_part = 0;
        let frame = number;
        let begins_frame = true;
        let payload = &[layer as u8];
        of_layer(
            layer,
            DataPart { number, part, last_part, stamp, frame, begins_frame, payload }.bytes(),
        )
    }

    #[test]
    fn each_layer_is_released_and_asked_for_by_itself() {
        let mut layers = LayerStatistics::new(2, Duration::from_millis(100));
        for (layer, number) in [(1, 0), (0, 0), (1, 2), (0, 2), (2, 0)] {
            layers.on_message(at(30), &mut data(layer, number, at(0)));
        }
        let asked = std::iter::from_fn(|| layers.ask(at(40), Duration::from_millis(20)));
        let asked: Vec<_> = asked.filter_map(|mut message| take_layer(&mut message)).collect();
        assert_eq!(asked, [0, 1]);
        let all: Vec<_> = std::iter::from_fn(|| layers.release(at(130))).collect();
        assert_eq!(all, [(0, vec![0]), (0, vec![0]), (1, vec![1]), (1, vec![1])]);
        // A third layer was not announced.
        assert_eq!(layers.received().refused, 1);
    }

    #[test]
    fn stopped_layer_is_a_switch_paused_layer_is_not() {
        let mut layers = LayerStatistics::new(3, Duration::from_millis(100));
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
