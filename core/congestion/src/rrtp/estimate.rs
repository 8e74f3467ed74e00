//! Estimates of the path from acknowledgements and outcomes: bandwidth, base RTT, queueing delay, jitter, losses.
//! Sections are those of docs/rrtp-congestion-control.md.
//!
//! *Queueing delay* is the RTT minus its recent minimum; it includes queues of the return path.
//! *Noise* is the queueing delay that the sender does not try to drain: the target and the variation of delays while
//! the sending rate is steady. If delays jitter, it includes the delay that the evidence has shown not to be a queue. A
//! round is *queued* if every delay in it was above the noise: the bottleneck was busy all the time, and the delivery
//! rate is the bandwidth. Otherwise the bandwidth is the largest rate of the last rounds.

mod loss;
mod round;

use super::constants::*;
use crate::{Ack, PacketOutcome, positive};
use loss::Circumstances;
pub use loss::LossAccounts;
use narrows_base::math;
pub use round::Round;
use round::{Average, OpenRound};

/// Estimates at the end of a round.
#[derive(Clone, Copy, Debug)]
pub struct RoundView {
    pub round: Round,
    /// Packets per second, before this round.
    pub bandwidth: f64,
    /// Every queueing delay was above the noise.
    pub queued: bool,
    /// Losses significantly exceeded those of the link.
    pub dropped: bool,
    /// Losses in long queues outside of probes, since the last such round, significantly exceeded those of the link.
    pub unexplained: bool,
    /// The mean queueing delay is small against the longest recent one.
    pub empty: bool,
}

impl RoundView {
    /// The bottleneck was busy.
    pub fn saturated(&self) -> bool {
        self.queued || self.dropped
    }
    /// Whether at least half of the additional traffic arrived; false unless the gain was above 1.
    pub fn follows(&self) -> bool {
        let more = self.round.gain - 1.0;
        more > 0.0 && self.round.rate > self.bandwidth * (1.0 + FOLLOWS * more)
    }
}

fn largest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// The largest rate of the last rounds in packets per second: of a cycle and two more (BBR).
#[derive(Clone, Debug, Default)]
pub struct Bandwidth([f64; CYCLE as usize + 2]);

impl Bandwidth {
    /// 0 if unknown.
    pub fn get(&self) -> f64 {
        largest(&self.0)
    }
    /// Replaces all measurements.
    pub fn set(&mut self, rate: f64) {
        self.0.fill(0.0);
        self.0[0] = rate;
    }
    fn add(&mut self, rate: f64) {
        self.0.rotate_right(1);
        self.0[0] = rate;
    }
}

/// Extreme values of a period of at least [`BASE_SECONDS`].
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Least RTT, seconds.
    rtt: f64,
    /// Longest queueing delay, seconds.
    queue: f64,
    /// Largest rate of a round, packets per second.
    rate: f64,
}

const EMPTY_PERIOD: Period = Period { rtt: f64::INFINITY, queue: 0.0, rate: 0.0 };

#[derive(Clone, Debug)]
pub struct PathModel {
    pub bandwidth: Bandwidth,
    /// Mean rates of the last rounds in packets per second, newest first.
    pub(super) recent: [f64; 3 * CYCLE as usize],
    pub loss: LossAccounts,
    /// The current period and the previous one.
    periods: [Period; 2],
    /// Begin of the current period, seconds.
    period_began: f64,
    /// Whether the base RTT is a hint, not a measurement.
    hinted_rtt: bool,
    /// Newest RTT, seconds.
    pub rtt: f64,
    /// Newest queueing delay, seconds.
    queue: f64,
    current: OpenRound,
    /// The round that ended last.
    last: Round,
    /// Gain with which the packets left that are acknowledged now.
    acked_gain: f64,
    /// Begin of the newest probe time, seconds.
    probe_begin: f64,
    /// End of the newest probe time, seconds: when the queue of the probe has drained.
    probe_end: f64,
    /// Standard deviation of the delays in a round with a steady sending rate, seconds.
    deviation: Average,
    /// Difference of the least delay from such a round to the next, seconds.
    wander: Average,
    /// Ratio of the scatter of delays to that of a queue, 0 to 2.
    jitter_ratio: Average,
    /// Delay that the evidence has shown not to be a queue, seconds.
    learned: f64,
    /// Mean queueing delays of the last rounds, seconds: of a cycle and two more, as the bandwidth's.
    delays: [f64; CYCLE as usize + 2],
}

