//! Outages: periods in which every packet is lost, as in a handoff or behind a building.

use super::process::{LossEntry, LossProcess};
use crate::LinkPacket;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, RandomKey, RandomStream, Settings, Status, Time};

pub(crate) const OUTAGE: LossEntry =
    LossEntry::new(&OUTAGE_CARD, |s, random_key| Box::new(Outage::new(s, random_key)));

const OUTAGE_CARD: Descriptor = Descriptor {
    name: "outage",
    summary: "everything is lost for a while: once, at fixed intervals or at random",
    source: "the RRTP thesis, section 4.4 (handoffs); Jayaram 2001, figure 6.7",
    senses: "time",
    sets: "loss of every packet",
    params: &[
        time("at", "start of the first outage", 10.0, "after slow start on most links"),
        time("for", "length of an outage", 0.5, "a vertical handoff"),
        time("every", "from start to start; 0s is one outage only", 0.0, "one outage"),
        Param {
            name: "spacing",
            help: "fixed intervals, or exponential ones with that mean",
            kind: ParamKind::Choice(&["fixed", "random"]),
            origin: "handoffs of a bus line, or of a walker",
        },
    ],
    status: Status::Validated("exact, by test"),
};

const fn time(name: &'static str, help: &'static str, default: f64, origin: &'static str) -> Param {
    Param {
        name,
        help,
        kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 1e9, default },
        origin,
    }
}

struct Outage {
    start: Time,
    length: Duration,
    every: Duration,
    random: Option<RandomStream>,
}

/// Limit on outages between two packets that are simulated one by one. After that many, the present state no longer
/// depends on the earlier one. The limit bounds the time per packet.
const MAX_TURNS: u32 = 1_000;

impl Outage {
    fn new(s: &Settings, random_key: RandomKey) -> Outage {
        let random = s.choice("spacing") == "random";
        Outage {
            start: Time::from_secs_f64(s.number("at")),
            length: Duration::from_secs_f64(s.number("for")),
            every: Duration::from_secs_f64(s.number("every")),
            random: random.then(|| random_key.named("outage").stream()),
        }
    }
    /// Draws whether there is an outage at `at`, with the outages' share of time as the
    /// probability; the next one begins later.
    fn drawn_anew(&mut self, at: Time) -> bool {
        let Some(stream) = &mut self.random else { return false };
        let length = self.length.as_secs_f64();
        let every = self.every.as_secs_f64();
        self.start = at + Duration::from_secs_f64(stream.exponential(every)).max(self.length);
        stream.chance(length / every.max(length))
    }
    fn next_start(&mut self, now: Time) -> Time {
        match &mut self.random {
            // At least one outage length apart, so that two cannot overlap.
            Some(stream) => {
                let gap = Duration::from_secs_f64(stream.exponential(self.every.as_secs_f64()));
                self.start + gap.max(self.length).max(Duration::from_nanos(1))
            }
            // Skip whole periods at once, so that a long idle time does not cost a step per period.
            None => {
                let periods = now.since(self.start).as_nanos() / self.every.as_nanos();
                self.start + self.every.saturating_mul(periods.max(1))
            }
        }
    }
}

impl LossProcess for Outage {
    fn strikes(&mut self, at: Time, _packet: &dyn LinkPacket) -> bool {
        let mut turns = 0;
        while at >= self.start + self.length && self.every > Duration::ZERO {
            if turns == MAX_TURNS {
                return self.drawn_anew(at);
            }
            self.start = self.next_start(at);
            if self.start > at {
                return false;
            }
            turns += 1;
        }
        at >= self.start && at < self.start + self.length
    }
}
