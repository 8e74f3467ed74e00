//! A relay's loop: receive, deliver due packets, wait.

use super::clients::RelayClients;
use super::datagrams::HEADERS;
use super::direction::{Arriving, Out, RelayDirection, damage};
use super::shared::{RelayShared, lock};
use super::watch::{MissedDatagram, RelaySide, RelayTap, RelayedDatagram};
use crate::clock::Clock;
use crate::socket::{ReceiveBatch, ReceivedDatagram, SendResult, Socket};
use crate::wait::{Interest, exact_timers, first_in_turn, wait};
use narrows_base::{Duration, Time};
use narrows_link::LinkChange;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most consecutive receives of one socket before due packets are delivered.
const BATCHES: usize = 4;
/// Most datagrams that wait for space in a socket; further ones are lost.
const STUCK: usize = 1024;

pub(super) struct Runner {
    pub shared: Arc<RelayShared>,
    pub clock: Clock,
    pub watch: Option<Arc<dyn RelayTap>>,
    pub front: Socket,
    pub to: SocketAddr,
    pub seed: u64,
    pub forward: RelayDirection,
    pub reverse: RelayDirection,
    pub clients: RelayClients,
    /// Pending changes of the links, the next one last.
    pub changes: Vec<(Time, usize, LinkChange)>,
}

/// Datagrams that wait for space in a socket, in order.
type Stuck = VecDeque<(u32, Vec<u8>, u8)>;

impl Runner {
    pub fn run(mut self) {
        exact_timers();
        first_in_turn();
        let mut batch = ReceiveBatch::new(16);
        let mut stuck_forward = Stuck::new();
        let mut stuck_reverse = Stuck::new();
        let mut swept = self.clock.now();
        while !self.shared.stop.load(Ordering::Acquire) {
            // Read before the sockets are emptied: all earlier datagrams are on the links then, and the links can
            // advance to this time.
            let now = self.clock.now();
            let mut all_forward = false;
            let mut all_reverse = true;
            for _ in 0..BATCHES {
                if self.front.receive(&mut batch) == 0 {
                    all_forward = true;
                    break;
                }
                self.accept_forward(&mut batch);
            }
            for (number, client) in self.clients.iter_mut() {
                let mut emptied = false;
                let mut is_answered = false;
                for _ in 0..BATCHES {
                    if client.socket.receive(&mut batch) == 0 {
                        emptied = true;
                        break;
                    }
                    let to = self.to;
                    let reverse = &mut self.reverse;
                    let watch = &self.watch;
                    let local = client.socket.local();
                    batch.each(&self.clock, true, |datagram| {
                        // Ignore datagrams that are not from B.
                        if datagram.from == to {
                            is_answered = true;
                            if let Some(watch) = watch {
                                watch.passed(&arrived(&datagram, RelaySide::Server, local, number));
                            }
                            let random_key = client.reverse.next();
                            reverse.accept(arriving(&datagram, number, random_key));
                        }
                    });
                }
                if is_answered {
                    client.on_answer(now);
                }
                all_reverse &= emptied;
            }
            self.hand_over(now, (all_forward, all_reverse), &mut stuck_forward, &mut stuck_reverse);
            self.change_links(now);
            if now.since(swept) > Duration::from_secs(1) {
                self.clients.forget(now);
                swept = now;
            }
            if all_forward && all_reverse {
                self.wait(&stuck_forward, &stuck_reverse);
            }
        }
        self.shared.over.store(true, Ordering::Release);
    }

    /// Passes the clients' datagrams to the link towards B.
    fn accept_forward(&mut self, batch: &mut ReceiveBatch) {
        let mut refused = 0;
        let clients = &mut self.clients;
        let forward = &mut self.forward;
        let to = self.to;
        let seed = self.seed;
        let watch = &self.watch;
        let local = self.front.local();
        batch.each(&self.clock, true, |datagram| {
            match clients.from(datagram.at, datagram.from, to, seed) {
                Some((number, client)) => {
                    if let Some(watch) = watch {
                        watch.passed(&arrived(&datagram, RelaySide::Clients, local, number));
                    }
                    forward.accept(arriving(&datagram, number, client.forward.next()));
                }
                None => refused += 1,
            }
        });
        if refused > 0 {
            lock(&self.shared.counts).stats.refused += refused;
        }
    }