impl Default for PathModel {
    fn default() -> PathModel {
        PathModel {
            bandwidth: Bandwidth::default(),
            recent: [0.0; 3 * CYCLE as usize],
            loss: LossAccounts::default(),
            periods: [EMPTY_PERIOD; 2],
            period_began: 0.0,
            hinted_rtt: false,
            rtt: 0.0,
            queue: 0.0,
            current: OpenRound::default(),
            last: Round::default(),
            acked_gain: 1.0,
            probe_begin: 0.0,
            probe_end: 0.0,
            deviation: Average::default(),
            wander: Average::default(),
            jitter_ratio: Average::default(),
            learned: 0.0,
            delays: [0.0; CYCLE as usize + 2],
        }
    }
}

impl PathModel {
    /// Uses this base RTT (seconds) until one is measured.
    pub fn hint_rtt(&mut self, rtt: f64) {
        self.periods = [Period { rtt, ..EMPTY_PERIOD }, EMPTY_PERIOD];
        (self.rtt, self.hinted_rtt) = (rtt, true);
    }
    /// Smallest RTT of both periods, seconds.
    pub fn base(&self) -> Option<f64> {
        let least = self.periods[0].rtt.min(self.periods[1].rtt);
        least.is_finite().then_some(least)
    }
    /// Largest mean rate of the last three cycles in packets per second, 0 if unknown. A round with a queue does not
    /// reset it.
    pub fn recalled(&self) -> f64 {
        largest(&self.recent)
    }
    /// Longest queueing delay of both periods, seconds.
    fn longest_queue(&self) -> f64 {
        self.periods[0].queue.max(self.periods[1].queue)
    }
    /// Largest rate of a round in both periods, packets per second.
    fn max_rate(&self) -> f64 {
        self.periods[0].rate.max(self.periods[1].rate)
    }
    /// Whether delays differ more from packet to packet than in a queue.
    pub fn jitters(&self) -> bool {
        self.jitter_ratio.value > 1.0
    }
    /// Whether the queue is long in comparison with the longest recent one.
    pub fn has_long_queue(&self) -> bool {
        !self.jitters() && self.queue > LONG_QUEUE * self.longest_queue()
    }
    /// Queueing delay that the sender does not try to drain, seconds: the target, or two packets' time if that is
    /// longer, and the variation of delays.
    pub fn noise(&self) -> f64 {
        let most = self.max_rate();
        let two_packets = if most > 0.0 { 2.0 / most } else { 0.0 };
        let variation = if self.jitters() {
            let steady = 2.0 * (self.deviation.value + self.wander.value);
            // A queue would have been shorter in one of the rounds.
            let least = self.delays.iter().copied().fold(f64::INFINITY, f64::min);
            (self.learned + steady).min(self.base().unwrap_or(0.0).max(least))
        } else {
            self.deviation.value
        };
        TARGET.max(two_packets) + variation
    }
    /// Counts the least delay of the last round as the path's, and expects the largest recent rate (section 4).
    pub fn lengthen(&mut self) {
        let rtt = self.base().unwrap_or(0.0) + self.last.queue_min;
        let rate = self.max_rate();
        self.periods = [Period { rtt, rate, ..EMPTY_PERIOD }, EMPTY_PERIOD];
        self.bandwidth.set(self.recalled());
    }
    /// Counts the mean delay of the last round as noise.
    pub fn learn_noise(&mut self) {
        self.learned = self.last.queue_mean;
    }
    /// Packets in flight that fill the path and a queue as long as the noise.
    pub fn target(&self) -> f64 {
        self.bandwidth.get() * (self.base().unwrap_or(0.0) + self.noise())
    }

