//! One connection of `rrtp` after its handshake: sealing and opening of packets, reports, streams, messages, timers.
//! Pure: time and randomness are arguments.
//!
//! The [packet sender](crate::packet_sender) sends the data of streams and messages (`payload`, `packets`). The other
//! modules:
//!
//! - `receive` parses packets, and `report_frame` encodes the reports of `packet_receiver`.
//! - `path` follows the peer's address.
//! - `mtu` finds the datagram size.
//! - `repair` sends repair packets and rebuilds lost packets.
//! - `close` ends the connection.
//!
//! Each end begins with a PING, whose arrival confirms the handshake to the peer.
//!
//! The controller's packet sizes are those on the wire: UDP payload plus 28 bytes of UDP and IPv4 headers. A controller
//! is built for the largest datagrams. If they remain smaller, the packet sender scales all byte counts that it passes
//! to the controller.

mod announced;
mod api;
mod application;
mod close;
mod config;
mod early;
mod event;
mod learned;
mod messages;
mod mtu;
mod new_connection;
mod nonces;
mod outgoing_token;
mod packets;
mod path;
mod path_change;
mod payload;
mod receive;
mod repair;
mod report_frame;
mod timers;
mod token;

pub(crate) use announced::UNKNOWN_PROTOCOL;
pub(crate) use application::{NO_COMMON_PROTOCOL, refusal};
pub use config::ConnectionConfig;
pub use early::{Early, EarlyData};
pub use event::{Closed, Event, Stats, Transmit};
pub use messages::{MessageError, ReceivedMessage};
pub use new_connection::NewConnection;

use crate::packet_receiver::{MAX_ACK_DELAY, MAX_PACKETS_PER_ACK, PacketReceiver, ReceiverConfig};
use crate::packet_sender::{PacketSender, PacketSenderConfig};
use crate::protocol::is_sayable;
use crate::rtt::RtoConfig;
use crate::streams::{Limits, Side, Streams};
use announced::receiving;
use application::Agreement;
use close::Phase;
use early::EarlyState;
use learned::Learned;
use messages::{Inbox, Outbox};
use mtu::Mtu;
use narrows_base::{Duration, RandomKey, Time};
use narrows_congestion::{Feedback, HintSource, PathHints};
use narrows_wire::prf::Prf;
use narrows_wire::{Established, Opener, Sealer, Token};
use nonces::{Received, SentNonces};
use outgoing_token::OutgoingToken;
use path::PeerPath;
use path_change::{ControllerSetup, PathChanges};
use payload::{ConnectionPayload, SentFrames};
use repair::Repairs;
use report_frame::PeerClock;
use std::net::SocketAddr;

/// Bytes of UDP and IPv4 headers.
const UDP_OVERHEAD: u32 = 28;
/// Lower limit on the datagram size, even if a peer sets a smaller one.
const MIN_DATAGRAM: u16 = 512;
/// The ACK policy for the peer's packets.
const RECEIVER: ReceiverConfig =
    ReceiverConfig { ack_every: MAX_PACKETS_PER_ACK, max_ack_delay: MAX_ACK_DELAY };
/// Datagram size for a peer that sets no limit.
const USUAL_DATAGRAM: u64 = 1200;

/// A connection after its handshake.
pub struct Connection {
    sender: PacketSender<SentFrames>,
    payload: ConnectionPayload,
    sealer: Sealer,
    opener: Opener,
    receiver: PacketReceiver<Received>,
    peer_clock: PeerClock,
    nonces: SentNonces,
    unproved: u64,
    inbox: Inbox,
    path: PeerPath,
    mtu: Mtu,
    learned: Learned,
    phase: Phase,
    /// Server: no packet has been acknowledged yet, which limits the bytes sent.
    before_first_ack: bool,
    /// The handshake had no SYN.
    without_syn: bool,
    /// Events not yet reported. After `Closed` is reported, `ended` is set and no event follows.
    closed: Option<Closed>,
    moved: Option<SocketAddr>,
    ended: bool,
    /// Configuration of the RTT estimator on a new path.
    rto: RtoConfig,
    /// Size on the wire of the full packet for which the controller was built.
    nominal_packet: u32,
    ecn: bool,
    /// The ECN field of data packets set by the application, in place of the protocol's.
    ecn_field: Option<u8>,
    max_message: u16,
    peers_message: u64,
    reset_token: Option<Box<[u8; 16]>>,
    /// Label of this end's protocol for sending. `announce` is a copy that remains until the announcement is
    /// acknowledged.
    label: Box<str>,
    announce: Option<Box<str>>,
    setup: Box<ControllerSetup>,
    changes: PathChanges,
    /// The label that the peer announced, if it is unknown to this end. A server may still announce another one.
    unknown: Option<Box<str>>,
    agreement: Box<Agreement>,
    /// The server's token for the next handshake, until the application takes it.
    token: Option<Box<Token>>,
    early: Option<EarlyState>,
    /// Repair packets, if both ends support them.
    repairs: Option<Box<Repairs>>,
    idle_timeout: Duration,
    keep_alive: Duration,
    last_received: Time,
    last_sent: Time,
    last_asked: Time,
    last_due: Time,
    /// Packets are held until this time, by the pacer or to send several at once.
    held_until: Option<Time>,
    /// Whether data wait for `held_until`.
    is_data_held: bool,
    /// Whether a packet was sent or received since memory was last released.
    keeps_memory: bool,
    /// Whether a PTO expired since a large packet was acknowledged.
    suspects_size: bool,
    /// The last feedback sent by the controller's sender side, and its time.
    feedback_sent: Feedback,
    feedback_sent_at: Time,
    datagrams_sent: u64,
    bytes_sent: u64,
    bytes_received: u64,
    refused: u64,
    /// Sum and number of the round-trip times from reports.
    rtts: (Duration, u64),
}

