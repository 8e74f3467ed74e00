//! One turn of driving an endpoint: receive, run timers, send. The holder of the turn drives the endpoint: a thread, a
//! task, or briefly the application's own call.

use super::buffers::{DatagramOutbox, FurtherSocket, RECEIVED, TurnBuffers};
use super::shared::{Core, EndpointShared};
use crate::socket::{RefusedDatagram, SendResult, Socket};
use narrows_base::Time;
use narrows_transport::connection::Transmit;
use std::task::Waker;

/// Most datagrams in one send: the kernel's limit.
const SEGMENTS: usize = 64;

impl DatagramOutbox {
    /// Takes packets from the endpoint as long as there are free buffers.
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

    /// Sends the filled buffers; false if the first socket is full. If the socket of a further path is full, its
    /// datagrams are dropped: they must not delay those of other paths.
    fn flush(
        &mut self,
        shared: &EndpointShared,
        first: &Socket,
        further: &[FurtherSocket],
    ) -> bool {
        while let Some((index, transmit)) = self.ready.front() {
            let bytes = self.buffers.get(*index).and_then(|b| b.get(..transmit.size));
            let Transmit { to, segment, ecn, .. } = *transmit;
            let place = usize::from(transmit.socket).checked_sub(1);
            let other = place.and_then(|place| further.get(place));
            let socket = other.map_or(first, |further| &further.socket);
            let sent = bytes.map_or(SendResult::Gone, |b| socket.send(to, b, segment, ecn));
            if sent == SendResult::Full && other.is_none() {
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

/// Work that is left after a turn.
pub(super) struct PendingWork {
    /// Time of the turn.
    #[cfg_attr(not(feature = "runtime-tokio"), expect(dead_code))]
    pub now: Time,
    /// Time of the next turn, unless a packet arrives or the application calls.
    pub due: Time,
    /// More packets may wait to be sent or received: no sleep.
    pub is_busy: bool,
    /// The socket is full: wait until it is writable.
    pub is_full: bool,
    /// The endpoint is closed, and its peers are informed.
    pub is_over: bool,
}

impl TurnBuffers {
    /// Receives at most a batch. False if the socket is drained: a batch that is not full either emptied it, or the
    /// next wait returns at once.
    pub fn receive(&mut self) -> bool {
        self.is_drained = self.socket.receive(&mut self.batch) < RECEIVED;
        for further in &mut self.further {
            self.is_drained &= further.receive();
        }
        !self.is_drained
    }

    /// Passes received datagrams to the endpoint, and runs its timers.
    fn take_in(&mut self, shared: &EndpointShared, core: &mut Core) {
        let latest = &mut self.latest;
        let further = self.further.iter_mut().map(|further| &mut further.batch);
        for batch in std::iter::once(&mut self.batch).chain(further) {
            batch.each(&shared.clock, true, |datagram| {
                *latest = datagram.at.max(*latest);
                if let Some(tap) = &shared.tap {
                    tap.received(&datagram);
                }
                core.endpoint.receive(*latest, datagram.from, datagram.ecn, datagram.bytes);
            });
        }
        self.latest = shared.clock.now().max(self.latest);
        for RefusedDatagram { to, quoted } in self.socket.refused() {
            core.endpoint.on_refused(self.latest, to, &quoted);
        }
        if core.endpoint.next_timeout() <= self.latest {
            core.endpoint.on_timeout(self.latest);
        }
        core.dispatch(self.latest);
    }

    /// Takes the packets to send; returns the remaining work. If that has to wait, the driver counts as asleep from
    /// here on.
    fn put_out(&mut self, shared: &EndpointShared, core: &mut Core) -> PendingWork {
        let now = self.latest;
        core.latest = now;
        // Keep the last statistics of connections that tasks have closed, before the endpoint reports their end.
        core.dispatch(now);
        self.outbox.fill(core, now, self.socket.segments().min(SEGMENTS));
        core.dispatch(now);
        self.socket.watch_refusals(core.endpoint.is_connecting());
        let is_left = core.leaving.is_some_and(|since| core.has_left(now, since));
        // If all buffers are used, there may be more to send.
        let is_busy = !self.is_drained || self.outbox.free.is_empty();
        let due = core.next_timeout();
        if !is_busy {
            shared.will_sleep();
        }
        self.due = due;
        PendingWork {
            now,
            due,
            is_busy,
            is_full: false,
            is_over: is_left && self.outbox.ready.is_empty(),
        }
    }

    fn wake(&mut self) -> bool {
        let any = !self.woken.is_empty();
        self.woken.drain(..).for_each(Waker::wake);
        any
    }

    /// Completes a turn after [`receive`](TurnBuffers::receive).
    pub fn run(&mut self, shared: &EndpointShared) -> PendingWork {
        let mut next = {
            let mut core = shared.lock();
            self.take_in(shared, &mut core);
            let next = self.put_out(shared, &mut core);
            core.woken(&mut self.woken);
            next
        };
        self.wake();
        next.is_full = !self.outbox.flush(shared, &self.socket, &self.further);
        next
    }

    /// Sends the packets of an application's call within that call. Returns false if the driver must do the rest.
    pub fn run_in_call(&mut self, shared: &EndpointShared) -> bool {
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
        next.is_full = !self.outbox.flush(shared, &self.socket, &self.further);
        self.due = next.due.min(drivers_due);
        next.due >= drivers_due && !next.is_busy && !next.is_full && !next.is_over
    }

    /// First half of a turn; returns whether tasks were woken. Their data may leave with the second half.
    #[cfg(feature = "runtime-tokio")]
    pub fn begin(&mut self, shared: &EndpointShared) -> bool {
        {
            let mut core = shared.lock();
            self.take_in(shared, &mut core);
            core.woken(&mut self.woken);
        }
        self.has_paused = self.wake();
        self.has_paused
    }

    /// Second half of a turn, without sending.
    #[cfg(feature = "runtime-tokio")]
    pub fn end(&mut self, shared: &EndpointShared) -> PendingWork {
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

    /// Whether packets wait for [`flush`](TurnBuffers::flush).
    #[cfg(feature = "runtime-tokio")]
    pub fn has_more(&self) -> bool {
        !self.outbox.ready.is_empty()
    }

    /// Sends the filled buffers; false if the socket is full.
    #[cfg(feature = "runtime-tokio")]
    pub fn flush(&mut self, shared: &EndpointShared) -> bool {
        self.outbox.flush(shared, &self.socket, &self.further)
    }
}
