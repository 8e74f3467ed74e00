//! The policy of the startup (docs/rrtp-congestion-control.md, section 3.1): the window doubles per round trip until a
//! queue, a plateau of the rate, or losses show.
//!
//! The packets of the first flight leave together; the spacing of their acknowledgements gives a rate. The handshake
//! may give one before. If the BDP at that rate is more than [`TRAIN`] windows, the window grows by that factor per
//! round trip, until a round has a queue or losses.
//!
//! Jitter may end it early. The last flight then arrives at a higher rate than the one that was set, and the startup
//! goes on.

use super::constants::*;
use super::estimate::{PathModel, RoundView};
use super::limits::PolicyLimits;
use crate::Ack;

#[derive(Clone, Debug)]
pub struct Startup {
    /// Initial window, packets.
    initial: f64,
    /// Packets.
    window: f64,
    /// Rate of the newest packet train, packets per second; 0 if unknown.
    train: f64,
    /// Time of the first acknowledgement of the train (seconds); absent if this round does not measure it.
    train_began: Option<f64>,
    /// Packets that arrived after that one.
    count: f64,
    /// Whether the first flight has not been acknowledged.
    is_first: bool,
    /// Largest rate of a round, packets per second.
    best: f64,
    /// Consecutive rounds at the window's limit without growth.
    stale: u32,
}

impl Startup {
    /// Begins with the initial window in packets, or with one train's packets until an expected dispersion permits more.
    pub fn begin(initial: f64, expects_dispersion: bool) -> Startup {
        Startup {
            initial,
            window: if expects_dispersion { initial.min(TRAIN) } else { initial },
            train: 0.0,
            train_began: None,
            count: 0.0,
            is_first: true,
            best: 0.0,
            stale: 0,
        }
    }
    /// Goes on with the window that the last flight had, packets.
    pub fn resume(window: f64) -> Startup {
        Startup { is_first: false, ..Startup::begin(window, false) }
    }
    /// Takes the dispersion of the handshake: packets per second, and a round trip in seconds.
    pub fn on_dispersion(&mut self, rate: f64, rtt: f64) {
        self.train = rate;
        self.window = self.window.max((rate * rtt).min(self.initial));
    }

    pub fn on_ack(&mut self, ack: &Ack, path: &PathModel) {
        let now = ack.now.as_secs_f64();
        if ack.round_start {
            (self.train_began, self.count) = (self.is_first.then_some(now), 0.0);
        } else if let Some(began) = self.train_began {
            self.count += ack.newly_delivered as f64;
            if self.count >= TRAIN && now > began {
                self.train = self.count / (now - began);
            }
        }
        let bdp = self.train * path.base().unwrap_or(0.0);
        let growth = if bdp > TRAIN * self.window { TRAIN } else { 2.0 };
        if ack.window_limited {
            self.window += (growth - 1.0) * ack.newly_delivered as f64;
        }
    }

    /// Queueing delay that ends the startup, seconds.
    fn queue_limit(path: &PathModel) -> f64 {
        path.noise().max(STARTUP_QUEUE * path.base().unwrap_or(0.0))
    }

    /// The bandwidth in packets per second, if the acknowledgements of this round so far end the startup (RFC 9406
    /// section 4.2). While delays jitter, they do not show a queue.
    pub fn within_round(&self, path: &PathModel) -> Option<f64> {
        if self.best == 0.0 || path.jitters() {
            return None;
        }
        let rate = path.rate_so_far(Startup::queue_limit(path))?;
        Some(rate.max(self.best))
    }

    /// The bandwidth in packets per second, if this round ends the startup.
    pub fn on_round(&mut self, view: &RoundView, ack: &Ack, path: &PathModel) -> Option<f64> {
        let round = &view.round;
        self.is_first &= round.delivered < TRAIN;
        if view.saturated() {
            self.train = 0.0;
        }
        let grew = round.rate > UP * self.best;
        self.stale = if grew { 0 } else { self.stale + u32::from(ack.window_limited) };
        self.best = self.best.max(round.rate);
        if !grew && (round.queue_min > Startup::queue_limit(path) || view.dropped) {
            Some(round.rate)
        } else {
            (self.stale >= PLATEAU_ROUNDS).then_some(self.best)
        }
    }

    pub fn limits(&self, path: &PathModel) -> PolicyLimits {
        let Some(base) = path.base().filter(|_| !self.is_first) else {
            return PolicyLimits { window: self.window, rate: None };
        };
        let flight = self.window / base.max(f64::MIN_POSITIVE);
        PolicyLimits {
            window: self.window,
            rate: Some(self.train.clamp(2.0 * flight, TRAIN * flight)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{IdealPath, build};
    use narrows_base::{Duration, Time};

    /// A path after ten rounds of 40 packets that arrived at `delay` (ms, by packet) above a base of 100 ms, and a
    /// startup that has sent them.
    fn started(delay: impl Fn(u64) -> u64) -> (Startup, PathModel) {
        let mut scenario = IdealPath::new(build("rrtp"));
        let mut path = PathModel::default();
        let mut startup = Startup { is_first: false, best: 1e9, ..Startup::begin(10.0, false) };
        for i in 0..400 {
            let rtt = 100 + if i == 0 { 0 } else { delay(i) };
            let ack = Ack {
                now: Time::from_secs_f64(2.5e-3 * i as f64 + 1e-3 * rtt as f64),
                rtt: Duration::from_millis(rtt),
                round_start: i % 40 == 0,
                newly_delivered: 1,
                ..scenario.ack(1, false)
            };
            path.on_ack(&ack, 2.0);
            startup.on_ack(&ack, &path);
        }
        (startup, path)
    }

    #[test]
    fn a_queue_ends_it_within_a_round() {
        let (startup, path) = started(|i| 40 + i / 20);
        assert!(!path.jitters() && startup.within_round(&path).is_some());
    }

    /// Where packets keep their order, jitter delays all of them.
    #[test]
    fn delays_that_jitter_do_not_end_it_within_a_round() {
        let (startup, path) = started(|i| 40 + i * 7919 % 41);
        assert!(path.jitters() && startup.within_round(&path).is_none());
    }
}