impl Connection {
    /// `hello` has this end's parameters as sent to the peer; `rtt` is measured in the handshake.
    pub fn new(now: Time, beginning: NewConnection<'_>) -> Connection {
        let NewConnection { side, config, hello, established, remote, .. } = beginning;
        let NewConnection { rtt, dispersion, without_syn, token, early, seed, .. } = beginning;
        let Established { peer, sealer, opener, .. } = established;
        let peers = peer.params;
        let takes = match peers.max_datagram {
            0 => USUAL_DATAGRAM,
            other => other,
        };
        let takes = takes.clamp(u64::from(MIN_DATAGRAM), u64::from(u16::MAX)) as u16;
        let most = config.max_datagram.max(MIN_DATAGRAM).min(takes);
        let first = config.first_datagram.max(MIN_DATAGRAM).min(most);
        let mut mtu = Mtu::new(first, most);
        if let Some(rate) = config.hints.rate.filter(|_| config.hint_source != HintSource::Peer) {
            mtu.on_rate(rate);
        }
        let nominal_packet = u32::from(most) + UDP_OVERHEAD;
        let random_key =
            RandomKey::from_seed(seed.iter().take(8).fold(0, |s, b| s << 8 | u64::from(*b)));

        // The peer's hints are applied below, bounded by measurements.
        let from_peer = config.hint_source == HintSource::Peer;
        let believed = if from_peer { PathHints::default() } else { config.path_hints() };
        let endpoint = config.protocol.datagram();
        let idle_timeout = shorter(config.idle_timeout, peers.idle_timeout_ms);
        let rto = timers::backing_off(endpoint.rto, idle_timeout);
        let carrying = PacketSenderConfig {
            credit: endpoint.credit.max(LATENESS),
            max_ack_delay: MAX_ACK_DELAY,
            rto,
            packet: u32::from(first) + UDP_OVERHEAD,
            paces_windows: true,
            hints: (believed, config.hint_source),
        };
        let mut streams = Streams::new(side, config.limits, config.send_buffer);
        streams.set_turn(config.turn_bytes);
        // A server sends little before the first acknowledgement, so it buffers little for a client.
        if side == Side::Client
            && let (Some(rate), Some(rtt)) = (believed.rate, believed.rtt.or(rtt))
        {
            // The cast from a float saturates.
            streams.on_known_path((rate.as_bps() as f64 / 8.0 * rtt.as_secs_f64()) as usize);
        }
        streams.peer_permits(Limits {
            data: peers.max_data,
            stream: peers.max_stream,
            both: peers.max_streams_both,
            one_way: peers.max_streams_one,
        });
        let early = early.map(|early| EarlyState::begin(early, &mut streams));
        let mut payload = ConnectionPayload::new(streams, Outbox::default(), first);
        // EARLY-ECHO already contains all that a client needs at first. The application's response is the next packet
        // to send.
        let is_unconfirmed = early.is_some_and(|early| early.is_unconfirmed);
        payload.ping = !is_unconfirmed;
        payload.token = token.map(|t| Box::new(OutgoingToken::new(t, is_unconfirmed)));
        let environment = config.protocol.environment(nominal_packet, random_key, believed);
        let controller = config.protocol.controller(&environment);
        let mut sender = PacketSender::new(&carrying, controller);
        sender.limit_rate(config.rate_limit);
        let mut draws = Prf::new(&seed, "rrtp skipped numbers");
        sender.skip_numbers(move || draws.bits());
        if let Some(rtt) = rtt {
            sender.seed_rtt(now, rtt);
        }
        let label = config.protocol.label();
        let announced = config.protocol.announced();
        let announce =
            (announced != hello.controller && is_sayable(announced)).then(|| announced.into());
        let receiving =
            receiving(&peers.controller, &config.protocol, &config.custom, &environment);
        let unknown = receiving.is_none().then(|| peers.controller.as_str().into());
        let (receiver_side, classifier) = receiving.unwrap_or_default();
        let mut connection = Connection {
            sender,
            payload,
            sealer,
            opener,
            receiver: PacketReceiver::new(&RECEIVER, receiver_side, classifier),
            peer_clock: PeerClock::default(),
            nonces: SentNonces::new(&seed),
            unproved: 0,
            inbox: Inbox::new(config.messages_held),
            path: PeerPath::new(remote, &seed),
            mtu,
            learned: Learned::default(),
            phase: Phase::Open,
            before_first_ack: side == Side::Server,
            without_syn,
            closed: None,
            moved: None,
            ended: false,
            rto,
            nominal_packet,
            ecn: endpoint.ecn,
            ecn_field: None,
            max_message: config.max_message.min(hello.max_message.min(65_535) as u16),
            peers_message: peers.max_message,
            reset_token: peers.reset_token.map(Box::new),
            label: label.into(),
            announce,
            setup: Box::new(ControllerSetup {
                protocol: config.protocol.clone(),
                custom: config.custom.clone(),
                environment,
                peers: peers.controller.as_str().into(),
                may_say: side == Side::Client,
            }),
            changes: PathChanges::default(),
            unknown,
            agreement: Box::new(Agreement::new(side, &config.applications, &peers.applications)),
            token: None,
            early,
            repairs: Repairs::new(hello.repair, peers.repair),
            idle_timeout,
            keep_alive: config.keep_alive,
            last_received: now,
            last_sent: now,
            last_asked: now,
            last_due: now,
            held_until: None,
            is_data_held: false,
            keeps_memory: true,
            suspects_size: false,
            feedback_sent: Feedback::NONE,
            feedback_sent_at: Time::ZERO,
            datagrams_sent: 0,
            bytes_sent: 0,
            bytes_received: 0,
            refused: 0,
            rtts: (Duration::ZERO, 0),
        };
        connection.set_scale(now);
        if connection.sender.is_scaled() {
            connection.sender.on_path_hints(now, &believed, config.hint_source);
        }
        if from_peer {
            connection.reconfigure(now, &config.path_hints(), HintSource::Peer);
        }
        if let Some(dispersion) = dispersion {
            connection.sender.on_dispersion(now, &dispersion);
        }
        connection
    }

