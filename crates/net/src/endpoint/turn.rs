//! One turn of driving an endpoint: receive, run timers, send. Whoever holds the turn drives the endpoint: a thread, a
//! task, or briefly the application's own call.

use super::buffers::{Outbox, RECEIVED, Turn};
use super::shared::{Core, Shared};
use crate::socket::{Sent, Socket};
use narrows_base::Time;
use narrows_transport::connection::Transmit;
use std::task::Waker;

/// Datagrams in one send at most: the kernel's limit.
const SEGMENTS: usize = 64;

impl Outbox {
    /// Takes what the endpoint wants to send, as long as there are buffers.
    fn fill(&mut self, core: &mut Core, now: Time, segments: usize) {
        while let Some(index) = self.free.pop() {
            let Some(buffer) = self.buffers.get_mut(index) else { continue };
            match core.endpoint.transmit(now, buffer, segments) {
                Some(transmit) => self.ready.push_back((index, transmit)),
                None => {
                    self.free.push(index);
                    break;
                }
            }
        }
    }

    /// Sends what it holds; false if the socket is full.
    fn flush(&mut self, shared: &Shared, socket: &Socket) -> bool {
        while let Some((index, transmit)) = self.ready.front() {
            let bytes = self.buffers.get(*index).and_then(|b| b.get(..transmit.size));
            let Transmit { to, segment, ecn, .. } = *transmit;
            let sent = bytes.map_or(Sent::Gone, |b| socket.send(to, b, segment, ecn));
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

/// What is left to do after a turn.
pub(super) struct Next {
    /// When that was found.
    #[cfg_attr(not(feature = "runtime-tokio"), expect(dead_code))]
    pub now: Time,
    /// Nothing before this time, unless something comes or the application calls.
    pub due: Time,
    /// More may wait to be sent or received: no sleep.
    pub is_busy: bool,
    /// The socket is full: room is awaited.
    pub is_full: bool,
    /// The endpoint is closed, and its peers know.
    pub is_over: bool,
}

impl Turn {
    /// Receives what there is, at most a batch. False if nothing is left in the socket: with room left in the
    /// batch it is empty, or says so at the next wait.
    pub fn receive(&mut self) -> bool {
        self.is_drained = self.socket.receive(&mut self.batch) < RECEIVED;
        !self.is_drained
    }

    /// Hands what came to the endpoint, and calls what is due.
    fn take_in(&mut self, shared: &Shared, core: &mut Core) {
        let latest = &mut self.latest;
        self.batch.each(&shared.clock, true, |came| {
            *latest = came.at.max(*latest);
            if let Some(tap) = &shared.tap {
                tap.received(&came);
            }
            core.endpoint.receive(*latest, came.from, came.ecn, came.bytes);
        });
        for address in self.socket.refused() {
            core.endpoint.on_refused(address);
        }
        self.latest = shared.clock.now().max(self.latest);
        if core.endpoint.next_timeout() <= self.latest {
            core.endpoint.on_timeout(self.latest);
        }
        core.dispatch(self.latest);
    }

    /// Takes what is to leave; what remains to be done. With nothing more to do before a time, the driver
    /// counts as asleep from here on.
    fn put_out(&mut self, shared: &Shared, core: &mut Core) -> Next {
        let now = self.latest;
        core.latest = now;
        // What tasks have closed: its last figures are taken before what says that it is over.
        core.dispatch(now);
        self.outbox.fill(core, now, self.socket.segments().min(SEGMENTS));
        core.dispatch(now);
        self.socket.watch_refusals(core.endpoint.is_connecting());
        let is_left = core.leaving.is_some_and(|since| core.has_left(now, since));
        // With all buffers taken there may be more to send.
        let is_busy = !self.is_drained || self.outbox.free.is_empty();
        let due = core.next_timeout();
        if !is_busy {
            shared.will_sleep();
        }
        self.due = due;
        Next { now, due, is_busy, is_full: false, is_over: is_left && self.outbox.ready.is_empty() }
    }

    fn wake(&mut self) -> bool {
        let any = !self.woken.is_empty();
        self.woken.drain(..).for_each(Waker::wake);
        any
    }

    /// A whole turn behind [`receive`](Turn::receive).
    pub fn run(&mut self, shared: &Shared) -> Next {
        let mut next = {
            let mut core = shared.lock();
            self.take_in(shared, &mut core);
            let next = self.put_out(shared, &mut core);
            core.woken(&mut self.woken);
            next
        };
        self.wake();
        next.is_full = !self.outbox.flush(shared, &self.socket);
        next
    }

    /// Sends what an application's call has left, in that call, if that is all there is to do; false if the driver must
    /// see to the rest. `drivers_due` is until when the driver sleeps.
    pub fn run_in_call(&mut self, shared: &Shared) -> bool {
        let drivers_due = self.due;
        let mut next = {
            let mut core = shared.lock();
            if !core.endpoint.is_one_ready() || !self.outbox.ready.is_empty() {
                return false;
            }
            self.latest = shared.clock.now().max(self.latest);
            let next = self.put_out(shared, &mut core);
            core.woken(&mut self.woken);
            next
        };
        self.wake();
        next.is_full = !self.outbox.flush(shared, &self.socket);
        self.due = next.due.min(drivers_due);
        next.due >= drivers_due && !next.is_busy && !next.is_full && !next.is_over
    }

    /// The first half: whether somebody was woken by what came. Their answers may leave with the second half.
    #[cfg(feature = "runtime-tokio")]
    pub fn begin(&mut self, shared: &Shared) -> bool {
        {
            let mut core = shared.lock();
            self.take_in(shared, &mut core);
            core.woken(&mut self.woken);
        }
        self.has_paused = self.wake();
        self.has_paused
    }

    /// The second half, up to the sending.
    #[cfg(feature = "runtime-tokio")]
    pub fn end(&mut self, shared: &Shared) -> Next {
        if std::mem::take(&mut self.has_paused) {
            self.latest = shared.clock.now().max(self.latest);
        }
        let next = {
            let mut core = shared.lock();
            let next = self.put_out(shared, &mut core);
            core.woken(&mut self.woken);
            next
        };
        self.wake();
        next
    }

    /// Whether something waits for [`flush`](Turn::flush).
    #[cfg(feature = "runtime-tokio")]
    pub fn has_more(&self) -> bool {
        !self.outbox.ready.is_empty()
    }

    /// Sends; false if the socket is full.
    #[cfg(feature = "runtime-tokio")]
    pub fn flush(&mut self, shared: &Shared) -> bool {
        self.outbox.flush(shared, &self.socket)
    }
}
