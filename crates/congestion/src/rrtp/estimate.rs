//! What acknowledgements and outcomes tell of the path: bandwidth, base RTT, queueing delay, jitter, losses.
//!
//! *Queueing delay* is what the way there takes beyond the shortest of late: what was waited on the way back is not in
//! it. *Noise* is what it may be without a queue of anybody: what it varies by while as much is sent, or while it moves
//! against that, and what an experiment showed; only where delays leap from packet to packet, as no queue makes them.
//! A round is *queued* if every delay in it was above the noise: then the bottleneck was busy all the time, and
//! what arrived is the bandwidth. Otherwise it is the largest rate of the last rounds.

mod loss;
mod round;

use super::constants::*;
use crate::{Ack, PacketOutcome, positive};
use loss::Circumstances;
pub use loss::Loss;
use narrows_base::math;
pub use round::Round;
use round::{Average, Counting};

/// Estimates as they were at the end of a round.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub round: Round,
    /// Packets per second, before this round.
    pub bandwidth: f64,
    /// Every packet met a queue.
    pub queued: bool,
    /// More was lost than the link loses.
    pub dropped: bool,
    /// More was lost in long queues since the last such round, outside of probes, than the link loses.
    pub unexplained: bool,
    /// Hardly a packet met a queue.
    pub empty: bool,
    /// Variance of the logarithm of the rate from round to round.
    pub rate_variance: f64,
}

impl View {
    /// The bottleneck was busy.
    pub fn saturated(&self) -> bool {
        self.queued || self.dropped
    }
    /// At least this part of what was sent more arrived.
    pub fn follows(&self, part: f64) -> bool {
        let more = self.round.gain - 1.0;
        more > 0.0 && self.round.rate > self.bandwidth * (1.0 + part * more)
    }
}

/// The largest rate of the last rounds, packets per second.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth([f64; RATE_ROUNDS]);

impl Bandwidth {
    /// 0 if unknown.
    pub fn get(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
    /// It is this, whatever was measured.
    pub fn set(&mut self, rate: f64) {
        self.0 = [0.0; RATE_ROUNDS];
        self.0[0] = rate;
    }
    fn add(&mut self, rate: f64) {
        self.0.rotate_right(1);
        self.0[0] = rate;
    }
}

/// The most extreme values of a period of [`BASE_SECONDS`].
#[derive(Clone, Copy, Debug)]
struct Period {
    rtt: f64,
    there: f64,
    queue: f64,
    rate: f64,
}

const EMPTY_PERIOD: Period =
    Period { rtt: f64::INFINITY, there: f64::INFINITY, queue: 0.0, rate: 0.0 };

#[derive(Clone, Debug)]
pub struct Path {
    pub bandwidth: Bandwidth,
    pub loss: Loss,
    /// This period and the last one, and when this began.
    periods: [Period; 2],
    period_began: f64,
    /// The base RTT was told, and none measured.
    told_rtt: bool,
    /// Newest RTT and queueing delay, and the round trip without that, seconds.
    pub rtt: f64,
    queue: f64,
    unqueued: Average,
    now: Counting,
    /// The round before the newest.
    last: Round,
    /// The gain with which the packets of this round are answered.
    answered_gain: f64,
    /// When the last probe began, and until when its queue may stand.
    probe: [f64; 2],
    /// While as much is sent: deviation of delays in a round, difference of the least from round to round, squared
    /// difference of the rate's logarithm.
    deviation: Average,
    wander: Average,
    rate_variance: Average,
    /// How much delays leap.
    leaps: Average,
    /// Delay that an experiment showed to be nobody's.
    learnt: f64,
}

impl Default for Path {
    fn default() -> Path {
        Path {
            bandwidth: Bandwidth::default(),
            loss: Loss::default(),
            periods: [EMPTY_PERIOD; 2],
            period_began: 0.0,
            told_rtt: false,
            rtt: 0.0,
            queue: 0.0,
            unqueued: Average::default(),
            now: Counting::default(),
            last: Round::default(),
            answered_gain: 1.0,
            probe: [0.0; 2],
            deviation: Average::default(),
            wander: Average::default(),
            rate_variance: Average::default(),
            leaps: Average::default(),
            learnt: 0.0,
        }
    }
}

impl Path {
    /// The base RTT is this until one is measured.
    pub fn tell_rtt(&mut self, rtt: f64) {
        self.periods = [Period { rtt, ..EMPTY_PERIOD }, EMPTY_PERIOD];
        (self.rtt, self.told_rtt) = (rtt, true);
    }
    /// Smallest RTT of late, seconds.
    pub fn base(&self) -> Option<f64> {
        let least = self.periods[0].rtt.min(self.periods[1].rtt);
        least.is_finite().then_some(least)
    }
    fn longest(&self) -> f64 {
        self.periods[0].queue.max(self.periods[1].queue)
    }
    /// Whether delays leap from packet to packet.
    pub fn jitters(&self) -> bool {
        self.leaps.value > JITTERS
    }
    /// Whether the queue is a long one, as far as those of late tell.
    pub fn is_long(&self) -> bool {
        !self.jitters() && self.queue > LONG * self.longest()
    }
    /// Delay that is no queue to be drained: the target, or two packets, and what is noise.
    pub fn noise(&self) -> f64 {
        let most = self.periods[0].rate.max(self.periods[1].rate);
        let turns = if most > 0.0 { 2.0 / most } else { 0.0 };
        let varies = if self.jitters() {
            let varies = 2.0 * (self.deviation.value + self.wander.value);
            (self.learnt + varies).min(self.base().unwrap_or(0.0))
        } else {
            self.deviation.value
        };
        TARGET.max(turns) + varies
    }
    /// The delay of the last round is nobody's queue.
    pub fn learn_noise(&mut self) {
        self.learnt = self.last.queue_mean;
    }
    /// Packets that fill the path and a queue that would not show.
    pub fn product(&self) -> f64 {
        let base = self.base().unwrap_or(0.0);
        self.bandwidth.get() * (base.max(self.unqueued.value) + self.noise())
    }

    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        self.now.lost += f64::from(u8::from(outcome.lost));
        let sent = outcome.sent.as_secs_f64();
        let when = Circumstances {
            quiet: sent < self.probe[0] || sent > self.probe[1],
            held: self.answered_gain < 1.0,
            long: self.is_long(),
        };
        self.loss.on_outcome(outcome.lost, when);
    }

