//! Data of a finished step, from which observations and rewards are computed.

use crate::env::controller::StepCounts;
use crate::env::episode::Episode;
use narrows_congestion::SendLimits;

/// A step that has been played. Rates are of packets on the wire.
#[derive(Clone, Copy, Debug)]
pub struct EpisodeStep {
    pub(crate) counts: StepCounts,
    pub(crate) episode: Episode,
    /// Length in seconds, and simulated time at its end.
    pub(crate) seconds: f64,
    pub(crate) time_s: f64,
    pub(crate) limits: SendLimits,
    /// The window that counts, in packets, now and a step before: with a pacing rate alone rate × RTT.
    pub(crate) window: f64,
    pub(crate) window_before: f64,
    /// The highest delivery rate of a step of the episode so far, in packets per second.
    pub(crate) max_delivery: f64,
    /// Packets that wait in the link's queue.
    pub(crate) queue: usize,
}

impl EpisodeStep {
    /// The link of the episode.
    pub fn episode(&self) -> &Episode {
        &self.episode
    }
    /// Simulated time at its end, in seconds since the connection began.
    pub fn time_s(&self) -> f64 {
        self.time_s
    }
    fn mbit_s(&self, packets_per_second: f64) -> f64 {
        packets_per_second * self.episode.packet_bits * 1e-6
    }
    /// Packets delivered per second, by acknowledgements.
    pub(crate) fn delivery(&self) -> f64 {
        self.counts.delivered as f64 / self.seconds
    }
    /// Delivery rate in Mbit/s.
    pub fn delivery_rate(&self) -> f64 {
        self.mbit_s(self.delivery())
    }
    /// Sending rate in Mbit/s, retransmissions included.
    pub fn send_rate(&self) -> f64 {
        self.mbit_s(self.counts.sent as f64 / self.seconds)
    }
    /// Delivered packets per sent packet; 1 for a step without sent packets.
    pub fn delivery_ratio(&self) -> f64 {
        match self.counts.sent {
            0 => 1.0,
            sent => self.counts.delivered as f64 / sent as f64,
        }
    }
    /// Delivery rate over the highest of the episode.
    pub fn rate_ratio(&self) -> f64 {
        ratio(self.delivery(), self.max_delivery, 0.0)
    }
    /// Mean RTT in seconds; in a step without acknowledgements, the last one.
    pub fn rtt_s(&self) -> f64 {
        self.counts.rtt_s()
    }
    /// Smallest RTT of the connection in seconds.
    pub fn min_rtt_s(&self) -> f64 {
        self.counts.min_rtt.as_secs_f64()
    }
    /// Mean RTT over the smallest of the connection.
    pub fn rtt_ratio(&self) -> f64 {
        ratio(self.rtt_s(), self.min_rtt_s(), 1.0)
    }
    /// Smallest RTT of the step over the smallest of the connection.
    pub fn least_rtt_ratio(&self) -> f64 {
        match self.counts.acks {
            0 => self.rtt_ratio(),
            _ => ratio(self.counts.rtt_min.as_secs_f64(), self.min_rtt_s(), 1.0),
        }
    }
    /// Change of the RTT from the first to the last acknowledgement per time between them.
    pub fn rtt_gradient(&self) -> f64 {
        let (t0, first) = self.counts.first;
        let (t1, last) = self.counts.last;
        let change = last.as_secs_f64() - first.as_secs_f64();
        if self.counts.acks < 2 { 0.0 } else { ratio(change, t1.since(t0).as_secs_f64(), 0.0) }
    }
    /// Share of packets found lost among those found lost or delivered.
    pub fn loss(&self) -> f64 {
        let lost = self.counts.lost as f64;
        let delivered = self.counts.delivered as f64;
        ratio(lost, lost + delivered, 0.0)
    }
    /// Share of delivered packets with a CE mark.
    pub fn marks(&self) -> f64 {
        ratio(self.counts.marks as f64, self.counts.delivered as f64, 0.0).min(1.0)
    }
    /// Packets outstanding, as loss recovery counts them.
    pub fn in_flight(&self) -> f64 {
        self.counts.outstanding as f64
    }
    /// Packets outstanding over an estimate of the BDP: highest delivery rate × smallest RTT.
    pub fn bdp_ratio(&self) -> f64 {
        ratio(self.in_flight(), self.max_delivery * self.min_rtt_s(), 0.0)
    }
    /// Window in packets; with a pacing rate alone rate × RTT.
    pub fn window(&self) -> f64 {
        self.window
    }
    /// Pacing rate in Mbit/s; 0 without pacing.
    pub fn pacing_rate(&self) -> f64 {
        self.limits.pacing_rate.map_or(0.0, |r| r.as_bps() as f64 * 1e-6)
    }
    /// Retransmission timeouts in the step.
    pub fn timeouts(&self) -> f64 {
        self.counts.timeouts as f64
    }
    /// Acknowledgements received in the step.
    pub fn acks(&self) -> f64 {
        self.counts.acks as f64
    }

    /// Delivery rate over the link's capacity. Packets queued before may let it exceed 1 for a step.
    pub fn throughput(&self) -> f64 {
        ratio(self.delivery(), self.episode.capacity, 0.0)
    }
    /// Mean RTT beyond the path's own, in base RTTs.
    pub fn queueing_delay(&self) -> f64 {
        (self.rtt_s() / self.episode.base_rtt_s - 1.0).max(0.0)
    }
    /// How far the window went, as a power of two: 1 if it was doubled or halved.
    pub fn change(&self) -> f64 {
        let factor = ratio(self.window, self.window_before, 1.0);
        if factor > 0.0 { narrows_base::math::log2(factor).abs() } else { 0.0 }
    }
    /// Packets that wait in the link's queue.
    pub fn queue(&self) -> f64 {
        self.queue as f64
    }
}

/// `a / b`, or `otherwise` if the quotient is not defined.
fn ratio(a: f64, b: f64, otherwise: f64) -> f64 {
    if b > 0.0 { a / b } else { otherwise }
}
