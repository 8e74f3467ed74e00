//! Several paths of one connection, in the spirit of RFC 10069 (Multipath QUIC).
//!
//! Each [`Path`] has its own keys, packet numbers, connection IDs, controller, RTT, loss detection, pacer and MTU. Streams
//! and messages belong to the connection: lost data leave again on any path. A [`Scheduler`] chooses the path of each
//! packet, from the state that [`ScheduledPath`](narrows_recovery::scheduled_path::ScheduledPath) computes. A report
//! travels on the path of the packets that it reports.
//!
//! - `opening`: a client opens a further path. Both ends exchange connection IDs by PATH_ID, then validate the path.
//! - `transmit`: the order in which packets of all paths leave.
//! - `in_use`: several paths as one, for statistics and lengths of messages.
//! - `copies`: what is late on one path leaves again on another, while no other data wait.
//! - `shared`: of paths over one bottleneck, one carries the data; `leader`: the client learns it from the server.
//! - `silence`: a path without answers is left, probed, and used again.
//! - `status`: a client keeps a path on standby, or closes it.
//!
//! `Connection::path` is the path that a method works on. Outside of `Connection::on_path` it is path 0 (`paths`).

mod announcement;
mod copies;
mod in_use;
mod leader;
mod opening;
mod opening_path;
mod paths;
mod shared;
mod silence;
mod status;
mod transmit;

use super::ConnectionConfig;
use super::path::Path;
use crate::streams::Side;
use announcement::{AnnouncedLeader, AnnouncedStatus};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_multipath::{
    COUPLINGS, Offered, PathState, PathStatus, SCHEDULERS, Scheduler, SharedBottleneck,
    WeightLimits,
};
use narrows_recovery::packet_sender::PacketSenderConfig;
use narrows_wire::PathKeys;
use narrows_wire::prf::Prf;
use opening_path::OpeningPath;
use std::net::SocketAddr;

/// Most paths of a connection. Numbers of paths are never used again, so it is also the most in its life.
pub const MAX_PATHS: u8 = 8;

/// Number of paths on which both ends agree by their parameters.
pub(super) fn agreed(ours: u64, theirs: u64) -> u8 {
    ours.min(theirs).clamp(1, MAX_PATHS.into()) as u8
}

/// What further paths are built from.
#[derive(Debug)]
pub(super) struct PathTemplate {
    pub sending: PacketSenderConfig,
    /// Datagram size at first, and the largest, in bytes of UDP payload.
    pub first: u16,
    pub most: u16,
    /// Size on the wire of the full packet for which controllers are built.
    pub nominal_packet: u32,
}

/// Further paths of a connection.
pub(super) struct Multipath {
    /// The paths that have begun, without path 0.
    others: Vec<Box<Path>>,
    /// All agreed further paths, by number, from 1.
    opening: Vec<OpeningPath>,
    /// The status of all agreed paths, by number, from 0.
    statuses: Vec<AnnouncedStatus>,
    /// The leader of all agreed paths, by number, from 0.
    leaders: Vec<AnnouncedLeader>,
    side: Side,
    scheduler: Box<dyn Scheduler>,
    /// Absent if the protocol's coupling does not detect shared bottlenecks.
    shared: Option<SharedBottleneck>,
    /// For each pair of paths: what of the first was offered for a copy on the second.
    offered: Vec<Offered>,
    /// The states of all paths that have begun, path 0 first.
    states: Vec<PathState>,
    /// How far paths with a lower weight are ahead of their part.
    parts: WeightLimits,
    /// Bytes of messages that the application holds back.
    held_back: u64,
    /// Until when the scheduler waits.
    waits_until: Time,
    template: PathTemplate,
    /// Secrets of further paths: of their challenges, header bits and skipped numbers.
    seeds: Prf,
    /// Upper limit on the rate of all paths together.
    pub rate_limit: Option<Rate>,
}

impl Multipath {
    /// `None` if both ends agree on one path.
    pub fn new(
        paths: u8,
        keys: &PathKeys,
        side: Side,
        config: &ConnectionConfig,
        template: PathTemplate,
        seed: &[u8; 32],
    ) -> Option<Box<Multipath>> {
        if paths < 2 {
            return None;
        }
        let opening = (1..paths).map(|number| OpeningPath::new(keys.path(number))).collect();
        let name = config.protocol.config().scheduler;
        let entry = SCHEDULERS.find(name).unwrap_or(&SCHEDULERS.built_in()[0]);
        let coupling = config.protocol.config().coupling;
        let coupling = COUPLINGS.find(coupling).unwrap_or(&COUPLINGS.built_in()[0]);
        // Hints are of the path of the handshake.
        let hints = (PathHints::default(), HintSource::User);
        let sending = PacketSenderConfig { hints, ..template.sending };
        Some(Box::new(Multipath {
            others: Vec::new(),
            opening,
            statuses: (0..paths).map(|_| AnnouncedStatus::default()).collect(),
            leaders: (0..paths).map(|_| AnnouncedLeader::default()).collect(),
            side,
            scheduler: (entry.build)(),
            shared: coupling.detects.then(SharedBottleneck::default),
            offered: Vec::new(),
            states: vec![PathState::default()],
            parts: WeightLimits::default(),
            held_back: 0,
            waits_until: Time::NEVER,
            template: PathTemplate { sending, ..template },
            seeds: Prf::new(seed, "rrtp path"),
            rate_limit: config.rate_limit,
        }))
    }
    /// Bytes on the heap, without the paths.
    pub fn memory(&self) -> usize {
        let statuses = self.statuses.len() * size_of::<AnnouncedStatus>();
        let leaders = self.leaders.len() * size_of::<AnnouncedLeader>();
        size_of::<Multipath>()
            + statuses
            + self.offered.capacity() * size_of::<Offered>()
            + leaders
            + self.opening.iter().map(OpeningPath::memory).sum::<usize>()
            + self.shared.as_ref().map_or(0, SharedBottleneck::memory)
    }
    /// Releases memory kept for later packets.
    pub fn release_memory(&mut self) {
        self.others.iter_mut().for_each(|path| path.release_memory());
    }
}

/// Statistics of one path.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathStats {
    /// Its number, 0 for the path of the handshake.
    pub number: u8,
    /// The peer's address on it.
    pub remote: SocketAddr,
    /// As the client set it.
    pub status: PathStatus,
    /// Whether it may carry data: it is validated and not closed, and the peer answers on it.
    pub is_usable: bool,
    /// Number of the path that carries this end's data in its place, because both share a bottleneck.
    pub leader: Option<u8>,
    /// The same of the peer's data, at a client.
    pub peer_leader: Option<u8>,
    /// UDP payload bytes sent on it.
    pub bytes_sent: u64,
    /// UDP payload bytes received on it in authentic packets.
    pub bytes_received: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;
