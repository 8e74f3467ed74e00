//! How a connection behaves, as its application wants it.

use super::announced;
use crate::Protocol;
use crate::streams::Limits;
use narrows_base::{Duration, Rate};
use narrows_congestion::{HintSource, PathHints};
use narrows_wire::ApplicationProtocols;
use std::sync::Arc;

/// How a connection behaves at this end.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Whose controller paces what this end sends: any of `rrtp`'s family or of media.
    pub protocol: Protocol,
    /// What is known of the path.
    pub hints: PathHints,
    /// Who says so: how much of it may be sent before anything was acknowledged.
    pub hint_source: HintSource,
    /// Never faster than this, whatever the controller says.
    pub rate_limit: Option<Rate>,
    /// Largest UDP payload, bytes: what path MTU discovery tries to reach.
    pub max_datagram: u16,
    /// UDP payload that every path is assumed to carry.
    pub first_datagram: u16,
    /// Gives up after so long without a packet of the peer; zero never.
    pub idle_timeout: Duration,
    /// Asks for a sign of life when nothing came for so long; zero never.
    pub keep_alive: Duration,
    /// What the peer may send at first.
    pub limits: Limits,
    /// Written and not yet arrived at most, bytes of all streams together.
    pub send_buffer: usize,
    /// Longest message that this end takes, bytes; 0 none.
    pub max_message: u16,
    /// Messages that wait to be read at most; the oldest goes.
    pub messages_held: usize,
    /// Whether a client's opening asks for the path's rate with three larger packets: for whoever will
    /// send more than it gets. Not where the rate is told.
    pub probes_rate: bool,
    /// Protocols in no list ([`Protocol::custom_media`]) that the peer may send with, known by their
    /// labels; on a server, also what it sends with for a client that sends with one. What this end
    /// itself sends with need not be here.
    pub custom: Arc<[Protocol]>,
    /// Which application protocols this end speaks, the one that it prefers first. A client and a server come
    /// together if they have one in common, or if both name none.
    pub applications: ApplicationProtocols,
}

impl ConnectionConfig {
    /// Whether this end knows what a peer announces: it can run its receiver side, if it has one.
    pub(crate) fn knows(&self, label: &str) -> bool {
        label.is_empty() || announced::find(label, &self.protocol, &self.custom).is_some()
    }
    /// What is known of the path, by itself or by the protocol's parameters.
    pub fn path_hints(&self) -> PathHints {
        let (here, by_name) = (self.hints, self.protocol.hints());
        PathHints {
            rate: here.rate.or(by_name.rate),
            rtt: here.rtt.or(by_name.rtt),
            loss: here.loss.or(by_name.loss),
        }
    }
}
