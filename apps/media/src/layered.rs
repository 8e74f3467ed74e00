//! The sending end of a layered stream, without a socket: a [`MediaLayerSender`] for each layer, with the base layer first.

use crate::packet::{of_layer, take_layer};
use crate::quality::{Quality, QualityInputs};
use crate::sender::{Leaving, MediaLayerSender, PathMeasurements, SenderCounters};
use crate::waiting::Cause;
use narrows_base::{Duration, Time};
use narrows_congestion::layers::LayerChange;

/// All layers of a stream. A stream without layers has only the base layer.
#[derive(Debug)]
pub struct Layered {
    layers: Vec<MediaLayerSender>,
    quality: Quality,
    /// Parts of the highest layer that had been dropped for the controller's limits at the last update. Drops after an
    /// outage of the path or of an end are not counted, since they are no sign of a lack of capacity.
    dropped: u64,
    /// Datagrams of layers that are not sent.
    left_out: u64,
}

impl Layered {
    /// Layers with these rates in bit/s, from the base upwards; at most
    /// [`MAX_LAYERS`](narrows_congestion::layers::MAX_LAYERS) of them.
    pub fn new(rates: &[f64], latency: Duration) -> Layered {
        let quality = Quality::new(rates, latency);
        let layers = rates.iter().take(narrows_congestion::layers::MAX_LAYERS);
        let layers = layers.map(|_| MediaLayerSender::new(latency)).collect();
        Layered { layers, quality, dropped: 0, left_out: 0 }
    }

    /// The number of layers that are sent, and of its changes.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }
    /// Datagrams received for layers that are not sent.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
    /// Sum of the counters of all layers.
    pub fn sent(&self) -> SenderCounters {
        self.layers.iter().fold(SenderCounters::default(), |sum, layer| sum.and(&layer.sent()))
    }
    /// Whether any packet waits to leave.
    pub fn is_waiting(&self) -> bool {
        self.layers.iter().any(MediaLayerSender::is_waiting)
    }
    /// Bytes of the datagrams that wait to leave for the first time.
    pub fn bytes_waiting(&self) -> usize {
        self.layers.iter().map(MediaLayerSender::bytes_waiting).sum()
    }
    /// Time at which the first open block of parts must be closed; `Time::NEVER` if no block is open.
    pub fn block_ends(&self) -> Time {
        self.layers.iter().map(MediaLayerSender::block_ends).min().unwrap_or(Time::NEVER)
    }
    /// Closes the blocks whose time has come.
    pub fn end_blocks(&mut self, now: Time, path: PathMeasurements) {
        self.layers.iter_mut().for_each(|layer| layer.end_block(now, path));
    }
    /// Longest time that an unsent part has waited.
    pub fn oldest_wait(&self, now: Time) -> Duration {
        self.layers.iter().map(|layer| layer.oldest_wait(now)).max().unwrap_or_default()
    }
    /// Longest wait before a part is dropped.
    pub fn longest_wait(&self, path: PathMeasurements) -> Duration {
        self.layers.first().map_or(Duration::ZERO, |base| base.longest_wait(path))
    }
    /// Adds to the time that waiting parts have waited for this cause.
    pub fn on_waited(&mut self, cause: Cause, lasted: Duration) {
        self.layers.iter_mut().for_each(|layer| layer.on_waited(cause, lasted));
    }

    /// Handles a datagram of this layer; `max_message` is the current maximum message size.
    pub fn on_datagram(&mut self, now: Time, layer: usize, datagram: &[u8], max_message: usize) {
        match self.layers.get_mut(layer) {
            Some(sender) if layer < self.quality.active() => {
                sender.on_datagram(now, datagram, max_message);
            }
            _ => self.left_out += 1,
        }
    }

    /// Handles a message of the receiver.
    pub fn on_message(&mut self, message: &mut [u8]) {
        if let Some(sender) = take_layer(message).and_then(|layer| self.layers.get_mut(layer)) {
            sender.on_message(message);
        }
    }