    /// Passes the full packet size to the packet sender, once path MTU discovery has settled it.
    fn set_scale(&mut self, now: Time) {
        let full = if self.mtu.is_settled() {
            u32::from(self.mtu.size()) + UDP_OVERHEAD
        } else {
            self.nominal_packet
        };
        self.sender.scale_bytes(now, full, self.nominal_packet);
    }
}

/// The shorter of two timeouts; zero means no timeout.
fn shorter(ours: Duration, theirs_ms: u64) -> Duration {
    // 2^43 ms is longer than any clock of this implementation.
    let theirs = Duration::from_millis(theirs_ms.min(1 << 43));
    match (ours, theirs) {
        (Duration::ZERO, other) | (other, Duration::ZERO) => other,
        (a, b) => a.min(b),
    }
}

// Every label must fit into the handshake's parameter.
const _: () = assert!(crate::protocol::MAX_LABEL == narrows_wire::params::MAX_CONTROLLER_BYTES);

/// One wake-up in a hundred is this late on a busy machine. The pacer's credit covers it, to keep the rate.
const LATENESS: Duration = Duration::from_millis(5);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({}, {:?}, {:?})", self.path.remote(), self.sender, self.phase)
    }
}

#[cfg(test)]
mod application_tests;
#[cfg(test)]
mod chaos_tests;
#[cfg(test)]
mod forgery_tests;
#[cfg(test)]
mod idle_memory_tests;
#[cfg(test)]
mod liar_tests;
#[cfg(test)]
mod liveness_tests;
#[cfg(test)]
mod many_tests;
#[cfg(test)]
mod message_burst_tests;
#[cfg(test)]
mod opening_tests;
#[cfg(test)]
mod pair_tests;
#[cfg(test)]
mod path_change_tests;
#[cfg(test)]
mod priority_tests;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod return_path_tests;
#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod skips_tests;
#[cfg(test)]
mod unread_tests;