    /// Updates the loss accounts (section 2.5).
    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        self.current.lost += f64::from(u8::from(outcome.lost));
        let sent = outcome.sent.as_secs_f64();
        let when = Circumstances {
            outside_probes: sent < self.probe_begin || sent > self.probe_end,
            reduced: self.acked_gain < 1.0,
            long_queue: self.has_long_queue(),
        };
        self.loss.on_outcome(outcome.lost, when);
    }

    /// Takes an acknowledgement; packets leave with this gain now. Returns the estimates if a round has ended.
    pub fn on_ack(&mut self, ack: &Ack, gain: f64) -> Option<RoundView> {
        let now = ack.now.as_secs_f64();
        self.delays(ack, now);
        let ended = if ack.round_start { self.end_round(now, gain) } else { None };
        self.current.add(ack, self.queue);
        ended
    }

    /// Largest rate of the current round in packets per second, including packets that the link lost. `None` before
    /// [`DELAY_SAMPLES`] acknowledgements, or if not all of them had a longer queueing delay than `queue` seconds.
    pub fn rate_so_far(&self, queue: f64) -> Option<f64> {
        let (acknowledgements, shortest, rate) = self.current.so_far();
        (acknowledgements >= DELAY_SAMPLES && shortest > queue)
            .then(|| rate / (1.0 - self.loss.link()))
    }

    /// Updates the delays (section 2.1).
    fn delays(&mut self, ack: &Ack, now: f64) {
        let rtt = positive(ack.rtt);
        if std::mem::take(&mut self.hinted_rtt) {
            self.periods = [EMPTY_PERIOD; 2];
        }
        if now - self.period_began > BASE_SECONDS.max(BASE_ROUNDS * rtt) {
            self.periods = [EMPTY_PERIOD, self.periods[0]];
            self.period_began = now;
        }
        self.rtt = rtt;
        let [period, previous] = &mut self.periods;
        period.rtt = period.rtt.min(rtt);
        self.queue = rtt - period.rtt.min(previous.rtt);
        period.queue = period.queue.max(self.queue);
    }

    /// Ends the round (section 2.3).
    fn end_round(&mut self, now: f64, gain: f64) -> Option<RoundView> {
        let next = self.current.next(now);
        let ended = std::mem::replace(&mut self.current, next);
        if gain > 1.0 {
            // Packets that left in the round that ends, and those that its queue delays.
            if now - self.rtt > self.probe_end {
                self.probe_begin = ended.began;
            }
            self.probe_end = now + self.rtt;
        }
        let gain = std::mem::replace(&mut self.acked_gain, gain);
        let round = ended.end(now, gain, self.loss.link())?;
        self.jitter_ratio.add(ended.jitter_ratio(&round));
        self.learn_variation(&ended, &round);
        self.learned += SMOOTH * (round.queue_mean - self.learned).min(0.0);
        self.periods[0].rate = self.periods[0].rate.max(round.rate);
        self.last = round;
        self.delays.rotate_right(1);
        self.delays[0] = round.queue_mean;
        self.recent.rotate_right(1);
        self.recent[0] = round.mean_rate;
        let unexplained = self.loss.take_unexplained();
        Some(RoundView {
            round,
            bandwidth: self.bandwidth.get(),
            queued: round.queue_min > self.noise(),
            dropped: self.loss.exceeds(round.packets(), round.lost),
            unexplained,
            empty: round.queue_mean <= EMPTY_QUEUE * self.longest_queue().max(self.noise()),
        })
    }

    /// Updates the variation of delays if the sending rate is steady or the delay moved in the opposite direction
    /// (section 2.4).
    fn learn_variation(&mut self, ended: &OpenRound, round: &Round) {
        let sent = math::ln(round.packets() / self.last.packets());
        let longer = round.queue_min - self.last.queue_min;
        if sent.abs() < MIN_CHANGE || sent * longer < 0.0 {
            self.deviation.add(ended.deviation());
            self.wander.add(longer.abs());
        }
    }

    /// Updates the bandwidth with the rate of a round (section 2.6).
    pub fn measure(&mut self, view: &RoundView) {
        let (rate, before) = (view.round.rate, view.bandwidth);
        if view.round.app_limited && !view.saturated() && rate <= before {
            return;
        }
        if view.queued {
            self.bandwidth.set(rate);
        } else if view.dropped {
            // Lost packets may have displaced those of other flows. A burst of losses alone may have lowered the rate.
            self.bandwidth.set(rate.clamp(DOWN * before, before));
        } else if view.unexplained {
            self.bandwidth.set(DOWN * before);
        } else {
            self.bandwidth.add(rate);
        }
    }
}
