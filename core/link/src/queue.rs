//! Queue disciplines: which packets wait, in which order they leave, and which are marked or
//! dropped.
//!
//! The list and the reading of specifications; the contract is in `queue/discipline.rs`, each discipline in a
//! file of its own. All of them hold the packets that wait in front of the transmitter: the packet
//! in transmission counts neither towards the limit nor towards an average.

mod average;
mod codel;
mod cw;
mod discipline;
mod droptail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod packet;
mod pie;
mod red;
mod red_descriptor;

use crate::config::{LinkConfig, QueueConfig, QueueLimit};
use narrows_base::list::List;
use narrows_base::{RandomKey, Settings, Spec, SpecError};

pub use discipline::{Discipline, LinkAhead, QueueEntry, QueueObserver, Setup};
pub use droptail::DROP_TAIL;
pub use fifo::has_room;
pub use packet::QueuedPacket;

/// All queues.
pub static QUEUES: List<QueueEntry> = List::new(
    "queue",
    &[
        droptail::ENTRY,
        red::ENTRY,
        cw::ENTRY,
        codel::ENTRY,
        fq_codel::ENTRY,
        pie::ENTRY,
        dualpi2::ENTRY,
    ],
);

/// Builds the discipline of a link's configuration; `random_key` is the link's key.
///
/// # Errors
/// An unknown discipline, or parameters that it does not have.
pub fn build(config: &LinkConfig, random_key: RandomKey) -> Result<Box<dyn Discipline>, SpecError> {
    let limit = limit(&config.queue)?;
    let (entry, settings) = match &config.queue.aqm {
        Some(spec) => read(spec)?,
        None => (&droptail::ENTRY, Settings::defaults(DROP_TAIL.params)),
    };
    let link = LinkAhead::of(config);
    let random_key = random_key.named("queue");
    Ok((entry.build)(&Setup { settings: &settings, limit, link, random_key }))
}

/// Whether the discipline is not drop-tail, so that its link serves packet by packet.
pub fn is_managed(config: &QueueConfig) -> bool {
    config.aqm.as_ref().is_some_and(|spec| spec.name != DROP_TAIL.name)
}

/// The queue limit of a configuration: the discipline's own `limit` first, then the link's, then
/// the default of the discipline's definition.
///
/// # Errors
/// As [`build`]; specifications are checked by calling this function.
pub fn limit(config: &QueueConfig) -> Result<QueueLimit, SpecError> {
    let Some(spec) = &config.aqm else { return Ok(config.limit) };
    let (entry, settings) = read(spec)?;
    let own = entry.descriptor.params.iter().any(|p| p.name == "limit");
    let managed = is_managed(config);
    let says =
        own && (settings.given("limit") || (managed && config.limit == QueueLimit::Unlimited));
    Ok(if says { QueueLimit::Packets(settings.number("limit") as u64) } else { config.limit })
}

fn read(spec: &Spec) -> Result<(&'static QueueEntry, Settings), SpecError> {
    let entry = QUEUES.find(&spec.name)?;
    let settings = Settings::read(spec, entry.descriptor.params)?;
    (entry.check)(&settings)?;
    let link = LinkAhead { bps: 1e6, delay_s: 0.0, steady: true };
    settings.refuse_unread(entry.descriptor.name, entry.descriptor.params, |settings| {
        if entry.descriptor.params.iter().any(|p| p.name == "limit") {
            settings.number("limit");
        }
        let random_key = RandomKey::from_seed(0);
        drop((entry.build)(&Setup { settings, limit: QueueLimit::Unlimited, link, random_key }));
    })?;
    Ok((entry, settings))
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
