//! One connection of `rrtp` after its handshake: sealing and opening of packets, reports, streams, messages, timers.
//! Pure: time and randomness are arguments.
//!
//! The [packet sender](narrows_recovery::packet_sender) sends the data of streams and messages (`payload`, `packets`). The other
//! modules:
//!
//! - `receive` parses packets, and `report_frame` encodes the reports of `packet_receiver`.
//! - `path` has what belongs to a path: the peer's address, keys and packet numbers, the packet sender and its
//!   controller, the packet receiver, the datagram size.
//! - `multipath` has the further paths, if the application opens some: it chooses the path of each packet.
//! - `repair` sends repair packets and rebuilds lost packets.
//! - `close` ends the connection (`life`).
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
mod confirmation;
mod early;
mod ecn;
mod event;
mod life;
mod messages;
mod multipath;
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
mod timeouts;
mod timers;
mod token;
mod traffic;

pub(crate) use announced::UNKNOWN_PROTOCOL;
pub(crate) use application::{NO_COMMON_PROTOCOL, refusal};
pub use config::ConnectionConfig;
pub use early::{EarlyData, EarlyExchange};
pub use event::{Closed, ConnectionEvent, Stats, Transmit};
pub use messages::{MessageError, ReceivedMessage};
pub use multipath::{MAX_PATHS, PathStats};
pub use narrows_multipath::{PathStatus, PathWeight};
pub use new_connection::NewConnection;

use crate::streams::{FlowControlLimits, Side, Streams};
use announced::{Protocols, receiving};
use application::Agreement;
use early::EarlyState;
use ecn::EcnField;
use life::Life;
use messages::{Inbox, MessageLimits};
use multipath::{Multipath, PathTemplate};
use narrows_base::{Duration, RandomKey, Time};
use narrows_congestion::{Environment, HintSource, PathHints};
use narrows_recovery::packet_receiver::{
    MAX_ACK_DELAY, MAX_PACKETS_PER_ACK, PacketReceiver, ReceiverConfig,
};
use narrows_recovery::packet_sender::{PacketSender, PacketSenderConfig};
use narrows_recovery::protocol::is_printable_label;
use narrows_wire::prf::Prf;
use narrows_wire::{Established, Token};
use nonces::SentNonces;
use outgoing_token::OutgoingToken;
use path::{Mtu, Path, PathParts, PeerAddress};
use payload::{ConnectionPayload, UDP_OVERHEAD, USUAL_DATAGRAM};
use repair::Repairs;
use timeouts::Timeouts;
use traffic::TrafficCounters;

/// Lower limit on the datagram size, even if a peer sets a smaller one.
const MIN_DATAGRAM: u16 = 512;
/// The ACK policy for the peer's packets.
const RECEIVER: ReceiverConfig =
    ReceiverConfig { ack_every: MAX_PACKETS_PER_ACK, max_ack_delay: MAX_ACK_DELAY };
/// A connection after its handshake.
pub struct Connection {
    /// The path of the handshake; while a method of `multipath` works on another path, that one.
    path: Box<Path>,
    payload: ConnectionPayload,
    inbox: Inbox,
    message_limits: MessageLimits,
    life: Life,
    timeouts: Timeouts,
    traffic: TrafficCounters,
    ecn: EcnField,
    protocols: Box<Protocols>,
    agreement: Box<Agreement>,
    /// The server's token for the next handshake, until the application takes it.
    token: Option<Box<Token>>,
    early: Option<EarlyState>,
    /// Repair packets, if both ends support them.
    repairs: Option<Box<Repairs>>,
    /// Further paths, if both ends support them.
    multipath: Option<Box<Multipath>>,
}

