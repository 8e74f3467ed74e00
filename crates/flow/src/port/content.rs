//! What a port keeps for each connection: one that is being opened from either end, one that lives,
//! or the news of its end.

use super::conversation::{Beginning, Conversation};
use super::door::Answering;
use super::opening::{Opening, Repeat};
use crate::connection::{Closed, Event};
use narrows_base::Time;
use narrows_wire::Established;
use std::net::SocketAddr;

/// FINISH, until something of the server opens.
pub(super) struct Finishing {
    pub(super) packet: Vec<u8>,
    pub(super) repeat: Repeat,
    /// Gives up then.
    pub(super) until: Time,
}

/// A connection with keys.
pub(super) struct Live<C> {
    pub(super) connection: C,
    /// Where the port believes the peer to be: what `remotes` says.
    pub(super) remote: SocketAddr,
    /// What a RESET of the peer has to say.
    pub(super) token: Option<[u8; 16]>,
    /// The peer's key, until the application was told.
    pub(super) connected: Option<[u8; 32]>,
    pub(super) finishing: Option<Box<Finishing>>,
    /// The port ended it for this reason.
    pub(super) over: Option<Closed>,
    /// The application was told of its end.
    pub(super) is_told: bool,
}

/// What a slot holds.
pub(super) enum Content<C> {
    Opening(Box<Opening>),
    Answering(Box<Answering>),
    Live(Box<Live<C>>),
    /// An attempt that failed, until the application was told.
    Over(Closed),
}

impl<C: Conversation> Live<C> {
    /// A connection begins.
    pub(super) fn begin(
        now: Time,
        beginning: Beginning<'_>,
        finishing: Option<Box<Finishing>>,
    ) -> Live<C> {
        let Established { key, ref peer, .. } = beginning.established;
        let (token, remote) = (peer.params.reset_token, beginning.remote);
        Live {
            connection: C::begin(now, beginning),
            remote,
            token,
            connected: Some(key),
            finishing,
            over: None,
            is_told: false,
        }
    }

    /// The port's own words come around the connection's: how it began, and how it ended if the
    /// connection does not say.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        if self.is_told {
            return None;
        }
        if let Some(key) = self.connected.take() {
            return Some(Event::Connected(key));
        }
        loop {
            match self.connection.event() {
                Some(Event::Connected(_)) => {}
                Some(Event::Closed(why)) => {
                    self.is_told = true;
                    return Some(Event::Closed(why));
                }
                Some(event) => return Some(event),
                None => break,
            }
        }
        let is_drained = self.connection.is_drained();
        let why = self.over.clone().or_else(|| is_drained.then_some(Closed::Locally))?;
        self.is_told = true;
        Some(Event::Closed(why))
    }
}

/// When it wants to be woken.
pub(super) fn due<C: Conversation>(content: &Content<C>) -> Time {
    match content {
        Content::Opening(opening) => opening.due(),
        Content::Answering(answering) => answering.until(),
        Content::Live(live) if live.over.is_none() => {
            let finish = live.finishing.as_ref().map_or(Time::NEVER, |f| f.repeat.due.min(f.until));
            finish.min(live.connection.next_due())
        }
        Content::Live(_) | Content::Over(_) => Time::NEVER,
    }
}