    /// An acknowledgement, while packets leave with that gain: what is known if a round has ended.
    pub fn on_ack(&mut self, ack: &Ack, gain: f64) -> Option<View> {
        let now = ack.now.as_secs_f64();
        self.delays(ack, now);
        let ended = if ack.round_start { self.turn(now, gain) } else { None };
        self.now.add(ack, self.queue);
        ended
    }

    /// Whether the current round has met a queue of this many seconds so far, and its largest rate in packets per second,
    /// with the packets that the link lost. `None` before [`DELAY_SAMPLES`] acknowledgements.
    pub fn so_far(&self, queue: f64) -> Option<f64> {
        let (acknowledgements, shortest, rate) = self.now.so_far();
        (acknowledgements >= DELAY_SAMPLES && shortest > queue)
            .then(|| rate / (1.0 - self.loss.link()))
    }

    fn delays(&mut self, ack: &Ack, now: f64) {
        let rtt = positive(ack.rtt);
        let there = ack.forward_delay.map_or(rtt, positive);
        if std::mem::take(&mut self.told_rtt) {
            self.periods = [EMPTY_PERIOD; 2];
        }
        if now - self.period_began > BASE_SECONDS.max(BASE_ROUNDS * rtt) {
            self.periods = [EMPTY_PERIOD, self.periods[0]];
            self.period_began = now;
        }
        let least = self.periods[0].there.min(self.periods[1].there).min(there);
        self.rtt = rtt;
        self.queue = there - least;
        self.unqueued.add(rtt - self.queue);
        let period = &mut self.periods[0];
        period.rtt = period.rtt.min(rtt);
        period.there = period.there.min(there);
        period.queue = period.queue.max(self.queue);
    }

    fn turn(&mut self, now: f64, gain: f64) -> Option<View> {
        let next = self.now.next(now);
        let ended = std::mem::replace(&mut self.now, next);
        if gain > 1.0 {
            // What left in the round that ends, and what meets its queue.
            if now - self.rtt > self.probe[1] {
                self.probe[0] = ended.began;
            }
            self.probe[1] = now + self.rtt;
        }
        let gain = std::mem::replace(&mut self.answered_gain, gain);
        let round = ended.end(now, gain, self.loss.link())?;
        self.leaps.add(ended.leaps(&round));
        self.learn_variation(&ended, &round);
        self.learnt += NOISE_FALLS * (round.queue_mean - self.learnt).min(0.0);
        self.periods[0].rate = self.periods[0].rate.max(round.rate);
        self.last = round;
        let unexplained = self.loss.take_unexplained();
        Some(View {
            round,
            bandwidth: self.bandwidth.get(),
            queued: round.queue_min > self.noise(),
            dropped: self.loss.exceeds(round.packets(), round.lost),
            unexplained,
            empty: round.queue_mean <= EMPTY * self.longest().max(self.noise()),
            rate_variance: self.rate_variance.value,
        })
    }

    /// What delays and rates vary by though as much is sent, or against it.
    fn learn_variation(&mut self, ended: &Counting, round: &Round) {
        let sent = math::ln(round.packets() / self.last.packets());
        let longer = round.queue_min - self.last.queue_min;
        if sent.abs() < LEAST_DIFFERENCE || sent * longer < 0.0 {
            self.deviation.add(ended.deviation());
            self.wander.add(longer.abs());
            let change = math::ln(round.mean_rate / self.last.mean_rate);
            self.rate_variance.add(change * change);
        }
    }

    /// Takes a round's rate in.
    pub fn measure(&mut self, view: &View) {
        let (rate, before) = (view.round.rate, view.bandwidth);
        if view.round.app_limited && !view.saturated() && rate <= before {
            return;
        }
        if view.queued {
            self.bandwidth.set(rate.max(MIN_WINDOW / self.rtt));
        } else if view.dropped {
            // Others may have had what is lost of more that is sent; what is missing may be a burst's.
            self.bandwidth.set(rate.clamp(GIVES_WAY * before, before));
        } else if view.unexplained {
            self.bandwidth.set(GIVES_WAY * before);
        } else {
            self.bandwidth.add(rate);
        }
    }
}
