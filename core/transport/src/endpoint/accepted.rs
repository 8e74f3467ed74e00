//! The end of a handshake at the server: the check of the client, and the start of its connection.

use super::accepting::{Accepting, StartProof};
use super::admission::{BUSY, NOT_LISTED};
use super::connection_state::{ConnectionState, LiveConnection};
use super::connections::Connections;
use super::managed::ManagedConnection;
use super::share::CountedClient;
use super::{Decision, IncomingClient};
use crate::connection::{NO_COMMON_PROTOCOL, NewConnection, UNKNOWN_PROTOCOL, refusal};
use crate::streams::Side;
use narrows_base::Time;
use narrows_wire::noise::PublicKey;
use narrows_wire::{Established, Params, VERSION};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Limit on an application's reason, in bytes.
const MAX_REFUSAL: usize = 128;

/// Result of the check of a client.
pub(super) enum ClientVerdict {
    /// Its connection begins if there is a place.
    Accept(CountedClient),
    /// It gets this CLOSE.
    Refuse(u64, Cow<'static, str>),
    /// It gets no reply.
    Ignore,
}

/// Truncates an application's reason. A refusal is then no longer than three times the shortest FINISH.
fn bounded(mut reason: String) -> String {
    let most = (0..=MAX_REFUSAL).rev().find(|at| reason.is_char_boundary(*at));
    reason.truncate(most.unwrap_or(0));
    reason
}

impl<C: ManagedConnection> Connections<C> {
    /// Checks whether a client with this key and these parameters may connect.
    pub(super) fn judge(
        &self,
        from: SocketAddr,
        key: &PublicKey,
        params: &Params,
    ) -> ClientVerdict {
        if !self.permits(key) {
            let (code, reason) = NOT_LISTED;
            return ClientVerdict::Refuse(code, reason.into());
        }
        // Version downgrade: both ends support a better version.
        if params.offered.is_some_and(|v| v != VERSION && self.speaks.contains(&v)) {
            return ClientVerdict::Refuse(5, "both ends speak a better version".into());
        }
        if !self.config.connection.knows(&params.controller) {
            let why = "the protocol that this client sends with is unknown here";
            return ClientVerdict::Refuse(UNKNOWN_PROTOCOL, why.into());
        }
        let spoken = &self.config.connection.applications;
        let offered = &params.applications;
        let Ok(application) = spoken.agree(offered) else {
            return ClientVerdict::Refuse(NO_COMMON_PROTOCOL, refusal(offered, spoken).into());
        };
        let client = self.client(from, *key);
        let is_listed = client.is_listed;
        let incoming = IncomingClient { remote: from, key, is_listed, application };
        match self.config.filter.decide(&incoming) {
            Decision::Refuse(reason) => ClientVerdict::Refuse(4, bounded(reason).into()),
            Decision::Ignore => ClientVerdict::Ignore,
            Decision::Accept => ClientVerdict::Accept(client),
        }
    }

    /// Handles a valid FINISH.
    pub(super) fn on_proven(&mut self, now: Time, slot: u32, established: Established) {
        let seed = self.draw();
        let Some(mut accepting) = self.take_accepting(slot) else { return };
        let verdict = match self.judge(accepting.from, &established.key, &established.peer.params) {
            ClientVerdict::Accept(client) if !self.make_room(now, &client) => {
                let why = "busy: there is no room for another client now";
                ClientVerdict::Refuse(BUSY, why.into())
            }
            other => other,
        };
        let client = match verdict {
            ClientVerdict::Accept(client) => client,
            ClientVerdict::Refuse(code, why) => {
                self.config.filter.on_refused(accepting.from, &established.key, &why);
                accepting.refuse(now, established, code, &why);
                self.put_back(slot, ConnectionState::Accepting(accepting));
                return self.urge(slot);
            }
            ClientVerdict::Ignore => {
                accepting.ignore(now);
                self.put_back(slot, ConnectionState::Accepting(accepting));
                return self.rearm(slot);
            }
        };
        let remote = accepting.from;
        let rtt = accepting.sample(now);
        self.gate.leave(accepting.proof);
        let token = self.gate.token(now, remote.ip(), &mut *self.entropy);
        let own = &self.config.connection;
        let wanted = self.config.permit.config(&established.peer.params.controller, own);
        let beginning = NewConnection {
            side: Side::Server,
            config: wanted.as_ref().unwrap_or(own),
            hello: &accepting.hello,
            established,
            remote,
            rtt,
            max_rtt: now.since(accepting.born),
            without_syn: accepting.proof != StartProof::Cookie,
            token: Some(token),
            early: None,
            seed,
        };
        match LiveConnection::begin(now, beginning, None, Some(client)) {
            Ok(live) => {
                self.remotes.insert((remote, slot));
                self.count_client(&live);
                self.put_back(slot, ConnectionState::Live(Box::new(live)));
            }
            Err(why) => self.put_back(slot, ConnectionState::Over(why)),
        }
        self.touch(slot);
        for (ecn, mut datagram) in accepting.overtaken {
            self.on_short(now, remote, ecn, &mut datagram);
        }
    }

    fn take_accepting(&mut self, slot: u32) -> Option<Box<Accepting>> {
        let s = self.table.get(slot)?;
        match s.content.take() {
            Some(ConnectionState::Accepting(accepting)) => Some(accepting),
            other => {
                s.content = other;
                None
            }
        }
    }
    fn put_back(&mut self, slot: u32, content: ConnectionState<C>) {
        if let Some(s) = self.table.get(slot) {
            s.content = Some(content);
        }
    }
}
