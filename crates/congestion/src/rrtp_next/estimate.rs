//! What acknowledgements and outcomes tell of the path.

mod loss;

use super::View;
use super::constants::*;
use crate::{Ack, PacketOutcome, positive};
pub use loss::Loss;

/// A round that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Gain with which its packets left.
    pub gain: f64,
    pub delivered: f64,
    pub lost: f64,
    /// Packets per second that arrived.
    pub rate: f64,
    /// … in the mean of the round.
    pub mean_rate: f64,
    /// Seconds of queueing delay.
    pub queue_min: f64,
    pub queue_mean: f64,
    /// The application was the limit.
    pub app_limited: bool,
}

/// The largest of the last rounds.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    best: [f64; RATE_ROUNDS],
}

impl Bandwidth {
    /// Packets per second; 0 if unknown.
    pub fn get(&self) -> f64 {
        self.best.iter().copied().fold(0.0, f64::max)
    }
    pub fn set(&mut self, rate: f64) {
        self.best = [0.0; RATE_ROUNDS];
        self.best[0] = rate;
    }
    pub fn add(&mut self, rate: f64) {
        self.best.rotate_right(1);
        self.best[0] = rate;
    }
}

/// Smallest of this and of the last period.
#[derive(Clone, Copy, Debug)]
struct Least([f64; 2]);

impl Least {
    fn get(self) -> f64 {
        self.0[0].min(self.0[1])
    }
    fn add(&mut self, x: f64) {
        self.0[0] = self.0[0].min(x);
    }
    fn turn(&mut self) {
        self.0 = [f64::INFINITY, self.0[0]];
    }
}

impl Default for Least {
    fn default() -> Least {
        Least([f64::INFINITY; 2])
    }
}

/// The round that goes on.
#[derive(Clone, Copy, Debug, Default)]
struct Counting {
    began: f64,
    delivered: f64,
    lost: f64,
    n: f64,
    /// Largest rate sample.
    rate: f64,
    sum: f64,
    squares: f64,
    /// … of the differences of neighbours.
    steps: f64,
    last: f64,
    first: f64,
    min: f64,
    /// Samples that the application limited, and others.
    limited: [bool; 2],
}

#[derive(Clone, Debug, Default)]
pub struct Path {
    pub bandwidth: Bandwidth,
    pub loss: Loss,
    rtts: Least,
    delays: Least,
    period_began: f64,
    /// Largest rate of a round of this and of the last period.
    most: [f64; 2],
    /// Longest queueing delay, likewise.
    longest: [f64; 2],
    told_rtt: bool,
    /// Newest RTT, and queueing delay on the way there.
    pub rtt: f64,
    pub queue: f64,
    /// Smoothed round trip without the queue there.
    unqueued: f64,
    /// Smoothed deviation of delays within a round.
    pub deviation: f64,
    now: Counting,
    last_gain: f64,
    /// When the last probe began, and until when its queue may stand.
    loud: [f64; 2],
    pub rounds: u64,
    /// Packets and least delay of the round before; mean difference of the latter while as much is sent, and the number
    /// of such rounds and 2.
    before: [f64; 3],
    pub wander: f64,
    /// Delay that an experiment showed to be nobody's queue.
    floor: f64,
    last_mean: f64,
    /// Multiple of what a queue scatters by.
    pub leaps: f64,
    steady: f64,
    /// Variance of the logarithm of the rate from round to round, likewise.
    pub rate_variance: f64,
}

