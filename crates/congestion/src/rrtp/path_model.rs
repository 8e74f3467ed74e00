//! What is known of the path: rates, round trips, queues, losses. `rrtp-lasthop` keeps the same books.

use crate::{Ack, positive};
use narrows_base::Time;

/// Rounds over which the largest delivery rate counts.
const RATE_ROUNDS: usize = 10;
/// Seconds for which a smallest round trip counts at least, and rounds.
const BASE_SECONDS: f64 = 10.0;
/// On paths shorter than this, round trips tell when hosts get round to it and not of queues.
const HOST_SECONDS: f64 = 0.001;
/// A band of round trips narrower than this share of the smallest tells nothing.
const TELLING_BAND: f64 = 0.1;
/// Share of a round's packets that no radio link loses.
const FLOOD: f64 = 0.1;
/// Part of the band above which a loss is congestion.
const SPIKE: f64 = 0.4;

/// Estimates; a round is the time in which what is in flight is answered.
#[derive(Clone, Debug)]
pub struct PathModel {
    /// Largest rate sample of each of the last rounds, packets per second; the first is of now.
    best: [f64; RATE_ROUNDS],
    /// The first has a sample of the path, not of the application.
    sampled: bool,
    /// Smallest RTT, seconds, of this and of the last period.
    base: [f64; 2],
    period_began: f64,
    told: bool,
    /// Newest RTT.
    pub rtt: f64,
    /// Largest RTT, likewise.
    most: [f64; 2],
    /// Of the round that ended last: smallest RTT, packets per second.
    pub round_rtt: f64,
    pub round_rate: f64,
    /// … and its largest RTT.
    pub round_max_rtt: f64,
    now_rtt: f64,
    now_max_rtt: f64,
    began: Option<Time>,
    delivered: f64,
    total: f64,
    pub rounds: u64,
    /// Samples above this do not count.
    pub most_rate: f64,
    /// Share that the radio link is known to lose.
    pub radio_loss: f64,
    /// Packets lost in this round and in the one that ended last, and delivered in that.
    lost: u64,
    pub round_lost: f64,
    pub round_delivered: f64,
}

impl Default for PathModel {
    fn default() -> PathModel {
        PathModel {
            best: [0.0; RATE_ROUNDS],
            sampled: false,
            base: [f64::INFINITY; 2],
            period_began: 0.0,
            told: false,
            rtt: 0.0,
            most: [0.0; 2],
            round_rtt: f64::INFINITY,
            round_rate: 0.0,
            round_max_rtt: 0.0,
            now_rtt: f64::INFINITY,
            now_max_rtt: 0.0,
            began: None,
            delivered: 0.0,
            total: 0.0,
            rounds: 0,
            most_rate: 1e12,
            radio_loss: 0.0,
            lost: 0,
            round_lost: 0.0,
            round_delivered: 0.0,
        }
    }
}

impl PathModel {
    /// Somebody says what the smallest RTT is: it counts until one is measured, as the time of
    /// transmission is not in it.
    pub fn set_base(&mut self, base: f64) {
        self.base = [base, f64::INFINITY];
        self.told = true;
    }
    /// The bandwidth is this, and what was measured is forgotten.
    pub fn set_bandwidth(&mut self, per_second: f64) {
        self.best = [0.0; RATE_ROUNDS];
        self.best[0] = per_second;
    }
    /// The bandwidth is not known.
    pub fn forget_rates(&mut self) {
        self.best = [0.0; RATE_ROUNDS];
    }
    /// Largest delivery rate of the last rounds, packets per second; 0 if none is known.
    pub fn bandwidth(&self) -> f64 {
        self.best.iter().copied().fold(0.0, f64::max)
    }
    /// Smallest RTT in seconds, and no less than hosts need to say anything.
    pub fn base(&self) -> Option<f64> {
        let base = self.base[0].min(self.base[1]);
        base.is_finite().then_some(base.max(HOST_SECONDS))
    }
    /// Bandwidth-delay product, packets.
    pub fn product(&self) -> f64 {
        self.bandwidth() * self.base().unwrap_or(0.0)
    }
    /// Whether a loss now is taken for congestion: not where the newest round trip is in the lower part
    /// of a band that is wide enough to tell.
    pub fn is_queueing(&self) -> bool {
        self.queue_shows().unwrap_or(true)
    }
    /// … where a band too narrow to tell acquits: nobody else's queue can be there.
    pub fn shows_queue(&self) -> bool {
        self.queue_shows().unwrap_or(false)
    }
    fn queue_shows(&self) -> Option<bool> {
        let base = self.base()?;
        let band = self.most[0].max(self.most[1]) - base;
        (band >= TELLING_BAND * base).then_some(self.rtt > base + SPIKE * band)
    }

    /// The part of what is in flight that the path itself holds when its queue is as long as in this round
    /// or the last.
    pub fn held(&self) -> f64 {
        let most = self.now_max_rtt.max(self.round_max_rtt);
        self.base().unwrap_or(0.0) / most.max(1e-9)
    }
    /// … as long as in the last period at most.
    pub fn held_at_most(&self) -> f64 {
        self.base().unwrap_or(0.0) / self.most[0].max(self.most[1]).max(1e-9)
    }

    /// A packet was lost.
    pub fn on_loss(&mut self) {
        self.lost += 1;
    }

    /// Packets lost in this round so far.
    pub fn lost_now(&self) -> u64 {
        self.lost
    }

    /// Whether the round that ended last lost more than a radio link would.
    pub fn is_flooded(&self) -> bool {
        self.round_lost > 2.0 + (FLOOD + 2.0 * self.radio_loss) * self.round_delivered
    }

    /// Takes an acknowledgement in; true if a round has ended.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let rtt = positive(ack.rtt);
        self.rtt = rtt;
        let now = ack.now.as_secs_f64();
        if self.told {
            // What was told lacks the time of transmission: the first sample is believed.
            self.told = false;
            self.base = [f64::INFINITY; 2];
            self.period_began = now;
        }
        if self.base[0].is_finite() && now - self.period_began > BASE_SECONDS.max(40.0 * rtt) {
            self.base = [f64::INFINITY, self.base[0]];
            self.most = [0.0, self.most[0]];
            self.period_began = now;
        }
        self.base[0] = self.base[0].min(rtt);
        self.most[0] = self.most[0].max(rtt);
        let mut ended = false;
        if ack.round_start {
            if let Some(began) = self.began {
                let span = positive(ack.now.since(began));
                self.round_rate = self.delivered / span;
                self.round_rtt = self.now_rtt;
                self.round_max_rtt = self.now_max_rtt;
                self.round_lost = self.lost as f64;
                self.round_delivered = self.delivered;
                self.rounds += 1;
                ended = true;
                // Rounds in which the application was the limit say nothing: what is known stays.
                if self.sampled {
                    self.best.rotate_right(1);
                    self.best[0] = 0.0;
                    self.sampled = false;
                }
            }
            self.began = Some(ack.now);
            self.delivered = 0.0;
            self.lost = 0;
            self.now_rtt = rtt;
            self.now_max_rtt = rtt;
        }
        self.now_rtt = self.now_rtt.min(rtt);
        self.now_max_rtt = self.now_max_rtt.max(rtt);
        self.delivered += ack.newly_delivered as f64;
        self.total += ack.newly_delivered as f64;
        if let Some(rate) = &ack.rate {
            let sample = rate.per_second().min(self.most_rate);
            let known = self.bandwidth();
            if sample >= known || !rate.app_limited {
                self.sampled = true;
                self.best[0] = self.best[0].max(sample);
            }
        }
        ended
    }
}
