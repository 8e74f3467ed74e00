//! One file, written at once.

use super::{Pattern, Source, SourceEntry, number};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry::new(&DESCRIPTOR, Pattern::Transfer(start));

const DESCRIPTOR: Descriptor = Descriptor {
    name: "transfer",
    summary: "one file of a given size",
    source: "-",
    senses: "-",
    sets: "application data",
    params: &[number(
        "size",
        Unit::Bytes,
        "bytes of the file",
        1.0,
        1e18,
        1e6,
        "the RRTP thesis, section 4.5: 1 MB",
    )],
    status: Status::Validated("arrives exactly, by test"),
};

fn start(s: &Settings, _: RandomStream) -> Box<dyn Source> {
    Box::new(Transfer { bytes: s.number("size") as u64 })
}

/// A file of this many bytes.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub bytes: u64,
}
impl Source for Transfer {
    fn write(&mut self, _now: Time, _allowed_bps: &dyn Fn() -> f64) -> (u64, Time) {
        (self.bytes, Time::NEVER)
    }
}
