//! The state of each connection of an endpoint: opening from either end, established, or ended with its reason pending.

use super::accepting::Accepting;
use super::activity::Activity;
use super::connecting::Connecting;
use super::managed::ManagedConnection;
use super::share::CountedClient;
use super::tries::Progress;
use crate::connection::NewConnection;
use crate::connection::{Closed, ConnectionEvent};
use narrows_base::Time;
use narrows_recovery::handshake::{FinishRepeat, PacketPair};
use narrows_wire::packet::Nonce;
use narrows_wire::{ConnectionId, Established};
use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// FINISH, repeated until a packet of the server opens.
pub(super) struct Finishing {
    pub(super) packet: Vec<u8>,
    pub(super) repeat: FinishRepeat,
    /// Nonce of the probes, and their measurement.
    pub(super) probes: (Nonce, PacketPair),
    pub(super) progress: Progress,
}

/// EARLY-ECHO, repeated on request until a packet of the client opens.
pub(super) struct EarlyAnswer {
    /// Nonce of the EARLY-START.
    pub(super) nonce: Nonce,
    pub(super) packet: Vec<u8>,
    /// Address of the last EARLY-START.
    pub(super) to: SocketAddr,
    pub(super) is_wanted: bool,
    pub(super) answered: Option<Time>,
}

/// A connection with keys.
pub(super) struct LiveConnection<C> {
    pub(super) connection: C,
    /// The peer's address, as in `remotes`.
    pub(super) remote: SocketAddr,
    /// This end's connection IDs of its further paths.
    pub(super) path_ids: Vec<ConnectionId>,
    /// Token of a valid RESET, from the peer's parameters.
    pub(super) token: Option<[u8; 16]>,
    /// The client as counted in the sharing of places. Absent if this end opened the connection, or after it gave up
    /// its place.
    pub(super) client: Option<CountedClient>,
    /// Whether it gave up its place.
    pub(super) is_gone: bool,
    pub(super) activity: Activity,
    pub(super) since: Time,
    /// The peer's key, until `Connected` is reported.
    pub(super) connected: Option<[u8; 32]>,
    pub(super) finishing: Option<Box<Finishing>>,
    /// Present at a server that accepted early data, until a packet of the client opens.
    pub(super) early: Option<Box<EarlyAnswer>>,
    /// The reason, if the endpoint ended the connection.
    pub(super) over: Option<Closed>,
    /// Whether `Closed` was reported to the application.
    pub(super) is_told: bool,
}

/// Content of a slot.
pub(super) enum ConnectionState<C> {
    Connecting(Box<Connecting>),
    Accepting(Box<Accepting>),
    Live(Box<LiveConnection<C>>),
    /// A failed attempt, until that is reported to the application.
    Over(Closed),
}

impl<C: ManagedConnection> LiveConnection<C> {
    /// Begins a connection.
    pub(super) fn begin(
        now: Time,
        beginning: NewConnection<'_>,
        finishing: Option<Box<Finishing>>,
        client: Option<CountedClient>,
    ) -> Result<LiveConnection<C>, Closed> {
        let Established { key, ref peer, .. } = beginning.established;
        let token = peer.params.reset_token;
        let remote = beginning.remote;
        let controller = beginning.config.protocol.label().to_string();
        let connection = catch_unwind(AssertUnwindSafe(|| C::begin(now, beginning)))
            .map_err(|panic| panicked(controller, &*panic))?;
        Ok(LiveConnection {
            connection,
            remote,
            path_ids: Vec::new(),
            token,
            client,
            is_gone: false,
            activity: Activity::new(now),
            since: now,
            connected: Some(key),
            finishing,
            early: None,
            over: None,
            is_told: false,
        })
    }

    /// Passes on the dispersion of the probes if their replies are complete.
    pub(super) fn on_dispersion(&mut self, now: Time) {
        let dispersion = self.finishing.as_mut().and_then(|finishing| finishing.probes.1.take());
        if let Some(dispersion) = dispersion {
            self.guarded(|connection| connection.on_dispersion(now, &dispersion));
        }
    }

    /// Calls `act` on the connection, unless it is over. If that panics, as a custom congestion controller may, the
    /// connection ends here and is never called again. Its state may be inconsistent, and it must not seal a packet
    /// number twice.
    #[inline]
    pub(super) fn guarded<R>(&mut self, act: impl FnOnce(&mut C) -> R) -> Option<R> {
        if self.over.is_some() {
            return None;
        }
        self.inspected(act)
    }

    /// As `guarded`, also if the endpoint has ended the connection; but never after a panic.
    #[inline]
    pub(super) fn inspected<R>(&mut self, act: impl FnOnce(&mut C) -> R) -> Option<R> {
        if matches!(self.over, Some(Closed::Panicked { .. })) {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(|| act(&mut self.connection))) {
            Ok(result) => Some(result),
            Err(panic) => {
                let label =
                    catch_unwind(AssertUnwindSafe(|| self.connection.protocol().to_string()));
                self.over = Some(panicked(label.unwrap_or_default(), &*panic));
                self.finishing = None;
                None
            }
        }
    }

    /// The next event. The endpoint's own events surround the connection's: `Connected` is the first, and `Closed` the
    /// last if the connection does not report it.
    pub(super) fn next_event(&mut self) -> Option<ConnectionEvent> {
        if self.is_told {
            return None;
        }
        if let Some(key) = self.connected.take() {
            return Some(ConnectionEvent::Connected(key));
        }
        loop {
            match self.guarded(C::event).flatten() {
                Some(ConnectionEvent::Connected(_)) => {}
                Some(ConnectionEvent::Closed(why)) => {
                    self.is_told = true;
                    return Some(ConnectionEvent::Closed(why));
                }
                Some(event) => return Some(event),
                None => break,
            }
        }
        let is_drained = self.over.is_none() && self.connection.is_drained();
        let why = self.over.clone().or_else(|| is_drained.then_some(Closed::Locally))?;
        self.is_told = true;
        Some(ConnectionEvent::Closed(why))
    }
}

/// The event for a panic.
fn panicked(controller: String, panic: &(dyn Any + Send)) -> Closed {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Closed::Panicked { controller, message: text.unwrap_or_default().to_string() }
}

/// When the content needs to be woken.
pub(super) fn due<C: ManagedConnection>(content: &mut ConnectionState<C>) -> Time {
    match content {
        ConnectionState::Connecting(connecting) => connecting.due(),
        ConnectionState::Accepting(accepting) => accepting.until,
        ConnectionState::Live(live) if live.over.is_none() => {
            let finish = live
                .finishing
                .as_ref()
                .map_or(Time::NEVER, |f| f.repeat.due().min(f.progress.until));
            finish.min(live.guarded(|c| c.next_timeout()).unwrap_or(Time::NEVER))
        }
        ConnectionState::Live(_) | ConnectionState::Over(_) => Time::NEVER,
    }
}