    /// The next message to leave: of the lowest layer that has one.
    pub fn next(&mut self, now: Time, path: PathMeasurements) -> Option<Leaving> {
        self.layers.iter_mut().enumerate().find_map(|(layer, sender)| {
            let leaving = sender.next(now, path)?;
            Some(Leaving { message: of_layer(layer, leaving.message), ..leaving })
        })
    }

    /// Adds or drops a layer. `rate` is the rate available for media in bit/s, `packet` the size of a packet in bits.
    pub fn adapt(
        &mut self,
        now: Time,
        rate: f64,
        srtt: Duration,
        packet: f64,
    ) -> Option<LayerChange> {
        let waited: Vec<Duration> =
            self.layers.iter().map(|layer| layer.oldest_wait(now)).collect();
        let active = self.quality.active();
        let dropped =
            self.layers.get(active - 1).map_or(0, |layer| layer.sent().dropped.by_limits());
        let was_dropped = dropped > std::mem::replace(&mut self.dropped, dropped);
        let seen = QualityInputs { rate, srtt, packet, waited: &waited, was_dropped };
        let change = self.quality.update(now, &seen)?;
        let active = self.quality.active();
        for layer in self.layers.iter_mut().skip(active) {
            layer.discard_waiting();
        }
        self.dropped =
            self.layers.get(active - 1).map_or(0, |layer| layer.sent().dropped.by_limits());
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{NackRange, ask};

    const PATH: PathMeasurements = PathMeasurements {
        srtt: Duration::from_millis(20),
        min_rtt: Duration::from_millis(20),
        loss: 0.0,
    };

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    fn with_two() -> Layered {
        let mut all = Layered::new(&[100e3, 100e3], Duration::from_millis(200));
        for ms in 0..40 {
            all.adapt(at(50 * ms), 1e6, PATH.srtt, 11e3);
        }
        assert_eq!(all.quality().active(), 2);
        all
    }
    fn leaving(all: &mut Layered, ms: u64) -> Vec<usize> {
        let messages = std::iter::from_fn(|| all.next(at(ms), PATH));
        messages.filter_map(|mut leaving| take_layer(&mut leaving.message)).collect()
    }

    #[test]
    fn the_base_layer_goes_first_and_is_repeated_first() {
        let mut all = with_two();
        for layer in [1, 0, 1, 0] {
            all.on_datagram(at(2000), layer, b"media", 100);
        }
        assert_eq!(leaving(&mut all, 2000), [0, 0, 1, 1]);
        for layer in [1, 0] {
            let request = ask(&[NackRange { first: 0, more: 0, attempt: 1 }]);
            all.on_message(&mut of_layer(layer, request));
        }
        all.on_datagram(at(2030), 0, b"media", 100);
        assert_eq!(leaving(&mut all, 2030), [0, 0, 1]);
    }

    #[test]
    fn a_layer_that_is_dropped_leaves_no_gap() {
        let mut all = with_two();
        all.on_datagram(at(2000), 1, b"sent", 100);
        assert_eq!(leaving(&mut all, 2000), [1]);
        all.on_datagram(at(2010), 1, b"waits", 100);
        assert_eq!(all.adapt(at(3010), 0.0, PATH.srtt, 11e3), Some(LayerChange::Dropped));
        all.on_datagram(at(3020), 1, b"comes later", 100);
        assert!(leaving(&mut all, 3020).is_empty() && !all.is_waiting());
        assert_eq!((all.left_out(), all.sent().parts), (1, 1));
        all.layers[1].on_datagram(at(3030), b"next", 100);
        let next = all.next(at(3030), PATH).unwrap();
        // Numbers of a layer stay consecutive, although packets of it were discarded.
        assert_eq!(next.message.get(4..8), Some(&[0, 0, 0, 1][..]));
    }
}
