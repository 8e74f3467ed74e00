//! The state that an endpoint keeps for each connection: opening from either end, established, or ended with its reason
//! pending.

use super::accepting::Accepting;
use super::activity::Activity;
use super::connecting::Connecting;
use super::managed::ManagedConnection;
use super::share::Client;
use crate::connection::NewConnection;
use crate::connection::{Closed, Event};
use crate::handshake::FinishRepeat;
use narrows_base::Time;
use narrows_wire::Established;
use narrows_wire::packet::Nonce;
use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// FINISH, until something of the server opens.
pub(super) struct Finishing {
    pub(super) packet: Vec<u8>,
    pub(super) repeat: FinishRepeat,
    /// Gives up then.
    pub(super) until: Time,
}

/// EARLY-ECHO, until something of the client opens.
pub(super) struct EarlyAnswer {
    /// Of its EARLY-START.
    pub(super) nonce: Nonce,
    pub(super) packet: Vec<u8>,
    /// Where EARLY-START came from last.
    pub(super) to: SocketAddr,
    pub(super) is_wanted: bool,
    pub(super) answered: Option<Time>,
}

/// A connection with keys.
pub(super) struct Live<C> {
    pub(super) connection: C,
    /// Where the endpoint believes the peer to be: what `remotes` says.
    pub(super) remote: SocketAddr,
    /// What a RESET of the peer has to say.
    pub(super) token: Option<[u8; 16]>,
    /// Who the peer is to the sharing of places; none if this end opened the connection, or if it
    /// gave up its place.
    pub(super) client: Option<Client>,
    /// It gave up its place, and the application is to be told.
    pub(super) is_gone: bool,
    pub(super) activity: Activity,
    pub(super) since: Time,
    /// The peer's key, until the application was told.
    pub(super) connected: Option<[u8; 32]>,
    pub(super) finishing: Option<Box<Finishing>>,
    /// The server took early data, and does not know yet whether the client is there.
    pub(super) early: Option<Box<EarlyAnswer>>,
    /// The endpoint ended it for this reason.
    pub(super) over: Option<Closed>,
    /// The application was told of its end.
    pub(super) is_told: bool,
}

/// What a slot holds.
pub(super) enum ConnectionState<C> {
    Connecting(Box<Connecting>),
    Accepting(Box<Accepting>),
    Live(Box<Live<C>>),
    /// An attempt that failed, until the application was told.
    Over(Closed),
}

impl<C: ManagedConnection> Live<C> {
    /// A connection begins.
    pub(super) fn begin(
        now: Time,
        beginning: NewConnection<'_>,
        finishing: Option<Box<Finishing>>,
        client: Option<Client>,
    ) -> Result<Live<C>, Closed> {
        let Established { key, ref peer, .. } = beginning.established;
        let (token, remote) = (peer.params.reset_token, beginning.remote);
        let controller = beginning.config.protocol.label().to_string();
        let connection = catch_unwind(AssertUnwindSafe(|| C::begin(now, beginning)))
            .map_err(|panic| panicked(controller, &*panic))?;
        Ok(Live {
            connection,
            remote,
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

    /// Does something with the connection, unless it is over. If that panics (a congestion controller
    /// may be anybody's), the connection ends here and is not touched any more: it could be half
    /// changed, and must not seal a packet number twice.
    #[inline]
    pub(super) fn guarded<R>(&mut self, act: impl FnOnce(&mut C) -> R) -> Option<R> {
        if self.over.is_some() {
            return None;
        }
        self.inspected(act)
    }

    /// The same, also if the endpoint has ended it; but never after a panic.
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

    /// The endpoint's own words come around the connection's: how it began, and how it ended if the
    /// connection does not say.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        if self.is_told {
            return None;
        }
        if let Some(key) = self.connected.take() {
            return Some(Event::Connected(key));
        }
        loop {
            match self.guarded(C::event).flatten() {
                Some(Event::Connected(_)) => {}
                Some(Event::Closed(why)) => {
                    self.is_told = true;
                    return Some(Event::Closed(why));
                }
                Some(event) => return Some(event),
                None => break,
            }
        }
        let is_drained = self.over.is_none() && self.connection.is_drained();
        let why = self.over.clone().or_else(|| is_drained.then_some(Closed::Locally))?;
        self.is_told = true;
        Some(Event::Closed(why))
    }
}

/// What a panic means to the application.
fn panicked(controller: String, panic: &(dyn Any + Send)) -> Closed {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Closed::Panicked { controller, message: text.unwrap_or_default().to_string() }
}

/// When it wants to be woken.
pub(super) fn due<C: ManagedConnection>(content: &mut ConnectionState<C>) -> Time {
    match content {
        ConnectionState::Connecting(connecting) => connecting.due(),
        ConnectionState::Accepting(accepting) => accepting.until(),
        ConnectionState::Live(live) if live.over.is_none() => {
            let finish =
                live.finishing.as_ref().map_or(Time::NEVER, |f| f.repeat.due().min(f.until));
            finish.min(live.guarded(|c| c.next_timeout()).unwrap_or(Time::NEVER))
        }
        ConnectionState::Live(_) | ConnectionState::Over(_) => Time::NEVER,
    }
}