    /// Sends due packets. A link advances to `now` only if its socket was emptied, else to the last arrival, because
    /// the socket may hold earlier datagrams.
    fn hand_over(
        &mut self,
        now: Time,
        all: (bool, bool),
        stuck_forward: &mut Stuck,
        stuck_reverse: &mut Stuck,
    ) {
        let mut counts = lock(&self.shared.counts);
        let counts = &mut *counts;
        let clients = &self.clients;
        let front = &self.front;
        let clock = &self.clock;
        let to = self.to;
        let send = |socket: &Socket, (client, peer), side, bytes: &[u8], ecn| {
            let sent = socket.send(peer, bytes, bytes.len(), ecn);
            if let Some(watch) = self.watch.as_ref().filter(|_| sent == SendResult::Gone) {
                let at = clock.now();
                let local = socket.local();
                watch.passed(&RelayedDatagram {
                    at,
                    side,
                    sent: true,
                    local,
                    peer,
                    client,
                    ecn,
                    bytes,
                });
            }
            sent
        };
        let to_b = |client: u32, bytes: &[u8], ecn| match clients.get(client) {
            Some(c) => send(&c.socket, (client, to), RelaySide::Server, bytes, ecn),
            None => SendResult::Gone,
        };
        let to_client = |client: u32, bytes: &[u8], ecn| match clients.get(client) {
            Some(c) => send(front, (client, c.address), RelaySide::Clients, bytes, ecn),
            None => SendResult::Gone,
        };
        for (direction, emptied, stuck, send) in [
            (
                &mut self.forward,
                all.0,
                stuck_forward,
                &to_b as &dyn Fn(u32, &[u8], u8) -> SendResult,
            ),
            (&mut self.reverse, all.1, stuck_reverse, &to_client),
        ] {
            while let Some((client, bytes, ecn)) = stuck.front() {
                if send(*client, bytes, *ecn) == SendResult::Full {
                    break;
                }
                stuck.pop_front();
            }
            let until = if emptied { now } else { direction.latest().min(now) };
            direction.deliver(until, |Out { flow: client, bytes, ecn, due, corrupt }| {
                if let Some(random_key) = corrupt {
                    damage(bytes, random_key);
                }
                if !stuck.is_empty() || send(client, bytes, ecn) == SendResult::Full {
                    if stuck.len() < STUCK {
                        stuck.push_back((client, bytes.to_vec(), ecn));
                    }
                    return;
                }
                counts.late.record(clock.now().since(due));
            });
        }
        if let Some(watch) = &self.watch {
            for (direction, link) in [&mut self.forward, &mut self.reverse].into_iter().enumerate()
            {
                for (at, client, dropped) in link.missed() {
                    watch.missed(&MissedDatagram { at, direction, client, dropped });
                }
            }
        }
        counts.stats.forward = self.forward.stats;
        counts.stats.reverse = self.reverse.stats;
        for (n, direction) in [&mut self.forward, &mut self.reverse].into_iter().enumerate() {
            let (waiting, max) = direction.waiting(now);
            if let (Some(w), Some(m)) = (counts.waiting.get_mut(n), counts.max.get_mut(n)) {
                *w = waiting;
                *m = (*m).max(max);
            }
        }
        counts.stats.clients = self.clients.len();
        counts.stats.clients_seen = self.clients.seen();
        counts.stats.clients_replaced = self.clients.replaced();
        counts.stats.errors = self.clients.errors() + self.front.errors();
    }

    /// Applies due changes, after the packets due before them were delivered.
    fn change_links(&mut self, now: Time) {
        let new = std::mem::take(&mut *lock(&self.shared.changes));
        if !new.is_empty() {
            self.changes.extend(new);
            self.changes.sort_by_key(|c| std::cmp::Reverse(c.0));
        }
        while let Some((at, direction, change)) = self.changes.pop_if(|c| c.0 <= now) {
            let direction = if direction == 0 { &mut self.forward } else { &mut self.reverse };
            direction.change(at, &change);
        }
    }

    fn wait(&self, stuck_forward: &Stuck, stuck_reverse: &Stuck) {
        let change = self.changes.last().map_or(Time::NEVER, |c| c.0);
        let due = self.forward.next_timeout().min(self.reverse.next_timeout()).min(change);
        let front = Interest { socket: &self.front, room: !stuck_reverse.is_empty() };
        let room = !stuck_forward.is_empty();
        let clients = self.clients.iter().map(|c| Interest { socket: &c.socket, room });
        let now = self.clock.now();
        // If the system refuses to wait, avoid spinning.
        if wait([front].into_iter().chain(clients), &self.shared.waker, now, due).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Converts a received datagram for its link.
fn arriving<'a>(datagram: &'a ReceivedDatagram<'_>, client: u32, random_key: u32) -> Arriving<'a> {
    // A UDP datagram's length always fits.
    let size = u32::try_from(datagram.bytes.len()).unwrap_or(u32::MAX - HEADERS) + HEADERS;
    Arriving {
        at: datagram.at,
        flow: client,
        random_key,
        size,
        ecn: datagram.ecn,
        bytes: datagram.bytes,
    }
}

/// Converts a received datagram for an observer.
fn arrived<'a>(
    datagram: &'a ReceivedDatagram<'_>,
    side: RelaySide,
    local: SocketAddr,
    client: u32,
) -> RelayedDatagram<'a> {
    let ReceivedDatagram { from, at, ecn, ref bytes } = *datagram;
    RelayedDatagram { at, side, sent: false, local, peer: from, client, ecn, bytes }
}
