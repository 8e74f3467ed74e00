//! What a driver keeps between turns: received datagrams, and those that wait for room in the
//! socket.

use crate::socket::{Batch, MAX_DATAGRAM, Socket};
use narrows_base::Time;
use narrows_transport::connection::Transmit;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// Buffers of 64 KB that one receive fills at most. Each holds what one connection sent in a row: with
/// eight, a hundred connections kept 20 ms of packets waiting in the socket.
pub(super) const RECEIVED: usize = 32;
/// Buffers that are sent in a row.
const SENT: usize = 8;

/// What waits for room in the socket.
pub(super) struct Outbox {
    pub buffers: Vec<Vec<u8>>,
    pub free: Vec<usize>,
    pub ready: VecDeque<(usize, Transmit)>,
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            buffers: (0..SENT).map(|_| vec![0; MAX_DATAGRAM]).collect(),
            free: (0..SENT).rev().collect(),
            ready: VecDeque::new(),
        }
    }
}

/// What a driver needs from turn to turn.
pub(super) struct Turn {
    pub socket: Arc<Socket>,
    pub batch: Batch,
    pub outbox: Outbox,
    /// Tasks to wake once the core is unlocked.
    pub woken: Vec<Waker>,
    /// The latest time passed to the endpoint: receive time stamps may be earlier.
    pub latest: Time,
    /// Whether the last receive emptied the socket.
    pub is_drained: bool,
    /// Until when the driver sleeps.
    pub due: Time,
    /// Tasks ran since `latest`.
    #[cfg(feature = "runtime-tokio")]
    pub has_paused: bool,
}

impl Turn {
    pub fn new(socket: Arc<Socket>) -> Turn {
        Turn {
            socket,
            batch: Batch::new(RECEIVED),
            outbox: Outbox::new(),
            woken: Vec::new(),
            latest: Time::ZERO,
            is_drained: true,
            due: Time::ZERO,
            #[cfg(feature = "runtime-tokio")]
            has_paused: false,
        }
    }
}
