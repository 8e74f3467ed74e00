//! The thread that drives an endpoint: receive, timers, send, wait.

use super::shared::Shared;
use crate::socket::{Batch, MAX_DATAGRAM, Sent};
use crate::wait::exact_timers;
use narrows_base::Time;
use narrows_transport::connection::Transmit;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// Buffers of 64 KB that one receive fills at most. Each holds what one connection sent in a row: with
/// eight, a hundred connections kept 20 ms of packets waiting in the socket.
const RECEIVED: usize = 32;
/// Buffers that are sent in a row.
const SENT: usize = 8;
/// Datagrams in one send at most: the kernel's limit.
const SEGMENTS: usize = 64;

/// What waits for room in the socket.
struct Outbox {
    buffers: Vec<Vec<u8>>,
    free: Vec<usize>,
    ready: VecDeque<(usize, Transmit)>,
}

impl Outbox {
    fn new() -> Outbox {
        Outbox {
            buffers: (0..SENT).map(|_| vec![0; MAX_DATAGRAM]).collect(),
            free: (0..SENT).collect(),
            ready: VecDeque::new(),
        }
    }

    /// Sends what it holds; false if the socket is full.
    fn flush(&mut self, shared: &Shared) -> bool {
        while let Some((index, transmit)) = self.ready.front() {
            let bytes = self.buffers.get(*index).and_then(|b| b.get(..transmit.size));
            let Transmit { to, segment, ecn, .. } = *transmit;
            let sent = bytes.map_or(Sent::Gone, |b| shared.socket.send(to, b, segment, ecn));
            if sent == Sent::Full {
                return false;
            }
            if let (Some(tap), Some(bytes)) = (&shared.tap, bytes) {
                tap.sent(shared.clock.now(), transmit, bytes);
            }
            self.free.push(*index);
            self.ready.pop_front();
        }
        true
    }
}

/// Says that the driver has ended, even if it did by a panic, so that nobody waits for ever.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut woken = Vec::new();
        {
            let mut core = self.0.lock();
            core.end();
            core.woken(&mut woken);
        }
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Runs until the endpoint is closed and its peers know.
pub(super) fn run(shared: Arc<Shared>) {
    exact_timers();
    let ending = Ending(shared);
    let shared = &*ending.0;
    let mut batch = Batch::new(RECEIVED);
    let mut outbox = Outbox::new();
    let mut woken: Vec<Waker> = Vec::new();
    // The latest time that the endpoint was told: time stamps may lie before it.
    let mut told = Time::ZERO;
    loop {
        let received = shared.socket.receive(&mut batch);
        // With room left in the batch the socket is empty, or says so at the next wait.
        let mut quiet = received < RECEIVED;
        let mut due = Time::NEVER;
        {
            let mut core = shared.lock();
            batch.each(&shared.clock, true, |came| {
                told = told.max(came.at);
                if let Some(tap) = &shared.tap {
                    tap.received(&came);
                }
                core.endpoint.receive(told, came.from, came.ecn, came.bytes);
            });
            let now = shared.clock.now().max(told);
            told = now;
            if core.endpoint.next_timeout() <= now {
                core.endpoint.on_timeout(now);
            }
            core.dispatch(now);
            let segments = shared.socket.segments().min(SEGMENTS);
            while let Some(index) = outbox.free.pop() {
                let Some(buffer) = outbox.buffers.get_mut(index) else { continue };
                match core.endpoint.transmit(now, buffer, segments) {
                    Some(transmit) => outbox.ready.push_back((index, transmit)),
                    None => {
                        outbox.free.push(index);
                        break;
                    }
                }
            }
            // With all buffers taken there may be more to send.
            quiet &= !outbox.free.is_empty();
            core.dispatch(now);
            core.woken(&mut woken);
            if core.leaving.is_some_and(|since| core.has_left(now, since))
                && outbox.ready.is_empty()
            {
                break;
            }
            if quiet {
                due = core.next_timeout();
                shared.will_sleep();
            }
        }
        woken.drain(..).for_each(Waker::wake);
        let flushed = outbox.flush(shared);
        if quiet || !flushed {
            if !quiet {
                due = shared.lock().next_timeout();
            }
            shared.sleep(due, !flushed);
        }
    }
}
