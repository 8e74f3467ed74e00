//! RRTP on a dedicated channel: S3 section 3.4.2, "wireless-last-hop networks".
//!
//! The radio channel is the bottleneck and belongs to this connection alone, so nobody has to be fair:
//! the sender keeps to the channel's rate, told or measured, and changes it only when the channel's
//! rate changes. The receiver half averages the gaps at which packets left and came
//! (`rrtp_lasthop/half.rs`) and reports each epoch of ten; r is the ratio of the two.
//!
//! - S3: where r leaves 0.95 to 1.05, the new rate is the recent one over r, in the direction of the
//!   receive rate. The gaps are those of the same packets, so that this *is* the receive rate and applying
//!   it twice does no harm.
//! - S3's sender cannot find that a channel became faster: as long as it sends less than fits, r is 1.
//!   Ours sends every sixteenth epoch a quarter faster, and keeps what arrives at that rate.
//! - S3 says nothing of the queue that was built before r told. Ours has a window: a quarter, and four
//!   packets, above what the rate and the smallest round trip need.
//! - Losses by the radio change nothing. Congestion halves the rate, as in S3's regular mode, once in a
//!   round trip and for a round trip: then 95 % of it come back, S3's "instantaneous recovery"
//!   (section 4.4.2). Without that the next probe would have to find the rate anew.
//! - A rate is told (`rate=`), or taken from the spacing of the first four packets.

mod half;

use crate::{
    Ack, Advised, Allowance, Controller, Environment, Fate, Profile, ReceiverHalf, Restart,
};
use crate::{bounded, positive};
use half::Half;
use narrows_base::{Card, Duration, Rate, Settings, Status, Time};

/// The index card.
pub const CARD: Card = Card {
    name: "rrtp-lasthop",
    summary: "keeps to the rate of a radio channel of its own (S3)",
    source: "S3 section 3.4.2; window and probe are ours",
    senses: "gaps of arrivals over gaps of departures",
    sets: "pacing rate, and a window as a bound",
    params: &[],
    status: Status::NotValidated,
};

/// S3: within this distance of 1, r is 1.
const DEAD: f64 = 0.05;
/// Epochs between two probes, epochs that one lasts, and what a probe adds.
const PROBE_EPOCHS: u32 = 16;
const PROBE_LASTS: u32 = 3;
const PROBE: f64 = 0.25;
/// The window over the product, and packets more.
const WINDOW: f64 = 1.25;
const MORE: f64 = 4.0;
/// Packets whose spacing tells the first rate.
const FIRST: f64 = 4.0;
/// What comes back of the rate a round trip after congestion halved it.
const BACK: f64 = 0.95;

/// Builds the sender half.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let mut lasthop = LastHop {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        rate: None,
        base: None,
        first: None,
        since: 0.0,
        epochs: 0,
        probing: false,
        cut_at: None,
        before: None,
        ratio: 1.0,
    };
    lasthop.learn(&environment.profile);
    Box::new(lasthop)
}

/// Builds the receiver half.
pub fn receiver(_settings: &Settings, _environment: &Environment) -> Box<dyn ReceiverHalf> {
    Box::new(Half::default())
}

#[derive(Debug)]
struct LastHop {
    packet_bits: f64,
    /// Packets per second.
    rate: Option<f64>,
    /// Smallest round trip, seconds.
    base: Option<f64>,
    /// When the first acknowledgement came, and packets since.
    first: Option<Time>,
    since: f64,
    epochs: u32,
    probing: bool,
    cut_at: Option<Time>,
    /// The rate before it.
    before: Option<f64>,
    /// The last r.
    ratio: f64,
}

impl LastHop {
    fn learn(&mut self, profile: &Profile) {
        if let Some(rate) = profile.rate {
            self.before = None;
            self.rate = Some(bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3));
            self.epochs = 0;
            self.probing = false;
        }
        if let Some(rtt) = profile.rtt {
            self.base = Some(positive(rtt));
        }
    }
    /// At least a packet in each four seconds, or another could not be heard of within an outage.
    fn set(&mut self, rate: f64) {
        self.rate = Some(bounded(rate, 0.25));
    }
}

impl Controller for LastHop {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = positive(ack.rtt);
        self.base = Some(self.base.map_or(rtt, |b| b.min(rtt)));
        if let Some(before) =
            self.before.filter(|_| self.cut_at.is_some_and(|at| ack.now.since(at) >= ack.srtt))
        {
            self.before = None;
            self.set(BACK * before);
        }
        if self.rate.is_some() {
            return;
        }
        let Some(first) = self.first else {
            self.first = Some(ack.now);
            return;
        };
        self.since += ack.newly_delivered as f64;
        let span = ack.now.since(first).as_secs_f64();
        if self.since >= FIRST - 1.0 && span > 0.0 {
            self.set(self.since / span);
        } else if ack.now.since(first) > Duration::from_secs_f64(rtt) {
            // Too few of them came: a window per round trip, until the receiver's averages tell.
            self.set(FIRST / rtt);
        }
    }

    fn on_advice(&mut self, advised: &Advised) {
        let (came, left) = (advised.advice.number(0), advised.advice.number(1));
        let Some(rate) = self.rate.filter(|_| came > 0.0 && left > 0.0) else { return };
        let received = 1.0 / came;
        self.ratio = came / left;
        self.epochs += 1;
        if self.probing {
            if received > rate * (1.0 + DEAD) {
                self.set(received);
            }
            if self.epochs >= PROBE_LASTS {
                (self.probing, self.epochs) = (false, 0);
            }
        } else if (self.ratio - 1.0).abs() > DEAD {
            // What drains comes faster than it left: no more than the channel's rate, either way.
            self.set(received);
            self.epochs = 0;
        } else if self.epochs >= PROBE_EPOCHS {
            (self.probing, self.epochs) = (true, 0);
        }
    }

    fn on_fate(&mut self, fate: &Fate) {
        if !fate.lost || fate.radio || self.cut_at.is_some_and(|at| fate.sent <= at) {
            return;
        }
        self.cut_at = Some(fate.now);
        if let Some(rate) = self.rate {
            self.before.get_or_insert(rate);
            self.set(rate / 2.0);
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.before = None;
        if let Some(rate) = self.rate {
            self.set((rate / 2.0).min(FIRST / positive(restart.srtt)));
        }
    }

    fn on_profile(&mut self, _now: Time, profile: &Profile) {
        self.learn(profile);
    }

    fn allowance(&self) -> Allowance {
        let Some(rate) = self.rate else { return Allowance::window(FIRST) };
        let gain = if self.probing { 1.0 + PROBE } else { 1.0 };
        let window = match self.base {
            Some(base) => WINDOW * gain * rate * base + MORE,
            // Nothing was heard yet: a second at the rate that was told.
            None => rate + MORE,
        };
        let bps = bounded(rate * gain * self.packet_bits, 1.0);
        Allowance { window: bounded(window, 1.0), rate: Some(Rate::from_bps_f64(bps)) }
    }

    fn for_datagrams(&self) -> bool {
        true
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate", self.rate.unwrap_or(0.0));
        put("ratio", self.ratio);
        put("probing", f64::from(u8::from(self.probing)));
    }
}

#[cfg(test)]
#[path = "rrtp_lasthop/tests.rs"]
mod tests;
