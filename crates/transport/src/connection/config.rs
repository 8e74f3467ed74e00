//! The configuration of a connection.

use super::announced;
use crate::Protocol;
use crate::streams::Limits;
use narrows_base::{Duration, Rate};
use narrows_congestion::{HintSource, PathHints};
use narrows_wire::ApplicationProtocols;
use std::sync::Arc;

/// The configuration of a connection at this end.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The protocol, whose controller limits what this end sends: one of the `rrtp` family or for
    /// media.
    pub protocol: Protocol,
    /// What is known about the path.
    pub hints: PathHints,
    /// The source of `hints`, which decides how much may be sent before anything is acknowledged.
    pub hint_source: HintSource,
    /// Upper limit on the sending rate, whatever the controller says.
    pub rate_limit: Option<Rate>,
    /// The largest UDP payload in bytes that path MTU discovery tries.
    pub max_datagram: u16,
    /// UDP payload in bytes that every path is assumed to carry.
    pub first_datagram: u16,
    /// The connection ends if no packet of the peer arrives for this long; zero for never.
    pub idle_timeout: Duration,
    /// Sends a PING if nothing arrived for this long; zero for never.
    pub keep_alive: Duration,
    /// Initial flow-control limits for the peer.
    pub limits: Limits,
    /// Limit on bytes written and not yet acknowledged, over all streams.
    pub send_buffer: usize,
    /// Bytes that a stream sends before the next one of its priority has its turn; with 0 they take turns packet by packet.
    /// A turn as long as an answer lets several answers arrive one after the other instead of all at last.
    pub turn_bytes: u64,
    /// Longest message in bytes that this end accepts; 0 for none.
    pub max_message: u16,
    /// Limit on received messages that wait to be read; the oldest is dropped.
    pub messages_held: usize,
    /// Whether a client's handshake probes the path's rate with three larger packets: for clients that will send more
    /// than they receive. Not done if the rate is known from hints.
    pub probes_rate: bool,
    /// Unlisted protocols ([`Protocol::custom_media`]) that the peer may announce, identified by their labels; a server
    /// also uses them for sending to a client that announces one. The protocol of this end's own sending need not be
    /// included.
    pub custom: Arc<[Protocol]>,
    /// Application protocols of this end, in order of preference. A client and a server can connect if they have one in
    /// common, or if both name none.
    pub applications: ApplicationProtocols,
}

impl ConnectionConfig {
    /// Whether this end knows the protocol with this label, and so can run its receiver side.
    pub(crate) fn knows(&self, label: &str) -> bool {
        label.is_empty() || announced::find(label, &self.protocol, &self.custom).is_some()
    }
    /// What this end says of repair packets in the handshake: how many packets it keeps to rebuild others.
    pub(crate) fn repair(&self) -> u64 {
        if self.protocol.datagram().repair { super::repair::MAX_GROUP } else { 0 }
    }
    /// What is known about the path, from `hints` or from the protocol's parameters.
    pub fn path_hints(&self) -> PathHints {
        let (here, by_name) = (self.hints, self.protocol.hints());
        PathHints {
            rate: here.rate.or(by_name.rate),
            rtt: here.rtt.or(by_name.rtt),
            loss: here.loss.or(by_name.loss),
        }
    }
}