impl Connection {
    /// `hello` has this end's parameters as sent to the peer; `rtt` is measured in the handshake.
    pub fn new(now: Time, beginning: NewConnection<'_>) -> Connection {
        let NewConnection { side, config, hello, established, remote, .. } = beginning;
        let NewConnection { rtt, max_rtt, without_syn, token, early, seed, .. } = beginning;
        let Established { peer, sealer, opener, path_keys, .. } = established;
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
        let endpoint = config.protocol.config();
        let idle_timeout = shorter(config.idle_timeout, peers.idle_timeout_ms);
        let rto = timeouts::backing_off(endpoint.rto, idle_timeout);
        let carrying = PacketSenderConfig {
            credit: endpoint.credit.max(LATENESS),
            max_ack_delay: MAX_ACK_DELAY,
            rto,
            packet: u32::from(first) + UDP_OVERHEAD,
            paces_windows: true,
            hints: (believed, config.hint_source),
        };
        let paths = multipath::agreed(hello.paths, peers.paths);
        let template = PathTemplate { sending: carrying.clone(), first, most, nominal_packet };
        let multipath = Multipath::new(paths, &path_keys, side, config, template, &seed);
        let mut streams = Streams::new(side, config.limits, config.send_buffer);
        streams.set_turn(config.turn_bytes);
        streams.set_growth(config.max_buffered, config.growth.clone());
        // A server sends little before the first acknowledgement, so it buffers little for a client.
        if side == Side::Client
            && let (Some(rate), Some(rtt)) = (believed.rate, believed.rtt.or(rtt))
        {
            // The cast from a float saturates.
            streams.on_known_path((rate.as_bps() as f64 / 8.0 * rtt.as_secs_f64()) as usize);
        }
        streams.peer_permits(FlowControlLimits {
            data: peers.max_data,
            stream: peers.max_stream,
            both: peers.max_streams_both,
            one_way: peers.max_streams_one,
        });
        let early = early.map(|early| EarlyState::begin(early, &mut streams));
        let mut payload = ConnectionPayload::new(streams);
        // EARLY-ECHO already contains all that a client needs at first. The application's response is the next packet
        // to send.
        let is_unconfirmed = early.is_some_and(|early| early.is_unconfirmed);
        payload.ping = !is_unconfirmed;
        payload.token = token.map(|t| Box::new(OutgoingToken::new(t, is_unconfirmed)));
        let environment = Environment {
            expects_dispersion: side == Side::Client
                && config.probes_rate
                && believed.rate.is_none(),
            ..config.protocol.environment(nominal_packet, random_key, believed)
        };
        let controller = config.protocol.controller(&environment);
        let mut sender = PacketSender::new(&carrying, controller);
        sender.limit_rate(config.rate_limit);
        let mut draws = Prf::new(&seed, "rrtp skipped numbers");
        sender.skip_numbers(move || draws.bits());
        match rtt {
            Some(rtt) => sender.seed_rtt(now, rtt),
            None => sender.limit_rtt(max_rtt),
        }
        let label = config.protocol.label();
        let announced = config.protocol.announced();
        let announce = (announced != hello.controller && is_printable_label(announced))
            .then(|| announced.into());
        let receiving =
            receiving(&peers.controller, &config.protocol, &config.custom, &environment);
        let unknown = receiving.is_none().then(|| peers.controller.as_str().into());
        let (receiver_side, classifier) = receiving.unwrap_or_default();
        let address = PeerAddress::new(remote, &seed);
        let nonces = SentNonces::new(&seed);
        let receiver = PacketReceiver::new(&RECEIVER, receiver_side, classifier);
        let parts = PathParts {
            number: 0,
            address,
            sealer,
            opener,
            nonces,
            sender,
            receiver,
            mtu,
            rto,
            nominal_packet,
        };
        let mut path = Box::new(Path::new(now, parts));
        path.set_scale(now);
        if path.sender.is_scaled() {
            path.sender.on_path_hints(now, &believed, config.hint_source);
        }
        if from_peer {
            path.on_hints(now, &config.path_hints(), HintSource::Peer);
        }
        Connection {
            path,
            payload,
            inbox: Inbox::new(config.messages_held),
            message_limits: MessageLimits {
                ours: config.max_message.min(hello.max_message.min(65_535) as u16),
                peers: peers.max_message,
            },
            life: Life::new(peers.reset_token),
            timeouts: Timeouts::new(
                now,
                timeouts::covering(idle_timeout, max_rtt),
                config.keep_alive,
            ),
            traffic: TrafficCounters {
                before_first_ack: side == Side::Server,
                without_syn,
                ..TrafficCounters::default()
            },
            ecn: EcnField { is_on: endpoint.ecn, by_application: None },
            protocols: Box::new(Protocols {
                protocol: config.protocol.clone(),
                custom: config.custom.clone(),
                environment,
                label: label.into(),
                announce,
                peers: peers.controller.as_str().into(),
                may_say: side == Side::Client,
                unknown,
            }),
            agreement: Box::new(Agreement::new(side, &config.applications, &peers.applications)),
            token: None,
            early,
            // A repair packet names packets of one path.
            repairs: Repairs::new(hello.repair, peers.repair).filter(|_| paths == 1),
            multipath,
        }
    }

    /// The dispersion of the handshake's probes.
    pub(crate) fn on_dispersion(&mut self, now: Time, dispersion: &narrows_congestion::Dispersion) {
        self.path.sender.on_dispersion(now, dispersion);
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
const _: () =
    assert!(narrows_recovery::protocol::MAX_LABEL == narrows_wire::params::MAX_CONTROLLER_BYTES);

/// One wake-up in a hundred is this late on a busy machine. The pacer's credit covers it, to keep the rate.
const LATENESS: Duration = Duration::from_millis(5);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let remote = self.path.address.remote();
        let sender = &self.path.sender;
        write!(f, "Connection({remote}, {sender:?}, {:?})", self.life.phase)
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
