//! Configuration of a connection.

use super::announced;
use crate::Protocol;
use crate::streams::{FlowControlLimits, GrowthBudget};
use narrows_base::{Duration, Rate};
use narrows_congestion::{HintSource, PathHints};
use narrows_wire::ApplicationProtocols;
use std::sync::Arc;

/// Configuration of a connection at one end.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The protocol for sending, which selects the controller: one of the `rrtp` family or a media protocol.
    pub protocol: Protocol,
    /// Estimates of the path before the first measurement.
    pub hints: PathHints,
    /// Source of `hints`. It decides how much may be sent before the first acknowledgement.
    pub hint_source: HintSource,
    /// Upper limit on the sending rate, regardless of the controller.
    pub rate_limit: Option<Rate>,
    /// The largest UDP payload in bytes that path MTU discovery tries.
    pub max_datagram: u16,
    /// UDP payload in bytes that every path is assumed to carry.
    pub first_datagram: u16,
    /// The connection ends if no packet of the peer arrives for this time; zero means never.
    pub idle_timeout: Duration,
    /// Time without a packet of the peer after which this end sends a PING; zero means never.
    pub keep_alive: Duration,
    /// Initial flow-control limits for the peer.
    pub limits: FlowControlLimits,
    /// Limit on bytes written and not yet acknowledged, over all streams.
    pub send_buffer: usize,
    /// The window of a stream and `send_buffer` grow up to this, if more than half of them is carried in one round
    /// trip; the window of all streams grows by as much. Lower values than theirs have no effect.
    pub max_buffered: usize,
    /// Bounds that growth for all connections with clones of this configuration together.
    pub growth: Arc<GrowthBudget>,
    /// Bytes that a stream sends before the next one of its priority has its turn. With 0 they alternate packet by
    /// packet. If a turn is as long as a response, responses complete one after the other instead of all at the end.
    pub turn_bytes: u64,
    /// Longest message in bytes that this end accepts; 0 if it accepts no messages.
    pub max_message: u16,
    /// Limit on received messages that wait to be read; beyond it the oldest is dropped.
    pub messages_held: usize,
    /// Whether a client's handshake probes the path's rate with three larger packets, for a client that sends more than
    /// it receives. Ignored if hints give the rate.
    pub probes_rate: bool,
    /// Unlisted protocols ([`Protocol::custom`]) that the peer may announce, identified by their labels. A server
    /// also sends with one of these if the client announces it. This end's own `protocol` need not be included.
    pub custom: Arc<[Protocol]>,
    /// Application protocols of this end, in order of preference. A connection needs one that both ends list, or empty
    /// lists at both.
    pub applications: ApplicationProtocols,
    /// Number of paths that a connection may have at once, at most [`MAX_PATHS`](super::MAX_PATHS). A server permits
    /// what the client uses; with 1, or a peer without several paths, there is one.
    pub paths: u8,
}

impl ConnectionConfig {
    /// The default configuration with this protocol: datagrams for Ethernet, an idle timeout of a minute, buffers of
    /// 6 MiB that grow to 32 MiB (Linux's usual limit for TCP) if a path carries that much: 1.3 Gbit/s at 100 ms.
    pub fn new(protocol: Protocol) -> ConnectionConfig {
        ConnectionConfig {
            protocol,
            hints: PathHints::default(),
            hint_source: HintSource::default(),
            rate_limit: None,
            max_datagram: 1472,
            first_datagram: 1200,
            idle_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            limits: FlowControlLimits { data: 9 << 20, stream: 6 << 20, both: 128, one_way: 128 },
            send_buffer: 6 << 20,
            max_buffered: 32 << 20,
            growth: Arc::default(),
            turn_bytes: 0,
            max_message: 1400,
            messages_held: 1024,
            probes_rate: true,
            custom: Arc::default(),
            paths: 1,
            applications: ApplicationProtocols::default(),
        }
    }
    /// Whether this end has the protocol with this label, and so can run its receiver side.
    pub(crate) fn knows(&self, label: &str) -> bool {
        label.is_empty() || announced::find(label, &self.protocol, &self.custom).is_some()
    }
    /// Packets that this end keeps for the reconstruction of lost ones, as announced in the handshake; 0 without
    /// repair.
    pub(crate) fn repair(&self) -> u64 {
        if self.protocol.config().repair { super::repair::MAX_GROUP } else { 0 }
    }
    /// Each hint from `hints`, or else from the protocol's parameters.
    pub fn path_hints(&self) -> PathHints {
        let here = self.hints;
        let by_name = self.protocol.hints();
        PathHints {
            rate: here.rate.or(by_name.rate),
            rtt: here.rtt.or(by_name.rtt),
            loss: here.loss.or(by_name.loss),
        }
    }
}
