//! An endless transfer.

use super::{Pattern, Source, SourceEntry};
use narrows_base::{Descriptor, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry {
    demand_bps: |_| Some(f64::INFINITY),
    ..SourceEntry::new(&DESCRIPTOR, Pattern::Endless(start))
};

const DESCRIPTOR: Descriptor = Descriptor {
    name: "bulk",
    summary: "data without end, as FTP in ns-2",
    source: "ns-2 Application/FTP",
    senses: "-",
    sets: "application data",
    params: &[],
    status: Status::Validated("ns-2.35 one-flow and dumbbell runs (docs/validation.md)"),
};

fn start(_: &Settings, _: RandomStream) -> Box<dyn Source> {
    Box::new(Bulk)
}

#[derive(Debug)]
struct Bulk;
impl Source for Bulk {
    fn write(&mut self, _now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
        (u64::MAX, Time::NEVER)
    }
}
