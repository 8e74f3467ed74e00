//! One connection as seen by the application: its stage, and the tasks that wait.

use super::stream_states::StreamStates;
use super::wait_queue::WaitQueue;
use crate::error::Error;
use narrows_base::Time;
use narrows_congestion::PathHints;
use narrows_transport::connection::{Closed, Connection, Stats};
use narrows_transport::endpoint::ServerKey;
use narrows_transport::streams::Read;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::task::Waker;

/// Tasks that wait for one event.
#[derive(Debug, Default)]
pub(super) struct WaitingTasks(Vec<Waker>);

impl WaitingTasks {
    pub fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|w| w.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }
    /// Moves all wakers to `woken`.
    pub fn release(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.0);
    }
}

/// How far a connection has come, for callers that wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ConnectionStage {
    Opening,
    Open,
    Over(Closed),
}

/// One connection, as the application sees it.
#[derive(Debug)]
pub(super) struct AppConnection {
    pub stage: ConnectionStage,
    pub remote: SocketAddr,
    pub wanted: ServerKey,
    /// The peer's static key.
    pub key: Option<[u8; 32]>,
    /// Streams that the peer opened, not yet accepted: bidirectional, unidirectional.
    pub opened_by_peer: [VecDeque<u64>; 2],
    /// Statistics after the end; absent before the first query or the end.
    pub last: Option<Box<LastFigures>>,
    /// Tasks that wait for the handshake, or for the end.
    pub stages: WaitingTasks,
    /// Tasks that accept streams: bidirectional, unidirectional.
    pub accepting: [WaitQueue; 2],
    /// Tasks that wait until the peer permits another stream.
    pub opening: WaitingTasks,
    pub messages: WaitQueue,
    /// Tasks of `poll_message`. A polling task may stop at any time, so all are woken.
    pub polling: WaitingTasks,
    pub streams: StreamStates,
    /// Unread data of an ended connection's streams.
    pub unread: BTreeMap<u64, UnreadBytes>,
    /// Whether the stream of early data is finished; `None` after it was taken.
    pub early: Option<bool>,
    /// Whether all handles were dropped.
    pub abandoned: bool,
    /// After that, the latest time of the close.
    pub until: Option<Time>,
}

/// Statistics of a connection, kept beyond its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastFigures {
    pub stats: Stats,
    /// Measurements of the path.
    pub learned: PathHints,
}

/// Data of a stream that was unread when the connection ended.
#[derive(Debug, Default)]
pub(super) struct UnreadBytes {
    pub bytes: VecDeque<u8>,
    /// Whether the stream's end had arrived too.
    pub whole: bool,
}

impl AppConnection {
    pub fn new(remote: SocketAddr, wanted: ServerKey) -> AppConnection {
        AppConnection {
            stage: ConnectionStage::Opening,
            remote,
            wanted,
            key: None,
            opened_by_peer: [VecDeque::new(), VecDeque::new()],
            last: None,
            stages: WaitingTasks::default(),
            accepting: Default::default(),
            opening: WaitingTasks::default(),
            messages: WaitQueue::default(),
            polling: WaitingTasks::default(),
            streams: StreamStates::default(),
            unread: BTreeMap::new(),
            early: None,
            abandoned: false,
            until: None,
        }
    }

    /// Statistics at the last query, or at the end.
    pub fn last_figures(&self) -> LastFigures {
        self.last.as_deref().copied().unwrap_or_default()
    }

    /// The error of further calls, if the connection is over.
    pub fn over(&self) -> Option<Error> {
        match &self.stage {
            ConnectionStage::Over(why) => Some(Error::closed(why, self.remote, self.wanted)),
            _ => None,
        }
    }
}

/// Reads all data of a stream that has arrived, which flow control limits.
fn rest(connection: &mut Connection, id: u64) -> UnreadBytes {
    let mut rest = UnreadBytes::default();
    let mut piece = [0; 4096];
    loop {
        match connection.read(id, &mut piece) {
            Ok(Read::Bytes(count)) => rest.bytes.extend(piece.iter().take(count)),
            Ok(Read::End) => {
                rest.whole = true;
                return rest;
            }
            Ok(Read::Blocked) | Err(_) => return rest,
        }
    }
}

impl AppConnection {
    /// Wakes all waiting tasks: their events have occurred, or never will.
    pub fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        self.stages.release(woken);
        self.accepting.iter_mut().for_each(|a| a.release(usize::MAX, woken));
        self.opening.release(woken);
        self.messages.release(usize::MAX, woken);
        self.polling.release(woken);
        self.streams.wake_all(woken);
    }

    /// Keeps the unread data of an ending connection: a peer may close as soon as all has arrived.
    pub fn keep(&mut self, connection: &mut Connection) {
        let figures = LastFigures { stats: connection.stats(), learned: connection.learned() };
        self.last = Some(Box::new(figures));
        for id in self.streams.read().chain(self.opened_by_peer.iter().flatten().copied()) {
            self.unread.insert(id, rest(connection, id));
        }
    }
}
