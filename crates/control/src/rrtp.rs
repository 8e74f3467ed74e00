//! RRTP
mod alone;
mod contested;
mod opening;
mod path;

use crate::{Ack, Allowance, Controller, Environment, Fate, Profile, Restart, bounded};
use contested::Contest;
use narrows_base::{Card, Rate, Settings, Status, Time};
use path::Path;

/// The index card.
pub const CARD: Card = Card {
    name: "rrtp",
    summary: "short queues where it is alone, a fair share where it is not (after S3)",
    source: "S3 section 3.4.1, much changed",
    senses: "delivery rate, round-trip time, congestion losses",
    sets: "pacing rate and window",
    params: &[],
    status: Status::NotValidated,
};

/// Window of the first flight, packets: a pair and a pair.
const FIRST_FLIGHT: f64 = 4.0;

/// Builds it.
pub fn build(_settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    let mut rrtp = Rrtp {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        path: Path::default(),
        mood: Mood::Opening,
        window: bounded(environment.initial_window.min(FIRST_FLIGHT), 1.0),
        opening: opening::Opening::default(),
        alone: alone::Alone::default(),
        contest: Contest::default(),
        first_flight: 0.0,
    };
    rrtp.first_flight = rrtp.window;
    rrtp.learn(Time::ZERO, &environment.profile);
    Box::new(rrtp)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Opening,
    Alone,
    Contested,
}

#[derive(Debug)]
struct Rrtp {
    packet_bits: f64,
    path: Path,
    mood: Mood,
    /// Packets; in the contest AIMD's.
    window: f64,
    opening: opening::Opening,
    alone: alone::Alone,
    contest: Contest,
    first_flight: f64,
}

impl Rrtp {
    fn learn(&mut self, now: Time, profile: &Profile) {
        if let Some(rtt) = profile.rtt {
            self.path.set_base(now, crate::positive(rtt));
        }
        if let Some(rate) = profile.rate {
            let told = bounded(rate.as_bps() as f64 / self.packet_bits, 1e-3);
            self.path.set_bandwidth(told);
            self.begin_alone();
        }
    }
}

impl Controller for Rrtp {
    fn on_ack(&mut self, ack: &Ack) {
        let round = self.path.on_ack(ack);
        match self.mood {
            Mood::Opening => self.opening_ack(ack, round),
            Mood::Alone => self.alone_ack(ack, round),
            Mood::Contested => self.contested_ack(ack, round),
        }
    }

    fn on_fate(&mut self, fate: &Fate) {
        if fate.lost {
            self.path.on_loss();
            if !fate.radio && self.path.is_queueing() {
                self.congestion_loss(fate);
            }
        }
    }

    fn on_restart(&mut self, _restart: &Restart) {
        self.path.forget_rates();
        self.mood = Mood::Opening;
        self.opening = opening::Opening::again();
        self.window = FIRST_FLIGHT.min(self.window.max(1.0));
    }

    fn on_profile(&mut self, now: Time, profile: &Profile) {
        self.learn(now, profile);
    }

    fn allowance(&self) -> Allowance {
        let (window, rate) = match self.mood {
            Mood::Opening => self.opening_allowance(),
            Mood::Alone => self.alone_allowance(),
            Mood::Contested => self.contested_allowance(),
        };
        let bps = rate.map(|r| Rate::from_bps_f64(bounded(r * self.packet_bits, 1.0)));
        Allowance { window: bounded(window, 1.0), rate: bps }
    }

    fn for_datagrams(&self) -> bool {
        true
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("mood", f64::from(self.mood as u8));
        put("bandwidth", self.path.bandwidth());
        put("base", self.path.base().unwrap_or(0.0));
        put("window", self.window);
        put("delivered", self.path.round_rate);
    }
}
