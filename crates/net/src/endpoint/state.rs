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

/// Tasks that wait for one thing.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<Waker>);

impl Waiting {
    pub fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|w| w.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }
    /// All of them are to be woken.
    pub fn release(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.0);
    }
}

/// Where a connection is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Opening,
    Open,
    Over(Closed),
}

/// One connection, as the application sees it.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub stage: Stage,
    pub remote: SocketAddr,
    pub wanted: ServerKey,
    /// The peer's.
    pub key: Option<[u8; 32]>,
    /// Streams that the peer opened, not yet accepted: of both directions, of one.
    pub came: [VecDeque<u64>; 2],
    /// What can be asked when it has ended; none before it was asked or has ended.
    pub last: Option<Box<LastFigures>>,
    /// For being connected, and for the end.
    pub stages: Waiting,
    /// For streams of the peer, of both directions and of one.
    pub accepting: [WaitQueue; 2],
    /// For leave to open one.
    pub opening: Waiting,
    pub messages: WaitQueue,
    /// For messages, by `poll_message`: who polls may stop at any time, so all of them are woken.
    pub polling: Waiting,
    pub streams: StreamStates,
    /// What an ended connection's streams still hold.
    pub unread: BTreeMap<u64, UnreadBytes>,
    /// The stream of early data waits to be taken; whether it is finished.
    pub early: Option<bool>,
    /// Nobody holds it any more.
    pub abandoned: bool,
    /// Then it is closed at this time at the latest.
    pub until: Option<Time>,
}

/// Figures of a connection, kept beyond its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastFigures {
    pub stats: Stats,
    /// What it had learned of the path.
    pub learned: PathHints,
}

/// What came on a stream and was not read when its connection ended.
#[derive(Debug, Default)]
pub(super) struct UnreadBytes {
    pub bytes: VecDeque<u8>,
    /// Whether the stream's end had come too.
    pub whole: bool,
}

impl ConnectionState {
    pub fn new(remote: SocketAddr, wanted: ServerKey) -> ConnectionState {
        ConnectionState {
            stage: Stage::Opening,
            remote,
            wanted,
            key: None,
            came: [VecDeque::new(), VecDeque::new()],
            last: None,
            stages: Waiting::default(),
            accepting: Default::default(),
            opening: Waiting::default(),
            messages: WaitQueue::default(),
            polling: Waiting::default(),
            streams: StreamStates::default(),
            unread: BTreeMap::new(),
            early: None,
            abandoned: false,
            until: None,
        }
    }

    /// Its figures when they were last asked for, or at its end.
    pub fn last_figures(&self) -> LastFigures {
        self.last.as_deref().copied().unwrap_or_default()
    }

    /// Why nothing more can be done with it, if so.
    pub fn over(&self) -> Option<Error> {
        match &self.stage {
            Stage::Over(why) => Some(Error::closed(why, self.remote, self.wanted)),
            _ => None,
        }
    }
}

/// All that can still be read of a stream: at most what flow control let the peer send.
fn rest(connection: &mut Connection, id: u64) -> UnreadBytes {
    let (mut rest, mut piece) = (UnreadBytes::default(), [0; 4096]);
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

impl ConnectionState {
    /// Whatever is waited for here has come, or never will.
    pub fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        self.stages.release(woken);
        self.accepting.iter_mut().for_each(|a| a.release(usize::MAX, woken));
        self.opening.release(woken);
        self.messages.release(usize::MAX, woken);
        self.polling.release(woken);
        self.streams.wake_all(woken);
    }

    /// Its connection ends: what can still be read is kept, so that a peer that closes as soon as all
    /// has arrived does not take it back.
    pub fn keep(&mut self, connection: &mut Connection) {
        let figures = LastFigures { stats: connection.stats(), learned: connection.learned() };
        self.last = Some(Box::new(figures));
        for id in self.streams.read().chain(self.came.iter().flatten().copied()) {
            self.unread.insert(id, rest(connection, id));
        }
    }
}
