//! Short transfers, each over its own connection.

use super::{Pattern, SourceEntry, number};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, Status, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry::new(&DESCRIPTOR, Pattern::Transfers(transfers));

const DESCRIPTOR: Descriptor = Descriptor {
    name: "web",
    summary: "short transfers: Poisson arrivals, heavy-tailed sizes, a connection each",
    source: "Crovella and Bestavros 1997",
    senses: "-",
    sets: "connections",
    params: &[
        number(
            "rate",
            Unit::None,
            "new connections per second",
            1e-6,
            1e6,
            2.0,
            "a busy household",
        ),
        number(
            "mean",
            Unit::Bytes,
            "mean size of a transfer",
            1.0,
            1e12,
            30_000.0,
            "ns-2 webtraf examples",
        ),
        number(
            "shape",
            Unit::None,
            "Pareto shape; below 2 the variance is infinite",
            1.01,
            100.0,
            1.2,
            "Crovella and Bestavros 1997",
        ),
    ],
    status: Status::Validated("arrival rate and mean size, by test"),
};

fn transfers(
    s: &Settings,
    from: Time,
    mut stream: RandomStream,
) -> Box<dyn Iterator<Item = (Time, u64)>> {
    let rate = s.number("rate");
    let mean = s.number("mean");
    let shape = s.number("shape");
    let smallest = mean * (shape - 1.0) / shape;
    let mut at = from;
    Box::new(std::iter::from_fn(move || {
        at += Duration::from_secs_f64(stream.exponential(1.0 / rate));
        Some((at, (stream.pareto(shape, smallest) as u64).max(1)))
    }))
}
