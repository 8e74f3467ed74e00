//! Buffers of a driver between turns: received datagrams, and datagrams that wait for space in the socket.

use crate::socket::{MAX_DATAGRAM, ReceiveBatch, Socket};
use narrows_base::Time;
use narrows_transport::connection::Transmit;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// Most 64 KB buffers that one receive fills. Each holds consecutive datagrams of one connection: with eight, a hundred
/// connections kept 20 ms of packets waiting in the socket.
pub(super) const RECEIVED: usize = 32;
/// Buffers that are sent in a row.
const SENT: usize = 8;

/// The same for each further socket, which has one connection.
const RECEIVED_FURTHER: usize = 8;

/// The socket of a further path.
pub(super) struct FurtherSocket {
    pub socket: Arc<Socket>,
    pub batch: ReceiveBatch,
}

impl FurtherSocket {
    fn new(socket: Arc<Socket>) -> FurtherSocket {
        FurtherSocket { socket, batch: ReceiveBatch::new(RECEIVED_FURTHER) }
    }
    /// Receives at most a batch. Returns whether the socket is drained.
    pub fn receive(&mut self) -> bool {
        self.socket.receive(&mut self.batch) < RECEIVED_FURTHER
    }
}

/// Datagrams that wait for space in the socket.
pub(super) struct DatagramOutbox {
    pub buffers: Vec<Vec<u8>>,
    pub free: Vec<usize>,
    pub ready: VecDeque<(usize, Transmit)>,
}

impl DatagramOutbox {
    pub fn new() -> DatagramOutbox {
        DatagramOutbox {
            buffers: (0..SENT).map(|_| vec![0; MAX_DATAGRAM]).collect(),
            free: (0..SENT).rev().collect(),
            ready: VecDeque::new(),
        }
    }
}

/// A driver's state between turns.
pub(super) struct TurnBuffers {
    pub socket: Arc<Socket>,
    pub batch: ReceiveBatch,
    /// Sockets of further paths.
    pub further: Vec<FurtherSocket>,
    pub outbox: DatagramOutbox,
    /// Tasks to wake once the core is unlocked.
    pub woken: Vec<Waker>,
    /// The latest time passed to the endpoint: receive time stamps may be earlier.
    pub latest: Time,
    /// Whether the last receive emptied the socket.
    pub is_drained: bool,
    /// When the driver's sleep ends.
    pub due: Time,
    /// Whether tasks ran since `latest`.
    #[cfg(feature = "runtime-tokio")]
    pub has_paused: bool,
}

impl TurnBuffers {
    /// Replaces the socket of a path, or adds the one of the next path.
    pub fn replace(&mut self, path: usize, socket: Arc<Socket>) {
        let Some(place) = path.checked_sub(1) else {
            self.socket = socket;
            return;
        };
        match self.further.get_mut(place) {
            Some(further) => further.socket = socket,
            None => self.further.push(FurtherSocket::new(socket)),
        }
    }
    pub fn new(socket: Arc<Socket>, further: &[Arc<Socket>]) -> TurnBuffers {
        TurnBuffers {
            socket,
            batch: ReceiveBatch::new(RECEIVED),
            further: further.iter().cloned().map(FurtherSocket::new).collect(),
            outbox: DatagramOutbox::new(),
            woken: Vec::new(),
            latest: Time::ZERO,
            is_drained: true,
            due: Time::ZERO,
            #[cfg(feature = "runtime-tokio")]
            has_paused: false,
        }
    }
}
