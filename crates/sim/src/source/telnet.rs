//! Small writes at random times.

use super::{Pattern, Source, SourceEntry, number};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry::new(&DESCRIPTOR, Pattern::Ongoing(start));

const DESCRIPTOR: Descriptor = Descriptor {
    name: "telnet",
    summary: "a person typing: small writes at random times",
    source: "ns-2 Application/Telnet; the ST-PD thesis, section 3.5.3",
    senses: "-",
    sets: "application data",
    params: &[
        number(
            "size",
            Unit::Bytes,
            "bytes per write",
            1.0,
            1e6,
            64.0,
            "a line of typing with echo",
        ),
        number(
            "interval",
            Unit::Seconds,
            "mean time between writes, exponential",
            1e-6,
            1e6,
            1.0,
            "ns-2 interval_ 1.0",
        ),
    ],
    status: Status::NotValidated,
};

fn start(s: &Settings, stream: RandomStream) -> Box<dyn Source> {
    let (bytes, interval_s) = (s.number("size") as u64, s.number("interval"));
    Box::new(Telnet { bytes, interval_s, stream })
}

#[derive(Debug)]
struct Telnet {
    bytes: u64,
    interval_s: f64,
    stream: RandomStream,
}
impl Source for Telnet {
    fn write(&mut self, now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
        let gap = Duration::from_secs_f64(self.stream.exponential(self.interval_s));
        (self.bytes, now + gap.max(Duration::from_nanos(1)))
    }
}