impl Path {
    pub fn tell_rtt(&mut self, rtt: f64) {
        self.rtts = Least([rtt, f64::INFINITY]);
        (self.rtt, self.unqueued) = (rtt, rtt);
        self.told_rtt = true;
    }
    pub fn forget(&mut self) {
        self.bandwidth = Bandwidth::default();
        (self.rtts, self.delays) = (Least::default(), Least::default());
        self.now = Counting::default();
        (self.deviation, self.wander, self.steady) = (0.0, 0.0, 0.0);
        self.floor = 0.0;
    }
    /// Smallest RTT in seconds.
    pub fn base(&self) -> Option<f64> {
        let least = self.rtts.get();
        least.is_finite().then_some(least)
    }
    /// Whether the queue is a long one, as far as queues of late were long enough to tell.
    pub fn is_long(&self) -> bool {
        let tells = !self.jitters() && self.longest() > TELLS * self.base().unwrap_or(0.0);
        tells && self.queue > LEVEL * self.longest()
    }
    /// Whether delays leap from packet to packet as no queue makes them.
    pub fn jitters(&self) -> bool {
        self.leaps > JITTERS
    }
    /// Longest queueing delay of late.
    pub fn longest(&self) -> f64 {
        self.longest[0].max(self.longest[1])
    }
    /// A queue below this does not show.
    pub fn noise(&self) -> f64 {
        let most = self.most[0].max(self.most[1]);
        let turns = if most > 0.0 { PACKETS / most } else { 0.0 };
        let base = self.base().unwrap_or(0.0);
        TARGET.max(turns) + if self.jitters() { (self.floor + DEVIATIONS * (self.deviation + self.wander)).min(MOST_NOISE * base) } else { self.deviation }
    }
    /// Packets that fill the path without a queue.
    pub fn product(&self) -> f64 {
        let base = self.base().unwrap_or(0.0);
        self.bandwidth.get() * (base.max(self.unqueued) + self.noise())
    }
    /// The delay of the last round is nobody's queue.
    pub fn learn_noise(&mut self) {
        self.floor = self.last_mean;
    }
    pub fn view(&mut self, round: Round) -> View {
        let queued = round.queue_min > self.noise();
        let dropped = self.loss.exceeds(round.delivered + round.lost, round.lost);
        let yields = self.loss.take_unexplained();
        View { round, queued, saturated: queued || dropped, yields }
    }

    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        self.now.lost += f64::from(u8::from(outcome.lost));
        let quiet = self.is_quiet(outcome.sent.as_secs_f64());
        let low = !self.is_long();
        self.loss.on_outcome(outcome.lost, quiet, low, self.last_gain < 1.0);
    }

    /// Whether a packet left outside of probes, and not so soon after one that it met its queue.
    fn is_quiet(&self, sent: f64) -> bool {
        sent < self.loud[0] || sent > self.loud[1]
    }

    /// The round if one has ended.
    pub fn on_ack(&mut self, ack: &Ack, gain: f64) -> Option<Round> {
        let now = ack.now.as_secs_f64();
        let rtt = positive(ack.rtt);
        let there = ack.forward_delay.map_or(rtt, positive);
        if std::mem::take(&mut self.told_rtt) {
            self.rtts = Least::default();
        }
        if now - self.period_began > BASE_SECONDS.max(40.0 * rtt) {
            self.rtts.turn();
            self.delays.turn();
            self.most = [0.0, self.most[0]];
            self.longest = [0.0, self.longest[0]];
            self.period_began = now;
        }
        self.rtts.add(rtt);
        self.delays.add(there);
        self.rtt = rtt;
        self.queue = there - self.delays.get();
        self.longest[0] = self.longest[0].max(self.queue);
        let unqueued = rtt - self.queue;
        self.unqueued =
            if self.unqueued > 0.0 { self.unqueued + SMOOTH * (unqueued - self.unqueued) } else { unqueued };
        let ended = if ack.round_start { self.turn(now, gain) } else { None };
        let c = &mut self.now;
        c.min = if c.n == 0.0 { self.queue } else { c.min.min(self.queue) };
        c.steps += (self.queue - c.last) * (self.queue - c.last);
        c.last = self.queue;
        c.n += 1.0;
        c.sum += self.queue;
        c.squares += self.queue * self.queue;
        c.delivered += ack.newly_delivered as f64;
        if let Some(rate) = &ack.rate {
            c.limited[usize::from(rate.app_limited)] = true;
            c.rate = c.rate.max(rate.per_second());
        }
        ended
    }

    fn turn(&mut self, now: f64, gain: f64) -> Option<Round> {
        let last = self.now.last;
        let next = Counting { began: now, last, first: last, ..Counting::default() };
        let c = std::mem::replace(&mut self.now, next);
        // The round that begins has the gain that the policy gives it next; this one had `gain`.
        if gain > 1.0 {
            if now - self.rtt > self.loud[1] {
                self.loud[0] = c.began;
            }
            self.loud[1] = now + self.rtt;
        }
        let gain = std::mem::replace(&mut self.last_gain, gain);
        if c.n == 0.0 || now <= c.began {
            return None;
        }
        self.rounds += 1;
        let mean = c.sum / c.n;
        let deviation = (c.squares / c.n - mean * mean).max(0.0).sqrt();
        let packets = (c.delivered + c.lost).max(1.0);
        let even = (c.last - c.first) / c.n;
        let scatter = (c.steps / c.n - even * even).max(0.0).sqrt();
        let rate = c.delivered / (now - c.began);
        let expected = (LEAPS * mean / (2.0 * mean * rate).max(1.0).sqrt()).max(PACKETS * 0.35 / rate.max(1e-3)).max(1e-9);
        self.leaps += SMOOTH.max(1.0 / (2.0 + self.rounds as f64)) * ((scatter / expected).min(2.0) - self.leaps);
        // What delays vary by while as much is sent is nobody's queue.
        let sent = (packets / self.before[0]).ln();
        if sent.abs() < LEAST_DIFFERENCE || sent * (c.min - self.before[1]) < 0.0 {
            let smooth = SMOOTH.max(1.0 / (2.0 + self.steady));
            self.deviation += smooth * (deviation - self.deviation);
            self.wander += smooth * ((c.min - self.before[1]).abs() - self.wander);
            self.steady += 1.0;
            let change = (rate / self.before[2]).ln();
            if change.is_finite() {
                self.rate_variance += smooth * (change * change - self.rate_variance);
            }
        }
        self.last_mean = mean;
        self.floor += NOISE_FALLS * (mean - self.floor).min(0.0);
        self.before = [packets, c.min, rate];
        Some(Round {
            gain,
            delivered: c.delivered,
            lost: c.lost,
            rate: c.rate.max(c.delivered / (now - c.began)) / (1.0 - self.loss.link()),
            mean_rate: c.delivered / (now - c.began),
            queue_min: c.min,
            queue_mean: mean,
            app_limited: c.limited == [false, true],
        })
    }

    /// Takes a round's rate.
    pub fn measure(&mut self, view: &View) {
        let round = &view.round;
        self.most[0] = self.most[0].max(round.rate);
        if round.app_limited && !view.saturated && round.rate <= self.bandwidth.get() {
            return;
        }
        let before = self.bandwidth.get();
        if view.queued {
            self.bandwidth.set(round.rate.max(MIN_WINDOW / self.rtt));
        } else if view.saturated {
            // What is lost of more that is sent others may have had; what losses took may have been a burst's.
            let rate = round.rate.min(before);
            self.bandwidth.set(rate.max(GIVES_WAY * before));
        } else if view.yields {
            self.bandwidth.set(GIVES_WAY * before);
        } else {
            self.bandwidth.add(round.rate);
        }
    }

    /// Rate at which what has arrived in this round came.
    pub fn rate_now(&self, now: f64) -> f64 {
        let span = now - self.now.began;
        if span > 0.0 { self.now.delivered / span } else { 0.0 }
    }
}
