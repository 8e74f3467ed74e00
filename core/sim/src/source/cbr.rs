//! A constant bit rate, continuous or in on-periods of exponential length.

use super::{Pattern, Source, SourceEntry, number};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry =
    SourceEntry { demand_bps, ..SourceEntry::new(&DESCRIPTOR, Pattern::Ongoing(start)) };

const DESCRIPTOR: Descriptor = Descriptor {
    name: "cbr",
    summary: "a constant rate, with exponential on and off times if wanted",
    source: "ns-2 Application/Traffic/CBR and Exponential",
    senses: "-",
    sets: "application data",
    params: &[
        number(
            "rate",
            Unit::BitsPerSecond,
            "application bits per second while on",
            1.0,
            1e12,
            448e3,
            "ns-2 CBR rate_",
        ),
        number("size", Unit::Bytes, "bytes per write", 1.0, 1e6, 210.0, "ns-2 CBR packetSize_"),
        number(
            "on",
            Unit::Seconds,
            "mean length of on times; 0s is always on",
            0.0,
            1e6,
            0.0,
            "always on",
        ),
        number("off", Unit::Seconds, "mean length of off times", 0.0, 1e6, 0.0, "always on"),
    ],
    status: Status::Validated("mean rate, by test"),
};

#[derive(Debug)]
struct Cbr {
    gap: Duration,
    bytes: u64,
    /// Mean lengths of on and off periods in seconds; an off length of 0 means always on.
    on_s: f64,
    off_s: f64,
    on_until: Time,
    stream: RandomStream,
}

fn start(s: &Settings, stream: RandomStream) -> Box<dyn Source> {
    Box::new(Cbr {
        gap: gap(s),
        bytes: s.number("size") as u64,
        on_s: s.number("on"),
        off_s: s.number("off"),
        on_until: Time::ZERO,
        stream,
    })
}

fn gap(s: &Settings) -> Duration {
    let gap = Duration::from_secs_f64(s.number("size") * 8.0 / s.number("rate"));
    gap.max(Duration::from_nanos(1))
}

fn demand_bps(s: &Settings) -> Option<f64> {
    let always = s.number("on") <= 0.0 || s.number("off") <= 0.0;
    let bytes = s.number("size") as u64;
    always.then(|| bytes as f64 * 8.0 / gap(s).as_secs_f64())
}

impl Source for Cbr {
    fn write(&mut self, now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
        let next = now + self.gap;
        if self.on_s <= 0.0 || self.off_s <= 0.0 {
            return (self.bytes, next);
        }
        if self.on_until == Time::ZERO {
            self.on_until = now + Duration::from_secs_f64(self.stream.exponential(self.on_s));
        }
        if next < self.on_until {
            return (self.bytes, next);
        }
        let resume = next + Duration::from_secs_f64(self.stream.exponential(self.off_s));
        self.on_until = resume + Duration::from_secs_f64(self.stream.exponential(self.on_s));
        (self.bytes, resume)
    }
}
