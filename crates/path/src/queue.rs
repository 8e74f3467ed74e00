//! Queue disciplines: which packets wait, in which order they go, which are dropped.

use crate::Parcel;
use crate::config::{Limit, QueueConfig};
use narrows_base::card::Kind;
use narrows_base::units::Unit;
use narrows_base::{Card, Param, SpecError, Status, Time};
use std::collections::VecDeque;

/// A queue discipline in front of a transmitter.
pub trait Discipline<P>: Send {
    /// Offers a packet; false if it is dropped on arrival.
    fn enqueue(&mut self, now: Time, packet: P) -> bool;
    /// The packet to transmit next and when it came; packets that the discipline drops at the
    /// head are handed to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(Time, P)>;
    /// How many wait.
    fn waiting(&self) -> usize;
}

/// All queues.
pub const QUEUES: &[&Card] = &[&DROP_TAIL];

/// Drop-tail's card.
pub const DROP_TAIL: Card = Card {
    name: "droptail",
    summary: "first in, first out; an arrival that finds no room is dropped",
    source: "RFC 2309 section 2",
    senses: "packets or bytes waiting",
    sets: "drops",
    params: &[Param {
        name: "limit",
        help: "packets that may wait, the one in transmission not counted (also queue=30p, 45kB or 1bdp)",
        kind: Kind::Number { unit: Unit::Packets, min: 0.0, max: 1e15, default: 1e15 },
        origin: "no limit unless a link says so; ns-2's limit_ L is (L-1)p",
    }],
    status: Status::Validated(
        "ns-2.35 DropTail: one flow of four TCPs drops as many packets, within one (docs/validation.md)",
    ),
};

/// The discipline that a configuration names.
///
/// # Errors
/// An unknown discipline, or parameters that it does not have.
pub fn build<P: Parcel + Send + 'static>(
    config: &QueueConfig,
) -> Result<Box<dyn Discipline<P>>, SpecError> {
    Ok(Box::new(DropTail { limit: limit(config)?, bytes: 0, queue: VecDeque::new() }))
}

/// The waiting room of a configuration, its discipline's own parameter included.
///
/// # Errors
/// As [`build`].
pub fn limit(config: &QueueConfig) -> Result<Limit, SpecError> {
    let Some(spec) = &config.aqm else { return Ok(config.limit) };
    let names: Vec<&str> = QUEUES.iter().map(|c| c.name).collect();
    let card = QUEUES
        .iter()
        .find(|c| c.name == spec.name)
        .ok_or_else(|| SpecError::unknown("queue", &spec.name, &names))?;
    let settings = narrows_base::Settings::read(spec, card.params)?;
    Ok(if settings.given("limit") {
        Limit::Packets(settings.number("limit") as u64)
    } else {
        config.limit
    })
}

/// First in, first out, with a limited room.
#[derive(Debug)]
pub struct DropTail<P> {
    limit: Limit,
    bytes: u64,
    queue: VecDeque<(Time, P)>,
}

impl<P: Parcel + Send> Discipline<P> for DropTail<P> {
    fn enqueue(&mut self, now: Time, packet: P) -> bool {
        if !has_room(self.limit, self.queue.len() as u64, self.bytes, packet.size()) {
            return false;
        }
        self.bytes += u64::from(packet.size());
        self.queue.push_back((now, packet));
        true
    }
    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P)) -> Option<(Time, P)> {
        let head = self.queue.pop_front()?;
        self.bytes -= u64::from(head.1.size());
        Some(head)
    }
    fn waiting(&self) -> usize {
        self.queue.len()
    }
}

/// Whether one more packet of `size` may wait.
#[inline]
pub fn has_room(limit: Limit, packets: u64, bytes: u64, size: u32) -> bool {
    match limit {
        Limit::Unlimited => true,
        Limit::Packets(n) => packets < n,
        Limit::Bytes(n) => bytes.saturating_add(u64::from(size)) <= n,
    }
}
